"""Text and modules: what is printed is read back as the same, and printing is stable."""

import pytest
from hypothesis import given

from layoutsim.errors import ParseError
from layoutsim.ir import Module, Shape, shape_text
from layoutsim.ir.clone import clone_module
from layoutsim.ir.equality import module_differences
from layoutsim.testing import Limits, random_module
from layoutsim.testing.strategies import modules, shapes
from layoutsim.text import ParseOptions, parse_module, parse_shape

KEEP_AUTOMATIC = ParseOptions(keep_module_auto_layouts=True)
SLOWLY = ParseOptions(keep_module_auto_layouts=True, fast=False)


def round_trip_faults(module: Module, text: str) -> list[str]:
    """What differs between a module and the one read from its text."""
    return module_differences(module, parse_module(text, options=KEEP_AUTOMATIC))


@given(modules(Limits(steps=8, devices=4)))
def test_text_is_read_back_as_an_equal_module(module: Module) -> None:
    assert round_trip_faults(module, module.to_text()) == []


@given(modules(Limits(steps=8, devices=4)))
def test_printing_is_stable(module: Module) -> None:
    text = module.to_text()

    assert parse_module(text, options=KEEP_AUTOMATIC).to_text() == text
    assert clone_module(module).to_text() == text


@given(modules(Limits(steps=8, devices=4)))
def test_both_readers_give_the_same_module(module: Module) -> None:
    text = module.to_text()

    assert module_differences(parse_module(text, options=SLOWLY), parse_module(text, options=KEEP_AUTOMATIC)) == []


@given(shapes())
def test_shapes_are_read_back(shape: Shape) -> None:
    assert parse_shape(shape_text(shape)) == shape


@pytest.mark.parametrize(
    ("lost", "instead"),
    [("{0,1}", "{1,0}"), ("dimensions={1,0}", "dimensions={0,1}"), (", is_stable=true", ""), ("direction=LT", "direction=LE")],
)
def test_a_printer_that_loses_something_is_caught(lost: str, instead: str) -> None:
    caught = [
        seed for seed in range(60) if lost in (text := random_module(seed).to_text()) and _is_caught(seed, text, lost, instead)
    ]

    assert caught


def _is_caught(seed: int, text: str, lost: str, instead: str) -> bool:

    try:
        return round_trip_faults(random_module(seed), text.replace(lost, instead)) != []
    except ParseError:
        return True
