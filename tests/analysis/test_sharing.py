import pytest

from layoutsim.analysis.alias_rules import DEFAULT_RULES, GPU_RULES, NVIDIA_0_6_RULES, NVIDIA_RULES, AliasRules, Sharing
from layoutsim.analysis.dataflow import Dataflow
from layoutsim.ir import ShapeIndex
from layoutsim.text import parse_module


def _can_share(
    text: str,
    operand: str,
    user: str,
    *,
    rules: AliasRules = DEFAULT_RULES,
    operand_index: ShapeIndex = (),
    user_index: ShapeIndex = (),
) -> bool:
    module = parse_module(text)
    sharing = Sharing(Dataflow(module), rules)
    return sharing.can_share(module.entry.find(operand), operand_index, module.entry.find(user), user_index)


def _entry(body: str) -> str:
    return f"HloModule m\n\nENTRY main {{\n{body}\n}}\n"


P = "p = f32[8] parameter(0)\n"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("f32[8] add(p, q)", True),
        ("f32[8] copy(p)", True),
        ("pred[8] compare(p, q), direction=LT", False),
        ("f32[2,4] reshape(p)", False),
        ("s32[8] convert(p)", False),
        ("f32[8] reverse(p), dimensions={0}", False),
    ],
)
@pytest.mark.checklist(24)
def test_by_default_elementwise_users_of_the_same_shape_share(user: str, expected: bool) -> None:
    assert _can_share(_entry(f"{P}q = f32[8] parameter(1)\nROOT r = {user}"), "p", "r") is expected


@pytest.mark.checklist(24)
def test_another_layout_does_not_share() -> None:
    text = _entry("p = f32[8,4]{1,0} parameter(0)\nROOT r = f32[8,4]{0,1} negate(p)")

    assert not _can_share(text, "p", "r")


def test_constants_are_never_overwritten() -> None:
    assert not _can_share(_entry("c = f32[2] constant({1, 2})\nROOT r = f32[2] negate(c)"), "c", "r")


UPDATE = _entry(
    "p = f32[8] parameter(0)\nu = f32[8] parameter(1)\ni = s32[] parameter(2)\nROOT d = f32[8] dynamic-update-slice(p, u, i)"
)


@pytest.mark.checklist(25)
def test_dynamic_update_slice_shares_operand_0_and_not_the_update() -> None:
    assert _can_share(UPDATE, "p", "d")
    assert not _can_share(UPDATE, "u", "d")


def test_dynamic_update_slice_of_itself_shares_because_the_pair_says_so() -> None:
    assert _can_share(UPDATE.replace("(p, u, i)", "(p, p, i)"), "p", "d")


@pytest.mark.checklist(25)
def test_triangular_solve_shares_operand_1() -> None:
    text = _entry(
        "a = f32[4,4] parameter(0)\nb = f32[4,4] parameter(1)\n"
        "ROOT s = f32[4,4] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"
    )

    assert _can_share(text, "b", "s") and not _can_share(text, "a", "s")


SORT = """
HloModule m

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT
}

ENTRY main {
  keys = f32[8] parameter(0)
  values = f32[8] parameter(1)
  ROOT s = (f32[8], f32[8]) sort(keys, values), dimensions={0}, to_apply=less
}
"""


@pytest.mark.checklist(25)
def test_scatter_shares_what_it_writes_into_and_not_the_updates() -> None:
    text = (
        "HloModule m\n\nset {\n a = f32[] parameter(0)\n ROOT b = f32[] parameter(1)\n}\n\n"
        "ENTRY main {\n p = f32[8] parameter(0)\n i = s32[8,1] parameter(1)\n u = f32[8] parameter(2)\n"
        " ROOT s = f32[8] scatter(p, i, u), update_window_dims={}, inserted_window_dims={0},\n"
        "   scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=set\n}\n"
    )

    assert _can_share(text, "p", "s") and not _can_share(text, "u", "s")


@pytest.mark.checklist(28)
def test_loops_share_with_what_they_start_from() -> None:
    text = (
        "HloModule m\n\nbody {\n ROOT s = f32[8] parameter(0)\n}\n\ngo {\n c = f32[8] parameter(0)\n"
        " ROOT g = pred[] constant(false)\n}\n\nENTRY main {\n p = f32[8] parameter(0)\n"
        " ROOT w = f32[8] while(p), condition=go, body=body\n}\n"
    )

    assert _can_share(text, "p", "w")


