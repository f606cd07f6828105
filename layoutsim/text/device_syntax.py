"""Devices in HLO text: iota lists, meshes, replica groups and shardings (text spec, sections 1.11 and 5.1).

Shardings become canonical text: iota lists simplified, axes by name, fields in XLA's order. Replica groups become values and
keep the spelling they had.
"""

from __future__ import annotations

import math
import re

from attrs import frozen

from layoutsim.errors import ShapeError
from layoutsim.ir.replica_groups import (
    MAX_DEVICES,
    DeviceMesh,
    IotaReplicaGroups,
    ListReplicaGroups,
    MeshAxis,
    MeshReplicaGroups,
    ReplicaGroups,
    canonical_iota,
)
from layoutsim.text.annotation_syntax import read_metadata_list
from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.shape_syntax import read_list

Ints = tuple[int, ...]

_BARE = ("replicated", "maximal", "manual", "unknown", "unreduced")
_SUBGROUP_TYPES = ("manual", "replicated", "maximal", "unreduced")


# -- replica groups ----------------------------------------------------------------------------------------------------


def read_replica_groups(lexer: Lexer) -> ReplicaGroups:
    """``{{0,1},{2,3}}``, ``[2,2]<=[4]`` or ``mesh['a'=2,'b'=2] {'b'}``."""
    if lexer.kind == "{":
        return ListReplicaGroups(tuple(read_list(lexer, "{", "}", read_ints)))
    if lexer.at_word("mesh") or lexer.at_word("maximal_mesh"):
        return _read_mesh_groups(lexer)
    start = lexer.start
    sizes = tuple(read_list(lexer, "[", "]", Lexer.integer, "'{', '[' or mesh"))
    if len(sizes) != 2:
        raise lexer.source.error(f"expected [groups,size] with two numbers, got {len(sizes)}", start)
    lexer.expect("<=")
    reshape, transpose = _read_iota(lexer)
    try:
        return IotaReplicaGroups.canonical(sizes[0], sizes[1], reshape, transpose)
    except ShapeError as error:
        raise lexer.source.error(str(error), start) from error


def _read_mesh_groups(lexer: Lexer) -> ReplicaGroups:
    start = lexer.start
    mesh = _read_mesh(lexer)
    if mesh.maximal is not None:
        raise lexer.source.error("maximal_mesh has no groups", start)
    groups = MeshReplicaGroups(mesh.mesh, tuple(_read_axes(lexer, mesh.mesh)))
    if groups.group_size <= 1:
        raise lexer.source.error(f"expected groups of more than one device, got {groups.group_size}", start)
    return groups


def read_ints(lexer: Lexer) -> Ints:
    """``{1,2}``."""
    return tuple(read_list(lexer, "{", "}", Lexer.integer))


def _read_iota(lexer: Lexer) -> tuple[Ints, Ints]:
    """``[4,2]T(1,0)``; one dimension needs no ``T``."""
    reshape = tuple(read_list(lexer, "[", "]", Lexer.integer))
    if not reshape:
        lexer.fail("at least one reshape dimension in front of this")
    if len(reshape) == 1:
        return reshape, (0,)
    if not lexer.at_word("T"):
        lexer.fail("T(...) with the transpose permutation")
    lexer.advance()
    start = lexer.start
    transpose = tuple(read_list(lexer, "(", ")", Lexer.integer))
    if sorted(transpose) != list(range(len(reshape))):
        raise lexer.source.error(f"expected a permutation of 0..{len(reshape) - 1}, got {transpose}", start)
    return reshape, transpose


# -- meshes ------------------------------------------------------------------------------------------------------------


@frozen
class _Mesh:
    """A mesh, or the one device of a ``maximal_mesh``."""

    mesh: DeviceMesh
    maximal: int | None = None

    def to_text(self) -> str:
        return self.mesh.to_text() if self.maximal is None else f"maximal_mesh[device_id={self.maximal}]"


