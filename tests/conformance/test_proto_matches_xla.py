"""XLA's own protos of every module in the oracle folder: read as the text is read, and written so that XLA sees no change.

Not compared: partition and replica counts, which a proto does not hold; stack frames, which XLA renumbers; attributes inside
asynchronous bodies, where XLA's parser puts those of the start; a field of backend configurations of 0.6 that 0.10 drops.
"""

import gzip
import os
import re
from pathlib import Path

import pytest
from attrs import evolve

from layoutsim.ir import NO_ATTRIBUTES, Computation, Instruction, Literal, Module, Opcode
from layoutsim.ir.payloads import ConstantPayload
from layoutsim.proto import module_from_bytes, module_to_bytes
from layoutsim.text import ParseOptions, parse_module

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
FILES = sorted(SHARED.glob("oracle/*/*/*.hlo.gz"))

if not FILES:
    pytest.skip(f"no oracle folders in {SHARED} (set LAYOUTSIM_SHARED)", allow_module_level=True)

hlo = pytest.importorskip("jaxlib._hlo", reason="needs jaxlib, whose parser is the reference")
pytest.importorskip("google.protobuf")

SMALL_BYTES = 60_000
"""Packed size up to which every file is tested; of the larger ones every tenth."""

CHOSEN = [file for i, file in enumerate(FILES) if file.stat().st_size < SMALL_BYTES or i % 10 == 0]


def _name(file: Path) -> str:
    return "/".join(file.relative_to(SHARED / "oracle").parts).removesuffix(".hlo.gz")


def _xla_module(text: str):
    try:
        return hlo.hlo_module_from_text(text)
    except Exception as error:
        pytest.skip(f"XLA's parser refuses this text: {str(error)[:200]}")


def _literal(literal: Literal) -> object:
    if literal.elements:
        return tuple(map(_literal, literal.elements))
    return literal.shape, literal.array().tobytes()


class _Names:
    """Names by which instructions are compared; what the text's async sugar hides (bodies) is named after its caller."""

    def __init__(self, module: Module) -> None:
        self.bodies = {
            i.to_apply: f"body of {i.name}"
            for c in module.computations
            for i in c.instructions
            if i.opcode is Opcode.ASYNC_START
        }

    def computation(self, computation: Computation) -> str:
        return self.bodies.get(computation, computation.name)

    def instruction(self, instruction: Instruction) -> str:
        assert instruction.parent is not None
        if instruction.parent not in self.bodies:
            return instruction.name
        return str(instruction.parameter_number) if instruction.opcode is Opcode.PARAMETER else "root"


def _description(instruction: Instruction, names: _Names) -> dict[str, object]:
    """Everything an instruction says, comparable."""
    payload: object = instruction.payload
    if isinstance(payload, ConstantPayload):
        payload = None if payload.literal.is_elided else _literal(payload.literal)
    metadata = re.sub(r" ?stack_frame_id=\d+", "", instruction.attributes.metadata_text)
    attributes = evolve(
        instruction.attributes,
        metadata_text="" if metadata == "{}" else metadata,
        backend_config=instruction.attributes.backend_config.replace('"wait_on_operation_queues":[],', ""),
    )
    return {
        "opcode": instruction.opcode,
        "shape": instruction.shape,
        "payload": payload,
        "operands": [names.instruction(o) for o in instruction.operands],
        "calls": [names.computation(c) for c in instruction.called_computations],
        "control": sorted(p.name for p in instruction.control_predecessors),
        "attributes": NO_ATTRIBUTES if instruction.parent in names.bodies else attributes,
        "root": instruction.is_root,
    }


def _descriptions(module: Module) -> dict[str, dict[str, object]]:
    names = _Names(module)
    return {
        f"{names.computation(c)}/{names.instruction(i)}": _description(i, names)
        for c in module.computations
        for i in c.instructions
    }


def _sequences(module: Module) -> dict[str, list[str]]:
    assert module.schedule is not None
    names = _Names(module)
    sequences = module.schedule.sequences.items()
    return {names.computation(c): [names.instruction(i) for i in sequence] for c, sequence in sequences}


@pytest.mark.parametrize("file", CHOSEN, ids=_name)
def test_xlas_proto_holds_the_instructions_of_the_text(file: Path) -> None:
    text = gzip.decompress(file.read_bytes()).decode()
    data = _xla_module(text).as_serialized_hlo_module_proto()

    expected = parse_module(text, options=ParseOptions(keep_module_auto_layouts=True))
    actual = module_from_bytes(data)

    elided = {
        f"{c.name}/{i.name}"
        for c in expected.computations
        for i in c.instructions
        if isinstance(i.payload, ConstantPayload) and i.payload.literal.is_elided
    }
    ours, xlas = _descriptions(expected), _descriptions(actual)
    assert ours.keys() == xlas.keys()
    for name, description in ours.items():
        if name in elided:  # XLA made up the elements
            description["payload"] = xlas[name]["payload"]
        assert xlas[name] == description, name
    assert actual.input_output_aliases == expected.input_output_aliases
    assert actual.buffer_donors == expected.buffer_donors
    if expected.schedule is not None:
        assert _sequences(actual) == _sequences(expected)


@pytest.mark.parametrize("file", CHOSEN, ids=_name)
def test_xla_reads_our_proto_as_its_own(file: Path) -> None:
    data = _xla_module(gzip.decompress(file.read_bytes()).decode()).as_serialized_hlo_module_proto()
    options = hlo.HloPrintOptions()
    options.print_large_constants = True

    written = module_to_bytes(module_from_bytes(data))

    def printed(proto: bytes) -> str:
        return hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options)

    assert printed(written) == printed(data)
