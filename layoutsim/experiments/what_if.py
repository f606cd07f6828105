"""What would change if: entry layouts, rules of layout assignment, donations. Settings are values; modules are copied.

Setting texts, as ``layoutsim what-if --set`` takes them:

* ``entry-layout:NAME={2,0,1}`` or ``entry-layout:NAME=auto``: layout of an entry parameter, by name or number.
* ``result-layout:INDEX={1,0}`` or ``result-layout:INDEX=auto``: layout of a part of the result, by its number in the tuple.
* ``rule:KEY=VALUE``: an option of layout assignment or of the pass that has it, ``rule:all-gather=ignore-degenerate``.
* ``pass:NAME=off``: leave a pass out. ``pass:NAME=before`` and ``=after``: put one in, right before or after layout assignment;
  ``NAME`` may have options in braces.

An entry parameter is named by its name in the module, its number, or the path that JAX gave it (``frozen['up']``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import evolve, frozen

from layoutsim.errors import InputError, LayoutError
from layoutsim.experiments.simulate import Simulation, simulate
from layoutsim.garbage import no_collection
from layoutsim.ir.clone import clone_module
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.layout import Layout, layout
from layoutsim.ir.module import InputOutputAlias, Module
from layoutsim.ir.shape import (
    ArrayShape,
    ShapeIndex,
    array_leaves,
    compatible,
    index_text,
    replace_subshape,
    shape_text,
    subshape,
)
from layoutsim.passes import Pass, Pipeline
from layoutsim.passes.presets import DEFAULT_PRESET, resolve_preset, with_rules
from layoutsim.passes.registry import did_you_mean, parse_pass
from layoutsim.report.tables import Rows
from layoutsim.report.units import exact_bytes, signed_bytes

_LAYOUT = re.compile(r"\{([\d,]*)\}")


@frozen
class EntryLayoutSetting:
    """Layout of entry parameter ``parameter`` (name or number); ``None`` leaves it to the compiler.

    The caller passes the weights as the loop or product wants them, and nothing is copied. Given, and left to the compiler:

    ``entry-layout:w={0,1}``::

        - w = f32[8,4]{1,0} parameter(0)
        - copy = f32[8,4]{0,1} copy(w)
        - t = f32[4,8]{1,0} transpose(copy), dimensions={1,0}
        + w = f32[8,4]{0,1} parameter(0)
        + t = f32[4,8]{1,0} transpose(w), dimensions={1,0}
          ROOT c = f32[4] custom-call(t), custom_call_target="c", operand_layout_constraints={f32[4,8]{1,0}}

    ``entry-layout:w=auto``::

        - w = f32[8,4]{1,0} parameter(0)
        - copy = f32[8,4]{0,1} copy(w)
        - t = f32[4,8]{1,0} transpose(copy), dimensions={1,0}
        + w = f32[8,4]{0,1} parameter(0)
        + t = f32[4,8]{1,0} transpose(w), dimensions={1,0}
          ROOT c = f32[4] custom-call(t), custom_call_target="c", operand_layout_constraints={f32[4,8]{1,0}}
    """

    parameter: str
    layout: Layout | None

    def to_text(self) -> str:
        return f"entry-layout:{self.parameter}={self.layout if self.layout is not None else 'auto'}"


@frozen
class ResultLayoutSetting:
    """Layout of the result's array at ``index``; ``None`` leaves it to the compiler."""

    index: ShapeIndex
    layout: Layout | None

    def to_text(self) -> str:
        number = ".".join(map(str, self.index)) or "all"
        return f"result-layout:{number}={self.layout if self.layout is not None else 'auto'}"


@frozen
class RuleSetting:
    """An option of layout assignment."""

    key: str
    value: str

    def to_text(self) -> str:
        return f"rule:{self.key}={self.value}"


@frozen
class PassOff:
    """A pass that is left out."""

    name: str

    def to_text(self) -> str:
        return f"pass:{self.name}=off"


@frozen
class PassAdded:
    """A pass (with options) that is put right in front of layout assignment, or behind it."""

    text: str
    behind: bool

    def to_text(self) -> str:
        return f"pass:{self.text}={'after' if self.behind else 'before'}"


@frozen
class Undonate:
    """An entry parameter (name or number) that is not donated."""

    parameter: str

    def to_text(self) -> str:
        return f"undonate {self.parameter}"


@frozen
class Donate:
    """An entry parameter (name or number) whose memory the first result of its shape that is free may have."""

    parameter: str

    def to_text(self) -> str:
        return f"donate {self.parameter}"


Setting = EntryLayoutSetting | ResultLayoutSetting | RuleSetting | PassOff | PassAdded | Undonate | Donate

_FORMS = "entry-layout:NAME={...}, result-layout:INDEX={...}, rule:KEY=VALUE or pass:NAME=off|before|after"


