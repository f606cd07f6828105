import pytest

from layoutsim.ir import Opcode
from layoutsim.ir.payloads import CallPayload, ComparePayload
from layoutsim.text import ParseOptions, parse_module
from layoutsim.text.lexer import MAX_DEPTH
from tests.text.asking import body_complaint, complaint, in_entry, parse_both, printed, refused, root_of

X = "x = f32[2,3] parameter(0)"
Y = "y = f32[2,3] parameter(1)"


# -- shapes left out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "shape"),
    [
        ("r = negate(x)", "f32[2,3]{1,0}"),
        ("r = add(x, y)", "f32[2,3]{1,0}"),
        ("r = dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "f32[2,2]{1,0}"),
        ("r = tuple(x, y)", "(f32[2,3]{1,0}, f32[2,3]{1,0})"),
        ("r = transpose(x), dimensions={1,0}", "f32[3,2]{0,1}"),
    ],
)
def test_shapes_that_operands_determine_can_be_left_out(line: str, shape: str) -> None:
    assert str(root_of("\n".join([X, Y, line])).shape) == shape


def test_reduce_and_while_take_their_shape_from_their_computations() -> None:
    module = parse_both(
        "HloModule m\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = add(a, b)\n}\n"
        "more {\n  s = f32[] parameter(0)\n  ROOT p = pred[] compare(s, s), direction=LT\n}\n"
        "next {\n  s = f32[] parameter(0)\n  ROOT n = negate(s)\n}\n"
        "ENTRY e {\n  x = f32[2,3] parameter(0)\n  z = f32[] constant(0)\n  r = reduce(x, z), dimensions={1}, to_apply=sum\n"
        "  ROOT w = while(z), condition=more, body=next\n}\n"
    )

    assert str(module.entry.find("r").shape) == "f32[2]{0}"
    assert str(module.entry.root.shape) == "f32[]"


@pytest.mark.parametrize(
    ("line", "opcode"),
    [
        ("r = reshape(x)", "reshape"),
        ("r = iota(), iota_dimension=0", "iota"),
        ("r = slice(x), slice={[0:1],[0:1]}", "slice"),
        ("r = all-gather(x), dimensions={0}", "all-gather"),
    ],
)
def test_other_shapes_must_be_written(line: str, opcode: str) -> None:
    reason = f"expected a shape in front of {opcode}: it cannot be inferred for this opcode"

    assert body_complaint(X, line) == (2, 5, reason)


def test_a_broadcast_needs_its_shape_although_xla_would_invent_one() -> None:
    assert body_complaint(X, "r = broadcast(x), dimensions={0,1}")[2].startswith("expected a result shape on broadcast")


def test_operands_that_determine_no_shape_are_refused_at_the_opcode() -> None:
    line, column, reason = body_complaint(X, "z = f32[2] parameter(1)", "r = add(x, z)")

    assert (line, column) == (3, 5)
    assert reason.startswith("expected operands that determine a shape: add:")


def test_a_stated_shape_is_trusted() -> None:
    assert str(root_of(f"{X}\nr = f32[3] negate(x)").shape) == "f32[3]{0}"


# -- opcodes and operands ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opcode", ["foo", "recv-start", "all-gather-update", "send-start", "copy-update"])
def test_unknown_opcodes_are_refused(opcode: str) -> None:
    assert body_complaint(X, f"r = f32[2,3] {opcode}(x)") == (2, 14, f"expected an opcode, got '{opcode}'")


def test_a_suffix_of_asynchronous_operations_needs_an_opcode_in_front() -> None:
    reason = "expected an opcode that can run asynchronously in front of -start ('foo' is none), got 'foo-start'"

    assert body_complaint(X, "r = f32[2,3] foo-start(x)") == (2, 14, reason)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("r = f32[2,3] add(x)", "expected 2 operands of add, got 1"),
        ("r = f32[2,3] negate(x, x)", "expected 1 operands of negate, got 2"),
        ("r = (f32[2,3], f32[2,3]) tuple(x)", "expected 2 operands as in the shape of the tuple, got 1"),
        ("r = f32[2,3] tuple(x)", "expected a tuple shape on tuple, got f32[2,3]{1,0}"),
    ],
)
def test_operand_counts_are_checked(line: str, reason: str) -> None:
    assert body_complaint(X, line)[2] == reason


