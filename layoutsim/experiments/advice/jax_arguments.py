"""The entry's parameters as the arguments of the user's function, and code that gives them layouts.

JAX names a parameter after the path in the argument it is a leaf of: ``frozen['up']``, ``state.params[0]``, ``x``. These names
are what ``jax.tree_util.keystr`` prints, and they stay right where ``jit`` drops unused arguments, which flat numbers do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from layoutsim.ir.instruction import Instruction
from layoutsim.ir.layout import Layout
from layoutsim.ir.module import Module
from layoutsim.ir.shape import ShapeIndex, shape_text, subshape

_PATH = re.compile(r"(?P<argument>[A-Za-z_]\w*)(?P<path>(?:\.\w+|\[(?:-?\d+|'[^']*'|\"[^\"]*\")\])*)")

_IMPORTS = {
    "new": "from jax.experimental.layout import Format, Layout",
    "0.6": "from jax.experimental.layout import DeviceLocalLayout as Layout, Layout as Format",
}

_HELPER = '''\
def laid_out(argument, shardings):
    """The shardings of an argument, with the layouts above."""
    def lay_out(path, sharding):
        order = ORDERS.get(argument + keystr(path))
        return Format(Layout(major_to_minor=order), sharding) if order else sharding
    return tree_map_with_path(lay_out, shardings)
'''


def argument_name(parameter: Instruction) -> str:
    """The argument that a parameter is a leaf of; ``""`` if its name is no path."""
    found = _PATH.fullmatch(parameter.metadata.op_name)
    return found["argument"] if found else ""


def leaf_name(parameter: Instruction) -> str:
    """``frozen['up']``, or the parameter's name in the module if JAX left none."""
    return parameter.metadata.op_name or parameter.name


def layout_code(module: Module, parameters: Mapping[int, Layout], results: Mapping[ShapeIndex, Layout], preset: str) -> str:
    """Python that passes parameters (by number) and returns results in these layouts, for the release that ``preset`` imitates.

    It expects the shardings of each argument in a variable ``ARGUMENT_shardings``, those of the result in ``out_shardings``.
    Parameters whose names are no paths are given as items of ``in_shardings``, flat.
    """
    leaves = {p.parameter_number: p for p in module.entry.parameters}
    chosen = [(leaves[number], parameters[number]) for number in sorted(parameters)]
    imports = _IMPORTS["0.6" if preset.startswith("xla-gpu-0.6") else "new"]
    names = [leaf_name(leaf) for leaf, _ in chosen]
    has_paths = all(argument_name(leaf) for leaf, _ in chosen) and len(set(names)) == len(names)
    flat = ["", *(_flat_line(*pair) for pair in chosen)] if chosen else []
    return "\n".join([imports, *(_by_path(chosen) if chosen and has_paths else flat), *_result_lines(module, results)])


def _by_path(chosen: Sequence[tuple[Instruction, Layout]]) -> list[str]:
    rows = [(f"{leaf_name(leaf)!r}: {_order(layout)},", _per_device(leaf)) for leaf, layout in chosen]
    width = max(len(row) for row, _ in rows)
    arguments = dict.fromkeys(argument_name(leaf) for leaf, _ in chosen)
    return [
        "from jax.tree_util import keystr, tree_map_with_path",
        "",
        "ORDERS = {  # from the slowest to the fastest dimension",
        *(f"    {row:{width}}  # {shape}" for row, shape in rows),
        "}",
        "",
        *_HELPER.splitlines(),
        "",
        "# for jit's in_shardings, and for jax.device_put where the arrays are made",
        *(f'{name}_shardings = laid_out("{name}", {name}_shardings)' for name in arguments),
    ]


def _result_lines(module: Module, results: Mapping[ShapeIndex, Layout]) -> list[str]:
    if not results:
        return []
    formats: list[str] = []
    for index, layout in results.items():
        result = f"results[{index[0] if index else 0}]"
        shape = shape_text(subshape(module.entry.root.shape, index), layouts=False)
        formats.append(f"{result} = Format(Layout(major_to_minor={_order(layout)}), {result})  # {shape}")
    return [
        "",
        "# results, counted as in the flat tree",
        "results, tree = jax.tree.flatten(out_shardings)",
        *formats,
        "out_shardings = jax.tree.unflatten(tree, results)",
    ]


def _flat_line(parameter: Instruction, layout: Layout) -> str:
    number = parameter.parameter_number
    comment = f"{leaf_name(parameter)}, {_per_device(parameter)}"
    return f"in_shardings[{number}] = Format(Layout(major_to_minor={_order(layout)}), in_shardings[{number}])  # {comment}"


def _order(layout: Layout) -> str:
    return repr(layout.major_to_minor)


def _per_device(parameter: Instruction) -> str:
    return shape_text(parameter.shape, layouts=False)