@pytest.mark.checklist(28)
def test_loop_fusions_do_not_share_what_they_transpose() -> None:
    text = _fused("x = f32[8,8] parameter(0)\nROOT t = f32[8,8] transpose(x), dimensions={1,0}", "kLoop", "f32[8,8]")

    assert not _can_share(text.replace("p = f32[8]", "p = f32[8,8]"), "p", "f")


@pytest.mark.checklist(26)
def test_sort_shares_each_operand_with_its_own_output() -> None:
    assert _can_share(SORT, "keys", "s", user_index=(0,))
    assert not _can_share(SORT, "keys", "s", user_index=(1,))


def _fused(body: str, kind: str, shape: str = "f32[8]", operands: str = "p", config: str = "") -> str:
    return (
        f"HloModule m\n\nfused {{\n{body}\n}}\n\nENTRY main {{\n p = f32[8] parameter(0)\n q = f32[8] parameter(1)\n"
        f" ROOT f = {shape} fusion({operands}), kind={kind}, calls=fused{config}\n}}\n"
    )


@pytest.mark.checklist(28)
def test_loop_fusions_share_if_all_that_is_reached_is_elementwise() -> None:
    elementwise = "x = f32[8] parameter(0)\nn = f32[8] negate(x)\nROOT e = f32[8] add(n, x)"
    reversing = "x = f32[8] parameter(0)\nr = f32[8] reverse(x), dimensions={0}\nROOT e = f32[8] add(r, x)"

    assert _can_share(_fused(elementwise, "kLoop"), "p", "f")
    assert not _can_share(_fused(reversing, "kLoop"), "p", "f")


OUTPUT_FUSION = """
HloModule m

fused {
  a = f32[4,4] parameter(0)
  b = f32[4,4] parameter(1)
  c = f32[4,4] parameter(2)
  d = f32[4,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[4,4] %s(d, c)
}

ENTRY main {
  p = f32[4,4] parameter(0)
  q = f32[4,4] parameter(1)
  s = f32[4,4] parameter(2)
  ROOT f = f32[4,4] fusion(p, q, s), kind=kOutput, calls=fused
}
"""


@pytest.mark.checklist(27)
def test_output_fusions_share_what_is_added_to_the_dot() -> None:
    assert _can_share(OUTPUT_FUSION % "add", "s", "f")
    assert not _can_share(OUTPUT_FUSION % "add", "p", "f")


@pytest.mark.checklist(27)
def test_output_fusions_with_another_root_share_what_they_are_elementwise_on() -> None:
    assert _can_share(OUTPUT_FUSION % "multiply", "s", "f")
    assert not _can_share(OUTPUT_FUSION % "multiply", "p", "f")


def test_calls_share_with_an_elementwise_root_that_is_the_only_other_use() -> None:
    text = (
        "HloModule m\n\ncallee {\n x = f32[8] parameter(0)\n ROOT n = f32[8] negate(x)\n}\n\n"
        "ENTRY main {\n p = f32[8] parameter(0)\n ROOT c = f32[8] call(p), to_apply=callee\n}\n"
    )

    assert _can_share(text, "p", "c")
    assert not _can_share(text.replace("negate(x)", "reverse(x), dimensions={0}"), "p", "c")


# -- GPU ---------------------------------------------------------------------------------------------------------------


def _gpu(body: str, shape: str = "f32[8]", operands: str = "p", index: ShapeIndex = (), operand: str = "p") -> bool:
    return _can_share(_fused(body, "kLoop", shape, operands), operand, "f", rules=GPU_RULES, user_index=index)


X = "x = f32[8] parameter(0)\n"


@pytest.mark.parametrize(
    ("body", "shape", "expected"),
    [
        (f"{X}n = f32[8] negate(x)\nm = f32[8] multiply(x, n)\nROOT b = f32[2,4] bitcast(m)", "f32[2,4]", True),
        (f"{X}ROOT c = s32[8] convert(x)", "s32[8]", True),
        (f"{X}ROOT c = s8[8] convert(x)", "s8[8]", False),
        (f"{X}ROOT c = f32[8] copy(x)", "f32[8]", False),
        (f"{X}b = f32[2,4] bitcast(x)\nROOT t = f32[4,2] transpose(b), dimensions={{1,0}}", "f32[4,2]", False),
        (f"{X}s = f32[4] slice(x), slice={{[0:4]}}\nROOT c = f32[8] concatenate(s, s), dimensions={{0}}", "f32[8]", False),
    ],
)
@pytest.mark.checklist(29)
def test_gpu_fusions_share_if_they_keep_the_order_of_iteration(body: str, shape: str, expected: bool) -> None:
    assert _gpu(body, shape) is expected


