"""Deep copies of modules: what ``compare`` and the pipelines run on, so that the caller's module stays as it was."""

from __future__ import annotations

from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.schedule import Schedule


def clone_computation(
    computation: Computation, name: str, computations: dict[Computation, Computation]
) -> tuple[Computation, dict[Instruction, Instruction]]:
    """A copy with the same instruction names, in no module; called computations are mapped where ``computations`` has them.

    Returns:
        The copy, and each original instruction's copy.
    """
    copy = Computation(name, computation.execution_thread)
    made: dict[Instruction, Instruction] = {}
    for original in computation.instructions:
        made[original] = copy.adopt(_clone_instruction(original, made, computations))
    for original, new in made.items():
        for before in original.control_predecessors:
            new.add_control_predecessor(made[before])
    _restore_user_order(made)
    copy.root = made[computation.root]
    return copy, made


def _clone_instruction(
    original: Instruction, made: dict[Instruction, Instruction], computations: dict[Computation, Computation]
) -> Instruction:
    return Instruction(
        original.name,
        original.opcode,
        original.shape,
        original.payload,
        [],
        tuple(computations.get(c, c) for c in original.called_computations),
        original.attributes,
    )


def _restore_user_order(made: dict[Instruction, Instruction]) -> None:
    """Wire operands so that every copy has its users in the original's order, which passes depend on."""
    for original, new in made.items():
        new.wire([made[o] for o in original.operands], [made[u] for u in original.users])


def clone_module(module: Module) -> Module:
    """A copy that shares only values (shapes, payloads, attributes) with the original."""
    copy = Module(module.name, module.config, module.entry_layout, module.input_output_aliases, module.buffer_donors)
    computations: dict[Computation, Computation] = {}
    instructions: dict[Instruction, Instruction] = {}
    for computation in module.computations:
        new, made = clone_computation(computation, computation.name, computations)
        computations[computation] = new
        instructions |= made
        copy.add_computation(new, is_entry=computation.is_entry)
    if module.schedule is not None:
        copy.schedule = Schedule(
            {computations[c]: [instructions[i] for i in order] for c, order in module.schedule.sequences.items()}
        )
    return copy