def _read_mesh(lexer: Lexer) -> _Mesh:
    if lexer.at_word("maximal_mesh"):
        return _read_maximal_mesh(lexer)
    if not lexer.at_word("mesh"):
        lexer.fail("mesh or maximal_mesh")
    start = lexer.start
    lexer.advance()
    axes = tuple(read_list(lexer, "[", "]", _read_mesh_axis))
    names = [name for name, _ in axes]
    if len(set(names)) != len(names):
        raise lexer.source.error(f"axis names {names} are not unique", start)
    if math.prod(size for _, size in axes) > MAX_DEVICES:
        raise lexer.source.error(f"expected at most {MAX_DEVICES:,} devices in a mesh", start)
    if not axes or not lexer.eat(","):
        return _Mesh(DeviceMesh(axes))
    if lexer.kind != Kind.ATTRIBUTE or lexer.value != "device_ids":
        return _Mesh(DeviceMesh(axes))  # the comma belonged to a sharding that goes on
    lexer.advance()
    return _Mesh(_read_device_ids(lexer, axes))


def _read_maximal_mesh(lexer: Lexer) -> _Mesh:
    lexer.advance()
    lexer.expect("[")
    if lexer.kind != Kind.ATTRIBUTE or lexer.value != "device_id":
        lexer.fail("device_id=")
    lexer.advance()
    device = lexer.integer()
    lexer.expect("]")
    return _Mesh(DeviceMesh(()), device)


def _read_mesh_axis(lexer: Lexer) -> tuple[str, int]:
    name = lexer.string("an axis name")
    lexer.expect("=")
    start = lexer.start
    size = lexer.integer("an axis size")
    if size < 1:
        raise lexer.source.error(f"expected an axis size of at least 1, got {size}", start)
    return name, size


def _read_device_ids(lexer: Lexer, axes: tuple[tuple[str, int], ...]) -> DeviceMesh:
    count = math.prod(size for _, size in axes)
    start = lexer.start
    lexer.expect("(")
    if lexer.kind == "[":
        reshape, transpose = canonical_iota(*_read_iota(lexer))
        lexer.expect(")")
        if math.prod(reshape) != count:
            raise lexer.source.error(f"expected {count} devices, got {list(reshape)}", start)
        return DeviceMesh(axes) if len(reshape) == 1 else DeviceMesh(axes, (), reshape, transpose)
    ids = [lexer.integer()]
    while lexer.eat(","):
        ids.append(lexer.integer())
    lexer.expect(")")
    if len(ids) != count or sorted(ids) != list(range(count)):
        raise lexer.source.error(f"expected the device ids 0..{count - 1} in some order, got {len(ids)} ids", start)
    if ids == list(range(count)):
        raise lexer.source.error("expected no device_ids for devices in order", start)
    return DeviceMesh(axes, tuple(ids))


def _read_axes(lexer: Lexer, mesh: DeviceMesh) -> list[MeshAxis]:
    return read_list(lexer, "{", "}", lambda inner: _read_axis(inner, mesh))


def _read_axis(lexer: Lexer, mesh: DeviceMesh) -> MeshAxis:
    start = lexer.start
    written = lexer.string("an axis name")
    names = [name for name, _ in mesh.axes]
    name = written
    if name not in names:
        index = int(written) if written.isascii() and written.isdigit() and len(written) < 5 else -1
        if not 0 <= index < len(names):
            raise lexer.source.error(f"expected an axis of {mesh.to_text()}, got {written!r}", start)
        name = names[index]
    if not lexer.eat(":"):
        return MeshAxis(name)
    lexer.expect("(")
    pre_size = lexer.integer()
    lexer.expect(")")
    size = lexer.integer()
    whole = dict(mesh.axes)[name]
    if pre_size < 1 or size < 1 or whole % (pre_size * size):
        raise lexer.source.error(f"({pre_size}){size} does not divide the axis {name!r} of size {whole}", start)
    return MeshAxis(name, pre_size, size)


# -- shardings ---------------------------------------------------------------------------------------------------------


def read_sharding(lexer: Lexer) -> str:
    """Canonical text of a sharding; a tuple sharding is a list of leaves in braces."""
    opening = lexer.start
    lexer.expect("{", "'{' of a sharding")
    if lexer.kind not in ("{", "}"):
        return _read_leaf(lexer, opening)
    leaves: list[str] = []
    if not lexer.eat("}"):
        leaves.append(_read_braced_leaf(lexer))
        while lexer.eat(","):
            leaves.append(_read_braced_leaf(lexer))
        lexer.expect("}", "',' or '}'")
    return tuple_sharding(leaves)