def parse_setting(text: str) -> Setting:
    """A setting from its text.

    Raises:
        InputError: it is none of the forms above.
    """
    kind, colon, rest = text.partition(":")
    # The options of a pass hold equals signs of their own.
    name, equals, value = rest.rpartition("=") if kind == "pass" else rest.partition("=")
    if not (equals and colon and name and value):
        raise InputError(f"setting {text!r}: expected {_FORMS}")
    match kind:
        case "entry-layout":
            return EntryLayoutSetting(name, _parse_layout(value, text))
        case "result-layout":
            return ResultLayoutSetting(_parse_index(name, text), _parse_layout(value, text))
        case "rule":
            return RuleSetting(name, value)
        case "pass" if value == "off":
            return PassOff(name)
        case "pass" if value in ("before", "after"):
            return PassAdded(name, behind=value == "after")
        case _:
            raise InputError(f"setting {text!r}: expected {_FORMS}{_nearest_kind(kind)}")


def _nearest_kind(kind: str) -> str:
    kinds = ("entry-layout", "result-layout", "rule", "pass")
    return did_you_mean(kind, kinds) if kind not in kinds else ""


def _parse_index(name: str, text: str) -> ShapeIndex:
    if name != "all" and not all(part.isdecimal() for part in name.split(".")):
        raise InputError(f"setting {text!r}: expected the number of a part of the result, like 0 or 1.2, or all")
    return () if name == "all" else tuple(int(part) for part in name.split("."))


def _parse_layout(value: str, text: str) -> Layout | None:
    if value == "auto":
        return None
    found = _LAYOUT.fullmatch(value)
    if found is None:
        raise InputError(f"setting {text!r}: expected a layout like {{2,0,1}}, or auto")
    try:
        return layout(tuple(int(d) for d in found[1].split(",") if d))
    except LayoutError as error:
        raise InputError(f"setting {text!r}: {error}") from error


@frozen(eq=False)
class WhatIf:
    """A simulation as things are, and one as they would be."""

    settings: tuple[Setting, ...]
    before: Simulation
    after: Simulation

    def to_json(self) -> dict[str, object]:
        return {
            "settings": [setting.to_text() for setting in self.settings],
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "entry_layouts": entry_layout_texts(self.after.module),
        }

    def rows(self) -> Rows:
        """Figures before and after, and the differences."""
        lines = [
            ("transposing copies", self.before.transposing_bytes, self.after.transposing_bytes),
            ("temporaries", self.before.memory.temp_bytes, self.after.memory.temp_bytes),
            ("peak", self.before.memory.peak_bytes, self.after.memory.peak_bytes),
            ("all memory", self.before.memory.total_bytes, self.after.memory.total_bytes),
        ]
        body = tuple((name, exact_bytes(a), exact_bytes(b), signed_bytes(b - a)) for name, a, b in lines)
        counts = f"{len(self.before.transposing_copies)} transposing copies before, {len(self.after.transposing_copies)} after"
        counts = "\n".join([counts, *self._chosen()])
        title = ", ".join(setting.to_text() for setting in self.settings)
        return Rows(title, ("", "before", "after", "±"), body, frozenset({"before", "after", "±"}), counts)

    def _chosen(self) -> list[str]:
        """What the compiler made of each layout that was left to it."""
        module = self.after.module
        assert module.entry_layout is not None, module
        texts: list[str] = []
        for setting in self.settings:
            if isinstance(setting, EntryLayoutSetting) and setting.layout is None:
                shape = module.entry_layout.parameters[find_parameter(module, setting.parameter).parameter_number]
                texts.append(f"{setting.to_text()} became {shape}")
            elif isinstance(setting, ResultLayoutSetting) and setting.layout is None:
                texts.append(f"{setting.to_text()} became {subshape(module.entry_layout.result, setting.index)}")
        return texts

    def _repr_html_(self) -> str:
        return self.rows().to_html()


@no_collection()
def what_if(module: Module, settings: Sequence[Setting], preset: str = DEFAULT_PRESET) -> WhatIf:
    """Simulate ``module`` with and without ``settings``; it stays as it is.

    Raises:
        InputError: a setting names a parameter that is not there, or a layout that does not fit.
        PassError: a rule or pass is unknown.
    """
    changed, pipeline = apply_settings(module, settings, resolve_preset(preset))
    return WhatIf(tuple(settings), simulate(module, preset), simulate(changed, pipeline, in_place=True))


def apply_settings(module: Module, settings: Sequence[Setting], pipeline: Pipeline) -> tuple[Module, Pipeline]:
    """A copy of ``module`` and a pipeline with the settings applied."""
    changed = clone_module(module)
    for setting in settings:
        match setting:
            case EntryLayoutSetting():
                set_entry_layout(changed, find_parameter(changed, setting.parameter), setting.layout)
            case ResultLayoutSetting():
                set_result_layout(changed, setting.index, setting.layout)
            case RuleSetting():
                pipeline = with_rules(pipeline, f"{setting.key}={setting.value}")
            case PassOff():
                if all(p.name != setting.name for p in pipeline.passes):
                    known = [p.name for p in pipeline.passes]
                    raise InputError(f"{setting.to_text()}: the pipeline has no such pass{did_you_mean(setting.name, known)}")
                pipeline = pipeline.without(setting.name)
            case PassAdded():
                pipeline = with_pass(pipeline, parse_pass(setting.text), behind=setting.behind)
            case Undonate():
                _undonate(changed, find_parameter(changed, setting.parameter))
            case Donate():
                donate(changed, find_parameter(changed, setting.parameter))
    return changed, pipeline


