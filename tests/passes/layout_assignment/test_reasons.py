"""Every copy can be explained down to a demand."""

from layoutsim.ir import Layout
from layoutsim.passes.layout_assignment import CopyKind
from tests.passes.layout_assignment.running import CPU, GPU, Run
from tests.passes.layout_assignment.test_generic_control_flow import BRANCH_COPY, INFEED_LOOP
from tests.passes.layout_assignment.test_gpu import GATHER


def test_a_copy_leads_back_to_the_gather_that_demanded_it() -> None:
    run = Run(GATHER, GPU)
    first, second = run.result.copies

    assert [r.rule.name for r in first.demanded.chain()] == ["all-gather"]
    assert first.demanded.origin.by is run["g"]
    assert first.source is not None
    assert first.source.origin.rule.name == "entry-parameter"
    assert second.kind is CopyKind.ROOT
    assert second.demanded.origin.rule.name == "entry-result"
    assert second.source is not None
    assert second.source.origin.rule.name == "all-gather"


def test_a_chain_lists_every_step_with_its_place() -> None:
    run = Run(
        """
HloModule m, replica_count=8, entry_computation_layout={(f32[1,4,8]{2,1,0})->f32[32,1,8]}
ENTRY e {
  p = f32[1,4,8] parameter(0)
  n = f32[1,4,8] negate(p)
  g = f32[1,32,8] all-gather(n), dimensions={1}, replica_groups={{0,1,2,3,4,5,6,7}}
  ROOT t = f32[32,1,8] transpose(g), dimensions={1,0,2}
}""",
        GPU,
    )
    (copy,) = run.result.copies

    assert [(r.place, r.rule.name, str(r.wanted)) for r in copy.demanded.chain()] == [
        ("%n operand 0", "result-to-operand", "{2,0,1}"),
        ("%n", "use-to-definition", "{2,0,1}"),
        ("%g operand 0", "all-gather", "{2,0,1}"),
    ]


def test_a_loops_layout_leads_into_its_body_and_the_round_before() -> None:
    run = Run(INFEED_LOOP)
    copy, _ = run.result.copies
    chain = copy.demanded.chain()

    assert chain[0].rule.name == "while"
    assert chain[-1].rule.name == "infeed"
    assert chain[-1].at is run["feed2"]
    assert copy.source is not None
    assert copy.source.origin.at is run["feed"]


def test_the_array_that_a_call_takes_leads_into_the_called_computation() -> None:
    run = Run(
        """
HloModule m, replica_count=4, entry_computation_layout={(f32[8,4]{1,0})->f32[8,16]{0,1}}
inner {
  x = f32[8,4] parameter(0)
  n = f32[8,4] negate(x)
  ROOT g = f32[8,16] all-gather(n), dimensions={1}, replica_groups={{0,1,2,3}}
}
ENTRY e {
  p = f32[8,4] parameter(0)
  m = f32[8,4] negate(p)
  ROOT c = f32[8,16] call(m), to_apply=inner
}""",
        GPU,
    )
    (copy,) = run.result.copies

    assert [r.place for r in copy.demanded.chain() if r.at is run["c"]] == ["%c operand 0"]
    assert copy.demanded.origin.rule.name == "all-gather"


def test_a_copy_in_a_branch_is_explained_by_the_other_branch() -> None:
    run = Run(BRANCH_COPY)
    inside, _ = run.result.copies

    assert inside.kind is CopyKind.BRANCH_PARAMETER
    assert inside.place == "parameter of branch 1 of %r"
    assert inside.demanded.rule.name == "branch-operand"
    assert inside.demanded.origin.at.parent is run.module.find_computation("yes")


def test_every_layout_has_a_reason() -> None:
    run = Run(GATHER, GPU)

    for instruction in run.module.entry.instructions:
        reason = run.result.reason(instruction)
        if instruction.name in ("p", "g", "n"):
            assert reason is not None
            assert isinstance(reason.layout, Layout)
            assert reason.layout == instruction.shape.layout


def test_a_result_finds_the_record_of_a_copy_by_name() -> None:
    run = Run(GATHER, GPU)

    assert run.result.explain("copy").place == "operand 0 of %g"
    assert run.result.explain(run.root).place == "root of e"


def test_a_row_major_operand_on_cpu_is_blamed_on_its_user() -> None:
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[8,16]{0,1})->f32[8,16]{1,0}}
ENTRY e {
  p = f32[8,16] parameter(0)
  ROOT n = f32[8,16] negate(p)
}""",
        CPU,
    )
    (copy,) = run.result.copies

    assert copy.demanded.origin.rule.name == "row-major-operand"
    assert copy.demanded.origin.by is run["n"]


def test_every_copy_is_a_remark() -> None:
    run = Run(GATHER, GPU)

    assert [str(remark) for remark in run.result.remarks] == [
        "copy: operand 0 of %g: {2,1,0} to {2,0,1}, "
        "since the all-gather needs the dimension it gathers along to be most major (%g)",
        "copy.1: root of e: {2,0,1} to {2,1,0}, since the caller expects the result in this layout (%n)",
    ]


def test_a_protective_copy_of_a_tuple_is_no_copy_of_an_array() -> None:
    run = Run(
        """
HloModule m
ENTRY e {
  p = (f32[4,8], f32[2]) parameter(0)
  ROOT c = (f32[4,8]{1,0}, f32[2]{0}) custom-call(p), custom_call_target="x",
    operand_layout_constraints={(f32[4,8]{1,0}, f32[2]{0})}, output_to_operand_aliasing={{0}: (0, {0})}
}""",
        GPU,
    )

    assert run["c"].operand(0).opcode == "copy"
    assert run.copies == []