def test_slices_take_an_index_for_each_dimension() -> None:
    line = "r = f32[1,1] dynamic-slice(x, x), dynamic_slice_sizes={1,1}"

    assert body_complaint(X, line)[2] == "expected 3 operands of dynamic-slice, an index for each dimension, got 2"


def test_an_operand_that_is_nowhere_is_refused_where_it_stands() -> None:
    reason = "expected an operand (the name of an instruction above, or a nested instruction), got 'z'"

    assert body_complaint(X, "r = f32[2,3] add(x, z)") == (2, 21, reason)


def test_operands_stand_above_their_use() -> None:
    assert body_complaint(X, "r = f32[2,3] negate(late)", "late = f32[2,3] negate(x)")[0] == 2


def test_a_written_operand_shape_must_fit_but_for_the_layout() -> None:
    assert root_of(f"{X}\nr = f32[2,3] negate(f32[2,3]{{0,1}} x)").operand(0).name == "x"
    line, column, reason = body_complaint(X, "r = f32[2,3] negate(f32[3,2] x)")
    assert (line, column, reason) == (2, 21, "expected the shape f32[2,3]{1,0} of %x, got f32[3,2]{1,0}")


def test_nested_instructions_become_instructions_in_front_of_their_user() -> None:
    module = in_entry(f"{X}\n{Y}\nr = add(maximum(x, y), f32[2,3] negate(negate(y)))")

    assert [i.name for i in module.entry.instructions] == ["x", "y", "maximum.anon", "negate.anon", "negate.anon.1", "r"]
    assert [o.name for o in module.entry.root.operands] == ["maximum.anon", "negate.anon.1"]


def test_nested_instructions_take_no_attributes() -> None:
    assert body_complaint(X, "r = add(x, transpose(x), dimensions={0,1})")[2].startswith(
        "expected attribute dimensions on transpose"
    )


def test_generated_names_make_way_for_written_ones() -> None:
    module = in_entry(f"{X}\nr = add(x, negate(x))\nnegate.anon = f32[2,3] add(r, r)")

    assert [i.name for i in module.entry.instructions] == ["x", "negate.anon.1", "r", "negate.anon"]


PAIR = "t = (f32[2], (s32[], f32[3])) parameter(0)"


def test_a_number_sign_takes_an_element_once() -> None:
    module = in_entry(f"{PAIR}\nr = f32[3] add(t#1#1, t#1#1)\ns = (s32[], f32[3]) tuple(t#1#0, r)")

    assert [i.name for i in module.entry.instructions] == ["t", "t_1", "t_1_1", "r", "t_1_0", "s"]
    assert module.entry.find("t_1_1").opcode is Opcode.GET_TUPLE_ELEMENT


def test_a_number_sign_needs_a_tuple_and_an_index_inside_it() -> None:
    assert body_complaint(PAIR, "r = f32[2] negate(t#0#0)")[2] == "expected a tuple in front of #0, got %t_0 of f32[2]{0}"
    assert body_complaint(PAIR, "r = f32[2] negate(t#2)")[2] == "expected an index below 2, got #2"


# -- parameters --------------------------------------------------------------------------------------------------------


def test_parameter_numbers_are_dense_and_used_once() -> None:
    assert body_complaint("x = f32[] parameter(-1)") == (1, 21, "expected a parameter number of at least 0, got -1")
    assert body_complaint("x = f32[] parameter(0)", "y = f32[] parameter(0)") == (
        2,
        21,
        "expected an unused parameter number, got 0, which %x has",
    )
    assert body_complaint("x = f32[] parameter(0)", "y = f32[] parameter(2)")[2] == (
        "expected parameter numbers without gaps, got 2 parameters of which none has number 1"
    )


