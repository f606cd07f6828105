"""A topological order that refuses cycles, against a plain search."""

import random

from layoutsim.ir import Instruction
from layoutsim.passes.online_order import OnlineOrder
from layoutsim.text import parse_module


def test_refuses_exactly_the_edges_that_close_a_cycle() -> None:
    source = random.Random(3)
    lines = "\n  ".join(f"p{i} = f32[] parameter({i})" for i in range(30))
    module = parse_module(f"HloModule m\nENTRY e {{\n  {lines}\n  ROOT r = f32[] add(p0, p1)\n}}\n")
    nodes = module.entry.instructions
    order = OnlineOrder(module.entry)
    after: dict[Instruction, set[Instruction]] = {node: set(node.users) for node in nodes}

    for _ in range(400):
        a, b = source.choice(nodes), source.choice(nodes)
        possible = a is not b and not _reaches(b, a, after)
        assert possible == order.insert(a, b)
        if possible:
            after[a].add(b)


def _reaches(start: Instruction, goal: Instruction, after: dict[Instruction, set[Instruction]]) -> bool:
    pending, seen = [start], {start}
    while pending:
        node = pending.pop()
        if node is goal:
            return True
        new = after[node] - seen
        seen |= new
        pending += new
    return False
