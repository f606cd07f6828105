from layoutsim.text import CANONICAL, FINGERPRINT, SHORT_PARSABLE, PrintOptions, parse_module, print_module, uniquify_names
from tests.text.asking import in_entry, parse_both

MODULE = """HloModule m, entry_computation_layout={(f32[2]{0})->f32[]}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %e (x: f32[2]) -> f32[] {
  %x = f32[2]{0} parameter(0), metadata={op_name="x"}
  %z = f32[] constant(0), backend_config={"k":1}
  ROOT %r = f32[] reduce(%x, %z), dimensions={0}, to_apply=%sum, sharding={replicated metadata={op_name="r"}}
}
"""


def test_the_default_text_is_a_fix_point() -> None:
    assert parse_both(MODULE).to_text() == MODULE


def test_short_parsable_drops_percent_signs_signatures_and_metadata() -> None:
    assert print_module(parse_both(MODULE), SHORT_PARSABLE) == (
        """HloModule m, entry_computation_layout={(f32[2]{0})->f32[]}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  x = f32[2]{0} parameter(0)
  z = f32[] constant(0), backend_config={"k":1}
  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum, sharding={replicated}
}
"""
    )


def test_canonical_numbers_instructions_and_shows_bodies_and_operand_shapes() -> None:
    assert print_module(parse_both(MODULE), CANONICAL).split("\n\n")[-1] == (
        """ENTRY e {
  tmp_0 = f32[2]{0} parameter(0)
  tmp_1 = f32[] constant(0)
  ROOT tmp_2 = f32[] reduce(f32[2]{0} tmp_0, f32[] tmp_1), dimensions={0}, to_apply=
  {
    tmp_0 = f32[] parameter(0)
    tmp_1 = f32[] parameter(1)
    ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)
  }, sharding={replicated}
}
"""
    )


def test_fingerprints_show_no_names() -> None:
    text = print_module(parse_both(MODULE), FINGERPRINT)

    assert text.startswith("HloModule , entry")
    assert "ENTRY {" in text
    assert "%" not in text


def test_every_fifth_operand_and_element_carries_its_index() -> None:
    text = in_entry("x = s32[] parameter(0)\n t = " + f"({', '.join(['s32[]'] * 11)}) tuple({', '.join('x' * 11)})").to_text()

    assert "s32[], /*index=5*/s32[], s32[], s32[], s32[], s32[], /*index=10*/s32[]) tuple(%x" in text
    assert "%x, /*index=5*/%x, %x, %x, %x, %x, /*index=10*/%x)" in text


def test_entry_layouts_carry_indices_too() -> None:
    module = in_entry("\n".join(f"p{i} = s32[] parameter({i})" for i in range(6)))

    assert "{(s32[], s32[], s32[], s32[], s32[], /*index=5*/s32[])->s32[]}" in module.to_text()


def test_an_instruction_in_front_of_its_operand_moves_everything_into_post_order() -> None:
    module = in_entry("x = f32[] parameter(0)\n y = f32[] negate(x)\n z = f32[] negate(y)")
    entry = module.entry
    entry.reorder(reversed(entry.instructions))
    text = module.to_text()

    assert text.index("%x =") < text.index("%y =") < text.index("%z =")


def test_computations_stand_above_their_callers() -> None:
    module = parse_both(MODULE)
    sum_, entry = module.computations
    for computation in (sum_, entry):
        del module._computations[computation]
    for computation in (entry, sum_):
        module._computations[computation] = None
    text = module.to_text()

    assert text.index("%sum (") < text.index("ENTRY")


def test_newer_attributes_print_only_on_demand() -> None:
    module = in_entry("x = f32[4] parameter(0)\n t = (f32[2], s32[2]) topk(x), k=2, largest=true")

    assert "is_stable" not in module.to_text()
    assert "largest=true, is_stable=true" in print_module(module, PrintOptions(newer_xla=True))


def test_names_can_be_made_unique_in_the_module() -> None:
    parts = [f"{name} {{\n  {each} = f32[] parameter(0)\n}}\n" for name, each in (("c", "a"), ("d", "a.1"), ("ENTRY e", "a"))]
    module = parse_module("HloModule m\n" + "".join(parts))

    assert uniquify_names(module) == 1
    assert [c.root.name for c in module.computations] == ["a", "a.1", "a.2"]
    assert uniquify_names(module) == 0
