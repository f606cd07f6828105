import pytest

from layoutsim.ir import BufferDonor, InputOutputAlias, Module, array_leaves
from layoutsim.text import ParseOptions, parse_module
from tests.text.asking import body_complaint, complaint, in_entry, parse_both, refused

BODY = "ENTRY e {\n  x = f32[2,3] parameter(0)\n}\n"
PAIR = "ENTRY e {\n  x = f32[2] parameter(0)\n  ROOT t = (f32[2], f32[2]) tuple(x, x)\n}\n"


# -- header ------------------------------------------------------------------------------------------------------------


def test_header_attributes_come_in_any_order() -> None:
    one = parse_both(f"HloModule m, replica_count=2, is_scheduled=true, num_partitions=4\n{BODY}")
    two = parse_both(f"HloModule m, num_partitions=4, replica_count=2, is_scheduled=true\n{BODY}")

    assert one.to_text() == two.to_text()
    assert (one.config.replica_count, one.config.num_partitions, one.config.uses_spmd_partitioning) == (2, 4, True)


def test_a_repeated_header_attribute_is_refused_at_the_second() -> None:
    reason = "expected attribute replica_count once, got it twice"
    assert complaint(f"HloModule m, replica_count=2, replica_count=2\n{BODY}") == (1, 31, reason)


def test_an_unknown_header_attribute_is_refused_with_the_allowed_ones() -> None:
    line, column, reason = complaint(f"HloModule m, foo=1\n{BODY}")

    assert (line, column) == (1, 14)
    assert "is_scheduled" in reason
    assert reason.endswith("got 'foo='")


def test_a_module_name_cannot_start_with_a_digit() -> None:
    assert complaint(f"HloModule 1m\n{BODY}") == (1, 11, "expected a module name, got '1'")


def test_aliases_are_kept_sorted_by_output() -> None:
    module = parse_both(f"HloModule m, input_output_alias={{ {{1}}: (0, {{}}), {{0}}: (0, {{}}, must-alias) }}\n{PAIR}")

    assert module.input_output_aliases == (InputOutputAlias((0,), 0, (), True), InputOutputAlias((1,), 0, (), False))


def test_an_alias_of_an_output_that_is_not_there_is_refused() -> None:
    line, column, reason = complaint(f"HloModule m, input_output_alias={{ {{0}}: (0, {{}}) }}\n{BODY}")

    assert (line, column) == (1, 35)
    assert reason.startswith("expected an index into the result")


def test_an_alias_is_an_index_into_the_root_whatever_the_entry_layout_says() -> None:
    header = "HloModule m, input_output_alias={ {0}: (0, {}) }, entry_computation_layout={(f32[2]{0})->(f32[2]{0})}"

    assert complaint(f"{header}\n{BODY}")[:2] == (1, 35)


def test_the_whole_result_can_be_aliased() -> None:
    module = parse_both(f"HloModule m, input_output_alias={{ {{}}: (0, {{}}, must-alias) }}\n{BODY}")

    assert module.input_output_aliases == (InputOutputAlias((), 0, (), True),)


def test_alias_kinds_are_may_and_must() -> None:
    text = f"HloModule m, input_output_alias={{ {{}}: (0, {{}}, maybe) }}\n{BODY}"

    assert complaint(text) == (1, 47, "expected must-alias or may-alias, got 'maybe'")


def test_buffer_donors_are_kept() -> None:
    module = parse_both(f"HloModule m, buffer_donor={{ (1, {{}}), (0, {{2}}) }}\n{BODY}")

    assert module.buffer_donors == (BufferDonor(0, (2,)), BufferDonor(1, ()))
    assert complaint(f"HloModule m, buffer_donor={{ (x, {{}}) }}\n{BODY}")[2] == "expected a parameter number, got 'x'"


def test_a_missing_entry_layout_comes_from_the_entry() -> None:
    module = parse_both("HloModule m\nENTRY e {\n  x = f32[2,3]{0,1} parameter(0)\n  ROOT y = f32[2,3]{1,0} copy(x)\n}\n")

    assert module.entry_layout is not None
    assert [str(module.entry_layout.parameters[0]), str(module.entry_layout.result)] == ["f32[2,3]{0,1}", "f32[2,3]{1,0}"]


def test_a_given_entry_layout_is_kept_even_if_it_disagrees() -> None:
    module = parse_both(f"HloModule m, entry_computation_layout={{(f32[9]{{0}})->f32[9]{{0}}}}\n{BODY}")

    assert module.entry_layout is not None
    assert str(module.entry_layout.result) == "f32[9]{0}"


def _entry_layouts(options: ParseOptions) -> list[object]:
    text = f"HloModule m, entry_computation_layout={{(f32[2,3])->(f32[2,3]{{0,1}}, s32[])}}\n{BODY}"
    layout = parse_module(text, options=options).entry_layout
    assert layout is not None
    leaves = [leaf for shape in (*layout.parameters, layout.result) for _, leaf in array_leaves(shape)]
    return [leaf.layout and leaf.layout.minor_to_major for leaf in leaves]


