"""Shardings as protos: ``OpSharding`` from and to canonical text (text spec, sections 1.11 and 7.5)."""

from __future__ import annotations

import math

from layoutsim.errors import ParseError
from layoutsim.ir.replica_groups import DeviceMesh, MeshAxis, canonical_iota
from layoutsim.proto.devices import read_axis, read_mesh, write_axis, write_mesh
from layoutsim.proto.metadata import metadata_fields_text, write_metadata
from layoutsim.proto.schema import Message
from layoutsim.text.device_syntax import tuple_sharding
from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.source import Source

_REPLICATED, _MAXIMAL, _TUPLE, _OTHER, _MANUAL, _UNKNOWN, _UNREDUCED = range(7)
_TYPE_WORDS = {
    _REPLICATED: "replicated",
    _MAXIMAL: "maximal",
    _MANUAL: "manual",
    _UNKNOWN: "unknown",
    _UNREDUCED: "unreduced",
}
_TYPES = {word: number for number, word in _TYPE_WORDS.items()}
_NAMED_AXES = ("replicated", "unreduced", "manual")
"""Lists of axes that a named sharding states behind its dimensions, in print order."""


# -- proto to text ---------------------------------------------------------------------------------------------------------


def sharding_text(proto: Message) -> str:
    """Canonical text, with braces.

    Raises:
        ParseError: the message contradicts itself.
    """
    if proto.type == _TUPLE:
        return tuple_sharding([sharding_text(leaf) for leaf in proto.tuple_shardings])
    if proto.HasField("named_sharding"):
        return _named_text(proto.named_sharding)
    body = _TYPE_WORDS.get(proto.type)
    if proto.type == _MAXIMAL:
        if len(proto.tile_assignment_devices) != 1:
            raise ParseError(f"a maximal sharding names {len(proto.tile_assignment_devices)} devices, expected 1")
        body = f"maximal device={proto.tile_assignment_devices[0]}"
    elif proto.type == _OTHER:
        body = _tiled_text(proto)
    if body is None:
        raise ParseError(f"unknown sharding type number {proto.type}")
    return "{" + body + _group_text(proto) + _metadata_text(proto.metadata) + "}"


def _tiled_text(proto: Message) -> str:
    dims = list(proto.tile_assignment_dimensions)
    text = f"devices=[{','.join(map(str, dims))}]"
    reshape, permutation = tuple(proto.iota_reshape_dims), tuple(proto.iota_transpose_perm)
    if reshape:
        if math.prod(reshape) != math.prod(dims) or sorted(permutation) != list(range(len(reshape))):
            raise ParseError(f"a sharding over {dims} does not fit devices {list(reshape)} transposed by {list(permutation)}")
        text += _iota_text(*canonical_iota(reshape, permutation))
    else:
        if len(proto.tile_assignment_devices) != math.prod(dims):
            raise ParseError(f"a sharding over {dims} lists {len(proto.tile_assignment_devices)} devices")
        text += ",".join(map(str, proto.tile_assignment_devices))
    if proto.replicate_on_last_tile_dim:
        text += " last_tile_dim_replicate"
    if proto.last_tile_dims:
        text += " last_tile_dims={" + ", ".join(_TYPE_WORDS.get(t, "unknown") for t in proto.last_tile_dims) + "}"
    return text


def _iota_text(reshape: tuple[int, ...], permutation: tuple[int, ...]) -> str:
    transposed = f"T({','.join(map(str, permutation))})" if len(reshape) > 1 else ""
    return f"<=[{','.join(map(str, reshape))}]{transposed}"


def _group_text(proto: Message) -> str:
    if not proto.is_shard_group:
        return ""
    return f" shard_{'like' if proto.shard_group_type else 'as'} {proto.shard_group_id}"


def _metadata_text(metadata: Message) -> str:
    if not metadata:
        return ""
    texts = [metadata_fields_text(one) for one in metadata]
    return " metadata={" + (texts[0] if len(texts) == 1 else ", ".join(f"{{{text}}}" for text in texts)) + "}"