def tuple_sharding(leaves: list[str]) -> str:
    """The text of a tuple sharding with these leaves; every fifth carries its index in a comment."""
    return "{" + ", ".join(f"/*index={i}*/{leaf}" if i and i % 5 == 0 else leaf for i, leaf in enumerate(leaves)) + "}"


_QUOTED = r'"(?:[^"\\]|\\.)*"'
_BLOCK = rf'\{{(?:[^{{}}"]|{_QUOTED}|\{{[^{{}}]*\}})*\}}'
_METADATA = re.compile(rf",? metadata=(?:{_BLOCK}|\{{{_BLOCK}(?:, {_BLOCK})*\}})")


def without_metadata(text: str) -> str:
    """A canonical sharding text without the metadata of its leaves."""
    return _METADATA.sub("", text) if "metadata=" in text else text


def is_tuple_sharding(text: str) -> bool:
    """Whether a canonical sharding text lists one sharding for each leaf."""
    return text.startswith("{{") or text == "{}"


def _read_braced_leaf(lexer: Lexer) -> str:
    opening = lexer.start
    lexer.expect("{", "'{' of a sharding")
    return _read_leaf(lexer, opening)


def _read_leaf(lexer: Lexer, opening: int) -> str:
    """The inside of one leaf's braces, and the closing brace."""
    if lexer.at_word("mesh") or lexer.at_word("maximal_mesh"):
        return _read_named_leaf(lexer)
    leaf = _Leaf()
    while lexer.kind != "}":
        _read_leaf_part(lexer, leaf)
    reason = leaf.problem()
    if reason:
        raise lexer.source.error(reason, opening)
    lexer.advance()
    return leaf.to_text()


