"""``check_pass`` and ``check_heap``: what they accept, what they raise, and what the report says."""

import re
from typing import ClassVar

import pytest
from attrs import frozen

from layoutsim.errors import InputError, LayoutsimError, PassError
from layoutsim.ir import Module
from layoutsim.memory.heaps import AnytimeHeap, xla_heap
from layoutsim.passes import Pass, PassResult, parse_pipeline
from layoutsim.testing import CheckFailedError, Limits, check_heap, check_pass, random_module
from layoutsim.testing.check import ALL_CLAIMS, RUNS
from layoutsim.text import ParseOptions, parse_module
from tests.testing.variant import FreeGathers


@frozen
class Refuses(Pass):
    """Refuses modules that have an odd number of instructions, or all of them."""

    name: ClassVar[str] = "refuses"

    every: bool = False

    def run(self, module: Module) -> PassResult:
        if self.every or module.instruction_count % 2:
            raise PassError(f"{self.name}: not this one")
        return PassResult(changed=False)


def test_pass_in_order_gives_a_report_without_failure() -> None:
    report = check_pass("dead-code-elimination", examples=10)

    assert report.failure is None
    assert str(report).startswith("dead-code-elimination: every claim holds on 10 examples")


def test_pass_pipeline_and_text_are_all_accepted() -> None:
    pipeline = parse_pipeline("dead-code-elimination,tuple-simplifier")

    for subject in (pipeline, pipeline.passes[0], "dead-code-elimination"):
        assert check_pass(subject, examples=2, claims=["valid"]).examples == 2


def test_refused_modules_are_counted() -> None:
    report = check_pass(Refuses(), examples=20, claims=["valid", RUNS])

    assert 0 < report.refused["PassError: refuses: not this one"] < 20
    assert "refused" in str(report)


def test_pass_that_refuses_everything_fails() -> None:
    with pytest.raises(CheckFailedError, match="every module is refused, most with: PassError: refuses: not this one"):
        check_pass(Refuses(every=True), examples=3, claims=["valid", RUNS])


def test_failure_is_an_error_of_layoutsim_and_a_failed_assertion() -> None:
    with pytest.raises(CheckFailedError) as caught:
        check_pass(FreeGathers(), examples=40, claims=["layouts"])

    assert isinstance(caught.value, LayoutsimError)
    assert isinstance(caught.value, AssertionError)
    assert str(caught.value) == str(caught.value.report)


def test_own_modules_can_be_checked() -> None:
    module = parse_module("""HloModule mine, replica_count=2
ENTRY e {
  p = f32[3,4] parameter(0)
  ROOT g = f32[3,8] all-gather(p), replica_groups={{0,1}}, dimensions={1}
}
""")

    with pytest.raises(
        CheckFailedError, match=r"dimension 1 of f32\[3,8\]\{1,0\} must be most major, but \[0\] are more major"
    ):
        check_pass(FreeGathers(), modules=[module])


def test_passes_that_run_first_are_not_checked() -> None:
    report = check_pass("schedule", after="flatten-call-graph,layout-assignment{backend=gpu},copy-insertion", examples=5)

    assert report.subject == "schedule"
    assert report.failure is None


def test_unknown_claim_is_refused() -> None:
    with pytest.raises(InputError, match=f"unknown claim 'vaild'; known: {ALL_CLAIMS[0]}, {ALL_CLAIMS[1]}"):
        check_pass("dead-code-elimination", claims=["vaild"])


def test_unknown_steps_are_refused() -> None:
    with pytest.raises(InputError, match="no steps are called all_gathers; known: "):
        random_module(0, Limits(only=frozenset({"all_gathers"})))


@pytest.mark.parametrize("heap", [xla_heap(), AnytimeHeap(steps=100)], ids=lambda heap: heap.name)
def test_heaps_in_order_are_accepted(heap: object) -> None:
    assert check_heap(heap, examples=50).failure is None


def test_the_variant_of_the_readme_is_caught_as_the_readme_shows() -> None:
    with pytest.raises(CheckFailedError) as caught:
        check_pass(FreeGathers())

    lines = str(caught.value).split("\n")
    assert lines[0] == 'free-gathers: "layouts" does not hold'
    assert re.fullmatch(r"  branch\.1/all-gather: dimension \d of .* must be most major, but \[\d.*\] are more major", lines[1])
    assert re.fullmatch(r"before \(seed \d+, made small from \d+\):", lines[3])
    assert lines[-1] == f"to see it again: seed={caught.value.report.failure.seed}, examples=1"
    assert parse_module(caught.value.report.failure.before).instruction_count == 2


SHARED_BRANCH = """HloModule m, entry_computation_layout={(f16[2,4,3], f16[3,4,4,2]{3,2,1,0}, pred[])->f16[2,4,1]{2,1,0}}

branch {
  p = (f16[3,4], f16[2,4,3]) parameter(0)
  zero = f16[] constant(0)
  ROOT b = f16[2,4,1] broadcast(zero), dimensions={}
}

ENTRY e {
  flag = pred[] parameter(2)
  x = f16[2,4,3] parameter(0)
  y = f16[3,4,4,2] parameter(1)
  d = f16[3,4] dot(x, y), lhs_batch_dims={2}, lhs_contracting_dims={0,1}, rhs_batch_dims={0}, rhs_contracting_dims={3,1}
  t = (f16[3,4], f16[2,4,3]) tuple(d, x)
  ROOT c = f16[2,4,1] conditional(flag, t, t), true_computation=branch, false_computation=branch
}
"""


def test_a_branch_that_is_shared_within_a_conditional_must_be_flattened_before_layouts() -> None:
    """XLA's own pass leaves ``get-tuple-element.1`` of that branch with another layout than its operand has."""
    module = parse_module(SHARED_BRANCH, options=ParseOptions(keep_module_auto_layouts=True))

    alone = check_pass("layout-assignment{backend=gpu}", modules=[module])
    flat = check_pass("flatten-call-graph,layout-assignment{backend=gpu}", modules=[module])

    reason = "one computation is two branches of a conditional; run flatten-call-graph before layouts"
    assert alone.skipped == {f"{claim}: {reason}": 1 for claim in ("valid", "layouts")}
    assert not flat.skipped


def test_seed_of_the_report_shows_the_failure_again() -> None:
    with pytest.raises(CheckFailedError) as first:
        check_pass(FreeGathers(), claims=["layouts"])
    failure = first.value.report.failure
    with pytest.raises(CheckFailedError) as again:
        check_pass(FreeGathers(), claims=["layouts"], seed=failure.seed, examples=1)

    assert again.value.report.failure == failure
