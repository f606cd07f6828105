"""Arguments that are not donated although results of the same shapes come out: advice to donate them.

An argument is worth it if each of its arrays finds a result of its shape that no other parameter gives its memory to. Imitated
as ``jax.jit`` matches them: in order, each array with the first free result of its shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutsim.experiments.advice.change import ProgramChange
from layoutsim.experiments.advice.jax_arguments import argument_name, leaf_name
from layoutsim.experiments.what_if import donate, find_parameter, free_results, is_donated
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.shape import ArrayShape, byte_size, compatible
from layoutsim.report.units import count


def find_donations(module: Module) -> list[ProgramChange]:
    """A change for each argument that could be donated as a whole."""
    arguments: dict[str, list[Instruction]] = {}
    for parameter in module.entry.parameters:
        arguments.setdefault(argument_name(parameter) or leaf_name(parameter), []).append(parameter)
    found: list[ProgramChange] = []
    for name, leaves in arguments.items():
        if all(_could_be_donated(module, leaf) for leaf in leaves) and _all_find_results(module, leaves):
            found.append(_change(module, name, leaves))
    return found


def _could_be_donated(module: Module, leaf: Instruction) -> bool:
    return isinstance(leaf.shape, ArrayShape) and not is_donated(module, leaf) and bool(free_results(module, leaf))


def _all_find_results(module: Module, leaves: list[Instruction]) -> bool:
    """Whether there are results for all of them at once."""
    like = {leaf: sum(compatible(leaf.shape, other.shape) for other in leaves) for leaf in leaves}
    return all(like[leaf] <= len(free_results(module, leaf)) for leaf in leaves)


def _change(module: Module, name: str, leaves: list[Instruction]) -> ProgramChange:
    def apply(changed: Module) -> None:
        for leaf in leaves:
            again = find_parameter(changed, leaf.name)
            if free_results(changed, again):  # another argument may have had the last one
                donate(changed, again)

    return ProgramChange(
        title=f"donate {name}: {count(len(leaves), 'result has', 'results have')} its shape",
        code=_code(module, [name]),
        size_bytes=sum(byte_size(leaf.shape) for leaf in leaves),
        apply=apply,
        warnings=_cannot_be_read([name]),
        subject=name,
    )


def warn_all(changes: Sequence[ProgramChange]) -> tuple[str, ...]:
    """The warnings of several changes: one."""
    return _cannot_be_read([change.subject for change in changes])


def _cannot_be_read(names: Sequence[str]) -> tuple[str, ...]:
    return (f"the caller cannot read {', '.join(names)} after the call",)


def donate_all(module: Module, changes: Sequence[ProgramChange]) -> str:
    """The code of several changes: one call of ``jit``."""
    return _code(module, [change.subject for change in changes])


def _code(module: Module, names: list[str]) -> str:
    function = module.name.removeprefix("jit_")
    if {argument_name(parameter) for parameter in module.entry.parameters}.issuperset(names):
        return f"{function} = jax.jit({function}, donate_argnames={tuple(names)!r})"
    numbers = ", ".join(str(find_parameter(module, name).parameter_number) for name in names)
    return f"{function} = jax.jit({function}, donate_argnums=({numbers},))  # counted without unused arguments"
