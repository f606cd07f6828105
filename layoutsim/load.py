"""Read a module from a file, a dump folder or an archive: :func:`load`; what a dump offers: :func:`list_dump`.

What a path may be, in the order it is tried:

1. a folder, or a ``.tar``, ``.tgz``, ``.tar.gz`` of one: an XLA dump (``--xla_dump_to``) or a folder with ``before_layout``,
   ``after_layout`` and ``final`` files;
2. ``gzip`` data (recognised by its content, not its name), unpacked first;
3. a binary proto: the name holds ``.pb``, or the data holds control characters;
4. HLO text otherwise.

How stages are found among the files of one module in a dump (names as of ``xla/service/dump.cc``; XLA writes a file after
each pass that changed the module, numbered in the order they ran):

5. ``before_layout``: ``N.PIPELINE.after_X.before_layout-assignment``; where that name is missing, because nothing changed
   between the last dump and the pass, the dump numbered just before ``after_layout-assignment``.
6. ``after_layout``: ``N.PIPELINE.after_layout-assignment.before_Y``; where that is missing although a dump says
   ``before_layout-assignment``, the pass changed nothing and the two are the same.
7. ``scheduled``: ``TARGET_after_optimizations``.
8. ``before_optimizations``: as the frontend wrote it.

Text is preferred to a proto of the same stage, because the proto does not hold partition and replica counts. But text is in
post-order, and only the ids in the proto tell in which order XLA stores instructions, which decides some layouts on CPU. Where
a text has its proto beside it (``--xla_dump_hlo_as_proto``), they are stored in that order. An entry layout that a text leaves
out is automatic (unset): XLA prints every layout that is set.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

from attrs import field, frozen

from layoutsim.errors import InputError, ParseError
from layoutsim.ir import Module
from layoutsim.text import ParseOptions, parse_module

BEFORE_LAYOUT = "before_layout"
AFTER_LAYOUT = "after_layout"
SCHEDULED = "scheduled"
BEFORE_OPTIMIZATIONS = "before_optimizations"

STAGES = (BEFORE_LAYOUT, AFTER_LAYOUT, SCHEDULED, BEFORE_OPTIMIZATIONS)
"""The stages that can be asked for; a dump folder gives the first of them that it has unless told otherwise."""

MAX_BYTES = 4 << 30
"""Unpacked size from which on a file is refused: no dump is that large, but a malicious archive may be."""

_PART_BYTES = 1 << 24

_KEEP_AUTOMATIC = ParseOptions(keep_module_auto_layouts=True)

_ALIASES = {
    "before layout assignment": BEFORE_LAYOUT,
    "before layout": BEFORE_LAYOUT,
    "after layout assignment": AFTER_LAYOUT,
    "after layout": AFTER_LAYOUT,
    "scheduled": SCHEDULED,
    "final": SCHEDULED,
    "after optimizations": SCHEDULED,
    "before optimizations": BEFORE_OPTIMIZATIONS,
}

_SUFFIX = r"(?P<suffix>(?:\.hlo)?(?:\.txt|\.hlo|\.pb)?(?:\.gz)?)"
_MODULE = r"(?P<module>.+?)(?:\.cl_\d+)?"  # TPU's compiler adds the number of the change it was built from
_NUMBERED = re.compile(rf"{_MODULE}\.(?P<number>\d{{4,}})\.(?P<passes>.*?\.after_.*?){_SUFFIX}")
_FINAL = re.compile(rf"{_MODULE}\.(?:cpu_|gpu_|(?:sm_|gfx)[\w.]*_gpu_)?after_optimizations{_SUFFIX}")
_FIRST = re.compile(rf"{_MODULE}\.before_optimizations{_SUFFIX}")
_PLAIN = re.compile(rf"(?:(?P<module>.+?)\.)?(?P<stage>before_layout|after_layout|before|after|final){_SUFFIX}")
_PLAIN_STAGES = {"before": BEFORE_LAYOUT, "after": AFTER_LAYOUT, "final": SCHEDULED}


@frozen
class DumpFile:
    """One stage of one module in a dump.

    Attributes:
        module: XLA's file name prefix (``module_0004.jit_step``); the folder's name where files carry none.
        size_bytes: of the file as it lies there, packed or not.
    """

    module: str
    stage: str
    file: str
    size_bytes: int


def load(path: str | os.PathLike[str], stage: str | None = None, *, module: str | None = None) -> Module:
    """Read one module.

    Args:
        path: ``.hlo``, ``.txt`` or ``.pb`` (or ``.gz`` of one), a dump folder, or an archive of one.
        stage: for dumps, one of :data:`STAGES`, or in words ("before layout assignment"); the first that exists if absent.
        module: for dumps with several modules, (part of) the name of the one to take; the largest if absent.

    Raises:
        InputError: the path cannot be read, or has no such stage or module; the message lists what there is.
        ParseError: what was read is not valid HLO.
    """
    place = Path(path)
    wanted = _stage_named(stage)
    files = _container(place)
    if files is not None:
        chosen = _choose(place, _stages_in(place, files), wanted, module)
        return _parse(files, chosen.file, place)
    if stage is not None or module is not None:
        what = "stage" if stage is not None else "module"
        raise InputError(f"{place}: a {what} can be chosen in a dump folder or an archive of one, and this is a single file")
    if place.is_file():
        return _parse(_folder(place.parent), place.name, place.parent)
    return parse_bytes(_read_file(place), str(place))


def list_dump(path: str | os.PathLike[str]) -> tuple[DumpFile, ...]:
    """The stages of all modules in a dump folder or archive, by module, then in the order of :data:`STAGES`.

    Raises:
        InputError: the path is neither, or cannot be read.
    """
    place = Path(path)
    files = _container(place)
    if files is None:
        raise InputError(f"{place}: expected a dump folder or an archive of one, got a single file")
    return _stages_in(place, files)


def parse_bytes(data: bytes, path: str) -> Module:
    """The module in the bytes of a file; ``path`` (for messages) tells protos by ``.pb`` in its name.

    Raises:
        InputError: damaged gzip data, or protobuf is not installed.
        ParseError: not valid HLO.
    """
    data = _unpack(data, path)
    if _is_binary(data, path):
        from layoutsim.proto import module_from_bytes  # protobuf is an extra

        return module_from_bytes(data, path)
    return parse_module(_decode(data, path), path=path, options=_KEEP_AUTOMATIC)


def _parse(files: _Files, name: str, place: Path) -> Module:
    """The module in a file, stored in the order of the proto beside it."""
    module = parse_bytes(files.read(name), str(place / name))
    twin = _proto_beside(name, files.sizes)
    if twin is not None:
        store_as_in_proto(module, files.read(twin), str(place / twin))
    return module


def store_as_in_proto(module: Module, proto: bytes, path: str = "module.pb") -> None:
    """Give a module read from text what only its proto tells.

    That is the order in which XLA stored the instructions, and which scalars of the entry's signature are automatic. (The order
    of users is in neither; where the compiler rewrote a module, it need not follow the stored one.) Without protobuf, or where
    the proto is damaged or of another module, the order of the text stays.
    """
    with suppress(InputError, ParseError):
        _store_like(module, parse_bytes(proto, path))


def _proto_beside(name: str, names: Collection[str]) -> str | None:
    stem = re.sub(r"(\.hlo)?(\.txt)?(\.gz)?$", "", name)
    twins = (f"{stem}{ending}" for ending in (".hlo.pb", ".pb", ".hlo.pb.gz", ".pb.gz"))
    return None if ".pb" in name else next((twin for twin in twins if twin in names), None)


def _store_like(module: Module, other: Module) -> None:
    """Give the instructions of ``module`` the order that ``other`` has them in, where both have the same ones.

    The entry's signature is taken over as well: text prints scalars alike with and without a layout.
    """
    if str(module.entry_layout) == str(other.entry_layout):
        module.entry_layout = other.entry_layout
    orders = {computation.name: [i.name for i in computation.instructions] for computation in other.computations}
    for computation in module.computations:
        by_name = {instruction.name: instruction for instruction in computation.instructions}
        order = orders.get(computation.name, [])
        if by_name.keys() == set(order):
            computation.reorder(by_name[name] for name in order)


# -- bytes -----------------------------------------------------------------------------------------------------------------


def _is_binary(data: bytes, path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return ".pb" in name or re.search(rb"[\x00-\x08\x0e-\x1f]", data[:4096]) is not None


def _decode(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        line = data[start:].split(b"\n", 1)[0].decode("utf-8", "replace")
        raise ParseError(
            f"expected UTF-8 text, got byte 0x{data[error.start]:02x}",
            line=data.count(b"\n", 0, error.start) + 1,
            column=len(data[start : error.start].decode("utf-8")) + 1,
            source_line=line,
            path=path,
        ) from None


def _unpack(data: bytes, path: str) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    unpacked = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while part := stream.read(_PART_BYTES):  # a single large read would take its memory at once
                unpacked += part
                if len(unpacked) > MAX_BYTES:
                    raise InputError(f"{path}: more than {MAX_BYTES} bytes when unpacked")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged gzip data: {error}") from error
    return bytes(unpacked)


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


# -- folders and archives --------------------------------------------------------------------------------------------------


@frozen
class _Files:
    """The files of a folder or archive: names relative to it with sizes, and how to read one."""

    sizes: Mapping[str, int]
    read: Callable[[str], bytes] = field(repr=False)


def _container(path: Path) -> _Files | None:
    """The files in a folder or an archive, ``None`` for a single file."""
    if path.is_dir():
        return _folder(path)
    if not path.name.endswith((".tgz", ".tar.gz", ".tar")):
        return None
    try:
        with tarfile.open(path) as archive:
            sizes = {member.name: member.size for member in archive if member.isfile()}
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise InputError(f"{path}: cannot be read as an archive: {getattr(error, 'strerror', None) or error}") from error
    return _Files(dict(sorted(sizes.items())), lambda name: _read_member(path, name))


def _folder(path: Path) -> _Files:
    try:
        sizes = {entry.name: entry.stat().st_size for entry in os.scandir(path) if entry.is_file()}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return _Files(dict(sorted(sizes.items())), lambda name: _read_file(path / name))


def _read_member(path: Path, name: str) -> bytes:
    try:
        with tarfile.open(path) as archive:
            member = archive.extractfile(name)
            assert member is not None, name
            return member.read()
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise InputError(f"{path}: cannot read {name} in this archive: {error}") from error


# -- stages ----------------------------------------------------------------------------------------------------------------


def _stage_named(stage: str | None) -> str | None:
    if stage is None:
        return None
    found = _ALIASES.get(re.sub(r"[\s_-]+", " ", stage.strip().lower()))
    if found is None:
        raise InputError(f"unknown stage {stage!r}, expected one of {', '.join(STAGES)}")
    return found


@frozen
class _Named:
    """A file name taken apart: which module, and either a stage or (number, passes) of a dump between two passes."""

    module: str
    file: str
    stage: str = ""
    number: int = -1
    passes: str = ""

    @property
    def is_text(self) -> bool:
        return ".pb" not in self.file.rsplit("/", 1)[-1]


def _stages_in(place: Path, files: _Files) -> tuple[DumpFile, ...]:
    """All stages of all modules, rules 5 to 8."""
    by_module: dict[str, list[_Named]] = {}
    for name in files.sizes:
        taken_apart = _take_apart(name, place.resolve().name)
        if taken_apart is not None:
            by_module.setdefault(taken_apart.module, []).append(taken_apart)
    out: list[DumpFile] = []
    for module, named in by_module.items():
        found = _stages_of_module(sorted(named, key=lambda n: (not n.is_text, n.number)))
        out += [DumpFile(module, stage, found[stage], files.sizes[found[stage]]) for stage in STAGES if stage in found]
    return tuple(out)


def _take_apart(path: str, container: str) -> _Named | None:
    folder, _, name = path.rpartition("/")
    prefix = f"{folder}/" if folder else ""
    if match := _NUMBERED.fullmatch(name):
        return _Named(prefix + match["module"], path, number=int(match["number"]), passes=match["passes"])
    for pattern, stage in ((_FINAL, SCHEDULED), (_FIRST, BEFORE_OPTIMIZATIONS)):
        if match := pattern.fullmatch(name):
            return _Named(prefix + match["module"], path, stage)
    if match := _PLAIN.fullmatch(name):
        stage = _PLAIN_STAGES.get(match["stage"], match["stage"])
        return _Named(prefix + (match["module"] or container), path, stage)
    return None


def _stages_of_module(named: list[_Named]) -> dict[str, str]:
    """Stage -> file name; ``named`` has texts first, each group by number."""
    found: dict[str, str] = {}
    for file in named:
        if file.stage:
            found.setdefault(file.stage, file.file)
    between = [n for n in named if not n.stage and n.is_text] or [n for n in named if not n.stage]
    after = next((i for i, n in enumerate(between) if _ran_last(n, "layout-assignment")), None)
    before = next((i for i in reversed(range(len(between))) if _runs_next(between[i], "layout-assignment")), None)
    if before is None and after:
        before = after - 1  # (5)
    if after is None:
        after = before  # (6)
    if before is not None:
        found.setdefault(BEFORE_LAYOUT, between[before].file)
    if after is not None:
        found.setdefault(AFTER_LAYOUT, between[after].file)
    return found


def _ran_last(file: _Named, pass_name: str) -> bool:
    return re.search(rf"\.after_{pass_name}(\.|$)", file.passes) is not None


def _runs_next(file: _Named, pass_name: str) -> bool:
    return re.search(rf"\.before_{pass_name}(\.|$)", file.passes) is not None


def _choose(place: Path, dump: tuple[DumpFile, ...], stage: str | None, module: str | None) -> DumpFile:
    """The file asked for; of several modules the one whose file is largest.

    Raises:
        InputError: nothing fits; the message lists what there is.
    """
    if not dump:
        raise InputError(f"{place}: no HLO dump found here (expected names like module_0001.jit_step.before_optimizations.txt)")
    of_module = [file for file in dump if module is None or module in file.module]
    if not of_module:
        names = ", ".join(dict.fromkeys(file.module for file in dump))
        raise InputError(f"{place}: no module {module!r}; there are {names}")
    exact = [file for file in of_module if file.module == module]
    candidates = exact or of_module
    wanted = stage or next(s for s in STAGES if any(file.stage == s for file in candidates))
    fitting = [file for file in candidates if file.stage == wanted]
    if not fitting:
        raise InputError(f"{place}: no stage {wanted}; there are {_listing(candidates)}")
    return max(fitting, key=lambda file: file.size_bytes)


def _listing(files: list[DumpFile]) -> str:
    by_module: dict[str, list[str]] = {}
    for file in files:
        by_module.setdefault(file.module, []).append(file.stage)
    return "; ".join(f"{', '.join(stages)} of {module}" for module, stages in by_module.items())
