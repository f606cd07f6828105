"""Reduce-scatters and all-to-alls without dimensions of size 1."""

import pytest

from layoutsim.ir import Module, shape_text
from layoutsim.passes import parse_pipeline
from layoutsim.passes.layout_assignment import LayoutAssignmentResult
from layoutsim.passes.presets import resolve_preset
from layoutsim.testing import check_pass
from layoutsim.text import parse_module
from layoutsim.verify import verify

SUM = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


def scatter(operand: str, result: str, dimension: int, more: str = "") -> Module:
    return parse_module(
        f"HloModule m, replica_count=4\n{SUM}ENTRY e {{\n  p = f32[{operand}] parameter(0)\n  ROOT s = f32[{result}] "
        f"reduce-scatter(p), dimensions={{{dimension}}}, replica_groups={{{{0,1,2,3}}}}, to_apply=add{more}\n}}"
    )


def exchange(shape: str, dimension: int) -> Module:
    return parse_module(
        f"HloModule m, replica_count=4\nENTRY e {{\n  p = f32[{shape}] parameter(0)\n  ROOT a = f32[{shape}] "
        f"all-to-all(p), dimensions={{{dimension}}}, replica_groups={{{{0,1,2,3}}}}\n}}"
    )


def chain(module: Module) -> list[str]:
    """From the root to the parameter: opcode, shape, dimension."""
    value, out = module.entry.root, list[str]()
    while True:
        dimension = f" along {value.payload.dimension}" if value.opcode in ("reduce-scatter", "all-to-all") else ""
        out.append(f"{value.opcode} {shape_text(value.shape, layouts=False)}{dimension}")
        if not value.operand_count:
            return out
        value = value.operand(0)


SCATTERS = [
    ("1,32,8", "1,8,8", 1, "32,8", "8,8", 0),
    ("4,1,2", "1,1,2", 0, "4,2", "1,2", 0),
    ("1,2,4,1", "1,2,1,1", 2, "2,4", "2,1", 1),
]


@pytest.mark.parametrize(("operand", "result", "dimension", "small", "scattered", "new_dimension"), SCATTERS)
def test_a_reduce_scatter_loses_its_size_1_dimensions(
    operand: str, result: str, dimension: int, small: str, scattered: str, new_dimension: int
) -> None:
    module = scatter(operand, result, dimension)
    outcome = parse_pipeline("reduce-scatter-remove-degenerate-dims").run(module)

    assert outcome.changed
    assert chain(module) == [
        f"reshape f32[{result}]",
        f"reduce-scatter f32[{scattered}] along {new_dimension}",
        f"reshape f32[{small}]",
        f"parameter f32[{operand}]",
    ]
    assert verify(module) == []


def test_an_all_to_all_loses_its_size_1_dimensions() -> None:
    module = exchange("1,32,8", 1)
    parse_pipeline("all-to-all-remove-degenerate-dims").run(module)

    assert chain(module) == [
        "reshape f32[1,32,8]",
        "all-to-all f32[32,8] along 0",
        "reshape f32[32,8]",
        "parameter f32[1,32,8]",
    ]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (scatter("32,8", "8,8", 0), "reduce-scatter"),
        (scatter("1,32,8", "1,8,8", 1, ", constrain_layout=true"), "reduce-scatter"),
        (scatter("1,32,8", "1,8,8", 1), "all-to-all"),
        (exchange("32,8", 0), "all-to-all"),
    ],
)
def test_others_stay_as_they_are(module: Module, name: str) -> None:
    before = module.to_text()
    outcome = parse_pipeline(f"{name}-remove-degenerate-dims").run(module)

    assert not outcome.changed
    assert module.to_text() == before


def test_an_all_to_all_of_several_arrays_stays() -> None:
    module = parse_module(
        "HloModule m, replica_count=2\nENTRY e {\n  p = f32[1,4] parameter(0)\n"
        "  ROOT a = (f32[1,4], f32[1,4]) all-to-all(p, p), replica_groups={{0,1}}\n}"
    )

    assert not parse_pipeline("all-to-all-remove-degenerate-dims").run(module).changed


@pytest.mark.parametrize(
    ("module", "name"), [(scatter("1,32,8", "1,8,8", 1), "reduce-scatter"), (exchange("1,32,8", 1), "all-to-all")]
)
def test_layout_assignment_needs_no_copies_then(module: Module, name: str) -> None:
    def copies(text: str) -> int:
        result = parse_pipeline(text).run(parse_module(module.to_text())).runs[-1].result
        assert isinstance(result, LayoutAssignmentResult)
        return len(result.copies)

    assert copies("layout-assignment{backend=gpu}") == 2
    assert copies(f"{name}-remove-degenerate-dims,layout-assignment{{backend=gpu}}") == 0


def test_they_compute_the_same() -> None:
    modules = [scatter(*arguments[:3]) for arguments in SCATTERS] + [exchange("1,32,8", 1), exchange("2,1,4", 2)]
    pipeline = "reduce-scatter-remove-degenerate-dims,all-to-all-remove-degenerate-dims"

    assert check_pass(pipeline, modules=modules).failure is None


def test_presets_switch_them_in_and_out() -> None:
    def names(options: str) -> list[str]:
        return [p.name for p in resolve_preset(f"xla-gpu-0.10.2{options}").passes]

    usual = names("")

    assert names("{reduce-scatter-remove-degenerate-dims=on all-to-all-remove-degenerate-dims=on}") == [
        usual[0],
        "reduce-scatter-remove-degenerate-dims",
        "all-to-all-remove-degenerate-dims",
        *usual[1:],
    ]
    assert names("{all-gather-remove-degenerate-dims=off}") == usual[1:]
    assert names("{all-gather-remove-degenerate-dims=on}") == usual
    assert names("{reduce-scatter-major-dimension=on}") == [*usual[:3], "reduce-scatter-major-dimension", *usual[3:]]
