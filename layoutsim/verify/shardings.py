"""Shardings (invariants W1 and W2; list in ``layoutsim.verify``; ``HloSharding::Validate``). They are kept as text."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

from layoutsim.ir import TOKEN, ArrayShape, Instruction, Opcode, Shape, TupleShape, leaves
from layoutsim.verify.findings import Findings

_TILED = re.compile(r"\{devices=\[([\d,]+)\](<=\[([\d,]+)\]|[\d,]+)?")
_SUBGROUPS = re.compile(r"last_tile_dims=\{([^}]*)\}")
_LEAF = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}")


def verify_shardings(findings: Findings) -> None:
    """W1 and W2."""
    partitions = findings.module.config.num_partitions
    for computation in findings.module.computations:
        for instruction in computation.instructions:
            if instruction.attributes.sharding:
                problem = sharding_problem(instruction.attributes.sharding, instruction.shape, partitions)
                if problem:
                    findings.add(instruction, "W1", f"sharding {instruction.attributes.sharding} {problem}")
            if instruction.opcode in (Opcode.WHILE, Opcode.CONDITIONAL):
                _check_agreement(findings, instruction)


def _check_agreement(findings: Findings, caller: Instruction) -> None:
    """W2: the values that a loop carries, or that branches return, are sharded alike."""
    if caller.opcode is Opcode.WHILE:
        body, condition = caller.body, caller.condition
        places = [caller, body.root, *body.parameters[:1], *condition.parameters[:1]]
    else:
        places = [caller, *(branch.root for branch in caller.called_computations)]
    shared = [place for place in places if place.attributes.sharding]
    for place in shared[1:]:
        if place.attributes.sharding != shared[0].attributes.sharding:
            ours, theirs = place.attributes.sharding, shared[0].attributes.sharding
            findings.add(caller, "W2", f"{place.name} has sharding {ours}, expected {theirs} of {shared[0].name}")


@lru_cache(maxsize=4096)
def sharding_problem(sharding: str, shape: Shape, partitions: int) -> str | None:
    """What is wrong with a sharding of a value of this shape; ``partitions`` of 1 stands for an unknown number."""
    if shape == TOKEN:
        return None
    is_tuple = sharding == "{}" or sharding.startswith("{{")
    if is_tuple is not isinstance(shape, TupleShape):
        return f"is {'' if is_tuple else 'not '}a tuple, expected the structure of {shape}"
    parts = [part for _, part in leaves(shape)]
    texts = _LEAF.findall(sharding[1:-1]) if is_tuple else [sharding]
    if not parts and len(texts) <= 1:  # XLA gives what has no leaves one sharding
        return None
    if len(texts) != len(parts):
        return f"has {len(texts)} parts, expected {len(parts)} of {shape}"
    problems = (_leaf_problem(text, part, partitions) for text, part in zip(texts, parts, strict=True))
    return next(filter(None, problems), None)


def _leaf_problem(sharding: str, shape: Shape, partitions: int) -> str | None:
    match = _TILED.match(sharding)
    if match is None or not isinstance(shape, ArrayShape):
        return None
    tiles = _numbers(match.group(1))
    subgroups = _SUBGROUPS.search(sharding)
    extra = len(subgroups.group(1).split(",")) if subgroups else "last_tile_dim_replicate" in sharding
    if len(tiles) - extra != shape.rank:
        return f"tiles {len(tiles) - extra} dimensions, expected {shape.rank} of {shape}"
    devices = prod(tiles)
    if partitions not in (1, devices):
        return f"has {devices} devices, expected the module's {partitions}"
    listed = _numbers(match.group(2)) if match.group(2) and match.group(3) is None else None
    if listed is not None and sorted(listed) != list(range(devices)):
        return f"lists devices {listed}, expected each of 0..{devices - 1} once"
    return None


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.strip(",").split(",")]
