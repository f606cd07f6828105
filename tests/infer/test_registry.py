"""Every opcode has a rule, and shapes are inferred where HLO text may leave them out."""

import pytest

from layoutsim.errors import ShapeError
from layoutsim.infer import CAN_INFER, RULES, infer_shape
from layoutsim.ir import ElementType, Opcode, array_shape
from layoutsim.ir.payloads import DimensionsPayload, PadPayload

F32_2_3 = array_shape(ElementType.F32, (2, 3))

WITHOUT_A_RULE: dict[Opcode, str] = {}
"""Opcodes that cannot be inferred at all, with the reason; there is none."""


@pytest.mark.parametrize("opcode", Opcode)
def test_every_opcode_has_a_shape_rule_or_a_reason(opcode: Opcode) -> None:
    assert (opcode in RULES) is not (opcode in WITHOUT_A_RULE)


def test_the_opcodes_whose_shape_may_be_left_out_are_those_of_xla() -> None:
    assert len(CAN_INFER) == 91
    assert CAN_INFER.isdisjoint(
        {Opcode.RESHAPE, Opcode.IOTA, Opcode.ALL_REDUCE, Opcode.SLICE, Opcode.CONVERT, Opcode.REDUCE_PRECISION, Opcode.SEND}
    )
    assert {Opcode.NEGATE, Opcode.ADD, Opcode.DOT, Opcode.REDUCE, Opcode.TUPLE, Opcode.WHILE} <= CAN_INFER


def test_an_error_names_the_opcode_the_expected_and_the_actual() -> None:
    other = array_shape(ElementType.F32, (3, 2))

    with pytest.raises(
        ShapeError, match=r"^add: operand 1 has shape f32\[3,2\], expected the dimensions of operand 0, f32\[2,3\]$"
    ):
        infer_shape(Opcode.ADD, [F32_2_3, other], None)


def test_a_wrong_number_of_operands_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"^negate: has 2 operands, expected 1$"):
        infer_shape(Opcode.NEGATE, [F32_2_3, F32_2_3], None)


def test_a_payload_of_another_opcode_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"^transpose: has payload none, expected DimensionsPayload$"):
        infer_shape(Opcode.TRANSPOSE, [F32_2_3], None)


def test_an_open_shape_must_be_stated() -> None:
    with pytest.raises(ShapeError, match=r"^reshape: its shape cannot be inferred and must be stated$"):
        infer_shape(Opcode.RESHAPE, [F32_2_3], None)


def test_a_broadcast_needs_its_shape_although_xla_guesses_one() -> None:
    with pytest.raises(ShapeError, match="must be stated"):
        infer_shape(Opcode.BROADCAST, [F32_2_3], DimensionsPayload((0, 1)))


def test_a_padding_of_another_rank_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"^pad: has 2 low, 1 high and 2 interior padding numbers, expected 2 of each"):
        infer_shape(Opcode.PAD, [F32_2_3, array_shape(ElementType.F32, ())], PadPayload((0, 0), (0,), (0, 0)))
