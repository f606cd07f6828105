"""All-gathers without dimensions of size 1 (layout spec, 15.D)."""

import pytest

from layoutsim.ir import Instruction, Module, Opcode, shape_text
from layoutsim.passes.all_gather_degenerate_dims import AllGatherRemoveDegenerateDims
from layoutsim.text import parse_module
from layoutsim.verify import verify


def gather(shape: str, result: str, dimension: int, more: str = "") -> Module:
    return parse_module(
        f"""
HloModule m, replica_count=4
ENTRY e {{
  p = f32[{shape}] parameter(0)
  ROOT g = f32[{result}] all-gather(p), dimensions={{{dimension}}}, replica_groups={{{{0,1,2,3}}}}{more}
}}"""
    )


def chain(value: Instruction) -> list[str]:
    """From the root to the parameter: opcode, shape, gathered dimension."""
    out: list[str] = []
    while True:
        dimension = f" along {value.payload.dimension}" if value.opcode == "all-gather" else ""
        out.append(f"{value.opcode} {shape_text(value.shape, layouts=False)}{dimension}")
        if not value.operand_count:
            return out
        value = value.operand(0)


@pytest.mark.parametrize(
    ("shape", "result", "dimension", "small", "gathered", "new_dimension"),
    [
        ("1,4,1,128", "1,16,1,128", 1, "4,128", "16,128", 0),  # D1
        ("1,1,128", "1,4,128", 1, "1,128", "4,128", 0),  # D2: the gathered dimension stays, though it has size 1
        ("4,128,1", "16,128,1", 0, "4,128", "16,128", 0),  # D8
        ("1,1,4,128", "1,1,16,128", 2, "4,128", "16,128", 0),  # D9
        ("4,1,128,1", "16,1,128,1", 0, "4,128", "16,128", 0),  # D10
    ],
)
def test_size_1_dimensions_go(shape: str, result: str, dimension: int, small: str, gathered: str, new_dimension: int) -> None:
    module = gather(shape, result, dimension)
    outcome = AllGatherRemoveDegenerateDims().run(module)

    assert outcome.changed
    assert chain(module.entry.root) == [
        f"reshape f32[{result}]",
        f"all-gather f32[{gathered}] along {new_dimension}",
        f"reshape f32[{small}]",
        f"parameter f32[{shape}]",
    ]
    assert list(verify(module)) == []


@pytest.mark.parametrize(
    "module",
    [
        gather("1,128", "4,128", 0),  # D3: nothing but the gathered dimension has size 1
        gather("1,4,128", "1,16,128", 1, ", constrain_layout=true"),  # D4
        gather("4,128", "16,128", 0),  # D5
    ],
)
def test_others_stay_as_they_are(module: Module) -> None:
    before = module.to_text()
    outcome = AllGatherRemoveDegenerateDims().run(module)

    assert not outcome.changed
    assert module.to_text() == before


def variadic(first: str, second: str, first_result: str, second_result: str) -> Module:
    return parse_module(
        f"""
HloModule m, replica_count=4
ENTRY e {{
  p = f32[{first}] parameter(0)
  q = f32[{second}] parameter(1)
  ROOT g = (f32[{first_result}], f32[{second_result}]) all-gather(p, q), dimensions={{1}}, replica_groups={{{{0,1,2,3}}}}
}}"""
    )


@pytest.mark.parametrize(
    ("module", "operands"),
    [
        (variadic("1,1,128", "1,1,64,1", "1,4,128", "1,4,64,1"), ["f32[1,128]", "f32[1,64]"]),  # D6
        (variadic("1,1,1,64", "2,1,64,1", "1,4,1,64", "2,4,64,1"), ["f32[1,1,64]", "f32[2,1,64]"]),  # D7
    ],
)
def test_every_operand_of_a_variadic_gather_loses_its_own_minor_dimensions(module: Module, operands: list[str]) -> None:
    root_shape = module.entry.root.shape
    AllGatherRemoveDegenerateDims().run(module)
    root = module.entry.root
    new = root.operand(0).operand(0).operand(0)

    assert root.opcode == "tuple"
    assert root.shape == root_shape
    assert [shape_text(o.shape, layouts=False) for o in new.operands] == operands
    assert list(verify(module)) == []


def test_metadata_and_groups_go_to_the_new_gather() -> None:
    module = gather("1,4,128", "1,16,128", 1, ', channel_id=3, use_global_device_ids=true, metadata={op_name="w"}')
    AllGatherRemoveDegenerateDims().run(module)
    new = module.entry.root.operand(0)

    assert (new.payload.channel_id, new.payload.use_global_device_ids) == (3, True)
    assert new.metadata.op_name == module.entry.root.metadata.op_name == "w"


def test_a_gather_of_nothing_loses_its_size_1_dimensions_too() -> None:
    module = parse_module(
        "HloModule m, num_partitions=2\nENTRY e {\n  p = f32[1,0,4] parameter(0)\n"
        "  ROOT g = f32[1,0,4] all-gather(p), dimensions={1}, channel_id=1, replica_groups=[1,2]<=[2], "
        "use_global_device_ids=true\n}\n"
    )
    AllGatherRemoveDegenerateDims().run(module)
    gathers = [i for i in module.entry.instructions if i.opcode is Opcode.ALL_GATHER]

    assert [str(gather.shape) for gather in gathers] == ["f32[0,4]{1,0}"]
