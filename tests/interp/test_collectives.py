"""Collectives over simulated devices: every operation in every mode of section 5.2, with groups that are not in order."""

import numpy as np
import pytest

from layoutsim.errors import UnsupportedError
from layoutsim.interp import EvaluationError, Interpreter, Options, Value
from layoutsim.text import parse_module

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"


def run(body: str, arguments: list[np.ndarray], *, replicas: int = 1, partitions: int = 1, more: str = "") -> list[Value]:
    """Run a body over ``replicas`` x ``partitions`` devices; ``arguments[d]`` is parameter 0 of device d."""
    module = parse_module(f"HloModule m\n{ADD}{more}ENTRY e {{\n{body}\n}}")
    interpreter = Interpreter(module, Options(replicas=replicas, partitions=partitions))
    return list(interpreter.run([[argument] for argument in arguments]))


def numbered(count: int, *sizes: int) -> list[np.ndarray]:
    """Device d holds d * 100 + 0, 1, 2, ..."""
    return [np.arange(np.prod(sizes, dtype=int), dtype=np.float32).reshape(sizes) + 100 * d for d in range(count)]


def lists(values: list[Value]) -> list[object]:
    return [np.asarray(value).tolist() for value in values]


# -- which devices meet ----------------------------------------------------------------------------------------------------

SUM = "x = f32[] parameter(0)\n ROOT r = f32[] all-reduce(x), {}, to_apply=add"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        # devices are (replica, partition) = (0,0) (0,1) (1,0) (1,1) with values 0, 100, 200, 300
        ("replica_groups={{0,1}}", [200, 400, 200, 400]),  # replicas, for each partition
        ("replica_groups={}", [200, 400, 200, 400]),
        ("channel_id=1, replica_groups={{0},{1}}", [100, 100, 500, 500]),  # replicas with all their partitions
        ("channel_id=1, replica_groups={{0,3},{1,2}}, use_global_device_ids=true", [300, 300, 300, 300]),
        ("channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true", [200, 400, 200, 400]),
        ("channel_id=1, replica_groups=mesh['a'=2,'b'=2] {'b'}, use_global_device_ids=true", [100, 100, 500, 500]),
    ],
)
def test_groups_mean_what_the_mode_says(attributes: str, expected: list[float]) -> None:
    assert lists(run(SUM.format(attributes), numbered(4), replicas=2, partitions=2)) == expected


def test_all_to_all_with_a_channel_names_partitions() -> None:
    body = "x = f32[2] parameter(0)\n ROOT r = f32[2] all-to-all(x), channel_id=1, replica_groups={{1,0}}, dimensions={0}"

    # In group order (1, 0): member 0 is partition 1. It gets block 0 of partition 1, then block 0 of partition 0.
    assert lists(run(body, numbered(4, 2), replicas=2, partitions=2)) == [[101, 1], [100, 0], [301, 201], [300, 200]]


# -- what they compute -----------------------------------------------------------------------------------------------------


def test_all_gather_concatenates_in_group_order() -> None:
    body = "x = f32[2] parameter(0)\n ROOT r = f32[4] all-gather(x), replica_groups={{2,0},{1,3}}, dimensions={0}"

    first, second = [200, 201, 0, 1], [100, 101, 300, 301]
    assert lists(run(body, numbered(4, 2), replicas=4)) == [first, second, first, second]


def test_reduce_scatter_gives_blocks_in_group_order_not_by_id() -> None:
    body = "x = f32[4] parameter(0)\n ROOT r = f32[2] reduce-scatter(x), replica_groups={{1,0}}, dimensions={0}, to_apply=add"

    # sums 100, 102, 104, 106: replica 1 is first in its group
    assert lists(run(body, numbered(2, 4), replicas=2)) == [[104, 106], [100, 102]]