def with_pass(pipeline: Pipeline, added: Pass, *, behind: bool) -> Pipeline:
    """The pipeline with a pass more, right in front of or behind its layout assignment."""
    passes = list(pipeline.passes)
    passes.insert(next(i for i, p in enumerate(passes) if p.name == "layout-assignment") + behind, added)
    return Pipeline(tuple(passes), pipeline.name)


def find_parameter(module: Module, wanted: str) -> Instruction:
    """An entry parameter by name, number, or the path that JAX gave it.

    Raises:
        InputError: there is none.
    """
    parameters = module.entry.parameters
    for parameter in parameters:
        if wanted in (parameter.name, str(parameter.parameter_number), parameter.metadata.op_name):
            return parameter
    labels = [(p.name, p.metadata.op_name) for p in parameters]
    near = did_you_mean(wanted, [name for pair in labels for name in pair if name])
    known = ", ".join(
        f"{p.parameter_number}: {' '.join(filter(None, pair))}" for p, pair in zip(parameters, labels, strict=True)
    )
    raise InputError(f"the entry has no parameter {wanted!r}{near if 'mean' in near else f'; parameters: {known}'}")


def set_entry_layout(module: Module, parameter: Instruction, wanted: Layout | None) -> None:
    """Change, in place, the layout in which the caller passes an array parameter; ``None`` is automatic."""
    assert module.entry_layout is not None, module
    parameters = list(module.entry_layout.parameters)
    shape = parameters[parameter.parameter_number]
    if not isinstance(shape, ArrayShape):
        raise InputError(f"parameter {parameter.name} is not an array but {shape}")
    if wanted is not None and wanted.rank != shape.rank:
        raise InputError(f"layout {wanted} does not fit parameter {parameter.name} of shape {shape}")
    parameters[parameter.parameter_number] = shape.with_layout(wanted)
    module.entry_layout = evolve(module.entry_layout, parameters=tuple(parameters))


def set_result_layout(module: Module, index: ShapeIndex, wanted: Layout | None) -> None:
    """Change, in place, the layout in which the caller expects an array of the result; ``None`` is automatic."""
    assert module.entry_layout is not None, module
    result = module.entry_layout.result
    arrays = dict(array_leaves(result))
    if index not in arrays:
        known = ", ".join(".".join(map(str, i)) or "all" for i in arrays)
        raise InputError(f"the result has no array {'.'.join(map(str, index)) or 'all'}; arrays: {known}")
    shape = arrays[index]
    if wanted is not None and wanted.rank != shape.rank:
        raise InputError(f"layout {wanted} does not fit result {index_text(index)} of shape {shape}")
    module.entry_layout = evolve(module.entry_layout, result=replace_subshape(result, index, shape.with_layout(wanted)))


def is_donated(module: Module, parameter: Instruction) -> bool:
    """Whether the caller gives the parameter's memory away."""
    donors = [*module.input_output_aliases, *module.buffer_donors]
    return any(donor.parameter_number == parameter.parameter_number for donor in donors)


def free_results(module: Module, parameter: Instruction) -> list[ShapeIndex]:
    """The parts of the result that could have the memory of ``parameter`` and have none from another one."""
    taken = {alias.output_index for alias in module.input_output_aliases}
    leaves = array_leaves(module.entry.root.shape)
    return [index for index, leaf in leaves if index not in taken and compatible(leaf, parameter.shape)]


def donate(module: Module, parameter: Instruction) -> None:
    """Give the memory of ``parameter`` to the first free result of its shape, as ``jax.jit`` does with donated arguments.

    Raises:
        InputError: it is donated already, or no result can have its memory.
    """
    if is_donated(module, parameter):
        raise InputError(f"parameter {parameter.name} is donated already")
    free = free_results(module, parameter)
    if not free:
        shape = shape_text(parameter.shape, layouts=False)
        raise InputError(f"parameter {parameter.name}: no result of shape {shape} is free to have its memory")
    alias = InputOutputAlias(free[0], parameter.parameter_number)
    module.input_output_aliases = (*module.input_output_aliases, alias)


def _undonate(module: Module, parameter: Instruction) -> None:
    number = parameter.parameter_number
    if not is_donated(module, parameter):
        donated = ", ".join(p.name for p in module.entry.parameters if is_donated(module, p)) or "none"
        raise InputError(f"parameter {parameter.name} is not donated; donated: {donated}")
    module.input_output_aliases = tuple(a for a in module.input_output_aliases if a.parameter_number != number)
    module.buffer_donors = tuple(d for d in module.buffer_donors if d.parameter_number != number)


def entry_layout_texts(module: Module) -> list[str]:
    """The layout of each entry parameter, as text."""
    assert module.entry_layout is not None, module
    return [str(shape) for shape in module.entry_layout.parameters]
