"""Input/output aliases and buffer donors (invariants D1 to D5; list in ``layoutsim.verify``)."""

from __future__ import annotations

from layoutsim.errors import ShapeError
from layoutsim.ir import ArrayShape, ComputationLayout, InputOutputAlias, Shape, ShapeIndex, index_text, subshape
from layoutsim.verify.findings import Findings


def verify_aliases(findings: Findings) -> None:
    """D1 to D5. Shapes are the entry layout's where it is stated, as for the caller."""
    module = findings.module
    if not module.input_output_aliases and not module.buffer_donors:
        return
    layout = module.entry_layout
    if layout is None:
        layout = ComputationLayout(tuple(p.shape for p in module.entry.parameters), module.entry.root.shape)
    used: dict[tuple[int, ShapeIndex], InputOutputAlias] = {}
    outputs: dict[ShapeIndex, InputOutputAlias] = {}
    for alias in module.input_output_aliases:
        _check_alias(findings, layout, alias)
        source = (alias.parameter_number, alias.parameter_index)
        if source in used:
            findings.add(module, "D3", f"parameter leaf {_leaf_text(*source)} is aliased by two outputs, expected at most one")
        if alias.output_index in outputs:
            findings.add(module, "D3", f"output {index_text(alias.output_index)} is aliased with two parameters, expected one")
        used.setdefault(source, alias)
        outputs.setdefault(alias.output_index, alias)
    for donor in module.buffer_donors:
        source = (donor.parameter_number, donor.parameter_index)
        _parameter_leaf(findings, layout, *source)
        if source in used:
            findings.add(module, "D5", f"parameter leaf {_leaf_text(*source)} is a buffer donor, but aliased already")


def _leaf_text(number: int, index: ShapeIndex) -> str:
    return f"({number}, {index_text(index)})"


def _parameter_leaf(findings: Findings, layout: ComputationLayout, number: int, index: ShapeIndex) -> ArrayShape | None:
    """D1: the array at ``index`` of parameter ``number``."""
    if not 0 <= number < len(layout.parameters):
        count = len(layout.parameters)
        findings.add(findings.module, "D1", f"parameter {number} of an alias or donor, expected one of {count}")
        return None
    return _leaf(findings, layout.parameters[number], index, f"parameter {number}")


def _leaf(findings: Findings, shape: Shape, index: ShapeIndex, name: str) -> ArrayShape | None:
    try:
        leaf = subshape(shape, index)
    except ShapeError as error:
        findings.add(findings.module, "D1", f"{name} in an alias or donor: {error}")
        return None
    if not isinstance(leaf, ArrayShape):
        findings.add(findings.module, "D1", f"{name} at {index_text(index)} in an alias or donor is {leaf}, expected an array")
        return None
    return leaf


def _check_alias(findings: Findings, layout: ComputationLayout, alias: InputOutputAlias) -> None:
    """D1, D2 and D4."""
    source = _parameter_leaf(findings, layout, alias.parameter_number, alias.parameter_index)
    target = _leaf(findings, layout.result, alias.output_index, "the output")
    if source is None or target is None:
        return
    place = f"{index_text(alias.output_index)}: {_leaf_text(alias.parameter_number, alias.parameter_index)}"
    size = findings.options.shape_size_bytes
    if findings.options.layout_sensitive and size(source) != size(target):
        message = f"output of {size(target)} bytes aliases a parameter of {size(source)} bytes, expected equal sizes"
        findings.add(findings.module, "D2", f"{place}: {message}")
    if alias.must_alias and source != target:
        findings.add(findings.module, "D4", f"{place}: must-alias of {target} with {source}, expected equal shapes")