def test_all_to_all_of_tuples_transposes_members_and_operands() -> None:
    body = """x = f32[2] parameter(0)
      y = f32[2] negate(x)
      ROOT r = (f32[2], f32[2]) all-to-all(x, y), replica_groups={{0,1}}"""

    results = run(body, numbered(2, 2), replicas=2)

    assert [[part.tolist() for part in result] for result in results] == [
        [[0, 1], [100, 101]],
        [[-0.0, -1], [-100, -101]],
    ]


def test_collective_permute_gives_zeros_to_who_is_no_target() -> None:
    body = "x = f32[] parameter(0)\n ROOT r = f32[] collective-permute(x), source_target_pairs={{0,2},{1,0},{3,3}}"

    assert lists(run(body, numbered(4), replicas=4)) == [100, 0, 0, 300]


def test_collective_broadcast_spreads_the_first_of_a_group() -> None:
    body = "x = f32[] parameter(0)\n ROOT r = f32[] collective-broadcast(x), replica_groups={{2,0}}"

    assert lists(run(body, numbered(3), replicas=3)) == [200, 0, 200]


def test_ragged_all_to_all_follows_the_senders_offsets() -> None:
    body = """x = s32[3] parameter(0)
      out = s32[4] constant({0, 0, 0, 0})
      i = s32[2] constant({0, 1})
      r = u32[] replica-id()
      p = pred[] compare(r, zero), direction=EQ
      ROOT t = s32[4] ragged-all-to-all(x, out, i, size, to, from), replica_groups={{0,1}}"""
    body = body.replace("p = pred", "zero = u32[] constant(0)\n p = pred").replace(
        "ROOT t",
        """a = s32[2] constant({1, 2})
      b = s32[2] constant({1, 1})
      size = s32[2] select(p, a, b)
      c = s32[2] constant({0, 0})
      d = s32[2] constant({1, 2})
      to = s32[2] select(p, c, d)
      e = s32[2] constant({1, 1})
      f = s32[2] constant({2, 1})
      from = s32[2] select(p, e, f)
      ROOT t""",
    )

    # 0 sends [1] to 0 and [2, 2] to 1; 1 sends [3] to 0 and [4] to 1.
    results = run(body, [np.int32([1, 2, 2]), np.int32([3, 4, 0])], replicas=2)

    assert lists(results) == [[1, 3, 0, 0], [2, 2, 4, 0]]


def test_a_general_reducer_is_folded_in_group_order() -> None:
    more = "halve { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] subtract(b, a)  ROOT d = f32[] add(c, b) }\n"
    body = "x = f32[] parameter(0)\n ROOT r = f32[] all-reduce(x), replica_groups={{2,0,1}}, to_apply=halve"

    # f(a, b) = 2b - a over 200, 0, 100: f(200, 0) = -200, f(-200, 100) = 400
    assert lists(run(body, numbered(3), replicas=3, more=more)) == [400, 400, 400]


@pytest.mark.parametrize(
    ("start", "done"),
    [
        ("(f32[], f32[]) collective-permute-start(x), source_target_pairs={{0,1},{1,0}}", "collective-permute-done"),
        ("f32[] all-reduce-start(x), replica_groups={}, to_apply=add", "all-reduce-done"),
        ("((f32[]), f32[]) collective-broadcast-start(x), replica_groups={{1,0}}", "collective-broadcast-done"),
    ],
)
def test_asynchronous_forms_compute_the_same(start: str, done: str) -> None:
    body = f"x = f32[] parameter(0)\n s = {start}\n ROOT r = f32[] {done}(s)"

    expected = {"collective-permute-done": [100, 0], "all-reduce-done": [100, 100], "collective-broadcast-done": [100, 100]}
    assert lists(run(body, numbered(2), replicas=2)) == expected[done]


def test_all_gather_start_keeps_its_operand_beside_the_result() -> None:
    body = """x = f32[1] parameter(0)
      s = (f32[1], f32[2]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}
      ROOT r = f32[2] all-gather-done(s)"""

    assert lists(run(body, numbered(2, 1), replicas=2)) == [[0, 100], [0, 100]]


