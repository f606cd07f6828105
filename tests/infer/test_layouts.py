"""Which inferred shapes inherit a layout, and which are built anew (text spec, 2.3)."""

import pytest

from layoutsim.infer import infer_shape
from layoutsim.ir import ElementType, Layout, Opcode, array_shape, shape_text
from layoutsim.ir.payloads import (
    CollectivePayload,
    ComparePayload,
    DimensionsPayload,
    DotPayload,
    PadPayload,
    Payload,
    SlicePayload,
)
from layoutsim.ir.replica_groups import ListReplicaGroups

PRED, F32, BF16, S4 = ElementType.PRED, ElementType.F32, ElementType.BF16, ElementType.S4
X = array_shape(F32, (2, 4), (0, 1))
ZERO = array_shape(F32, ())
FOUR = ListReplicaGroups(((0, 1, 2, 3),))


@pytest.mark.parametrize(
    ("opcode", "operands", "payload", "expected"),
    [
        (Opcode.NEGATE, [X], None, "f32[2,4]{0,1}"),
        (Opcode.COPY, [X], None, "f32[2,4]{0,1}"),
        (Opcode.ADD, [X, array_shape(BF16, (2, 4))], None, "f32[2,4]{0,1}"),
        (Opcode.COMPARE, [X, X], ComparePayload("LT"), "pred[2,4]{0,1}"),
        (Opcode.REVERSE, [X], DimensionsPayload((1,)), "f32[2,4]{0,1}"),
        (Opcode.ALL_REDUCE, [X], CollectivePayload(FOUR), "f32[2,4]{0,1}"),
        (Opcode.ALL_GATHER, [X], CollectivePayload(FOUR, dimension=0), "f32[8,4]{0,1}"),
        (Opcode.REDUCE_SCATTER, [X], CollectivePayload(FOUR, dimension=1), "f32[2,1]{0,1}"),
        (Opcode.ALL_TO_ALL, [X], CollectivePayload(FOUR, dimension=1), "f32[2,4]{1,0}"),
        (Opcode.DOT, [X, X], DotPayload((1,), (1,)), "f32[2,2]{1,0}"),
        (Opcode.SLICE, [X], SlicePayload((0, 0), (2, 3), (1, 2)), "f32[2,2]{1,0}"),
        (Opcode.PAD, [X, ZERO], PadPayload((0, 1), (0, 1), (0, 2)), "f32[2,12]{1,0}"),
        (Opcode.CONCATENATE, [X, X], DimensionsPayload((1,)), "f32[2,8]{1,0}"),
    ],
    ids=lambda value: value.value if isinstance(value, Opcode) else None,
)
def test_copied_shapes_keep_the_layout_and_new_ones_have_the_default(
    opcode: Opcode, operands: list, payload: Payload | None, expected: str
) -> None:
    assert expected == shape_text(infer_shape(opcode, operands, payload))


def test_an_inferred_transpose_moves_nothing_in_memory() -> None:
    operand = array_shape(F32, (2, 3, 5), (1, 0, 2))

    # Dimension 1 of the operand, the most minor, is dimension 2 of the result; 0 becomes 1; 2 becomes 0.
    assert shape_text(infer_shape(Opcode.TRANSPOSE, [operand], DimensionsPayload((2, 0, 1)))) == "f32[5,2,3]{2,1,0}"


def test_a_select_takes_the_layout_of_its_predicate() -> None:
    chosen = array_shape(PRED, (2, 4), (1, 0))

    assert shape_text(infer_shape(Opcode.SELECT, [chosen, X, X], None)) == "f32[2,4]{1,0}"


def test_a_select_by_a_scalar_takes_the_layout_of_its_first_branch() -> None:
    assert shape_text(infer_shape(Opcode.SELECT, [array_shape(PRED, ()), X, X], None)) == "f32[2,4]{0,1}"


def test_a_packed_type_loses_its_storage_width_when_it_widens() -> None:
    packed = array_shape(S4, (8,)).with_layout(Layout((0,), element_size_bits=4))
    wide = array_shape(ElementType.S8, (8,))

    assert shape_text(infer_shape(Opcode.CONVERT, [packed], None, stated=wide)) == "s8[8]{0}"
    assert shape_text(infer_shape(Opcode.NEGATE, [packed], None)) == "s4[8]{0:E(4)}"


def test_a_bitcast_convert_appends_and_removes_the_most_minor_dimension() -> None:
    wide, narrow = array_shape(ElementType.F64, (3, 4), (0, 1)), array_shape(F32, (3, 4, 2), (2, 0, 1))

    assert infer_shape(Opcode.BITCAST_CONVERT, [wide], None, stated=narrow) == narrow
    assert infer_shape(Opcode.BITCAST_CONVERT, [narrow], None, stated=wide) == wide


def test_a_bitcast_convert_counts_the_bits_of_packed_types() -> None:
    packed, wide = array_shape(S4, (3, 4, 2), (2, 1, 0)), array_shape(ElementType.S8, (3, 4), (1, 0))

    assert infer_shape(Opcode.BITCAST_CONVERT, [packed], None, stated=wide) == wide
    assert infer_shape(Opcode.BITCAST_CONVERT, [wide], None, stated=packed) == packed