def test_entry_layouts_that_are_not_written_are_default_or_automatic() -> None:
    assert _entry_layouts(ParseOptions()) == [(1, 0), (0, 1), ()]
    assert _entry_layouts(ParseOptions(keep_module_auto_layouts=True)) == [None, (0, 1), ()]


def test_automatic_entry_layouts_print_without_layout() -> None:
    text = f"HloModule m, entry_computation_layout={{(f32[2,3])->f32[2,3]{{0,1}}}}\n{BODY}"
    module = parse_module(text, options=ParseOptions(keep_module_auto_layouts=True))

    assert "entry_computation_layout={(f32[2,3])->f32[2,3]{0,1}}" in module.to_text()


def test_layouts_of_instructions_can_stay_unset() -> None:
    module = parse_module(f"HloModule m\n{BODY}", options=ParseOptions(fill_missing_layouts=False))

    assert str(module.entry.root.shape) == "f32[2,3]"


def test_propagation_flags_print_unless_they_are_just_false() -> None:
    name = "allow_spmd_sharding_propagation_to_output"

    assert f"{name}={{true}}" in parse_both(f"HloModule m, {name}=true\n{BODY}").to_text()
    assert name not in parse_both(f"HloModule m, {name}={{false}}\n{BODY}").to_text()


FRAMES = """FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=1}"""


def test_stack_frames_are_kept_verbatim() -> None:
    module = parse_both(f"HloModule m\n\n{FRAMES}\n\n\n{BODY}")

    assert module.config.stack_frames == FRAMES
    assert f"\n\n{FRAMES}\n\n" in module.to_text()


def test_a_missing_stack_section_is_refused() -> None:
    text = f"HloModule m\n\n{FRAMES.replace('FunctionNames', '')}\n\n{BODY}"

    assert complaint(text)[2].startswith("expected 'FunctionNames'")


def test_a_missing_field_of_a_frame_is_refused() -> None:
    text = f"HloModule m\n\n{FRAMES.replace(' line=3', '')}\n\n{BODY}"

    assert complaint(text) == (10, 3, "expected attribute line in these braces, got none")


# -- computations ------------------------------------------------------------------------------------------------------


def test_without_entry_the_last_computation_is_it() -> None:
    module = parse_both("HloModule m\na {\n  x = f32[] parameter(0)\n}\nb {\n  x = f32[] parameter(0)\n}\n")

    assert module.entry.name == "b"


def test_a_second_entry_is_refused() -> None:
    text = "HloModule m\nENTRY a {\n  x = f32[] parameter(0)\n}\nENTRY b {\n  x = f32[] parameter(0)\n}\n"

    assert complaint(text) == (5, 1, "expected only one ENTRY, got a second one behind %a")


def test_without_root_the_last_instruction_is_it() -> None:
    assert in_entry("  x = f32[] parameter(0)\n  y = f32[] negate(x)").entry.root.name == "y"
    assert in_entry("  ROOT x = f32[] parameter(0)\n  y = f32[] negate(x)").entry.root.name == "x"


def test_a_second_root_is_refused() -> None:
    line, column, reason = body_complaint("ROOT x = f32[] parameter(0)", "ROOT y = f32[] negate(x)")

    assert (line, column, reason) == (2, 1, "expected only one ROOT, got a second one behind %x")


def _headerless(text: str, **options: bool) -> Module:
    return parse_module(text, options=ParseOptions(**options))


def test_computations_without_header_make_a_module_named_after_the_entry() -> None:
    assert parse_both("c {\n  x = f32[] parameter(0)\n}\n").name == "module_c"
    assert parse_both(BODY).name == "module_e"


def test_a_signature_without_header_is_an_extension() -> None:
    text = "%c (x: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n}\n"

    assert refused(text).line == 1
    assert _headerless(text, signature_without_header=True).name == "module_c"


def test_the_result_of_a_signature_must_fit_the_root() -> None:
    text = "HloModule m\n\nENTRY %e (x: f32[2]) -> f32[3] {\n  %x = f32[2] parameter(0)\n}\n"

    assert complaint(text) == (3, 25, "expected the shape f32[2]{0} of the root %x, got f32[3]")


def test_the_parameters_of_a_signature_mean_nothing() -> None:
    assert parse_both("HloModule m\nENTRY e (zz: f32[9], y: s32[]) -> f32[2] {\n  x = f32[2] parameter(0)\n}\n").entry.root


