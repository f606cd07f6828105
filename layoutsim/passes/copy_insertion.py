"""Copies that let every buffer hold its values one after the other (``xla/service/copy_insertion.h``; memory spec, section 12).

Loops, conditionals, in-place operations and donated parameters make several values share one buffer. Copy insertion makes
that safe, in four steps:

1. Copy wherever live ranges might meet (:mod:`~layoutsim.passes.copy_insertion_add`); simplify tuples and drop dead code.
2. Elide every copy, also those that were there before, whose source and result can share memory after all
   (:mod:`~layoutsim.passes.copy_elision`), until none is left.
3. Copy what must not be written or returned: constants, parameters that are not donated, buffers returned twice
   (:mod:`~layoutsim.passes.copy_insertion_special`).
4. Simplify tuples and drop dead code.

The loop below writes its counter, and constants are read-only.
``copy-insertion``::

      body {
        q = (s32[], f32[4]) parameter(0)
    -   i = s32[] get-tuple-element(q), index=0
    +   get-tuple-element.2 = s32[] get-tuple-element(q), index=0
        k = s32[] constant(1)
    -   n = s32[] add(i, k)
    -   w = f32[4] get-tuple-element(q), index=1
    -   ROOT t = (s32[], f32[4]) tuple(n, w)
    +   n = s32[] add(get-tuple-element.2, k)
    +   get-tuple-element.5 = f32[4] get-tuple-element(q), index=1
    +   ROOT tuple.2 = (s32[], f32[4]) tuple(n, get-tuple-element.5)
      }
      cond {
        r = (s32[], f32[4]) parameter(0)
        j = s32[] get-tuple-element(r), index=0
        e = s32[] constant(4)
        ROOT l = pred[] compare(j, e), direction=LT
      }
      ENTRY main {
        zero = s32[] constant(0)
    +   copy.3 = s32[] copy(zero)
        p = f32[4] parameter(0)
    -   init = (s32[], f32[4]) tuple(zero, p)
    -   loop = (s32[], f32[4]) while(init), condition=cond, body=body
    +   tuple = (s32[], f32[4]) tuple(copy.3, p)
    +   loop = (s32[], f32[4]) while(tuple), condition=cond, body=body
        ROOT out = s32[] get-tuple-element(loop), index=0
      }

Every copy that is in the module afterwards has a remark that says why it is there.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import field, frozen

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.alias_rules import AliasRules
from layoutsim.analysis.call_graph import CallGraph
from layoutsim.errors import PassError
from layoutsim.ir import Instruction, Module
from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.copy_bitcasts import InPlace, reshapes_to_bitcasts
from layoutsim.passes.copy_branches import AS_THEY_STAND, Conditionals, LastFirst, cheapest_order, conditionals_at, in_order
from layoutsim.passes.copy_chains import copies_of
from layoutsim.passes.copy_elision import CopyRemover, Verdict
from layoutsim.passes.copy_insertion_add import InterferenceCopies
from layoutsim.passes.copy_insertion_special import SpecialCopies
from layoutsim.passes.dead_code import DeadCodeElimination
from layoutsim.passes.sharing_rules import SharingRules
from layoutsim.passes.tuple_simplifier import TupleSimplifier


@frozen
class CopyInsertion(Pass):
    """Insert the copies that buffer assignment needs, and no more.

    Attributes:
        rules: whose rules say which operations work in place and which results may take over an operand's memory.
        region_analysis: also elide copies whose live ranges are interleaved without touching (XLA: off by default).
        conditional: in which order the branches of conditionals are tried (:mod:`~layoutsim.passes.copy_branches`).
        in_place: whether reshapes and transposes that move nothing are bitcasts (:mod:`~layoutsim.passes.copy_bitcasts`).
    """

    name: ClassVar[str] = "copy-insertion"

    rules: SharingRules = field(default=SharingRules.NVIDIA, kw_only=True)
    region_analysis: bool = field(default=False, kw_only=True)
    conditional: Conditionals = field(default=Conditionals.XLA, kw_only=True)
    in_place: InPlace = field(default=InPlace.XLA, kw_only=True)

    def run(self, module: Module) -> PassResult:
        """Run on a module whose call graph is flat.

        Raises:
            PassError: a loop body or branch is called from two places.
        """
        if not CallGraph(module).is_flattened:
            raise PassError("copy-insertion: the call graph must be flat; run flatten-call-graph first")
        before = _snapshot(module)
        if self.in_place is InPlace.THROUGH_BITCASTS:
            reshapes_to_bitcasts(module)
        is_symmetric = self.conditional is Conditionals.SYMMETRIC
        remarks = self._insert(module, cheapest_order(module, self._insert) if is_symmetric else AS_THEY_STAND)
        return PassResult(_snapshot(module) != before, remarks)

    def _insert(self, module: Module, last_first: LastFirst) -> tuple[Remark, ...]:
        """Steps (1) to (4); the remarks on the copies that are left."""
        rules = self.rules.rules
        reasons = _add(module, rules)
        verdicts = remove_unnecessary_copies(module, rules, region_analysis=self.region_analysis, last_first=last_first)
        reasons |= _add_special(module, rules)
        _clean(module)
        return remarks_on_copies(module, reasons, verdicts)


def remove_unnecessary_copies(
    module: Module, rules: AliasRules, *, region_analysis: bool = False, last_first: LastFirst = AS_THEY_STAND
) -> dict[Instruction, Verdict]:
    """Elide copies to a fixed point; elided ones stay as dead code.

    With a schedule, live ranges are those of the schedule, else those that data and control dependencies guarantee.

    Returns:
        The last verdict on every copy.
    """
    aliases = Aliases.run(module, rules)
    reversed_ones = conditionals_at(module, last_first)
    remover = CopyRemover(module, aliases, region_analysis=region_analysis, last_first=reversed_ones)
    verdicts: dict[Instruction, Verdict] = {}
    left = in_order(copies_of(module), reversed_ones)
    changed = True
    while changed:
        changed = False
        for copy in left:
            verdicts[copy] = remover.try_elide(copy)
            if verdicts[copy].elided:
                _bypass(copy, aliases)
                changed = True
        left = [copy for copy in left if not verdicts[copy].elided]
    return verdicts


def _bypass(copy: Instruction, aliases: Aliases) -> None:
    """Make the users of ``copy`` read what it copies."""
    source, users = copy.operand(0), copy.users
    copy.drop_control_edges()
    copy.replace_all_uses_with(source)
    if any(user.operands.count(source) > 1 for user in users if user.operand_count > 1):
        aliases.sharing.forget()  # Such a user may no longer overwrite the source.


def remarks_on_copies(
    module: Module, reasons: dict[Instruction, str], verdicts: dict[Instruction, Verdict]
) -> tuple[Remark, ...]:
    """Why each copy of ``module`` is there: what it was added for, and why it could not go."""
    remarks: list[Remark] = []
    for copy in copies_of(module):
        parts = [f"added: {reasons[copy]}"] if copy in reasons else []
        if copy in verdicts:
            parts.append(f"kept: {verdicts[copy]}")
        remarks.append(Remark(copy.name, "; ".join(parts)))
    return tuple(remarks)


def _add(module: Module, rules: AliasRules) -> dict[Instruction, str]:  # (1)
    copies = InterferenceCopies(Aliases.run(module, rules))
    copies.add()
    _clean(module)
    return copies.reasons


def _add_special(module: Module, rules: AliasRules) -> dict[Instruction, str]:  # (3)
    copies = SpecialCopies(Aliases.run(module, rules))
    copies.add()
    return copies.reasons


def _clean(module: Module) -> None:  # (4)
    TupleSimplifier().run(module)
    DeadCodeElimination().run(module)


def _snapshot(module: Module) -> list[tuple[object, ...]]:
    """What tells whether a module was changed."""
    return [(c.root, i, i.name, i.operands, i.control_predecessors) for c in module.computations for i in c.instructions]
