"""The entry's parameters as the arguments of the user's function, and code that gives them layouts.

JAX names a parameter after the path in the argument it is a leaf of: ``frozen['up']``, ``state.params[0]``, ``x``. These names
are what ``jax.tree_util.keystr`` prints, and they stay right where ``jit`` drops unused arguments, which flat numbers do not.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from layoutsim.ir.instruction import Instruction
from layoutsim.ir.layout import Layout
from layoutsim.ir.module import Module
from layoutsim.ir.shape import ShapeIndex, shape_text, subshape

_PATH = re.compile(r"(?P<argument>[A-Za-z_]\w*)(?P<path>(?:\.\w+|\[(?:-?\d+|'[^']*'|\"[^\"]*\")\])*)")

_IMPORTS = {
    "new": "from jax.experimental.layout import Format, Layout",
    "0.6": "from jax.experimental.layout import DeviceLocalLayout as Layout, Layout as Format",
}

_FLAT = "# in_shardings: a flat list, counted without unused arguments"
_WIDTH = 100

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
    flat = ["", _FLAT, *_assignments("in_shardings", [_flat_item(*pair) for pair in chosen])] if chosen else []
    imports = f"import jax\n{imports}" if results else imports
    return "\n".join([imports, *(_by_path(chosen) if chosen and has_paths else flat), *_result_lines(module, results)])


def _by_path(chosen: Sequence[tuple[Instruction, Layout]]) -> list[str]:
    rows = [(f"{leaf_name(leaf)!r}: {_order(layout)},", _per_device(leaf)) for leaf, layout in chosen]
    width = max(len(row) for row, _ in rows)
    arguments = dict.fromkeys(argument_name(leaf) for leaf, _ in chosen)
    return [
        "from jax.tree_util import keystr, tree_map_with_path",
        "",
        "ORDERS = {  # from the slowest to the fastest dimension; shapes are those on one device",
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
    items = [_result_item(module, index, layout) for index, layout in results.items()]
    return [
        "",
        "# results, counted as in the flat tree",
        "results, tree = jax.tree.flatten(out_shardings)",
        *_assignments("results", items),
        "out_shardings = jax.tree.unflatten(tree, results)",
    ]


@frozen
class _Item:
    """An item of a flat list of shardings that gets a layout.

    Attributes:
        name: for the comment; ``""`` if the number says it all.
    """

    number: int
    order: str
    shape: str
    name: str = ""


def _flat_item(parameter: Instruction, layout: Layout) -> _Item:
    return _Item(parameter.parameter_number, _order(layout), _per_device(parameter), leaf_name(parameter))


def _result_item(module: Module, index: ShapeIndex, layout: Layout) -> _Item:
    shape = shape_text(subshape(module.entry.root.shape, index), layouts=False)
    return _Item(index[0] if index else 0, _order(layout), shape)


def _assignments(variable: str, items: Sequence[_Item]) -> list[str]:
    """A line for each item, or a loop over those of the same shape that get the same layout."""
    alike: dict[tuple[str, str], list[_Item]] = {}
    for item in items:
        alike.setdefault((item.shape, item.order), []).append(item)
    return [line for group in alike.values() for line in _assign(variable, sorted(group, key=lambda item: item.number))]


def _assign(variable: str, group: Sequence[_Item]) -> Iterator[str]:
    first, place = group[0], f"{variable}[{group[0].number}]"
    if len(group) == 1:
        comment = ", ".join(filter(None, [first.name, first.shape]))
        yield f"{place} = Format(Layout(major_to_minor={first.order}), {place})  # {comment}"
        return
    numbers = ", ".join(str(item.number) for item in group)
    lines = textwrap.wrap(f"{numbers},", _WIDTH, initial_indent="    ", subsequent_indent="    ")
    if len(lines) == 1:
        yield f"for i in ({numbers}):  # {first.shape}"
    else:
        yield from ("for i in (", *lines, f"):  # {first.shape}")
    yield f"    {variable}[i] = Format(Layout(major_to_minor={first.order}), {variable}[i])"


def _order(layout: Layout) -> str:
    return repr(layout.major_to_minor)


def _per_device(parameter: Instruction) -> str:
    return shape_text(parameter.shape, layouts=False)
