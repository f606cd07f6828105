"""Reduce-scatters and all-to-alls without dimensions of size 1: what XLA does to all-gathers, done to the others.

Layout assignment wants the dimension along which they split most major, and asks for it by position, just as it does of
all-gathers; so dimensions of size 1 in front of it cost the same (:mod:`~layoutsim.passes.all_gather_degenerate_dims` has the
rules). No release of XLA has these passes.
``reduce-scatter-remove-degenerate-dims``::

      add {
        a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT c = f32[] add(a, b)
      }
      ENTRY e {
        p = f32[1,32,8]{2,1,0} parameter(0)
    -   ROOT s = f32[1,4,8]{2,1,0} reduce-scatter(p), replica_groups=[1,8]<=[8], dimensions={1}, to_apply=add
    +   reshape = f32[32,8]{1,0} reshape(p)
    +   s.1 = f32[4,8]{1,0} reduce-scatter(reshape), replica_groups=[1,8]<=[8], dimensions={0}, to_apply=add
    +   ROOT reshape.1 = f32[1,4,8]{2,1,0} reshape(s.1)
      }

``all-to-all-remove-degenerate-dims``::

      p = f32[1,32,8]{2,1,0} parameter(0)
    - ROOT a = f32[1,32,8]{2,1,0} all-to-all(p), replica_groups=[1,8]<=[8], dimensions={1}
    + reshape = f32[32,8]{1,0} reshape(p)
    + a.1 = f32[32,8]{1,0} all-to-all(reshape), replica_groups=[1,8]<=[8], dimensions={0}
    + ROOT reshape.1 = f32[1,32,8]{2,1,0} reshape(a.1)

An all-to-all that returns a tuple has no such dimension, and a ragged-all-to-all splits along dimension 0, which nothing stands
in front of: they need no pass.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from layoutsim.ir import Module, Opcode
from layoutsim.passes.all_gather_degenerate_dims import remove_degenerate_dims
from layoutsim.passes.base import Pass, PassResult


@frozen
class ReduceScatterRemoveDegenerateDims(Pass):
    """Reshape reduce-scatters so that no dimension of size 1 stands in front of the scattered one."""

    name: ClassVar[str] = "reduce-scatter-remove-degenerate-dims"

    def run(self, module: Module) -> PassResult:
        return remove_degenerate_dims(module, Opcode.REDUCE_SCATTER)


@frozen
class AllToAllRemoveDegenerateDims(Pass):
    """Reshape all-to-alls so that no dimension of size 1 stands in front of the one that is split."""

    name: ClassVar[str] = "all-to-all-remove-degenerate-dims"

    def run(self, module: Module) -> PassResult:
        return remove_degenerate_dims(module, Opcode.ALL_TO_ALL)