def _named_text(proto: Message) -> str:
    texts = [f"{{{metadata_fields_text(m)}}}" for m in proto.metadata]
    notes = f", metadata={{{', '.join(texts)}}}" if texts else ""
    if not proto.mesh.axes and len(proto.mesh.device_ids) == 1:
        return f"{{maximal_mesh[device_id={proto.mesh.device_ids[0]}]{notes}}}"
    mesh = read_mesh(proto.mesh) if proto.mesh.axes else DeviceMesh(())
    axes = {word: [read_axis(a, mesh).to_text() for a in getattr(proto, f"{word}_axes")] for word in _NAMED_AXES}
    if not proto.dim_shardings and not axes["replicated"]:
        whole = next((word for word in ("unreduced", "manual") if axes[word]), "replicated")
        return f"{{{mesh.to_text()}, {whole}{notes}}}"
    dims = ", ".join(_dimension_text(dim, mesh) for dim in proto.dim_shardings)
    lists = "".join(f", {word}={{{', '.join(axes[word])}}}" for word in _NAMED_AXES if axes[word])
    return f"{{{mesh.to_text()}, [{dims}]{lists}{notes}}}"


def _dimension_text(proto: Message, mesh: DeviceMesh) -> str:
    parts = [read_axis(axis, mesh).to_text() for axis in proto.axes] + ([] if proto.is_closed else ["?"])
    return "{" + ", ".join(parts) + "}"


# -- text to proto ---------------------------------------------------------------------------------------------------------


def write_sharding(text: str, proto: Message) -> None:
    """Fill an ``OpSharding`` from canonical text."""
    lexer = Lexer(Source(text))
    _write_any(lexer, proto)


def _write_any(lexer: Lexer, proto: Message) -> None:
    lexer.expect("{")
    if lexer.kind in ("{", "}"):
        proto.type = _TUPLE
        while lexer.text[lexer.start] == "{":
            _write_any(lexer, proto.tuple_shardings.add())
            lexer.eat(",")
    elif lexer.value in ("mesh", "maximal_mesh"):
        proto.type = _OTHER
        _write_named(lexer, proto.named_sharding)
    else:
        _write_leaf(lexer, proto)
    lexer.expect("}")


def _write_leaf(lexer: Lexer, proto: Message) -> None:
    if lexer.value == "devices":
        proto.type = _OTHER
        _write_tiled(lexer, proto)
    else:
        proto.type = _TYPES[lexer.value]
        lexer.advance()
    while lexer.kind != "}":
        word = lexer.value
        lexer.advance()
        if word == "device":
            proto.tile_assignment_dimensions.append(1)
            proto.tile_assignment_devices.append(lexer.integer())
        elif word == "metadata":
            _write_metadata_list(lexer, proto.metadata)
        elif word in ("shard_as", "shard_like"):
            proto.is_shard_group = True
            proto.shard_group_type = int(word == "shard_like")
            proto.shard_group_id = lexer.integer()
        elif word == "last_tile_dim_replicate":
            proto.replicate_on_last_tile_dim = True
        elif word == "last_tile_dims":
            proto.last_tile_dims.extend(_TYPES[type_word] for type_word in _words(lexer))
        else:
            raise AssertionError(f"{word} in sharding {lexer.text}")


def _write_tiled(lexer: Lexer, proto: Message) -> None:
    lexer.advance()
    proto.tile_assignment_dimensions.extend(_integers(lexer, "[", "]"))
    if lexer.eat("<="):
        proto.iota_reshape_dims.extend(_integers(lexer, "[", "]"))
        permuted = lexer.at_word("T")
        if permuted:
            lexer.advance()
        proto.iota_transpose_perm.extend(_integers(lexer, "(", ")") if permuted else [0])
        return
    while lexer.kind == Kind.INT:
        proto.tile_assignment_devices.append(lexer.integer())
        lexer.eat(",")


def _write_metadata_list(lexer: Lexer, metadata: Message) -> None:
    text = lexer.json()
    inner = text[1:-1].strip()
    if not inner.startswith("{"):
        write_metadata(text, metadata.add())
        return
    parts = Lexer(Source(inner))
    while parts.kind == "{":
        write_metadata(parts.json(), metadata.add())
        parts.eat(",")


