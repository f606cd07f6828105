"""A module that lacks operands is told so, whatever the opcode: the proto reader lets such modules through to the verifier."""

from pathlib import Path

import pytest

from layoutsim.errors import ShapeError
from layoutsim.infer import infer_site
from layoutsim.infer.registry import Site
from layoutsim.ir import Opcode
from layoutsim.ir.clone import clone_module
from layoutsim.ir.payloads import DynamicSlicePayload
from layoutsim.text import parse_module
from layoutsim.verify import AFTER_LAYOUT_ASSIGNMENT, VerifyOptions, verify

TEXTS = sorted((Path(__file__).parents[2] / "fixtures" / "text").glob("*.hlo"))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_an_instruction_with_its_first_operands_only_is_found_where_their_number_is_fixed(path: Path) -> None:
    module = parse_module(path.read_text())
    places = [(c.name, i.name, kept) for c in module.computations for i in c.instructions for kept in range(i.operand_count)]
    for computation, name, kept in places:
        damaged = clone_module(module)
        instruction = damaged.find(computation, name)
        while instruction.operand_count > kept:
            instruction.remove_operand(instruction.operand_count - 1)

        for options in (VerifyOptions(), AFTER_LAYOUT_ASSIGNMENT):
            said = [finding.invariant for finding in verify(damaged, options)]
            assert instruction.opcode.spec.arity is None or "T1" in said, f"{name} with {kept} operands: {said}"


def test_a_dynamic_slice_of_nothing_is_a_shape_error() -> None:
    with pytest.raises(ShapeError, match="dynamic-slice: has 0 operands, expected at least 1"):
        infer_site(Site(Opcode.DYNAMIC_SLICE, (), DynamicSlicePayload((1,))))
