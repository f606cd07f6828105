"""Binary protos from outside: containers, odd encodings, and bytes that are none."""

import random
import sys

import numpy as np
import pytest

from layoutsim.errors import InputError, ParseError
from layoutsim.proto import module_from_bytes, module_to_bytes, schema
from layoutsim.text import parse_module

pytest.importorskip("google.protobuf")

TEXT = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[4,2]{0,1} parameter(0), sharding={devices=[2,1]<=[2]}
  z = f32[] constant(0)
  r = f32[2] reduce(x, z), dimensions={0}, to_apply=add
  ROOT t = (f32[2]) tuple(r), metadata={op_name="step"}
}
"""


def proto() -> schema.Message:
    message = schema.new("HloModuleProto")
    message.ParseFromString(module_to_bytes(parse_module(TEXT)))
    return message


def read(message: schema.Message) -> str:
    return module_from_bytes(message.SerializeToString()).to_text()


EXPECTED = parse_module(TEXT).to_text()


def test_a_bare_module_is_read() -> None:
    assert read(proto()) == EXPECTED


def test_an_hlo_proto_is_read() -> None:
    container = schema.new("HloProto")
    container.hlo_module.CopyFrom(proto())

    assert read(container) == EXPECTED


def test_a_snapshot_is_read() -> None:
    container = schema.new("HloSnapshot")
    container.hlo.hlo_module.CopyFrom(proto())

    assert read(container) == EXPECTED


def test_a_module_with_its_configuration_has_counts() -> None:
    container = schema.new("HloProto")
    container.hlo_module.CopyFrom(proto())
    container.config.replica_count = 2
    container.config.num_partitions = 8

    config = module_from_bytes(container.SerializeToString()).config

    assert (config.replica_count, config.num_partitions) == (2, 8)


def test_unknown_fields_are_skipped() -> None:
    unknown = bytes([0xFA, 0x3F, 3]) + b"new"  # field 1023, length-delimited

    assert module_from_bytes(proto().SerializeToString() + unknown).to_text() == EXPECTED


def test_unpacked_numbers_are_read() -> None:
    layout = schema.new("LayoutProto")
    layout.ParseFromString(bytes([0x08, 0, 0x08, 1]))  # field 1 twice, not packed

    assert list(layout.minor_to_major) == [0, 1]


def test_ids_are_keys_of_their_computation() -> None:
    message = proto()
    for computation in message.computations:  # both computations number their instructions 7, 8, ...
        new = {i.id: 7 + n for n, i in enumerate(computation.instructions)}
        for instruction in computation.instructions:
            instruction.id = new[instruction.id]
            instruction.operand_ids[:] = [new[operand] for operand in instruction.operand_ids]
        computation.root_id = new[computation.root_id]

    assert read(message) == EXPECTED


def test_literals_are_stored_in_the_order_of_their_layout() -> None:
    text = "HloModule m\nENTRY e { ROOT c = s32[2,3]{0,1} constant({ { 1, 2, 3 }, { 4, 5, 6 } }) }"
    message = schema.new("HloModuleProto")
    message.ParseFromString(module_to_bytes(parse_module(text)))

    assert list(message.computations[0].instructions[0].literal.s32s) == [1, 4, 2, 5, 3, 6]


@pytest.mark.parametrize(
    ("constant", "field", "expected"),
    [
        ("s4[3] constant({-8, 7, -1})", "s4s", np.int8([-8, 7, -1]).tobytes()),
        ("bf16[2] constant({1, -2})", "bf16s", bytes([0x80, 0x3F, 0x00, 0xC0])),
        ("c64[1] constant({(1, 2)})", "c64s", [1.0, 2.0]),
        ("f8e5m2[1] constant({1})", "f8e5m2s", bytes([0x3C])),
        ("u16[1] constant({258})", "u16s", bytes([2, 1])),
    ],
)
def test_elements_have_xlas_encoding(constant: str, field: str, expected: object) -> None:
    message = schema.new("HloModuleProto")
    message.ParseFromString(module_to_bytes(parse_module(f"HloModule m\nENTRY e {{ ROOT c = {constant} }}")))
    found = getattr(message.computations[0].instructions[0].literal, field)

    assert (found if isinstance(expected, bytes) else list(found)) == expected


def test_sub_byte_values_are_sign_extended() -> None:
    message = schema.new("HloModuleProto")
    message.ParseFromString(module_to_bytes(parse_module("HloModule m\nENTRY e { ROOT c = s4[3] constant({1, 2, 3}) }")))
    message.computations[0].instructions[0].literal.s4s = bytes([0x08, 0x07, 0xFF])

    assert "{-8, 7, -1}" in read(message)


def test_a_constant_without_elements_is_elided() -> None:
    message = proto()
    for instruction in message.computations[-1].instructions:
        instruction.ClearField("literal")

    assert "constant({...})" in read(message)


# -- errors ----------------------------------------------------------------------------------------------------------------


def broken(change: str) -> schema.Message:
    message = proto()
    entry = message.computations[-1]
    by_name = {i.name: i for i in entry.instructions}
    exec(change, {"entry": entry, "message": message, **by_name})  # one line of the table below
    return message


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("r.opcode = 'foo'", "e/r: unknown opcode 'foo'"),
        ("r.operand_ids[0] = 99", "e/r: operand with id 99 does not exist, or stands behind its user"),
        ("r.called_computation_ids[0] = 99", "e/r: called computation with id 99 does not exist"),
        ("x.shape.layout.minor_to_major[0] = 1", "e/x: minor_to_major must be a permutation of 0..1, got (1, 1)"),
        ("x.shape.element_type = 99", "e/x: unknown element type number 99"),
        ("x.parameter_number = 1", "e: parameter numbers are [1], expected each from 0 on once"),
        ("r.name = 'a b'", "e/a b: 'a b' is not a name of HLO text"),
        ("r.name = 'x'", "two instructions of e are called x"),
        ("entry.root_id = 99", "e: no instruction has the root's id 99"),
        ("message.entry_computation_id = 99", "no computation has the entry's id 99"),
        ("z.literal.f32s.append(1)", "e/z: constant of shape f32[] holds 2 elements, expected 1"),
        ("t.operand_ids.append(12345)", "e/t: operand with id 12345"),
        ("x.sharding.iota_reshape_dims[0] = 3", "e/x: a sharding over [2, 1] does not fit devices [3]"),
    ],
)
def test_contradictions_are_parse_errors(change: str, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        read(broken(change))

    assert reason in str(caught.value)


def test_errors_name_the_file() -> None:
    with pytest.raises(ParseError, match=r"^a\.hlo\.pb: not a binary HLO proto"):
        module_from_bytes(b"\x01\x02\x03", "a.hlo.pb")


def test_truncated_and_damaged_bytes_are_parse_errors_or_modules() -> None:
    data = proto().SerializeToString()
    dice = random.Random(1)
    for trial in range(1500):
        bad = bytearray(data[: dice.randrange(len(data))] if trial % 3 == 0 else data)
        for _ in range(dice.randrange(1, 4) if trial % 3 else 0):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        try:
            module_from_bytes(bytes(bad))
        except ParseError:
            pass


def test_random_bytes_are_parse_errors() -> None:
    dice = random.Random(2)
    for _ in range(500):
        with pytest.raises(ParseError):
            module_from_bytes(dice.randbytes(dice.randrange(200)))


def test_without_protobuf_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    schema._classes.cache_clear()
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    try:
        with pytest.raises(InputError, match=r"^binary protos need the package protobuf: pip install 'layoutsim\[proto\]'$"):
            module_from_bytes(b"")
    finally:
        schema._classes.cache_clear()
