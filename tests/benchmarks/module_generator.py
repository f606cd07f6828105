"""Modules of any size for benchmarks: a chain of small loops over layers, as training steps have."""

from __future__ import annotations

_LAYER = """\
  %dot.{i} = f32[64,64]{{1,0}} dot(%add.{p}, %weight.{w}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, \
metadata={{op_name="layer_{i}/dot" source_file="model.py" source_line={line}}}
  %transpose.{i} = f32[64,64]{{0,1}} transpose(%dot.{i}), dimensions={{1,0}}
  %broadcast.{i} = f32[64,64]{{1,0}} broadcast(%bias), dimensions={{1}}
  %multiply.{i} = f32[64,64]{{1,0}} multiply(%transpose.{i}, %broadcast.{i})
  %slice.{i} = f32[32,64]{{1,0}} slice(%multiply.{i}), slice={{[0:32], [0:64]}}
  %reduce.{i} = f32[64]{{0}} reduce(%slice.{i}, %zero), dimensions={{0}}, to_apply=%sum
  %expand.{i} = f32[64,64]{{1,0}} broadcast(%reduce.{i}), dimensions={{0}}, sharding={{replicated}}
  %add.{i} = f32[64,64]{{1,0}} add(%expand.{i}, %add.{p}), metadata={{op_name="layer_{i}/add" stack_frame_id={line}}}
"""
_INSTRUCTIONS_PER_LAYER = 8
_WEIGHTS = 4


def module_text(instructions: int, per_computation: int = 2000) -> str:
    """HLO text of about ``instructions`` instructions in computations of at most ``per_computation``."""
    blocks = max(1, instructions // per_computation)
    layers = max(1, instructions // blocks // _INSTRUCTIONS_PER_LAYER)
    bodies = [_block(number, layers) for number in range(blocks)]
    calls = "\n".join(
        f"  %call.{n + 1} = f32[64,64]{{1,0}} call(%call.{n}, %bias, %zero{_weights()}), to_apply=%block.{n}"
        for n in range(blocks)
    )
    entry = (
        f"ENTRY %main {_signature('call.0')} {{\n{_parameters('call.0')}{calls}\n"
        f"  ROOT %result = f32[64,64]{{1,0}} copy(%call.{blocks})\n}}\n"
    )
    reducer = (
        "%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
        "  ROOT %add = f32[] add(%a, %b)\n}\n"
    )
    return "\n".join(["HloModule generated\n", reducer, *bodies, entry])


def _weights() -> str:
    return "".join(f", %weight.{w}" for w in range(_WEIGHTS))


def _signature(first: str) -> str:
    weights = "".join(f", weight.{w}: f32[64,64]" for w in range(_WEIGHTS))
    return f"({first}: f32[64,64], bias: f32[64], zero: f32[]{weights}) -> f32[64,64]"


def _parameters(first: str) -> str:
    lines = [
        f"  %{first} = f32[64,64]{{1,0}} parameter(0)",
        "  %bias = f32[64]{0} parameter(1)",
        "  %zero = f32[] parameter(2)",
        *(f"  %weight.{w} = f32[64,64]{{1,0}} parameter({w + 3})" for w in range(_WEIGHTS)),
    ]
    return "\n".join(lines) + "\n"


def _block(number: int, layers: int) -> str:
    body = "".join(_LAYER.format(i=i, p=i - 1, w=i % _WEIGHTS, line=i + 1) for i in range(1, layers + 1))
    root = f"  ROOT %out = f32[64,64]{{1,0}} copy(%add.{layers})\n"
    return f"%block.{number} {_signature('add.0')} {{\n{_parameters('add.0')}{body}{root}}}\n"