MULTI_OUTPUT = (
    "x = f32[8,8] parameter(0)\ny = f32[8,8] parameter(1)\nn = f32[8,8] negate(y)\nm = f32[8,8] multiply(x, n)\n"
    "t = f32[8,8] transpose(n), dimensions={1,0}\nROOT r = (f32[8,8], f32[8,8]%s) tuple(m, n%s)"
)


def _multi_output(with_transpose: bool, operand: str, index: ShapeIndex) -> bool:
    body = MULTI_OUTPUT % ((", f32[8,8]", ", t") if with_transpose else ("", ""))
    if not with_transpose:
        body = body.replace("t = f32[8,8] transpose(n), dimensions={1,0}\n", "")
    shape = "(f32[8,8], f32[8,8], f32[8,8])" if with_transpose else "(f32[8,8], f32[8,8])"
    text = _fused(body, "kLoop", shape, "p, q").replace("p = f32[8]", "p = f32[8,8]").replace("q = f32[8]", "q = f32[8,8]")
    return _can_share(text, operand, "f", rules=GPU_RULES, user_index=index)


@pytest.mark.checklist(30)
def test_gpu_multi_output_fusions_share_what_no_reordering_output_reads() -> None:
    assert _multi_output(True, "p", (0,))
    assert not _multi_output(True, "q", (1,))
    assert not _multi_output(True, "p", (1,))
    assert _multi_output(False, "q", (0,)) and _multi_output(False, "q", (1,))


SLICE_AND_UPDATE = """
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  s = f32[{n}] dynamic-slice(x, {read}), dynamic_slice_sizes={{{n}}}
  e = f32[{n}] exponential(s)
  ROOT d = f32[8] dynamic-update-slice(x, e, i)
"""


@pytest.mark.parametrize(("n", "read", "expected"), [(2, "i", True), (2, "j", False), (1, "j", True)])
@pytest.mark.checklist(31)
def test_gpu_slices_share_with_an_update_of_the_same_place(n: int, read: str, expected: bool) -> None:
    # The whole answer is yes either way, because the update is a pair of the fusion's body; here only the hint is asked.
    module = parse_module(
        _fused(SLICE_AND_UPDATE.format(n=n, read=read), "kLoop", operands="p, i, j").replace(
            " ROOT f", " i = s32[] parameter(2)\n j = s32[] parameter(3)\n ROOT f"
        )
    )
    entry = module.entry

    assert GPU_RULES.hint(entry.find("p"), (), entry.find("f"), ()) is expected


REDUCTION = """
HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

fused {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  zero = f32[] constant(0)
  s0 = f32[64,64] add(x, y)
  r = f32[64] reduce(s0, zero), dimensions={1}, to_apply=add
  ROOT t = (f32[64], f32[64,64]) tuple(r, s0)
}

ENTRY main {
  p = f32[64,64] parameter(0)
  q = f32[64,64] parameter(1)
  ROOT f = (f32[64], f32[64,64]) fusion(p, q), kind=kInput, calls=fused
}
""".replace("s0", "sum")


@pytest.mark.checklist(32)
def test_gpu_reductions_share_with_the_other_output() -> None:
    assert _can_share(REDUCTION, "p", "f", rules=GPU_RULES, user_index=(1,))


SCATTER = """
HloModule m

update {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

fused {
  x = f32[8] parameter(0)
  i = s32[8,1] parameter(1)
  ROOT sc = f32[8] scatter(x, i, {updates}), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=update
}

ENTRY main {
  p = f32[8] parameter(0)
  i = s32[8,1] parameter(1)
  ROOT f = f32[8] fusion(p, i), kind=kInput, calls=fused
}
"""