# -- attributes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("r = f32[2,3,4] broadcast(x)", "dimensions"),
        ("r = pred[2,3] compare(x, x)", "direction"),
        ("r = f32[3,2] transpose(x)", "dimensions"),
        ("r = f32[2,3] get-tuple-element(x)", "index"),
    ],
)
def test_a_missing_attribute_is_named(line: str, name: str) -> None:
    assert f"expected attribute {name} on" in body_complaint(X, line)[2]


def test_attributes_stand_once() -> None:
    line = "r = f32[3,2] transpose(x), dimensions={1,0}, dimensions={1,0}"

    assert body_complaint(X, line) == (2, 46, "expected attribute dimensions once, got it twice")


def test_unknown_attributes_are_refused_with_the_allowed_ones() -> None:
    line, column, reason = body_complaint(X, "r = f32[2,3] negate(x), colour=3")

    assert (line, column) == (2, 25)
    assert "sharding" in reason


def test_a_lenient_reader_keeps_unknown_attributes() -> None:
    text = f"HloModule m\nENTRY e {{\n  {X}\n  r = f32[2,3] negate(x), colour={{a=[1,2]<=[2]}}, dimensions=3, shade=<=[2]\n}}\n"
    module = parse_module(text, options=ParseOptions(strict=False))
    again = parse_module(module.to_text(), options=ParseOptions(strict=False))

    assert module.entry.root.attributes.extra == "colour={a=[1,2]<=[2]}, dimensions=3, shade=<=[2]"
    assert again.entry.root.attributes == module.entry.root.attributes


def test_comparisons() -> None:
    assert root_of(f"{X}\nr = pred[2,3] compare(x, x), direction=LT, type=TOTALORDER").payload == ComparePayload(
        "LT", "TOTALORDER"
    )
    assert root_of(f"{X}\nr = pred[2,3] compare(x, x), direction=LT, type=FLOAT").payload == ComparePayload("LT")
    assert body_complaint(X, "r = pred[2,3] compare(x, x), direction=lt")[2].endswith("got 'lt'")


def test_inline_computations_get_free_names() -> None:
    sum_body = "{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
    module = in_entry(
        f"{X}\nz = f32[] constant(0)\n"
        f"r = f32[2] reduce(x, z), dimensions={{1}}, to_apply={sum_body}\n"
        f"q = f32[2] reduce(x, z), dimensions={{1}}, to_apply={sum_body}"
    )

    assert [c.name for c in module.computations] == ["_", "_.1", "e"]


def test_control_predecessors_are_instructions_above() -> None:
    body = f"{X}\nr = f32[2,3] negate(x)\ns = f32[2,3] negate(x), control-predecessors={{r, x}}"
    root = root_of(body)

    assert [p.name for p in root.control_predecessors] == ["r", "x"]
    assert printed(body.splitlines()[-1], X, "r = f32[2,3] negate(x)").endswith("control-predecessors={r, x}")
    assert body_complaint(X, "r = f32[2,3] negate(x), control-predecessors={s}")[2] == (
        "expected the name of an instruction above, got 's'"
    )


def test_parameter_replication_has_an_entry_for_each_leaf() -> None:
    good = "x = (f32[], (s32[], token[])) parameter(0), parameter_replication={true,false,true}"

    assert printed(good) == good
    assert body_complaint(good.replace("{true,false,true}", "{true}"))[2] == (
        "expected 3 entries, one for each leaf, got {true}"
    )


def test_composite_calls_keep_their_mark() -> None:
    module = parse_both(
        "HloModule m\nc {\n  a = f32[] parameter(0)\n}\nENTRY e {\n  x = f32[] parameter(0)\n"
        '  y = f32[] call(x), to_apply=c, is_composite=true, frontend_attributes={b="2",a={"k": 1}}\n}\n'
    )

    assert module.entry.root.payload == CallPayload(is_composite=True)
    assert 'to_apply=%c, is_composite=true, frontend_attributes={a={"k": 1},b="2"}' in module.to_text()


# -- conditional, custom call, send ------------------------------------------------------------------------------------

