"""How the fuzzer damages inputs. Everything is decided by one random number generator, so that a number names an input.

1. Bytes: flip, insert, delete, cut off, repeat, or no seed at all.
2. Tokens: remove, repeat, swap, replace by another token of the text or by a word of the language.
3. Lines: remove, repeat, move, take from another seed.
4. Names: an operand, callee or computation gets the name of another (itself, one behind it, one that exists twice), which
   makes cycles, self-references and duplicates.
5. Numbers: huge, negative, zero; many of them; also inside shapes and groups.
6. Nesting: brackets, tuples, shapes, literals and operands thousands of levels deep.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from layoutsim.ir import Opcode
from layoutsim.text.lexer import KEYWORDS, PRIMITIVES

_TOKEN = re.compile(r"[A-Za-z_%][\w.-]*|-?\d[\w.+-]*|->|\"(?:[^\"\\]|\\.)*\"|[^\sA-Za-z0-9]|\s+")
_NAME = re.compile(r"%[\w.-]+|\bcalls=[\w.%-]+|\bto_apply=[\w.%-]+|\bbody=[\w.%-]+|\bcondition=[\w.%-]+")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w.])")

_HUGE = (
    "0", "-1", "1", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "18446744073709551616", "99999999999999999999999999999999", "1" * 5000, "1e400", "-0", "007", "1_0", "0x10", "1.5",
    "4611686018427387904", "1000000", "nan", "inf", "-inf", "?", "<=5",
    "0,9223372036854775807", "9223372036854775807,0",
)  # fmt: skip
_ATTRIBUTES = """\
dimensions={0,1}
replica_groups={{0,1},{2}}
replica_groups=[2,4]<=[8]
replica_groups=[4,2]<=[2,4]T(1,0)
replica_groups=[1,1000000000000]<=[1000000000000]
replica_groups=mesh['a'=99999999,'b'=4]{'b'}
channel_id=1
to_apply=%add
calls=%fused
body=%body
condition=%cond
branch_computations={%a,%b}
true_computation=%a
index=0
metadata={op_name="x"}
backend_config={"a":{}}
frontend_attributes={a="b"}
sharding={devices=[2,1]<=[2]}
sharding={devices=[1000000000,1000000000]<=[1000000000]}
sharding={{replicated},{maximal device=0}}
window={size=3x3 pad=1_1x1_1 stride=2x2}
dim_labels=b01f_01io->b01f
control-predecessors={%x}
literal=(f32[1]{0} {1})
slice={[0:2:1],[0:3]}
is_scheduled=true
entry_computation_layout={(f32[2]{0})->f32[2]{0}}
input_output_alias={ {}: (0, {}, may-alias) }
buffer_donor={ (0, {}) }
num_partitions=8
replica_count=2
operand_layout_constraints={f32[2]{0}}
output_to_operand_aliasing={{}: (0, {})}
f32[2,3]{1,0}
f32[2,3]{1,0:T(8,128)}
f32[2,3]{1,0:S(5)}
bf16[1,4,8]{2,0,1}
s4[8]{0:E(4)}
(f32[2],s32[])
f32[<=5]{0}
f32[?]
f32[0,9223372036854775807]{1,0} constant({})
b(f32[2])
{...}
()
/*
*/
//
%x
%x.1""".splitlines()
_WORDS = (*_ATTRIBUTES, *Opcode, *sorted(KEYWORDS), *sorted(PRIMITIVES), *"{}()[],=:\"'\\")
_BRACKETS = (("(", ")"), ("{", "}"), ("[", "]"), ("(f32[2], ", ")"), ("{ {", "} }"), ("b(", ")"), ("/*", "*/"), ('{"a":', "}"))

Mutation = Callable[[random.Random, str, Sequence[str]], str]


def mutated(source: random.Random, seeds: Sequence[str]) -> str:
    """One damaged input, or (rarely) random text."""
    if source.random() < 0.03:
        return _noise(source)
    text = source.choice(seeds)
    for _ in range(source.choice((1, 1, 1, 2, 3, 8))):
        text = source.choice(_MUTATIONS)(source, text, seeds)
    return text


def mutated_bytes(source: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One damaged binary input, or (rarely) random bytes."""
    if source.random() < 0.05:
        return source.randbytes(source.choice((0, 1, 2, 7, 100, 5000)))
    data = bytearray(source.choice(seeds))
    for _ in range(source.choice((1, 1, 2, 4, 20))):
        _damage_bytes(source, data, seeds)
    return bytes(data)


