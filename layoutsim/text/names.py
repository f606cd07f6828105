"""Instruction names that are unique in the whole module, as XLA makes them when it reads a text."""

from __future__ import annotations

from layoutsim.ir import Module


def uniquify_names(module: Module) -> int:
    """Rename instructions whose name an earlier computation has already: a second ``a`` becomes ``a.1``, and so on.

    HLO text scopes names to computations, and so does layoutsim; XLA renames while it reads, in the order of the text.

    Returns:
        How many instructions got another name.
    """
    names = Module("names")  # an empty module, for its rule of unique names
    renamed = 0
    for computation in module.computations:
        for instruction in computation.instructions:
            unique = names.unique_name(instruction.name)
            renamed += unique != instruction.name
            instruction.name = unique
    return renamed