BRANCHES = (
    "HloModule m\na {\n  x = f32[] parameter(0)\n}\nb {\n  x = f32[] parameter(0)\n}\nENTRY e {{\n  x = f32[] parameter(0)\n"
)


def _conditional(index: str, rest: str) -> str:
    head = BRANCHES.replace("{{", "{")
    return f"{head}  i = {index} parameter(1)\n  c = f32[] conditional(i, x, x){rest}\n}}\n"


def test_the_index_of_a_conditional_decides_about_its_attributes() -> None:
    pair, several = ", true_computation=a, false_computation=b", ", branch_computations={a, b}"

    assert [c.name for c in parse_both(_conditional("pred[]", pair)).entry.root.called_computations] == ["a", "b"]
    assert [c.name for c in parse_both(_conditional("s32[]", several)).entry.root.called_computations] == ["a", "b"]
    assert "for an index pred[]" in complaint(_conditional("pred[]", several))[2]
    assert "for an index s32[]" in complaint(_conditional("s32[]", pair))[2]
    assert "got f32[]" in complaint(_conditional("f32[]", pair))[2]


def test_layout_constraints_fit_the_operands() -> None:
    call = 'r = f32[2] custom-call(x), custom_call_target="t\\"t", operand_layout_constraints={%s}'

    assert root_of(f"{X}\n{call % 'f32[2,3]{0,1}'}").opcode is Opcode.CUSTOM_CALL
    assert body_complaint(X, call % "")[2] == "expected a layout constraint for each of 1 operands, got 0"
    assert "compatible with operand x" in body_complaint(X, call % "f32[3,2]{0,1}")[2]
    text = f"HloModule m\nENTRY e {{\n  {X}\n  {call % 'f32[2,3]{0,1}'}\n}}\n"
    assert "expected a layout on a custom call" in refused(text, ParseOptions(fill_missing_layouts=False)).reason


@pytest.mark.parametrize("version", ["API_VERSION_UNSPECIFIED", "API_VERSION_NEXT"])
def test_api_versions_are_known(version: str) -> None:
    call = f'r = f32[2] custom-call(x), custom_call_target="t", api_version={version}'

    assert body_complaint(X, call)[2].endswith(f"got '{version}'")


def test_done_agrees_with_the_channel_of_its_start() -> None:
    lines = ("t = token[] after-all()", "s = (f32[2,3], u32[], token[]) send(x, t), channel_id=1")

    assert body_complaint(X, *lines, "d = token[] send-done(s), channel_id=2")[2] == "expected the channel 1 of s, got 2"


def test_scan_takes_an_operand_for_each_parameter_of_its_body() -> None:
    body = "{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT t = (f32[], f32[]) tuple(a, b) }"
    lines = ("x = f32[3] parameter(0)", f"r = (f32[3], f32[]) scan(x), dimensions={{0}}, num_carries=1, to_apply={body}")

    assert body_complaint(*lines)[2] == "expected 2 operands, one for each parameter of %_, got 1"


def test_results_that_xla_builds_itself_ignore_the_stated_shape() -> None:
    assert str(root_of(f"{X}\nt = token[] after-all()\nr = (f32[9], s32[], token[]) send(x, t)").shape) == (
        "(f32[2,3]{1,0}, u32[], token[])"
    )


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m\nENTRY e {\n  x = " + "(" * 10_000,
        "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  y = f32[] " + "negate(" * 10_000,
        "HloModule m\nENTRY e {\n  x = f32[] constant(" + "{" * 10_000,
        "HloModule m\nENTRY e {\n  x = " + "(" * 1000 + ")" * 1000 + " constant(" + "(" * 10_000,
        "HloModule m\nENTRY e {\n  x = f32[] parameter(0), origin={" + "(" * 10_000,
        "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n" + "  y = f32[] call(x), to_apply={" * 10_000,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    assert "recursion depth" in refused(text).reason or "expected" in refused(text).reason


def test_moderate_nesting_is_read() -> None:
    depth = MAX_DEPTH // 2
    shape = "(" * depth + "s32[]" + ")" * depth

    assert str(root_of(f"x = {shape} parameter(0)").shape) == shape