@pytest.mark.parametrize("parameter", ["x : f32[2]", "%x: f32[2]"])
def test_the_colon_of_a_parameter_is_glued_to_a_bare_name(parameter: str) -> None:
    line, _, reason = complaint(f"HloModule m\nENTRY e ({parameter}) -> f32[2] {{\n  x = f32[2] parameter(0)\n}}\n")

    assert (line, reason) == (2, "expected a shape, got ':'")


def test_computations_are_defined_above_their_use() -> None:
    text = "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  y = f32[] call(x), to_apply=later\n}\n"

    assert complaint(text) == (4, 31, "expected the name of a computation above, or an inline computation, got 'later'")


def test_a_computation_name_is_used_once() -> None:
    text = "HloModule m\nc {\n  x = f32[] parameter(0)\n}\nENTRY c {\n  x = f32[] parameter(0)\n}\n"

    assert complaint(text) == (5, 7, "expected a new computation name, got c, which is defined above already")


def test_an_instruction_name_is_used_once_in_a_computation() -> None:
    line, column, reason = body_complaint("x = f32[] parameter(0)", "x = f32[] parameter(1)")

    assert (line, column) == (2, 1)
    assert reason == "expected a new instruction name, got x, which computation e has already"


def test_computations_may_share_instruction_names() -> None:
    module = parse_both("HloModule m\nc {\n  a = f32[] parameter(0)\n}\nENTRY e {\n  a = f32[] parameter(0)\n}\n")

    assert [c.root.name for c in module.computations] == ["a", "a"]


def test_threads_are_kept() -> None:
    text = 'HloModule m\nc {\n  a = f32[] parameter(0)\n}, execution_thread="host"\nENTRY e {\n  a = f32[] parameter(0)\n}\n'
    module = parse_both(text)

    assert module.find_computation("c").execution_thread == "host"
    assert '}, execution_thread="host"\n' in module.to_text()


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("", 1, 1, "expected HloModule, ENTRY, a computation or an instruction, got the end of the text"),
        ("HloModule m", 1, 12, "expected a computation name, got the end of the text"),
        ("HloModule m\nENTRY e {\n}\n", 3, 1, "expected an instruction name, got '}'"),
        (f"HloModule m\n{BODY}\n7\n", 6, 1, "expected a computation name, got '7'"),
        (f"HloModule m\n{BODY}\n)", 6, 1, "expected a computation name, got ')'"),
        (f"HloModule m\n{BODY}HloModule n\n{BODY}", 5, 1, "expected a computation name, got 'HloModule'"),
    ],
)
def test_texts_that_are_no_module(text: str, line: int, column: int, reason: str) -> None:
    assert complaint(text) == (line, column, reason)


# -- schedules ---------------------------------------------------------------------------------------------------------

SCHEDULED = """HloModule m, is_scheduled=true

fused {
  p = f32[] parameter(0)
  ROOT n = f32[] negate(p)
}

ENTRY e {
  b = f32[] parameter(1)
  a = f32[] parameter(0)
  late = f32[] negate(b)
  f = f32[] fusion(a), kind=kLoop, calls=fused
  ROOT sum = f32[] add(f, late)
}
"""


def test_text_order_is_the_schedule_of_everything_but_fusions() -> None:
    module = parse_both(SCHEDULED)

    assert module.schedule is not None
    assert [c.name for c in module.schedule.sequences] == ["e"]
    assert [i.name for i in module.schedule.sequence(module.entry)] == ["b", "a", "late", "f", "sum"]


def test_the_schedule_is_printed_as_it_is() -> None:
    text = parse_both(SCHEDULED).to_text()

    assert [line.split()[0] for line in text.splitlines()[8:12]] == ["%b", "%a", "%late", "%f"]


# -- single instructions -----------------------------------------------------------------------------------------------


def test_a_single_instruction_makes_parameters_of_its_operands() -> None:
    module = parse_both("f32[2] add(f32[2] %a, f32[2] %b)")

    assert [(p.name, p.parameter_number) for p in module.entry.parameters] == [("a", 0), ("b", 1)]
    assert (module.name, module.entry.root.name, module.schedule is not None) == ("_", "_", True)


def test_operands_of_a_single_instruction_need_no_names() -> None:
    module = parse_both("foo = f32[2] add(f32[2], f32[2])")

    assert [p.name for p in module.entry.parameters] == ["_0", "_1"]
    assert module.entry.root.name == "foo"


def test_one_name_is_one_parameter() -> None:
    assert len(parse_both("foo = add(f32[2] %x, f32[2] %x)").entry.parameters) == 1


def test_operands_of_a_single_instruction_need_shapes() -> None:
    assert complaint("foo = f32[2] add(x, x)")[2] == "expected a shape in front of an operand that is defined nowhere, got 'x'"


def test_two_instructions_need_a_header() -> None:
    line, column, reason = complaint("x = f32[] parameter(0)\ny = f32[] negate(f32[] x)")

    assert (line, column) == (2, 1)
    assert "HloModule header" in reason
