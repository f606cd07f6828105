"""How often loops run."""

import pytest

from layoutsim.analysis.trip_count import execution_counts, trip_count
from layoutsim.ir import Instruction, Module, Opcode
from layoutsim.text import parse_module

LOOP = """HloModule m
body {{
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  step = s32[] constant({step})
  next = s32[] add({add})
  y = f32[4] negate(x)
  ROOT t = (s32[], f32[4]) tuple(next, y)
}}
condition {{
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  bound = s32[] constant({bound})
  ROOT c = pred[] compare({compare}), direction={direction}
}}
ENTRY e {{
  x = f32[4] parameter(0)
  start = s32[] constant({start})
  init = (s32[], f32[4]) tuple(start, x)
  ROOT w = (s32[], f32[4]) while(init), condition=condition, body=body{config}
}}
"""


def _module(**changes: object) -> Module:
    defaults = {
        "step": 1,
        "add": "i, step",
        "bound": 10,
        "compare": "i, bound",
        "direction": "LT",
        "start": 0,
        "config": "",
    }
    return parse_module(LOOP.format(**(defaults | changes)))


def _loop(module: Module) -> Instruction:
    return next(i for i in module.entry.instructions if i.opcode is Opcode.WHILE)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 10),
        ({"step": 3}, 4),  # 0, 3, 6, 9
        ({"start": 7}, 3),
        ({"start": 11}, 0),
        ({"direction": "LE"}, 11),
        ({"add": "step, i"}, 10),
        ({"compare": "bound, i", "direction": "GT"}, 10),  # 10 > i
        ({"step": -2, "start": 10, "bound": 0, "direction": "GT"}, 5),  # 10, 8, 6, 4, 2
        ({"step": -2, "start": 10, "bound": 0, "direction": "GE"}, 6),
        ({"direction": "NE", "step": 5}, 2),
        ({"direction": "NE", "step": 3}, None),  # steps over 10 and wraps
        ({"step": 0}, None),
        ({"direction": "EQ"}, None),
        ({"config": ', backend_config={"known_trip_count":{"n":"77"}}'}, 77),
    ],
)
def test_trip_count(changes: dict[str, object], count: int | None) -> None:
    assert trip_count(_loop(_module(**changes))) == count


def test_a_loop_whose_bound_is_carried_has_no_known_trip_count() -> None:
    text = LOOP.format(step=1, add="i, step", bound=10, compare="i, i", direction="LT", start=0, config="")

    assert trip_count(_loop(parse_module(text))) is None


def test_a_body_runs_trip_count_times_and_its_condition_once_more() -> None:
    module = _module()
    counts = {computation.name: count for computation, count in execution_counts(module).items()}

    assert counts == {"e": 1, "body": 10, "condition": 11}


def test_an_unknown_loop_makes_everything_inside_unknown() -> None:
    module = _module(direction="EQ")

    assert execution_counts(module)[module.find_computation("body")] is None
