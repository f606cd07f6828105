"""What joint layout assignment found, beside XLA's answer: figures, the proof, arrays that are laid out otherwise, memory."""

from __future__ import annotations

from functools import cached_property

from attrs import field, frozen

from layoutsim.experiments.joint.measure import Moved
from layoutsim.experiments.joint.objective import Objective
from layoutsim.experiments.joint.peak import memory_after
from layoutsim.ir.clone import clone_module
from layoutsim.ir.module import Module
from layoutsim.memory.summary import MemorySummary
from layoutsim.passes.presets import resolve_preset
from layoutsim.report.tables import Rows
from layoutsim.report.units import exact_bytes


@frozen
class Change:
    """An array that is laid out otherwise than by XLA."""

    computation: str
    name: str
    shape: str
    xla_layout: str
    layout: str


@frozen(eq=False, slots=False)
class JointResult:
    """The joint answer beside XLA's.

    Attributes:
        module: laid out, copies inserted.
        xla_module: laid out by XLA's pass.
        preset: whose rules hold.
        objective: what was to be small.
        xla: bytes that XLA's answer moves.
        joint: bytes that ours moves.
        bound: no choice among the orders offered costs less, by the objective; ``None`` if no proof was asked for. For the
            peak it is one of the sum that stands for it (:mod:`layoutsim.experiments.joint.peak`).
        is_optimal: ``joint`` is proven to be the least among the orders offered; for the peak, that sum is.
        covers_all_orders: every array that is free had all its orders to choose from, so that the proof is one for all layouts.
        changes: arrays laid out otherwise, in the order of the module.
        pinned_opcodes: instructions that keep XLA's layouts because their rules are not modelled, by opcode.
        unknown_runs: computations whose runs are unknown and count as one.
    """

    module: Module = field(repr=False)
    xla_module: Module = field(repr=False)
    preset: str
    objective: Objective
    xla: Moved
    joint: Moved
    bound: int | None
    is_optimal: bool
    covers_all_orders: bool
    changes: tuple[Change, ...] = field(repr=False)
    pinned_opcodes: dict[str, int] = field(repr=False)
    unknown_runs: tuple[str, ...] = field(repr=False)

    @property
    def costs(self) -> tuple[int, int]:
        """XLA's answer and ours by the objective, bytes."""
        match self.objective:
            case Objective.MOVED:
                return self.xla.total, self.joint.total
            case Objective.HELD:
                return self.xla.held, self.joint.held
            case Objective.PEAK:
                xla, joint = self.memory
                return xla.peak_bytes, joint.peak_bytes

    @property
    def saved(self) -> int:
        """Bytes, by the objective, that XLA's answer costs and ours does not."""
        xla, joint = self.costs
        return xla - joint

    @cached_property
    def memory(self) -> tuple[MemorySummary, MemorySummary]:
        """Memory of XLA's answer and of ours, each run through the rest of the preset's passes."""
        pipeline = resolve_preset(self.preset)
        return memory_after(clone_module(self.xla_module), pipeline), memory_after(clone_module(self.module), pipeline)

    def to_json(self) -> dict[str, object]:
        return {
            "objective": self.objective.value,
            "xla": self._figures_json(0),
            "joint": self._figures_json(1),
            "bound_bytes": self.bound,
            "optimal": self.is_optimal,
            "covers_all_orders": self.covers_all_orders,
            "saved_bytes": self.saved,
            "changes": [
                {"computation": c.computation, "name": c.name, "shape": c.shape, "xla": c.xla_layout, "joint": c.layout}
                for c in self.changes
            ],
            "pinned_opcodes": self.pinned_opcodes,
            "unknown_runs": list(self.unknown_runs),
        }

    def _figures_json(self, number: int) -> dict[str, int]:
        moved = _moved_json((self.xla, self.joint)[number])
        return moved | ({"peak_bytes": self.costs[number]} if self.objective is Objective.PEAK else {})

    def rows(self) -> tuple[Rows, ...]:
        """A table of the figures, and one of the arrays that are laid out otherwise."""
        return (self._figures(), self._changes())

    def _figures(self) -> Rows:
        pairs = [
            ("bytes moved, times runs", self.xla.total, self.joint.total),
            ("of these by copies", self.xla.copied, self.joint.copied),
            ("of these by transposes and reshapes", self.xla.transposed, self.joint.transposed),
            ("copies, each once", self.xla.copied_once, self.joint.copied_once),
        ]
        if self.objective is Objective.PEAK:
            pairs.append(("peak of memory", *self.costs))
        body = tuple((name, exact_bytes(a), exact_bytes(b)) for name, a, b in pairs)
        return Rows("joint layout assignment", ("", "XLA", "joint"), body, frozenset({"XLA", "joint"}), self._verdict())

    def _verdict(self) -> str:
        if self.is_optimal:
            orders = "all" if self.covers_all_orders else "the offered"
            if self.objective is Objective.PEAK:
                return f"proven for the live ranges of one schedule: no choice among {orders} orders has a lower peak"
            return f"proven: no choice among {orders} orders has fewer bytes {self.objective}"
        if self.bound is None:
            return "no proof: found by local search"
        return f"not proven to be the least; the bound is {exact_bytes(self.bound)}"

    def _changes(self) -> Rows:
        columns = ("computation", "array", "shape", "XLA", "joint")
        body = tuple((c.computation, c.name, c.shape, c.xla_layout, c.layout) for c in self.changes)
        return Rows("laid out otherwise", columns, body, frozenset())

    def _repr_html_(self) -> str:
        return "".join(rows.to_html() for rows in self.rows())


def _moved_json(moved: Moved) -> dict[str, int]:
    return {
        "moved_bytes": moved.total,
        "copied_bytes": moved.copied,
        "transposed_bytes": moved.transposed,
        "copied_once_bytes": moved.copied_once,
    }