class _Leaf:
    """What has been read of one sharding."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.devices: list[int] = []
        self.tile: Ints = ()
        self.iota: tuple[Ints, Ints] | None = None
        self.replicate_last = False
        self.last_tile_dims: list[str] | None = None
        self.group = ""
        self.metadata = ""

    def problem(self) -> str:
        """Why this is no sharding, or nothing."""
        if len(self.words) > 1:
            return f"expected one kind of sharding, got {' and '.join(self.words)}"
        word = self.words[0] if self.words else ""
        if word == "maximal":
            bad = len(self.devices) != 1 or bool(self.tile)
            return "expected exactly one device in a maximal sharding" if bad else ""
        if word:
            return f"expected no devices in a {word} sharding" if self.devices or self.tile else ""
        return self._tile_problem()

    def _tile_problem(self) -> str:
        if not self.tile:
            return "expected devices=[...] or a kind of sharding (replicated, maximal, manual, unknown, unreduced)"
        if any(size < 1 for size in self.tile):
            return f"expected tile dimensions of at least 1, got {list(self.tile)}"
        if self.replicate_last and self.last_tile_dims is not None:
            return "expected last_tile_dim_replicate or last_tile_dims, got both"
        count = math.prod(self.tile)
        found = math.prod(self.iota[0]) if self.iota is not None else 0
        if max(count, found) >= 2**63:
            return "expected a number of devices below 2**63"
        if self.iota is not None:
            return "" if found == count else f"expected {count} devices for tiles {list(self.tile)}, got {found}"
        if len(self.devices) < 2:
            return "expected more than one device in a tiled sharding"
        return "" if len(self.devices) == count else f"expected {count} devices for the tiles, got {len(self.devices)}"

    def to_text(self) -> str:
        word = self.words[0] if self.words else self._devices_text()
        parts = [f"maximal device={self.devices[0]}" if word == "maximal" else word]
        if self.replicate_last:
            parts.append("last_tile_dim_replicate")
        if self.last_tile_dims:
            parts.append("last_tile_dims={" + ", ".join(self.last_tile_dims) + "}")
        parts += [part for part in (self.group, self.metadata and f"metadata={self.metadata}") if part]
        return "{" + " ".join(parts) + "}"

    def _devices_text(self) -> str:
        tile = f"devices=[{','.join(map(str, self.tile))}]"
        if self.iota is None:
            return tile + ",".join(map(str, self.devices))
        reshape, transpose = canonical_iota(*self.iota)
        permuted = f"T({','.join(map(str, transpose))})" if len(reshape) > 1 else ""
        return f"{tile}<=[{','.join(map(str, reshape))}]{permuted}"


def _read_leaf_part(lexer: Lexer, leaf: _Leaf) -> None:
    kind = lexer.kind
    if kind in _BARE:
        leaf.words.append(kind)
        lexer.advance()
    elif kind == "last_tile_dim_replicate":
        leaf.replicate_last = True
        lexer.advance()
    elif kind in ("shard_as", "shard_like"):
        lexer.advance()
        leaf.group = f"{kind} {lexer.integer()}"
    elif kind == Kind.ATTRIBUTE and lexer.value == "device":
        lexer.advance()
        leaf.devices = [lexer.integer("a device id")]
    elif kind == Kind.ATTRIBUTE and lexer.value == "devices":
        lexer.advance()
        _read_tiles(lexer, leaf)
    elif kind == Kind.ATTRIBUTE and lexer.value == "last_tile_dims":
        lexer.advance()
        leaf.last_tile_dims = read_list(lexer, "{", "}", _read_subgroup_type)
    elif kind == Kind.ATTRIBUTE and lexer.value == "metadata":
        lexer.advance()
        leaf.metadata = read_metadata_list(lexer)
    else:
        lexer.fail("a kind of sharding, devices=, last_tile_dims=, shard_as, shard_like, metadata= or '}'")


def _read_tiles(lexer: Lexer, leaf: _Leaf) -> None:
    leaf.tile = tuple(read_list(lexer, "[", "]", Lexer.integer))
    leaf.devices, leaf.iota = [], None
    if lexer.eat("<="):
        leaf.iota = _read_iota(lexer)
        return
    leaf.devices = [lexer.integer("a device id")]
    while lexer.eat(","):
        leaf.devices.append(lexer.integer("a device id"))


def _read_subgroup_type(lexer: Lexer) -> str:
    if lexer.kind not in _SUBGROUP_TYPES:
        lexer.fail("manual, replicated, maximal or unreduced")
    word = lexer.kind
    lexer.advance()
    return word


def _read_named_leaf(lexer: Lexer) -> str:
    mesh = _read_mesh(lexer)
    parts = [mesh.to_text()]
    lexer.eat(",")
    if mesh.maximal is None:
        if lexer.kind in ("replicated", "manual", "unreduced"):
            parts.append(lexer.kind)
            lexer.advance()
        else:
            parts.append(_read_dimension_shardings(lexer, mesh.mesh))
        lexer.eat(",")
    parts += _read_named_extras(lexer, mesh.mesh)
    lexer.expect("}")
    return "{" + ", ".join(parts) + "}"


def _read_dimension_shardings(lexer: Lexer, mesh: DeviceMesh) -> str:
    return "[" + ", ".join(read_list(lexer, "[", "]", lambda inner: _read_dimension(inner, mesh))) + "]"


def _read_dimension(lexer: Lexer, mesh: DeviceMesh) -> str:
    open_seen = False

    def read_item(inner: Lexer) -> str:
        nonlocal open_seen
        if open_seen:
            inner.fail("'}' behind '?'")
        if inner.eat("?"):
            open_seen = True
            return "?"
        return _read_axis(inner, mesh).to_text()

    return "{" + ", ".join(read_list(lexer, "{", "}", read_item)) + "}"


def _read_named_extras(lexer: Lexer, mesh: DeviceMesh) -> list[str]:
    found: dict[str, str] = {}
    while lexer.kind == Kind.ATTRIBUTE:
        name = lexer.value
        if name in found or name not in ("replicated", "unreduced", "manual", "metadata"):
            lexer.fail("replicated=, unreduced=, manual= or metadata=, each once")
        lexer.advance()
        if name == "metadata":
            found[name] = read_metadata_list(lexer)
        else:
            axes = [axis.to_text() for axis in _read_axes(lexer, mesh)]
            found[name] = "{" + ", ".join(axes) + "}" if axes else ""
        if lexer.kind != "}":
            lexer.expect(",", "',' or '}'")
    order = ("replicated", "unreduced", "manual", "metadata")
    return [f"{name}={found[name]}" for name in order if found.get(name)]
