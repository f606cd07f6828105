"""Values of opcode-specific attributes: windows, paddings, slices, dimension labels, aliasing (text spec, section 1.8)."""

from __future__ import annotations

from collections.abc import Callable

from layoutsim.ir.payloads import (
    Aliasing,
    ConvolutionDimensionNumbers,
    DomainPayload,
    PadPayload,
    SlicePayload,
    Window,
    WindowDimension,
)
from layoutsim.text.annotation_syntax import read_sub_attributes
from layoutsim.text.device_syntax import read_sharding
from layoutsim.text.lexer import INT64_MIN, Kind, Lexer
from layoutsim.text.shape_syntax import read_list, read_shape_index

Ints = tuple[int, ...]

_WINDOW_FIELDS = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def read_window(lexer: Lexer) -> Window:
    """``{size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate=1x2 rhs_dilate=1x1 rhs_reversal=1x0}``, in any order."""
    opening = lexer.start
    lexer.expect("{")
    fields: dict[str, list[Ints]] = {}
    while not lexer.eat("}"):
        name = lexer.value
        if lexer.kind != Kind.ATTRIBUTE or name not in _WINDOW_FIELDS or name in fields:
            lexer.fail(f"one of {', '.join(f'{f}=' for f in _WINDOW_FIELDS if f not in fields)} or '}}'")
        lexer.advance()
        fields[name] = read_padding(lexer, (2,)) if name == "pad" else [(size,) for size in _read_sizes(lexer)]
    rank = len(fields.get("size", []))
    for name, values in fields.items():
        if len(values) != rank:
            raise lexer.source.error(f"expected {rank} entries in {name}= as in size=, got {len(values)}", opening)
    return Window(tuple(_window_dimension(fields, i) for i in range(rank)))


def _window_dimension(fields: dict[str, list[Ints]], i: int) -> WindowDimension:
    def at(name: str, default: Ints) -> Ints:
        return fields[name][i] if name in fields else default

    low, high = at("pad", (0, 0))
    return WindowDimension(
        size=at("size", (0,))[0],
        stride=at("stride", (1,))[0],
        padding_low=low,
        padding_high=high,
        window_dilation=at("rhs_dilate", (1,))[0],
        base_dilation=at("lhs_dilate", (1,))[0],
        reversal=at("rhs_reversal", (0,)) == (1,),
    )


def _read_sizes(lexer: Lexer) -> Ints:
    """``3`` or ``3x3``."""
    if lexer.kind == Kind.INT:
        return (lexer.integer(),)
    start = lexer.start
    sizes = [_int64(lexer, part, start) for part in lexer.expect(Kind.DXD, "sizes like 3 or 3x3").split("x")]
    return tuple(sizes)


def _int64(lexer: Lexer, digits: str, start: int) -> int:
    value = int(digits) if len(digits.lstrip("-0")) < 20 else 2**63
    if not INT64_MIN <= value < 2**63:
        raise lexer.source.error(f"integer {digits[:40]} does not fit 64 bits", start)
    return value


def read_padding(lexer: Lexer, counts: Ints) -> list[Ints]:
    """``low_high`` or ``low_high_interior`` joined by ``x``; ``counts`` are the allowed numbers per dimension."""
    start = lexer.start
    text = lexer.expect(Kind.PAD, "padding like 0_0x3_3")
    groups = [tuple(_int64(lexer, n, start) for n in group.split("_")) for group in text.split("x")]
    for group in groups:
        if len(group) not in counts:
            wanted = " or ".join(map(str, counts))
            raise lexer.source.error(f"expected {wanted} numbers per dimension in the padding, got {text[:80]}", start)
    return groups


def read_padding_config(lexer: Lexer) -> PadPayload:
    """``1_2_0x0_0``: low, high and, where given, interior padding of each dimension."""
    groups = read_padding(lexer, (2, 3))
    return PadPayload(
        tuple(group[0] for group in groups),
        tuple(group[1] for group in groups),
        tuple(group[2] if len(group) == 3 else 0 for group in groups),
    )


def read_slice(lexer: Lexer) -> SlicePayload:
    """``{[0:8:2], [3:5]}``."""
    ranges = read_list(lexer, "{", "}", _read_range)
    return SlicePayload(*(tuple(r[i] for r in ranges) for i in range(3)))


def _read_range(lexer: Lexer) -> Ints:
    lexer.expect("[")
    start = lexer.integer()
    lexer.expect(":")
    limit = lexer.integer()
    stride = lexer.integer() if lexer.eat(":") else 1
    lexer.expect("]", "']' of a range start:limit:stride")
    return start, limit, stride