# -- (1) -----------------------------------------------------------------------------------------------------------------


def _noise(source: random.Random) -> str:
    size = source.choice((0, 1, 3, 20, 300, 5000))
    if source.random() < 0.3:
        return source.randbytes(size).decode("utf-8", "surrogateescape")
    return " ".join(source.choice(_WORDS) for _ in range(size))


def _damage_bytes(source: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    if not data:
        data += source.randbytes(8)
    at = source.randrange(len(data))
    match source.randrange(5):
        case 0:
            data[at] ^= 1 << source.randrange(8)
        case 1:
            data[at:at] = source.choice((b"\xff" * 10, b"\x80" * 10 + b"\x01", b"\0", source.randbytes(4)))
        case 2:
            del data[at : at + source.choice((1, 2, 10, 1000))]
        case 3:
            del data[at:]
        case _:
            other = source.choice(seeds)
            start = source.randrange(len(other)) if other else 0
            data[at:at] = other[start : start + source.choice((10, 200, 3000))]


def _bytes(source: random.Random, text: str, _seeds: Sequence[str]) -> str:
    data = bytearray(text.encode("utf-8", "surrogateescape"))
    _damage_bytes(source, data, [bytes(data)])
    return data.decode("utf-8", "surrogateescape")


# -- (2) -----------------------------------------------------------------------------------------------------------------


def _tokens(source: random.Random, text: str, _seeds: Sequence[str]) -> str:
    found = _near(source, text, _TOKEN)
    if not found:
        return text + source.choice(_WORDS)
    chosen = source.choice(found)
    other = source.choice(found)
    word = source.choice(_WORDS)
    new = source.choice(("", f" {word} ", word, f"{chosen.group()}{chosen.group()}", other.group(), f", {word}"))
    return text[: chosen.start()] + new + text[chosen.end() :]


def _near(source: random.Random, text: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """Matches in a window of the text."""
    start = source.randrange(max(1, len(text)))
    return list(pattern.finditer(text, start, start + 400))


# -- (3) -----------------------------------------------------------------------------------------------------------------


def _lines(source: random.Random, text: str, seeds: Sequence[str]) -> str:
    lines = text.split("\n")
    at, to = source.randrange(len(lines)), source.randrange(len(lines))
    match source.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case 2:
            lines.insert(to, lines.pop(at))
        case _:
            others = source.choice(seeds).split("\n")
            start = source.randrange(len(others))
            lines[at:at] = others[start : start + source.choice((1, 1, 5, 40))]
    return "\n".join(lines)


# -- (4) -----------------------------------------------------------------------------------------------------------------


def _names(source: random.Random, text: str, _seeds: Sequence[str]) -> str:
    found = list(_NAME.finditer(text))
    if len(found) < 2:
        return text
    chosen = source.choice(found)
    other = source.choice(found).group()
    if source.random() < 0.5:
        near = found.index(chosen)
        other = found[max(0, min(len(found) - 1, near + source.choice((-3, -2, -1, 1, 2, 3))))].group()
    new = "%" + other.split("=")[-1].lstrip("%")
    prefix = chosen.group().split("=")[0] + "=" if "=" in chosen.group() else ""
    return text[: chosen.start()] + prefix + new + text[chosen.end() :]


# -- (5) -----------------------------------------------------------------------------------------------------------------


def _numbers(source: random.Random, text: str, _seeds: Sequence[str]) -> str:
    found = _near(source, text, _NUMBER)
    if not found:
        return text
    chosen = source.choice(found)
    new = source.choice(_HUGE)
    if source.random() < 0.1:
        new = ",".join([new if len(new) < 30 else "3"] * source.choice((2, 70, 5000)))
    return text[: chosen.start()] + new + text[chosen.end() :]


# -- (6) -----------------------------------------------------------------------------------------------------------------


def _nesting(source: random.Random, text: str, _seeds: Sequence[str]) -> str:
    start = source.randrange(max(1, len(text)))
    opening, closing = source.choice(_BRACKETS)
    depth = source.choice((2, 50, 199, 201, 1000, 20000))
    inner = source.choice((text[start : start + source.choice((0, 1, 10, 50))], source.choice(_WORDS)))
    closings = source.choice((depth, depth, 0, depth - 1))
    return text[:start] + opening * depth + inner + closing * closings + text[start:]


_MUTATIONS: tuple[Mutation, ...] = (
    _bytes, _bytes, _tokens, _tokens, _tokens, _tokens, _lines, _lines, _names, _names, _names, _numbers, _numbers, _nesting,
)  # fmt: skip
