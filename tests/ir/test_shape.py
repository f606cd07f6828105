"""Shapes, layouts and their sizes."""

import pytest

from layoutsim.errors import LayoutError, ShapeError
from layoutsim.ir import (
    TOKEN,
    ElementType,
    Layout,
    array_shape,
    byte_size,
    compatible,
    replace_subshape,
    same_order,
    subshape,
    subshapes,
    tuple_shape,
)

F32 = ElementType.F32


def test_the_first_array_layout_is_c_order() -> None:
    assert str(array_shape(F32, (2, 3))) == "f32[2,3]{1,0}"


def test_a_scalar_prints_without_layout() -> None:
    assert str(array_shape(F32, ())) == "f32[]"


def test_every_fifth_tuple_element_carries_its_index() -> None:
    s = array_shape(ElementType.PRED, ())
    assert str(tuple_shape((s,) * 6)) == "(pred[], pred[], pred[], pred[], pred[], /*index=5*/pred[])"


def test_layout_properties_print_in_xlas_order() -> None:
    layout = Layout((1, 0), tiles=((8, 128), (2, None)), element_size_bits=4, memory_space=5)

    assert layout.to_text() == "{1,0:T(8,128)(2,*)E(4)S(5)}"


def test_a_layout_must_be_a_permutation() -> None:
    with pytest.raises(LayoutError, match=r"permutation of 0\.\.1, got \(1, 1\)"):
        Layout((1, 1))


def test_subshapes_are_listed_in_pre_order() -> None:
    x = array_shape(F32, (2,))
    shape = tuple_shape((tuple_shape((x, TOKEN)), x))

    assert [index for index, _ in subshapes(shape)] == [(), (0,), (0, 0), (0, 1), (1,)]


def test_an_index_that_leads_nowhere_is_an_error() -> None:
    with pytest.raises(ShapeError, match=r"no part at index \(3,\)"):
        subshape(tuple_shape(()), (3,))


def test_replacing_a_part_keeps_the_rest() -> None:
    x, y = array_shape(F32, (2,)), array_shape(F32, (3,))

    assert replace_subshape(tuple_shape((x, tuple_shape((x,)))), (1, 0), y) == tuple_shape((x, tuple_shape((y,))))


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        (array_shape(F32, (2, 3)), 24),  # 6 elements of 4 bytes
        (array_shape(ElementType.U4, (3,)), 3),  # a byte each: no E(4)
        (array_shape(ElementType.U4, (3,)).with_layout(Layout((0,), element_size_bits=4)), 2),  # 12 bits
        (array_shape(ElementType.C128, ()), 16),
        (tuple_shape((TOKEN, TOKEN)), 16),  # two pointers
        (TOKEN, 0),
        (array_shape(F32, (0, 5)), 0),
    ],
)
def test_byte_size(shape: object, size: int) -> None:
    assert byte_size(shape) == size  # type: ignore[arg-type]


def test_layouts_do_not_matter_for_compatibility_but_for_order() -> None:
    a, b = array_shape(F32, (2, 3)), array_shape(F32, (2, 3), (0, 1))

    assert compatible(a, b)
    assert not same_order(a, b)


def test_memory_space_does_not_matter_for_order() -> None:
    a = array_shape(F32, (2, 3))

    assert same_order(a, a.with_layout(Layout((1, 0), memory_space=5)))