def read_dim_labels(lexer: Lexer) -> ConvolutionDimensionNumbers:
    """``b01f_01io->b01f``."""
    start = lexer.start
    text = lexer.expect(Kind.DIM_LABELS, "dimension labels like b01f_01io->b01f")
    left, output = text.split("->")
    lhs, rhs = left.split("_")
    parts = [_labels(part, letters) for part, letters in ((lhs, "bf"), (rhs, "io"), (output, "bf"))]
    spatial_counts = [len(spatial) for _, _, spatial in parts]
    for part, found in zip((lhs, rhs, output), parts, strict=True):
        if any(value < 0 for value in (*found[:2], *found[2])):
            raise lexer.source.error(f"expected each letter once and digits from 0 in the labels {part}", start)
    if len(set(spatial_counts)) != 1:
        counts = ", ".join(map(str, spatial_counts))
        raise lexer.source.error(f"expected equal numbers of spatial dimensions in {text}, got {counts}", start)
    (ib, iff, isp), (ki, ko, ks), (ob, of, osp) = parts
    return ConvolutionDimensionNumbers(ib, iff, isp, ki, ko, ks, ob, of, osp, text)


def _labels(part: str, letters: str) -> tuple[int, int, Ints]:
    """Positions of the two letters and of the digits 0, 1, ...; -1 marks what is missing, repeated or out of range."""
    digits = [c for c in part if c.isdigit()]
    first, second = (part.index(c) if part.count(c) == 1 else -1 for c in letters)
    spatial = tuple(part.index(str(i)) if part.count(str(i)) == 1 else -1 for i in range(len(digits)))
    known = len(digits) + part.count(letters[0]) + part.count(letters[1]) + part.count("?")
    return (first if known == len(part) else -1), second, spatial


def read_aliasing(lexer: Lexer) -> tuple[Aliasing, ...]:
    """``{{}: (0, {}), {1}: (2, {0})}``."""
    lexer.expect("{")
    entries: list[Aliasing] = []
    while lexer.kind != "}":
        output = read_shape_index(lexer)
        lexer.expect(":")
        lexer.expect("(")
        operand = lexer.integer("an operand number")
        lexer.expect(",")
        entries.append(Aliasing(output, operand, read_shape_index(lexer)))
        lexer.expect(")")
        if not lexer.eat(","):
            break
    lexer.expect("}", "',' or '}'")
    return tuple(entries)


def read_domain(lexer: Lexer) -> DomainPayload:
    """``{kind="sharding", entry={...}, exit={...}}``."""
    names = ("kind", "entry", "exit")
    found = read_sub_attributes(lexer, {"kind": _read_domain_kind, "entry": read_sharding, "exit": read_sharding}, names)
    return DomainPayload(found["kind"], found["entry"], found["exit"])


def _read_domain_kind(lexer: Lexer) -> str:
    start = lexer.start
    kind = lexer.string()
    if kind != "sharding":
        raise lexer.source.error(f"expected the domain kind sharding, got {kind!r}", start)
    return kind


def read_sparsity(lexer: Lexer) -> str:
    """``{lhs={sparsity=1x4 dimension=1 stride=1} rhs={...}}`` as canonical text."""
    found = read_sub_attributes(lexer, {"lhs": _read_tensor_sparsity, "rhs": _read_tensor_sparsity})
    return "{" + " ".join(f"{name}={found[name]}" for name in ("lhs", "rhs") if name in found) + "}" if found else ""


def _read_tensor_sparsity(lexer: Lexer) -> str:
    def number(inner: Lexer) -> str:
        return str(inner.integer())

    readers = {"sparsity": _read_sparsity_ratio, "dimension": number, "stride": number}
    found = read_sub_attributes(lexer, readers)
    return "{" + " ".join(f"{name}={found[name]}" for name in readers if name in found) + "}"


def _read_sparsity_ratio(lexer: Lexer) -> str:
    start = lexer.start
    sizes = _read_sizes(lexer)
    if len(sizes) != 2:
        raise lexer.source.error(f"expected non_zeros x block_size, got {len(sizes)} numbers", start)
    return "x".join(map(str, sizes))


def word(*allowed: str, lower: bool = False, what: str = "") -> Callable[[Lexer], str]:
    """A reader of one identifier out of ``allowed``; with ``lower`` any case is taken and lower case returned."""

    def read(lexer: Lexer) -> str:
        found = lexer.value.lower() if lower else lexer.value
        if lexer.kind != Kind.IDENTIFIER or found not in allowed:
            lexer.fail(what or f"one of {', '.join(allowed)}")
        lexer.advance()
        return found

    return read


def upper(*allowed: str) -> Callable[[Lexer], str]:
    """A reader of one identifier out of ``allowed``, which are upper case; any case is taken."""
    read = word(*(name.lower() for name in allowed), lower=True)
    return lambda lexer: read(lexer).upper()
