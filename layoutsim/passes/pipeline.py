"""A sequence of passes, itself a frozen value that prints as text and can be changed and passed around."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from attrs import field, frozen

from layoutsim.errors import PassError, VerificationError
from layoutsim.ir.module import Module
from layoutsim.passes.base import Pass, PassResult, Remark

Kind = TypeVar("Kind", bound=Pass)


@frozen
class PassRun:
    """One pass of a pipeline run, its result and the seconds it took."""

    ran: Pass
    result: PassResult
    seconds: float = field(eq=False)


@frozen
class PipelineResult:
    """What each pass of a pipeline did, in order."""

    runs: tuple[PassRun, ...]

    @property
    def changed(self) -> bool:
        return any(run.result.changed for run in self.runs)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        return tuple(remark for run in self.runs for remark in run.result.remarks)

    def __iter__(self) -> Iterator[PassRun]:
        return iter(self.runs)


@frozen
class Pipeline:
    """Passes that run one after the other.

    Attributes:
        name: of the preset this is, or empty.
    """

    passes: tuple[Pass, ...] = field(converter=tuple)
    name: str = ""

    def run(
        self,
        module: Module,
        *,
        verify: bool = False,
        on_pass: Callable[[Pass], None] | None = None,
    ) -> PipelineResult:
        """Run every pass on ``module``, in place.

        Args:
            module: is changed.
            verify: check the module's invariants after every pass.
            on_pass: called with each pass before it runs (progress bars).

        Raises:
            VerificationError: with ``verify``, a pass left an invalid module; the message names it and those before it.
        """
        runs: list[PassRun] = []
        for current in self.passes:
            if on_pass is not None:
                on_pass(current)
            start = time.perf_counter()
            result = current.run(module)
            runs.append(PassRun(current, result, time.perf_counter() - start))
            if verify:
                self._verify(module, runs)
        return PipelineResult(tuple(runs))

    def _verify(self, module: Module, runs: list[PassRun]) -> None:
        from layoutsim.verify import verify

        if found := verify(module):
            raise VerificationError(found, after=", ".join(run.ran.to_text() for run in runs))

    def then(self, *more: Pass) -> Pipeline:
        """This pipeline with passes added at the end."""
        return Pipeline((*self.passes, *more), self.name)

    def replacing(self, new: Pass) -> Pipeline:
        """This pipeline with every pass of the same name replaced by ``new``."""
        return Pipeline(tuple(new if p.name == new.name else p for p in self.passes), self.name)

    def parted_at(self, kind: type[Kind]) -> tuple[Pipeline, Kind, Pipeline]:
        """The passes in front of the first of a kind, that one, and those behind it.

        Raises:
            PassError: there is none.
        """
        for number, current in enumerate(self.passes):
            if isinstance(current, kind):
                return Pipeline(self.passes[:number], self.name), current, Pipeline(self.passes[number + 1 :], self.name)
        raise PassError(f"pipeline {self} has no {kind.name}")

    def without(self, name: str) -> Pipeline:
        """This pipeline without the passes called ``name``."""
        return Pipeline(tuple(p for p in self.passes if p.name != name), self.name)

    def to_text(self) -> str:
        return ",".join(p.to_text() for p in self.passes)

    def __str__(self) -> str:
        return self.to_text()
