"""A change of the user's program, imitated on its HLO: what every finder of such changes returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from layoutsim.analysis.source_lines import source_line
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module

_MOST_ALONE = 8
_LARGE_MODULE = 10_000


def most_alone(module: Module) -> int:
    """Of changes that are tried together, how many are also tried one by one: none in large modules, for time."""
    return _MOST_ALONE if module.instruction_count <= _LARGE_MODULE else 0


@frozen(eq=False)
class ProgramChange:
    """One change.

    Attributes:
        title: the change in a line.
        code: how it looks in the user's program.
        audience: who can make it, ``jax`` or ``xla``.
        subject: what is changed: an argument, an array, or ``""``.
        size_bytes: of the arrays concerned: what the change can save at most, about. Small ones are not tried.
        apply: changes a copy of the module, which has the same names, into what the changed program would be compiled from.
        warnings: what to check first.
    """

    title: str
    code: str
    size_bytes: int
    apply: Callable[[Module], None]
    warnings: tuple[str, ...] = ()
    audience: str = "jax"
    subject: str = ""


def shown_once(changes: Sequence[ProgramChange]) -> str:
    """The code of all changes; what several share once."""
    codes = list(dict.fromkeys(change.code for change in changes))
    return ("\n\n" if any("\n" in code for code in codes) else "\n").join(codes)


def all_warnings(changes: Sequence[ProgramChange]) -> tuple[str, ...]:
    """The warnings of all changes, each once."""
    return tuple(dict.fromkeys(warning for change in changes for warning in change.warnings))


def together(title: str, changes: Sequence[ProgramChange], code: str, warnings: tuple[str, ...]) -> ProgramChange:
    """All ``changes`` at once."""

    def apply(module: Module) -> None:
        for change in changes:
            change.apply(module)

    return ProgramChange(
        title=title,
        code=code,
        size_bytes=sum(change.size_bytes for change in changes),
        apply=apply,
        audience="xla" if all(change.audience == "xla" for change in changes) else "jax",
        warnings=warnings,
    )


def where(instruction: Instruction) -> str:
    """``lora.py:61`` or, where no source line was recorded, ``%add.3 in %body``."""
    home = f" in %{instruction.parent.name}" if instruction.parent is not None else ""
    return source_line(instruction) or f"%{instruction.name}{home}"


def find_again(module: Module, instruction: Instruction) -> Instruction:
    """The copy of ``instruction`` in a copy of its module."""
    assert instruction.parent is not None, instruction
    return module.find(instruction.parent.name, instruction.name)
