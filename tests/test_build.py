"""The builder: modules from Python that verify, print and read back."""

import numpy as np
import pytest

from layoutsim.build import Builder, element_type_of
from layoutsim.errors import ShapeError
from layoutsim.ir import ElementType, Module, Opcode, array_shape, shape_text
from layoutsim.text import parse_module
from layoutsim.verify import verify

SCALAR = array_shape(ElementType.F32, ())


def _sum_of_squares() -> Module:
    module = Module("sum_of_squares")
    add = Builder("add", module)
    total = add.build(add.add(add.parameter(SCALAR), add.parameter(SCALAR)))
    main = Builder("main", module)
    x = main.parameter(array_shape(ElementType.F32, (4, 8)), name="x")
    zero = main.constant(np.float32(0))
    main.build(main.reduce(main.multiply(x, x), zero, [1], total), is_entry=True)
    return module


def test_a_built_module_verifies() -> None:
    assert verify(_sum_of_squares()) == []


def test_a_built_module_reads_back() -> None:
    text = _sum_of_squares().to_text()

    assert text == parse_module(text).to_text()


def test_shapes_are_inferred() -> None:
    assert shape_text(_sum_of_squares().entry.root.shape) == "f32[4]{0}"


def test_a_loop_is_built_from_two_computations() -> None:
    module = Module("loop")
    carried = array_shape(ElementType.S32, ())
    body = Builder("body", module)
    p = body.parameter(carried)
    step = body.build(body.add(p, body.constant(np.int32(1))))
    condition = Builder("condition", module)
    q = condition.parameter(carried)
    more = condition.build(condition.compare(q, condition.constant(np.int32(10)), "LT"))
    main = Builder("main", module)
    main.build(main.while_loop(more, step, main.constant(np.int32(0))), is_entry=True)

    assert verify(module) == []


def test_data_movement() -> None:
    b = Builder("main")
    x = b.parameter(array_shape(ElementType.F32, (2, 3)))

    shapes = [
        b.broadcast(x, (2, 5, 3), (0, 2)),
        b.reshape(x, (6,)),
        b.transpose(x, (1, 0)),
        b.slice(x, (0, 1), (2, 3)),
        b.concatenate([x, x], 1),
        b.copy(x, (0, 1)),
        b.convert(x, ElementType.BF16),
        b.pad(x, b.constant(np.float32(0)), (1, 0), (0, 2)),
        b.dot(x, x, ((1,), (1,))),
    ]

    assert [shape_text(i.shape) for i in shapes] == [
        "f32[2,5,3]{2,1,0}",
        "f32[6]{0}",
        "f32[3,2]{0,1}",
        "f32[2,2]{1,0}",
        "f32[2,6]{1,0}",
        "f32[2,3]{0,1}",
        "bf16[2,3]{1,0}",
        "f32[3,5]{1,0}",
        "f32[2,2]{1,0}",
    ]


def test_an_impossible_application_is_refused_and_not_added() -> None:
    b = Builder("main")
    x, y = b.parameter(array_shape(ElementType.F32, (2, 3))), b.parameter(array_shape(ElementType.F32, (3,)))

    with pytest.raises(ShapeError, match="operand 1 has shape f32"):
        b.add(x, y)

    assert b.computation.instruction_count == 2


def test_a_builder_goes_on_in_an_existing_computation() -> None:
    module = _sum_of_squares()
    b = Builder.into(module.entry)
    root = b.apply(Opcode.NEGATE, module.entry.root, name="reduce")
    b.build(root)

    assert (root.name, root.is_root, verify(module)) == ("reduce.1", True, [])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bool", "pred"), ("int8", "s8"), ("uint32", "u32"), ("float16", "f16"), ("float64", "f64"), ("complex128", "c128")],
)
def test_numpy_types_have_element_types(dtype: str, expected: str) -> None:
    assert expected == element_type_of(np.dtype(dtype))


def test_a_numpy_type_without_an_element_type_is_refused() -> None:
    with pytest.raises(ShapeError, match="numpy type datetime64"):
        element_type_of(np.dtype("datetime64[s]"))