@pytest.mark.checklist(32)
def test_gpu_reductions_of_a_bitcast_share_with_the_other_output() -> None:
    text = REDUCTION.replace("reduce(sum, zero)", "reduce(bc, zero)").replace(
        "  r = f32[64] reduce", "  bc = f32[64,64] bitcast(sum)\n  r = f32[64] reduce"
    )

    assert _can_share(text, "p", "f", rules=GPU_RULES, user_index=(1,))


@pytest.mark.checklist(29)
def test_gpu_fusions_do_not_share_what_is_broadcast_and_reduced_back() -> None:
    body = (
        "x = f32[8] parameter(0)\nb = f32[8,4] broadcast(x), dimensions={0}\nz = f32[] constant(0)\n"
        "ROOT r = f32[8] reduce(b, z), dimensions={1}, to_apply=add"
    )
    add = "add {\n a = f32[] parameter(0)\n c = f32[] parameter(1)\n ROOT s = f32[] add(a, c)\n}\n\n"

    assert not _can_share(_fused(body, "kLoop").replace("fused {", add + "fused {", 1), "p", "f", rules=GPU_RULES)


@pytest.mark.checklist(33)
def test_gpu_sort_fusions_do_not_share_an_operand_that_is_sorted_twice() -> None:
    less = "less {\n" + "".join(f" {n} = f32[] parameter({k})\n" for k, n in enumerate("abcd"))
    body = "x = f32[8] parameter(0)\nROOT s = (f32[8], f32[8]) sort(x, x), dimensions={0}, to_apply=less"
    text = _fused(body, "kLoop", "(f32[8], f32[8])").replace(
        "fused {", f"{less} ROOT l = pred[] compare(a, b), direction=LT\n}}\n\nfused {{", 1
    )

    assert not any(_can_share(text, "p", "f", rules=GPU_RULES, user_index=(k,)) for k in (0, 1))


@pytest.mark.checklist(33)
def test_gpu_scatter_fusions_share_an_input_that_is_no_update_too() -> None:
    text = SCATTER.replace("{{", "{").replace("}}", "}")
    other = text.replace("{updates}", "y").replace(
        " i = s32[8,1] parameter(1)\n  ROOT sc",
        " i = s32[8,1] parameter(1)\n  c = f32[] constant(1)\n  y = f32[8] broadcast(c), dimensions={}\n  ROOT sc",
    )
    same = text.replace("{updates}", "x")
    ask = [parse_module(t).entry for t in (other, same)]

    assert [GPU_RULES.hint(e.find("p"), (), e.find("f"), ()) for e in ask] == [True, False]


def test_gpu_has_no_opinion_on_other_users() -> None:
    entry = parse_module(_entry(f"{P}ROOT r = f32[8] negate(p)")).entry

    assert GPU_RULES.hint(entry.find("p"), (), entry.find("r"), ()) is None


# -- NVIDIA ------------------------------------------------------------------------------------------------------------

ALL_REDUCE = (
    "HloModule m\n\nadd {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n\n"
    "ENTRY main {\n p = f32[8] parameter(0)\n q = f32[8] parameter(1)\n"
    " ROOT r = %s all-reduce(%s), replica_groups={}, to_apply=add\n}\n"
)


@pytest.mark.checklist(34)
def test_nvidia_all_reduce_works_in_place() -> None:
    one, two = ALL_REDUCE % ("f32[8]", "p"), ALL_REDUCE % ("(f32[8], f32[8])", "p, q")

    assert _can_share(one, "p", "r", rules=NVIDIA_RULES)
    assert _can_share(two, "q", "r", rules=NVIDIA_RULES, user_index=(1,))
    assert not _can_share(two, "q", "r", rules=NVIDIA_RULES, user_index=(0,))


MATMUL = _entry(
    "a = f32[4,4] parameter(0)\nb = f32[4,4] parameter(1)\nc = f32[4,4] parameter(2)\n"
    'ROOT r = (f32[4,4], s8[16]) custom-call(a, b, {c}), custom_call_target="__cublas$lt$matmul", '
    'backend_config={"gemm_backend_config":{"beta":{beta}}}'
)


@pytest.mark.parametrize(("c", "beta", "expected"), [("c", "1", True), ("c", "0", False), ("b", "1", False)])
@pytest.mark.checklist(34)
def test_nvidia_matmul_writes_over_the_matrix_it_adds(c: str, beta: str, expected: bool) -> None:
    text = MATMUL.replace("{c}", c).replace("{beta}", beta)

    assert _can_share(text, c, "r", rules=NVIDIA_RULES, user_index=(0,)) is expected


