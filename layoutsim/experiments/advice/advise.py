"""What to change: tries changes of the program and of the rules, and ranks what helps, in bytes.

Every piece of advice is a simulation, not a guess. For JAX users, as code: layouts of arguments, squeezes before gathers, scan
outputs to drop, selects and casts of parts instead of whole arrays, arguments to donate. For XLA engineers: rule sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from layoutsim.experiments.advice.change import ProgramChange, all_warnings, most_alone, shown_once, together
from layoutsim.experiments.advice.conditionals import find_conditionals
from layoutsim.experiments.advice.donations import donate_all, find_donations, warn_all
from layoutsim.experiments.advice.entry_layouts import advise_entry_layouts
from layoutsim.experiments.advice.report import Advice, AdviceReport, measured, merged, not_worse_than_each
from layoutsim.experiments.advice.rule_sets import advise_rule_sets
from layoutsim.experiments.advice.scan_outputs import find_scan_outputs
from layoutsim.experiments.advice.selects import find_selects
from layoutsim.experiments.advice.squeezes import find_squeezes
from layoutsim.experiments.advice.trials import Trials
from layoutsim.experiments.advice.up_casts import find_up_casts
from layoutsim.experiments.simulate import Simulation, simulate
from layoutsim.garbage import no_collection
from layoutsim.ir.clone import clone_module
from layoutsim.ir.module import Module
from layoutsim.passes.presets import DEFAULT_PRESET

_WORTHWHILE = 0.01
"""Below this part of the temporaries (or of all memory) savings are gaps that fell differently, no advice."""


@frozen
class _Kind:
    """One kind of change: what all of a kind are called together, what finds them, and their common code and warnings."""

    name: str
    find: Callable[[Module], list[ProgramChange]]
    code: Callable[[Module, Sequence[ProgramChange]], str] = lambda _, changes: shown_once(changes)
    warnings: Callable[[Sequence[ProgramChange]], tuple[str, ...]] = all_warnings


_KINDS = (
    _Kind("squeeze before every gather", find_squeezes),
    _Kind("drop every scan output that equals the scan's input, or that nothing reads", find_scan_outputs),
    _Kind("select parts, not whole arrays", find_selects),
    _Kind("choose parts in conditionals, not whole arrays", find_conditionals),
    _Kind("cast inside the loops, not before them", find_up_casts),
    _Kind("donate every argument whose shapes come out again", find_donations, donate_all, warn_all),
)


@no_collection()
def advise(module: Module, preset: str = DEFAULT_PRESET, on_step: Callable[[str], None] = lambda _: None) -> AdviceReport:
    """Try changes and rank what lowers memory or copies; ``module`` stays as it is. ``on_step`` hears what is tried next."""
    on_step("as it is")
    trials = Trials.start(module, preset)
    now = trials.now
    on_step("entry layouts")
    found = advise_entry_layouts(trials)
    found += _advise_changes(trials, on_step)
    found += merged(advise_rule_sets(trials, on_step), round(now.memory.temp_bytes * _WORTHWHILE))
    helpful = [advice for advice in found if _helps(advice, now)]
    ranked = sorted(helpful, key=lambda a: (-a.saved_bytes, a.remaining_copy_bytes, a.audience, a.title))
    return AdviceReport(now, tuple(ranked))


def _helps(advice: Advice, now: Simulation) -> bool:
    """Whether memory or copies fall, and copies not at the cost of memory."""
    little = now.memory.temp_bytes * _WORTHWHILE
    if advice.saved_bytes > now.memory.total_bytes * _WORTHWHILE:
        return True
    return advice.saved_bytes >= -little and max(advice.saved_temp_bytes, advice.saved_copy_bytes) > little


def _advise_changes(trials: Trials, on_step: Callable[[str], None]) -> list[Advice]:
    found: list[Advice] = []
    module, now = trials.module, trials.now
    for kind in _KINDS:
        on_step(kind.name)
        changes = [c for c in kind.find(module) if c.size_bytes > now.memory.temp_bytes * _WORTHWHILE]
        alone = [_measure(trials, c) for c in _largest(changes, most_alone(module))] if len(changes) > 1 else []
        if len(changes) > 1:
            title, code = f"{kind.name} ({len(changes)})", kind.code(module, changes)
            changes = [together(title, changes, code, kind.warnings(changes))]
        found += [*not_worse_than_each((_measure(trials, change) for change in changes), alone), *alone]
    return found


def _largest(changes: Sequence[ProgramChange], count: int) -> list[ProgramChange]:
    return sorted(changes, key=lambda change: -change.size_bytes)[:count]


def _measure(trials: Trials, change: ProgramChange) -> Advice:
    changed = clone_module(trials.module)
    change.apply(changed)
    then = simulate(changed, trials.pipeline, in_place=True)
    return measured(trials.now, then, audience=change.audience, title=change.title, code=change.code, warnings=change.warnings)