def test_send_and_recv_follow_their_pairs() -> None:
    pairs = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}"
    body = f"""x = f32[] parameter(0)
      t = token[] after-all()
      s = (f32[], u32[], token[]) send(x, t), channel_id=1, {pairs}
      d = token[] send-done(s), channel_id=1
      v = (f32[], u32[], token[]) recv(t), channel_id=1, {pairs}
      w = (f32[], token[]) recv-done(v), channel_id=1, control-predecessors={{d}}
      ROOT r = f32[] get-tuple-element(w), index=0"""

    assert lists(run(body, numbered(3), replicas=3)) == [0, 0, 100]


def test_device_numbers() -> None:
    body = """x = f32[] parameter(0)
      p = u32[] partition-id()
      q = u32[] replica-id()
      ROOT t = (u32[], u32[]) tuple(q, p)"""

    results = run(body, numbered(4), replicas=2, partitions=2)

    assert [tuple(int(part) for part in result) for result in results] == [(0, 0), (0, 1), (1, 0), (1, 1)]


# -- control flow and counts -----------------------------------------------------------------------------------------------

LOOP = """
cond {{ s = (u32[], f32[]) parameter(0)  i = u32[] get-tuple-element(s), index=0
  n = u32[] constant(3)  ROOT c = pred[] compare(i, n), direction=LT }}
body {{ s = (u32[], f32[]) parameter(0)  i = u32[] get-tuple-element(s), index=0  one = u32[] constant(1)
  j = u32[] add(i, one)  x = f32[] get-tuple-element(s), index=1  y = f32[] {}
  ROOT t = (u32[], f32[]) tuple(j, y) }}
"""
LOOP_ENTRY = """x = f32[] parameter(0)
  r = u32[] replica-id()
  s = (u32[], f32[]) tuple(r, x)
  w = (u32[], f32[]) while(s), condition=cond, body=body
  ROOT v = f32[] get-tuple-element(w), index=1"""


def test_devices_may_leave_a_loop_at_different_times() -> None:
    results = run(LOOP_ENTRY, numbered(3), replicas=3, more=LOOP.format("add(x, x)"))

    assert lists(results) == [0, 400, 400]  # 3, 2 and 1 doublings of 0, 100 and 200


def test_a_collective_that_only_some_devices_reach_is_an_error() -> None:
    more = LOOP.format("all-reduce(x), replica_groups={}, to_apply=add")

    with pytest.raises(EvaluationError, match=r"body/y: divergent collective: devices \[0, 1\] wait for \[2\]"):
        run(LOOP_ENTRY, numbered(3), replicas=3, more=more)


@pytest.mark.parametrize(
    ("attributes", "devices"),
    [
        ("replica_groups={{0,1,2,3}}", (4, 1)),
        ("channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true", (1, 8)),
        ("channel_id=1, replica_groups={{0,1}}", (2, 1)),
    ],
)
def test_counts_that_the_header_does_not_state_come_from_the_groups(attributes: str, devices: tuple[int, int]) -> None:
    module = parse_module(f"HloModule m\n{ADD}ENTRY e {{\n{SUM.format(attributes)}\n}}")

    found = Interpreter(module).devices

    assert (found.replicas, found.partitions) == devices


def test_groups_that_name_more_devices_than_there_are_are_refused() -> None:
    module = parse_module(f"HloModule m, replica_count=2\n{ADD}ENTRY e {{\n{SUM.format('replica_groups={{0,1,2}}')}\n}}")

    with pytest.raises(EvaluationError, match="its collectives name more devices than 2 replicas of 1 partitions"):
        Interpreter(module)


def test_transfers_to_the_host_are_not_modelled() -> None:
    body = """x = f32[] parameter(0)
      t = token[] after-all()
      s = (f32[], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true
      ROOT d = token[] send-done(s), channel_id=1, is_host_transfer=true"""

    with pytest.raises(UnsupportedError, match="s: transfers to the host are not modelled"):
        run(body, numbered(1))