# -- NVIDIA up to jaxlib 0.6.2 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rules", "expected"), [(NVIDIA_RULES, False), (NVIDIA_0_6_RULES, True)])
def test_a_matmul_of_0_6_writes_over_a_matrix_that_it_multiplies_too(rules: AliasRules, expected: bool) -> None:
    text = MATMUL.replace("{c}", "b").replace("{beta}", "1")

    assert _can_share(text, "b", "r", rules=rules, user_index=(0,)) is expected


@pytest.mark.parametrize(("rules", "expected"), [(NVIDIA_RULES, False), (NVIDIA_0_6_RULES, True)])
def test_cholesky_factors_of_0_6_are_written_over_what_is_factored(rules: AliasRules, expected: bool) -> None:
    text = _entry(
        "p = f32[4,4] parameter(0)\n"
        'ROOT r = (f32[4,4], f32[9], s32[]) custom-call(p), custom_call_target="__cusolver$cholesky", '
        'backend_config={"cholesky_options":{}}'
    )

    assert _can_share(text, "p", "r", rules=rules, user_index=(0,)) is expected
    assert not _can_share(text, "p", "r", rules=rules, user_index=(1,))


def _horizontal(*, first: str = "multiply(p, two)", slices: str = "[0:1] [1:7]", kind: str = "kInput") -> str:
    """A fusion of ``f32[]`` and ``f32[2,3]`` that are concatenated and sliced apart."""
    a, b = slices.split()
    fused = (
        "fused {\n p = f32[] parameter(0)\n q = f32[2,3]{1,0} parameter(1)\n two = f32[] constant(2)\n"
        f" m = f32[] {first}\n n = f32[2,3]{{1,0}} negate(q)\n a = f32[1]{{0}} reshape(m)\n b = f32[6]{{0}} reshape(n)\n"
        " c = f32[7]{0} concatenate(a, b), dimensions={0}\n"
        f" s = f32[1]{{0}} slice(c), slice={{{a}}}\n t = f32[6]{{0}} slice(c), slice={{{b}}}\n"
        " ROOT r = (f32[1]{0}, f32[6]{0}) tuple(s, t)\n}\n\n"
    )
    body = (
        "x = f32[] parameter(0)\ny = f32[2,3]{1,0} parameter(1)\n"
        f"ROOT f = (f32[1]{{0}}, f32[6]{{0}}) fusion(x, y), kind={kind}, calls=fused"
    )
    return _entry(body).replace("ENTRY", fused + "ENTRY")


@pytest.mark.parametrize(("operand", "output"), [("x", 0), ("y", 1)])
def test_a_horizontal_fusion_of_0_6_writes_each_output_over_its_own_operand(operand: str, output: int) -> None:
    text = _horizontal()

    assert _can_share(text, operand, "f", rules=NVIDIA_0_6_RULES, user_index=(output,))
    assert not _can_share(text, operand, "f", rules=NVIDIA_0_6_RULES, user_index=(1 - output,))
    assert not _can_share(text, operand, "f", rules=NVIDIA_RULES, user_index=(output,))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_horizontal(kind="kLoop"), "only input fusions are looked through"),
        (_horizontal(slices="[6:7] [0:6]"), "the slices take it apart elsewhere"),
        (
            _horizontal()
            .replace("negate(q)", "transpose(w), dimensions={1,0}")
            .replace("n = ", "w = f32[3,2]{1,0} reshape(q)\n n = "),
            "a transpose reorders",
        ),
        (_horizontal().replace("n = f32[2,3]{1,0}", "n = f32[2,3]{0,1}"), "the layout changes"),
    ],
)
def test_a_horizontal_fusion_of_0_6_that_reorders_shares_nothing(text: str, why: str) -> None:
    assert not _can_share(text, "y", "f", rules=NVIDIA_0_6_RULES, user_index=(1,)), why


def test_a_horizontal_fusion_of_0_6_shares_only_with_what_reaches_the_output() -> None:
    text = _horizontal().replace("a = f32[1]{0} reshape(m)", "d = f32[] constant(1)\n a = f32[1]{0} reshape(d)")

    assert not _can_share(text, "x", "f", rules=NVIDIA_0_6_RULES, user_index=(0,))
