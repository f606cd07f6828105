"""Make a failing module small: try simpler modules as long as one of them still fails (delta debugging on the graph).

Every edit works on a clone and is kept when the module still fails:

1. a value of the entry, or an element of the result tuple less, becomes the result;
2. a nested computation becomes the entry;
3. an instruction gives way to one of its operands, to a parameter, or to a broadcast zero;
4. dead instructions (unless the failure needs one), unused parameters and uncalled computations go, after every edit;
5. layouts become default ones, and aliases go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve

from layoutsim.build import Builder
from layoutsim.ir import (
    ArrayShape,
    Computation,
    ComputationLayout,
    Instruction,
    Module,
    Opcode,
    Shape,
    TupleShape,
    compatible,
    subshapes,
    with_default_layout,
)
from layoutsim.ir.clone import clone_module
from layoutsim.ir.payloads import ParameterPayload
from layoutsim.testing.scope import scalar_constant

Edit = Callable[[Module], bool]
"""Simplifies a module in place; false where it does not apply."""

_SIDE_EFFECTS = frozenset({Opcode.PARAMETER, Opcode.OUTFEED, Opcode.SEND, Opcode.SEND_DONE})


def reduce_module(module: Module, fails: Callable[[Module], bool], *, max_tries: int = 3000) -> Module:
    """The simplest module found that still fails.

    Args:
        fails: whether a module shows the failure; must not change it, and must say no to modules that are not valid.
    """
    current, tries, position = clone_module(module), 0, 0
    prune = fails(_cleaned(clone_module(module), prune=True))
    progress = True
    while tries < max_tries:
        edits = list(_edits(current))
        if position >= len(edits):
            if not progress:
                break
            position, progress = 0, False
            continue
        simpler = _simpler(current, edits[position], prune=prune)
        failing = next((candidate for candidate in simpler if fails(candidate)), None)
        tries += len(simpler)
        if failing is not None:
            current, progress = failing, True
        else:
            position += 1
    return current


def _simpler(module: Module, edit: Edit, *, prune: bool) -> list[Module]:
    """What ``edit`` makes of the module, if that is simpler; without its dead instructions, and if need be also with them."""
    out: list[Module] = []
    for prune_now in (True,) if prune else (True, False):
        candidate = clone_module(module)
        if edit(candidate) and _complexity(_cleaned(candidate, prune=prune_now)) < _complexity(module):
            out.append(candidate)
    return out


def _complexity(module: Module) -> tuple[int, int, int]:
    """Instructions, arrays in unusual layouts, aliases."""
    shapes = [i.shape for c in module.computations for i in c.instructions]
    if module.entry_layout is not None:
        shapes += [*module.entry_layout.parameters, module.entry_layout.result]
    unusual = sum(part != with_default_layout(part) for shape in shapes for _, part in subshapes(shape))
    return module.instruction_count, unusual, len(module.input_output_aliases)


# -- edits -----------------------------------------------------------------------------------------------------------------


def _edits(module: Module) -> Iterator[Edit]:
    """All edits of this module, those that remove most first."""
    yield lambda m: True  # only (4)
    entry = module.entry
    yield from (_new_entry(i) for i, c in enumerate(module.computations) if c is not entry)
    positions = range(len(entry.instructions))
    yield from (_new_root(i) for i in reversed(positions))
    if entry.root.opcode is Opcode.TUPLE:
        yield from (_without_result(k) for k in range(entry.root.operand_count))
    for ci, computation in reversed(list(enumerate(module.computations))):
        for ii in reversed(range(len(computation.instructions))):
            instruction = computation.instructions[ii]
            yield from (_bypass(ci, ii, k) for k in range(instruction.operand_count))
            yield _to_leaf(ci, ii)
            yield _erase(ci, ii)
    for ci, computation in enumerate(module.computations):
        yield from (_default_layout(ci, ii) for ii in range(len(computation.instructions)))
    yield from (_default_parameter(number) for number in range(len(entry.parameters)))
    yield _default_result
    yield _without_aliases


def _at(module: Module, ci: int, ii: int) -> Instruction:
    return module.computations[ci].instructions[ii]


def _new_entry(ci: int) -> Edit:
    def edit(module: Module) -> bool:
        callers = [i for c in module.computations for i in c.instructions if module.computations[ci] in i.called_computations]
        if any(i.opcode not in (Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL) for i in callers):
            return False
        _set_entry(module, module.computations[ci])
        return True

    return edit


def _set_entry(module: Module, entry: Computation) -> None:
    """Rebuild the module around another entry, behind all others."""
    others = [c for c in module.computations if c is not entry and c is not module.entry]
    old = module.entry
    fresh = Module(module.name, module.config)
    for computation in (*others, entry):
        computation.parent = None
        fresh.add_computation(computation, is_entry=computation is entry)
    old.parent = None
    module._computations, module._entry = fresh._computations, entry
    for computation in module.computations:
        computation.parent = module
    module.input_output_aliases = ()
    parameters = tuple(with_default_layout(p.shape) for p in entry.parameters)
    module.entry_layout = ComputationLayout(parameters, with_default_layout(entry.root.shape))


def _new_root(ii: int) -> Edit:
    def edit(module: Module) -> bool:
        chosen = module.entry.instructions[ii]
        if chosen is module.entry.root or not isinstance(chosen.shape, ArrayShape | TupleShape):
            return False
        _set_root(module, chosen)
        return True

    return edit


def _set_root(module: Module, root: Instruction) -> None:
    module.entry.root = root
    module.input_output_aliases = ()
    if module.entry_layout is not None:
        module.entry_layout = evolve(module.entry_layout, result=with_default_layout(root.shape))


def _without_result(k: int) -> Edit:
    def edit(module: Module) -> bool:
        root = module.entry.root
        kept = [o for i, o in enumerate(root.operands) if i != k]
        layout = module.entry_layout
        _set_root(module, Builder.into(module.entry).tuple(*kept) if len(kept) != 1 else kept[0])
        if layout is not None and isinstance(layout.result, TupleShape):
            wishes = [part for i, part in enumerate(layout.result.elements) if i != k]
            result: Shape = TupleShape(tuple(wishes)) if len(wishes) != 1 else wishes[0]
            module.entry_layout = evolve(layout, result=result)
        return True

    return edit


def _bypass(ci: int, ii: int, k: int) -> Edit:
    def edit(module: Module) -> bool:
        instruction = _at(module, ci, ii)
        return compatible(instruction.shape, instruction.operand(k).shape) and _replace(instruction, instruction.operand(k))

    return edit


def _to_leaf(ci: int, ii: int) -> Edit:
    """A parameter of the entry, a broadcast zero elsewhere."""

    def edit(module: Module) -> bool:
        instruction = _at(module, ci, ii)
        leaf_opcodes = (Opcode.PARAMETER, Opcode.CONSTANT)
        if instruction.opcode in leaf_opcodes or not isinstance(instruction.shape, ArrayShape | TupleShape):
            return False
        computation = module.computations[ci]
        builder = Builder.into(computation)
        if computation is module.entry:
            new = builder.parameter(instruction.shape)
            if module.entry_layout is not None:
                wishes = (*module.entry_layout.parameters, with_default_layout(instruction.shape))
                module.entry_layout = evolve(module.entry_layout, parameters=wishes)
        elif isinstance(instruction.shape, ArrayShape) and not _is_zero(instruction):
            new = _zero(builder, instruction.shape)
        else:
            return False
        return _replace(instruction, new)

    return edit


def _erase(ci: int, ii: int) -> Edit:
    """Where dead instructions matter to the failure, they go one by one."""

    def edit(module: Module) -> bool:
        instruction = _at(module, ci, ii)
        if instruction.user_count or instruction.is_root or instruction.opcode is Opcode.PARAMETER:
            return False
        instruction.drop_control_edges()
        module.computations[ci].erase(instruction)
        return True

    return edit


def _is_zero(instruction: Instruction) -> bool:
    return instruction.opcode is Opcode.BROADCAST and instruction.operand(0).opcode is Opcode.CONSTANT


def _zero(builder: Builder, shape: ArrayShape) -> Instruction:
    scalar = scalar_constant(builder, 0, shape.element_type)
    return builder.broadcast(scalar, shape.dimensions) if shape.rank else scalar


def _replace(old: Instruction, new: Instruction) -> bool:
    assert old.parent is not None
    if old.is_root:
        old.parent.root = new
    old.replace_all_uses_with(new)
    return True


def _default_layout(ci: int, ii: int) -> Edit:
    def edit(module: Module) -> bool:
        instruction = _at(module, ci, ii)
        instruction.shape = with_default_layout(instruction.shape)
        return True

    return edit


def _default_parameter(number: int) -> Edit:
    def edit(module: Module) -> bool:
        if module.entry_layout is None:
            return False
        wishes = list(module.entry_layout.parameters)
        wishes[number] = with_default_layout(wishes[number])
        module.entry_layout = evolve(module.entry_layout, parameters=tuple(wishes))
        return True

    return edit


def _default_result(module: Module) -> bool:
    if module.entry_layout is None:
        return False
    module.entry_layout = evolve(module.entry_layout, result=with_default_layout(module.entry_layout.result))
    return True


def _without_aliases(module: Module) -> bool:
    module.input_output_aliases = ()
    return True


# -- cleaning --------------------------------------------------------------------------------------------------------------


def _cleaned(module: Module, *, prune: bool) -> Module:
    """The same module without what nothing needs (4); dead instructions stay unless ``prune``."""
    for computation in module.computations if prune else ():
        _remove_dead(computation, keep=_SIDE_EFFECTS)
    _remove_uncalled(module)
    if not module.input_output_aliases:
        _remove_unused_parameters(module)
    return module


def _remove_dead(computation: Computation, keep: frozenset[Opcode]) -> None:
    for instruction in reversed(computation.instructions):
        if not instruction.user_count and not instruction.is_root and instruction.opcode not in keep:
            if instruction.control_successors or instruction.control_predecessors:
                instruction.drop_control_edges()
            computation.erase(instruction)
    dead = [i for i in computation.instructions if not i.user_count and not i.is_root and i.opcode not in keep]
    if dead:
        _remove_dead(computation, keep)


def _remove_uncalled(module: Module) -> None:
    called = {module.entry}
    for computation in reversed(module.computations):
        if computation in called:
            called.update(c for i in computation.instructions for c in i.called_computations)
    for computation in module.computations:
        if computation not in called:
            module.remove_computation(computation)


def _remove_unused_parameters(module: Module) -> None:
    kept: list[Shape] = []
    for parameter in module.entry.parameters:
        number = parameter.parameter_number
        if parameter.user_count or parameter.is_root:
            parameter.payload = ParameterPayload(len(kept))
            kept.append(module.entry_layout.parameters[number] if module.entry_layout is not None else parameter.shape)
        else:
            module.entry.erase(parameter)
    if module.entry_layout is not None:
        module.entry_layout = evolve(module.entry_layout, parameters=tuple(kept))