def _write_named(lexer: Lexer, proto: Message) -> None:
    if lexer.value == "maximal_mesh":
        lexer.advance()
        lexer.expect("[")
        lexer.advance()
        proto.mesh.device_ids.append(lexer.integer())
        lexer.expect("]")
    else:
        _write_named_axes(lexer, proto)
    if lexer.kind == Kind.ATTRIBUTE and lexer.value == "metadata":
        lexer.advance()
        _write_metadata_list(lexer, proto.metadata)


def _write_named_axes(lexer: Lexer, proto: Message) -> None:
    mesh = _mesh(lexer)
    write_mesh(mesh, proto.mesh)
    everything = [MeshAxis(name) for name, _ in mesh.axes]
    while lexer.kind != "}" and lexer.value != "metadata":
        word = lexer.value
        if lexer.kind == "[":
            _write_dimensions(lexer, mesh, proto)
        elif lexer.kind == Kind.ATTRIBUTE:
            lexer.advance()
            for axis in _axes(lexer):
                write_axis(axis, mesh, getattr(proto, f"{word}_axes").add())
        else:
            lexer.advance()
            for axis in everything if word in ("unreduced", "manual") else []:
                write_axis(axis, mesh, getattr(proto, f"{word}_axes").add())
        lexer.eat(",")


def _write_dimensions(lexer: Lexer, mesh: DeviceMesh, proto: Message) -> None:
    lexer.expect("[")
    while lexer.kind == "{":
        dimension = proto.dim_shardings.add(is_closed=True)
        lexer.advance()
        while lexer.text[lexer.start] != "}":
            if lexer.eat("?"):
                dimension.is_closed = False
            else:
                write_axis(_axis(lexer), mesh, dimension.axes.add())
            lexer.eat(",")
        lexer.advance()
        lexer.eat(",")
    lexer.expect("]")


def _mesh(lexer: Lexer) -> DeviceMesh:
    """``mesh['a'=2,'b'=4], device_ids=(...),`` up to what follows."""
    lexer.advance()
    lexer.expect("[")
    axes: list[tuple[str, int]] = []
    while lexer.kind == Kind.STRING:
        name = lexer.string()
        lexer.expect("=")
        axes.append((name, lexer.integer()))
        lexer.eat(",")
    lexer.expect("]")
    lexer.eat(",")
    if lexer.value != "device_ids":
        return DeviceMesh(tuple(axes))
    lexer.advance()
    lexer.expect("(")
    ids: tuple[int, ...] = ()
    reshape: tuple[int, ...] = ()
    permutation: tuple[int, ...] = ()
    if lexer.kind == "[":
        reshape = tuple(_integers(lexer, "[", "]"))
        lexer.advance()
        permutation = tuple(_integers(lexer, "(", ")"))
    else:
        found: list[int] = []
        while lexer.kind == Kind.INT:
            found.append(lexer.integer())
            lexer.eat(",")
        ids = tuple(found)
    lexer.expect(")")
    lexer.eat(",")
    return DeviceMesh(tuple(axes), ids, reshape, permutation)


def _axes(lexer: Lexer) -> list[MeshAxis]:
    lexer.expect("{")
    out: list[MeshAxis] = []
    while lexer.kind == Kind.STRING:
        out.append(_axis(lexer))
        lexer.eat(",")
    lexer.expect("}")
    return out


def _axis(lexer: Lexer) -> MeshAxis:
    name = lexer.string()
    if not lexer.eat(":"):
        return MeshAxis(name)
    lexer.expect("(")
    pre_size = lexer.integer()
    lexer.expect(")")
    return MeshAxis(name, pre_size, lexer.integer())


def _integers(lexer: Lexer, opening: str, closing: str) -> list[int]:
    lexer.expect(opening)
    out: list[int] = []
    while lexer.kind == Kind.INT:
        out.append(lexer.integer())
        lexer.eat(",")
    lexer.expect(closing)
    return out


def _words(lexer: Lexer) -> list[str]:
    lexer.expect("{")
    out: list[str] = []
    while lexer.kind != "}":
        out.append(lexer.value)
        lexer.advance()
        lexer.eat(",")
    lexer.advance()
    return out
