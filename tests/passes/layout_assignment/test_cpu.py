"""The CPU rules (layout spec, 15.C)."""

import pytest

from tests.passes.layout_assignment.running import CPU, Run


def numbers(rows: int, columns: int) -> str:
    row = "{" + ",".join(["1"] * columns) + "}"
    return "{" + ",".join([row] * rows) + "}"


def vector(size: int) -> str:
    return "{" + ",".join(["1"] * size) + "}"


MATRIX = f"constant({numbers(12, 24)})"
CONTRACT_0 = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
CONTRACT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def test_a_constant_matrix_behind_a_vector_is_column_major() -> None:  # C1
    run = Run(
        f"""
HloModule m
ENTRY e {{
  p = f32[12] parameter(0)
  c = f32[12,24] {MATRIX}
  ROOT d = f32[24] dot(p, c), {CONTRACT_0}
}}""",
        CPU,
    )

    assert run.layout("c") == "{0,1}"
    assert run.copies == []


def test_products_that_agree_share_a_column_major_constant() -> None:  # C2
    run = Run(
        f"""
HloModule m
ENTRY e {{
  p = f32[12] parameter(0)
  q = f32[12] parameter(1)
  c = f32[12,24] {MATRIX}
  d = f32[24] dot(p, c), {CONTRACT_0}
  f = f32[24] dot(q, c), {CONTRACT_0}
  ROOT a = f32[24] add(d, f)
}}""",
        CPU,
    )

    assert run.layout("c") == "{0,1}"
    assert run.copies == []


def test_one_user_that_gains_nothing_keeps_the_constant_row_major() -> None:  # C3
    run = Run(
        f"""
HloModule m
ENTRY e {{
  p = f32[1,12] parameter(0)
  q = f32[2,12] parameter(1)
  c = f32[12,24] {MATRIX}
  d = f32[1,24] dot(p, c), {CONTRACT}
  f = f32[2,24] dot(q, c), {CONTRACT}
  ROOT t = (f32[1,24], f32[2,24]) tuple(d, f)
}}""",
        CPU,
    )

    assert run.layouts("p", "q", "c", "d", "f") == dict.fromkeys(["p", "q", "c", "d", "f"], "{1,0}")
    assert run.copies == []


def test_a_constant_on_the_left_stays_row_major() -> None:  # C4
    run = Run(
        f"""
HloModule m
ENTRY e {{
  c = f32[1,12] constant({numbers(1, 12)})
  p = f32[12,24] parameter(0)
  ROOT d = f32[1,24] dot(c, p), {CONTRACT}
}}""",
        CPU,
    )

    assert run.layouts("c", "p", "d") == {"c": "{1,0}", "p": "{1,0}", "d": "{1,0}"}


def test_a_constant_inside_a_tuple_stays_row_major() -> None:  # C5
    run = Run(
        f"""
HloModule m
ENTRY e {{
  p = f32[12] parameter(0)
  c = f32[12,24] {MATRIX}
  t = (f32[12,24]) tuple(c)
  g = f32[12,24] get-tuple-element(t), index=0
  ROOT d = f32[24] dot(p, g), {CONTRACT_0}
}}""",
        CPU,
    )

    assert run.layout("c") == "{1,0}"
    assert run.copies == []


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("lhs", "result", "contract", "expected"),
    [
        ("50", "19", CONTRACT_0, "{0,1}"),  # C6, C7
        ("19,50", "19,19", CONTRACT, "{1,0}"),  # C10, C11
    ],
)
def test_output_fusions_count_as_products(lhs: str, result: str, contract: str, expected: str, first: bool) -> None:
    operands = "d, x" if first else "x, d"
    run = Run(
        f"""
HloModule m
f {{
  a = f32[{lhs}] parameter(0)
  b = f32[50,19] parameter(1)
  x = f32[{result}] parameter(2)
  d = f32[{result}] dot(a, b), {contract}
  ROOT s = f32[{result}] add({operands})
}}
ENTRY e {{
  p = f32[{lhs}] parameter(0)
  q = f32[{result}] parameter(1)
  c = f32[50,19] constant({numbers(50, 19)})
  ROOT u = f32[{result}] fusion(p, c, q), kind=kOutput, calls=f
}}""",
        CPU,
    )

    assert run.layout("c") == expected
    assert run.copies == []


def test_a_batched_product_is_row_major() -> None:  # C12
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[10,1,10]{2,1,0}, f32[10,10,1]{2,1,0})->f32[10,1,1]{1,2,0}}
ENTRY e {
  p = f32[10,1,10] parameter(0)
  q = f32[10,10,1] parameter(1)
  ROOT d = f32[10,1,1] dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
}""",
        CPU,
    )

    assert run.layout("d") == "{2,1,0}"
    assert run.expression(run.root) == "copy{1,2,0}(d)"


def test_a_vector_of_fewer_than_32_bytes_is_not_worth_it() -> None:  # C13: 7 * 4 bytes
    run = Run(
        f"""
HloModule m
ENTRY e {{
  p = f32[7] parameter(0)
  c = f32[7,24] constant({numbers(7, 24)})
  ROOT d = f32[24] dot(p, c), {CONTRACT_0}
}}""",
        CPU,
    )

    assert run.layout("c") == "{1,0}"


def test_operands_are_row_major_whatever_the_parameters_are() -> None:
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[8,16]{0,1})->f32[8,16]{0,1}}
ENTRY e {
  p = f32[8,16] parameter(0)
  ROOT n = f32[8,16] negate(p)
}""",
        CPU,
    )

    assert run.operands("n") == ["copy{1,0}(p)"]
    assert run.expression(run.root) == "copy{0,1}(n)"


def test_gathers_and_scatters_want_their_dimension_most_major() -> None:
    run = Run(
        """
HloModule m, replica_count=4, entry_computation_layout={(f32[2,4,8]{2,1,0})->f32[2,16,8]{2,1,0}}
ENTRY e {
  p = f32[2,4,8] parameter(0)
  ROOT g = f32[2,16,8] all-gather(p), dimensions={1}, replica_groups={{0,1,2,3}}
}""",
        CPU,
    )

    assert run.layout("g") == "{2,0,1}"
    assert run.operands("g") == ["copy{2,0,1}(p)"]


@pytest.mark.parametrize(("labels", "is_eigen"), [("b01f_01io->b01f", True), ("bf01_01io->b01f", False)])
def test_only_convolutions_that_eigen_may_run_are_row_major(labels: str, is_eigen: bool) -> None:
    sizes = "1,16,16,3" if is_eigen else "1,3,16,16"
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[{sizes}]{{3,2,1,0}}, f32[3,3,3,8]{{3,2,1,0}})->f32[1,16,16,8]{{0,1,2,3}}}}
ENTRY e {{
  p = f32[{sizes}] parameter(0)
  k = f32[3,3,3,8] parameter(1)
  ROOT c = f32[1,16,16,8] convolution(p, k), window={{size=3x3 pad=1_1x1_1}}, dim_labels={labels}
}}""",
        CPU,
    )

    assert run.layout("c") == ("{3,2,1,0}" if is_eigen else "{0,1,2,3}")
