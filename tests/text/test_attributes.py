import pytest

from layoutsim.ir.payloads import CollectivePayload, ListReplicaGroups
from layoutsim.ir.replica_groups import IotaReplicaGroups, MeshReplicaGroups
from tests.text.asking import body_complaint, complaint, parse_both, printed, root_of

X = "x = f32[2,3] parameter(0)"
Z = "z = f32[] constant(0)"


def _attribute(line: str, name: str, *before: str) -> str:
    """What the printer writes behind ``name=`` for ``line``."""
    return printed(line, *(before or (X, Z))).partition(f"{name}=")[2]


# -- window, padding, slice, labels ------------------------------------------------------------------------------------

CONVOLUTION = "r = f32[1,9,9,4] convolution(i, k), window={%s}, dim_labels=b01f_01io->b01f"
IMAGES = ("i = f32[1,9,9,3] parameter(0)", "k = f32[3,3,3,4] parameter(1)")


@pytest.mark.parametrize(
    ("window", "out"),
    [
        ("size=3x3 stride=2x2 pad=1_1x0_0", "size=3x3 stride=2x2 pad=1_1x0_0"),
        ("rhs_reversal=1x0 pad=0_0x0_0 size=3x3 lhs_dilate=1x2", "size=3x3 lhs_dilate=1x2 rhs_reversal=1x0"),
        ("size=3x3 rhs_dilate=2x1 pad=-1_1x0_0", "size=3x3 pad=-1_1x0_0 rhs_dilate=2x1"),
    ],
)
def test_windows_print_in_one_order_without_defaults(window: str, out: str) -> None:
    assert _attribute(CONVOLUTION % window, "window", *IMAGES).startswith(f"{{{out}}}")


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ("size=3x3 pad=1_1_1x0_0", "expected 2 numbers per dimension in the padding, got 1_1_1x0_0"),
        ("size=3x3 stride=2", "expected 2 entries in stride= as in size=, got 1"),
        ("size=3x3 size=3x3", "expected one of stride=, pad=, lhs_dilate=, rhs_dilate=, rhs_reversal= or '}', got 'size='"),
        ("size=3x3, stride=1x1", "expected one of stride=, pad=, lhs_dilate=, rhs_dilate=, rhs_reversal= or '}', got ','"),
    ],
)
def test_windows_that_do_not_fit_are_refused(window: str, reason: str) -> None:
    assert body_complaint(*IMAGES, CONVOLUTION % window)[2] == reason


def test_interior_padding_prints_for_all_dimensions_or_none() -> None:
    assert _attribute("r = f32[4,4] pad(x, z), padding=1_-1x0_0_1", "padding") == "1_-1_0x0_0_1"
    assert _attribute("r = f32[4,4] pad(x, z), padding=1_-1_0x0_0", "padding") == "1_-1x0_0"


def test_strides_print_for_all_dimensions_or_none() -> None:
    assert _attribute("r = f32[1,2] slice(x), slice={[0:2:2],[1:3]}", "slice") == "{[0:2:2], [1:3:1]}"
    assert _attribute("r = f32[1,2] slice(x), slice={[0:1:1],[1:3]}", "slice") == "{[0:1], [1:3]}"
    assert body_complaint(X, "r = f32[1,2] slice(x), slice={[0:2:2:2],[1:3]}")[2].startswith("expected ']' of a range")


@pytest.mark.parametrize("labels", ["b01f_01io->b01f", "bf01_oi01->bf01", "?b0f_0io->b0f", "0fb_io0->f0b"])
def test_dimension_labels_print_as_written(labels: str) -> None:
    line = f"r = f32[1,9,9,4] convolution(i, k), dim_labels={labels}"

    assert _attribute(line, "dim_labels", *IMAGES) == labels


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ("b00f_01io->b01f", "expected each letter once and digits from 0 in the labels b00f"),
        ("b01f_0io->b01f", "expected equal numbers of spatial dimensions in b01f_0io->b01f, got 2, 1, 2"),
        ("b01f_01io->b01", "expected each letter once and digits from 0 in the labels b01"),
        ("b02f_01io->b01f", "expected each letter once and digits from 0 in the labels b02f"),
    ],
)
def test_dimension_labels_that_do_not_fit_are_refused(labels: str, reason: str) -> None:
    assert body_complaint(*IMAGES, f"r = f32[1,9,9,4] convolution(i, k), dim_labels={labels}")[2] == reason


DOT = "r = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}"
CALL = 'r = f32[2] custom-call(x), custom_call_target="t"'


# -- words -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name", "out"),
    [
        ("r = c64[2,3] fft(x), fft_type=fft, fft_length={3}", "fft_type", "FFT, fft_length={3}"),
        ("r = f32[2] rng(z, z), distribution=RNG_NORMAL", "distribution", "rng_normal"),
        (f"{DOT}, algorithm=DOT_F32_F32_F32", "algorithm", "dot_f32_f32_f32"),
        (f"{DOT}, operand_precision={{HIGH,default}}", "operand_precision", "{high,default}"),
        (f"{DOT}, operand_precision={{default,default}}", "rhs_contracting_dims", "{1}"),
        (f"{CALL}, schedule=schedule_none, api_version=API_VERSION_ORIGINAL", "custom_call_target", '"t"'),
    ],
)
def test_words_print_in_one_spelling_and_not_at_all_when_default(line: str, name: str, out: str) -> None:
    assert _attribute(line, name) == out


def test_words_are_checked() -> None:
    assert "got 'kFast'" in body_complaint(X, "r = f32[2,3] fusion(x), kind=kFast, calls=f")[2]
    assert "got 'FFTT'" in body_complaint(X, "r = c64[2,3] fft(x), fft_type=FFTT, fft_length={3}")[2]


def test_result_accuracy_belongs_to_approximated_functions() -> None:
    assert _attribute("r = f32[2,3] tanh(x), result_accuracy={mode=HIGHEST}", "result_accuracy") == "{mode=highest}"
    assert printed("r = f32[2,3] tanh(x), result_accuracy={mode=default}", X) == "r = f32[2,3]{1,0} tanh(x)"
    assert "expected an attribute of this opcode" in body_complaint(X, "r = f32[2,3] negate(x), result_accuracy={}")[2]


# -- replica groups ----------------------------------------------------------------------------------------------------


TRANSPOSED = "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}"


def _groups(text: str) -> CollectivePayload:
    return root_of(f"{X}\nr = f32[2,3] all-to-all(x), channel_id=1, replica_groups={text}, dimensions={{0}}").payload_as(
        CollectivePayload
    )


@pytest.mark.parametrize(
    ("text", "kind", "out", "first"),
    [
        ("{{0,1},{2,3}}", ListReplicaGroups, "{{0,1},{2,3}}", (0, 1)),
        ("{}", ListReplicaGroups, "{}", ()),
        ("[2,4]<=[8]", IotaReplicaGroups, "[2,4]<=[8]", (0, 1, 2, 3)),
        ("[2,4]<=[4,2]T(1,0)", IotaReplicaGroups, "[2,4]<=[4,2]T(1,0)", (0, 2, 4, 6)),
        ("[2,4]<=[2,2,2]T(2,0,1)", IotaReplicaGroups, "[2,4]<=[4,2]T(1,0)", (0, 2, 4, 6)),
        ("[2,4]<=[1,8]T(0,1)", IotaReplicaGroups, "[2,4]<=[8]", (0, 1, 2, 3)),
        ("mesh['a'=2,'b'=4] {'a'}", MeshReplicaGroups, "mesh['a'=2,'b'=4] {'a'}", (0, 4)),
        ('mesh["a"=2,"b"=4], {"1"}', MeshReplicaGroups, "mesh['a'=2,'b'=4] {'b'}", (0, 1, 2, 3)),
        (TRANSPOSED, MeshReplicaGroups, TRANSPOSED, (0, 2, 4, 6)),
        ("mesh['a'=2,'b'=4] {'1':(2)2}", MeshReplicaGroups, "mesh['a'=2,'b'=4] {'b':(2)2}", (0, 1)),
    ],
)
def test_replica_groups_keep_their_spelling(text: str, kind: type, out: str, first: tuple[int, ...]) -> None:
    groups = _groups(text).replica_groups

    assert isinstance(groups, kind)
    assert groups.to_text() == out
    assert (groups.groups() or ((),))[0] == first


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[2,2,2]<=[8]", "expected [groups,size] with two numbers, got 3"),
        ("[2,3]<=[8]", "2 groups of 3 are not the 8 devices of [8]"),
        ("[2,4]<=[4,2]", "expected T(...) with the transpose permutation, got ','"),
        ("[2,4]<=[4,2]T(0,0)", "expected a permutation of 0..1, got (0, 0)"),
        ("mesh['a'=2] {'c'}", "expected an axis of mesh['a'=2], got 'c'"),
        ("mesh['a'=2,'a'=2] {'a'}", "axis names ['a', 'a'] are not unique"),
        ("mesh['a'=1] {'a'}", "expected groups of more than one device, got 1"),
        ("mesh['a'=2], device_ids=(0,1) {'a'}", "expected no device_ids for devices in order"),
        ("mesh['a'=2], device_ids=(0,2) {'a'}", "expected the device ids 0..1 in some order, got 2 ids"),
        ("mesh['a'=6] {'a':(4)2}", "(4)2 does not divide the axis 'a' of size 6"),
        ("maximal_mesh[device_id=1] {'a'}", "maximal_mesh has no groups"),
    ],
)
def test_replica_groups_that_make_no_sense_are_refused(text: str, reason: str) -> None:
    assert body_complaint(X, f"r = f32[2,3] all-to-all(x), replica_groups={text}, dimensions={{0}}")[2] == reason


ALL_REDUCE = """HloModule m
s {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[2] parameter(0)
  r = f32[2] all-reduce(x), channel_id=1, use_global_device_ids=true, to_apply=s
}
"""


def test_global_device_ids_need_a_channel() -> None:
    assert parse_both(ALL_REDUCE)
    assert "expected channel_id together" in complaint(ALL_REDUCE.replace("channel_id=1, ", ""))[2]


def test_pairs_are_pairs() -> None:
    assert _attribute("r = f32[2,3] collective-permute(x), source_target_pairs={{0,1},{1,0}}", "source_target_pairs") == (
        "{{0,1},{1,0}}"
    )
    assert "expected a pair" in body_complaint(X, "r = f32[2,3] collective-permute(x), source_target_pairs={{0,1,2}}")[2]


# -- shardings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("{replicated}", "{replicated}"),
        ("{maximal device=3}", "{maximal device=3}"),
        ("{manual}", "{manual}"),
        ("{unknown shard_like 4}", "{unknown shard_like 4}"),
        ("{devices=[2,2]<=[4]}", "{devices=[2,2]<=[4]}"),
        ("{devices=[2,4]<=[2,2,2]T(2,0,1)}", "{devices=[2,4]<=[4,2]T(1,0)}"),
        ("{devices=[2,1]1,0}", "{devices=[2,1]1,0}"),
        ("{last_tile_dim_replicate devices=[2,1,2]<=[4]}", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"),
        (
            "{devices=[1,1,2,2]<=[4] last_tile_dims={manual,replicated}}",
            "{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}",
        ),
        ("{replicated metadata={source_line=3, op_name='a'}}", '{replicated metadata={op_name="a" source_line=3}}'),
        ("{replicated metadata={{op_name='a'}, {}}}", '{replicated metadata={{op_name="a"}, {}}}'),
        ("{mesh['x'=2,'y'=4], [{'x'}, {?}], unreduced={'y'}}", "{mesh['x'=2,'y'=4], [{'x'}, {?}], unreduced={'y'}}"),
        ("{mesh['x'=2,'y'=4] [{'x', 'y':(1)2}, {}]}", "{mesh['x'=2,'y'=4], [{'x', 'y':(1)2}, {}]}"),
        ("{mesh['x'=2], manual}", "{mesh['x'=2], manual}"),
        ("{maximal_mesh[device_id=5]}", "{maximal_mesh[device_id=5]}"),
    ],
)
def test_shardings_print_canonically(text: str, out: str) -> None:
    assert printed(f"x = f32[2,3] parameter(0), sharding={text}").endswith(f"sharding={out}")
    assert printed(f"x = f32[2,3] parameter(0), sharding={out}").endswith(f"sharding={out}")


def test_one_sharding_on_a_tuple_holds_for_every_leaf() -> None:
    line = printed("x = (f32[2], (s32[], token[])) parameter(0), sharding={replicated}")

    assert line.endswith("sharding={{replicated}, {replicated}, {replicated}}")


def test_tuple_shardings_count_their_leaves_in_comments() -> None:
    leaves = ", ".join(["{replicated}"] * 6)
    shapes = ", ".join(["s32[]"] * 6)

    assert printed(f"x = ({shapes}) parameter(0), sharding={{{leaves}}}").endswith("/*index=5*/{replicated}}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{maximal device=1,2}", "got ','"),
        ("{maximal}", "expected exactly one device in a maximal sharding"),
        ("{replicated device=1}", "expected no devices in a replicated sharding"),
        ("{replicated manual}", "expected one kind of sharding, got replicated and manual"),
        ("{devices=[1,1]0}", "expected more than one device in a tiled sharding"),
        ("{devices=[2,2]0,1,2}", "expected 4 devices for the tiles, got 3"),
        ("{devices=[2,2]<=[8]}", "expected 4 devices for tiles [2, 2], got 8"),
        ("{devices=[0,2]<=[8]}", "expected tile dimensions of at least 1, got [0, 2]"),
        ("{last_tile_dim_replicate}", "expected devices=[...] or a kind of sharding"),
        ("{colour=3}", "got 'colour='"),
        ("{mesh['x'=2], [{?, 'x'}]}", "expected '}' behind '?'"),
    ],
)
def test_shardings_that_make_no_sense_are_refused(text: str, reason: str) -> None:
    assert reason in body_complaint(f"x = f32[2,3] parameter(0), sharding={text}")[2]


# -- metadata, statistics, origin, frontend attributes -----------------------------------------------------------------

METADATA = (
    'op_type="a" op_name="b" source_file="c" source_line=1 source_end_line=2 source_column=3 source_end_column=4 '
    'profile_type={1} deduplicated_name="d" scheduling_name="e" stack_frame_id=5 metadata_payload="f"'
)


def test_metadata_is_read_with_and_without_commas() -> None:
    line = f"x = f32[] parameter(0), metadata={{{METADATA}}}"
    module_metadata = root_of(line).metadata

    assert printed(line) == line
    assert printed(line.replace('" ', '", ')) == line
    assert (module_metadata.op_name, module_metadata.source_line, module_metadata.stack_frame_id) == ("b", 1, 5)


def test_empty_metadata_fields_do_not_print() -> None:
    assert printed('x = f32[] parameter(0), metadata={op_name="" source_line=0}') == "x = f32[] parameter(0)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('op_name="a" op_name="b"', "attribute op_name stands here twice"),
        ("source_line=2147483648", "expected a 32-bit integer, got 2147483648"),
        ("profile_type={9}", "expected a profile type from 0 to 4, got 9"),
        ("op_name=3", "expected a string, got '3'"),
    ],
)
def test_metadata_is_checked(text: str, reason: str) -> None:
    assert body_complaint(f"x = f32[] parameter(0), metadata={{{text}}}")[2] == reason


@pytest.mark.parametrize(
    "attribute",
    [
        "statistics={visualizing_index=1,a=2.5,b=3}",
        'origin={"a"}',
        'origin={{"a" {0,1}}}',
        'origin={({"a" {0}}, ({"b"}, {}))}',
        "origin={[synthetic_call]}",
        'frontend_attributes={a="1",b={"k": [1, 2]}}',
        'backend_config={"a": {"b": 1}}',
        'backend_config="text"',
    ],
)
def test_other_annotations_print_as_written(attribute: str) -> None:
    line = f"x = (f32[], (f32[], f32[])) parameter(0), {attribute}"
    if attribute == 'origin={"a"}':
        assert body_complaint(line)[2].startswith("expected '{' or '('")
    else:
        assert printed(line) == line


def test_quoted_json_prints_bare() -> None:
    line = 'x = f32[] parameter(0), backend_config="{\\"a\\": \\"}\\"}"'

    assert printed(line) == 'x = f32[] parameter(0), backend_config={"a": "}"}'


@pytest.mark.parametrize("value", ["{", "{}}", '{"}', "{} ", '{"a\\\\"}'])
def test_strings_that_are_not_wholly_json_stay_quoted(value: str) -> None:
    quoted = value.replace('"', '\\"')
    line = printed(f'x = f32[] parameter(0), backend_config="{quoted}"')

    assert (
        root_of(line).attributes.backend_config
        == root_of(f'x = f32[] parameter(0), backend_config="{quoted}"').attributes.backend_config
    )


def test_frontend_attributes_are_sorted() -> None:
    line = "x = f32[] parameter(0), frontend_attributes={b=\"1\",a='2'}"

    assert printed(line).endswith('frontend_attributes={a="2",b="1"}')


def test_statistics_need_their_index() -> None:
    assert body_complaint("x = f32[] parameter(0), statistics={a=1}")[2] == "expected visualizing_index=, got 'a='"


def test_aliasing_of_outputs() -> None:
    line = (
        'r = (f32[2,3]{1,0}, f32[]) custom-call(x, z), custom_call_target="t", '
        "output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {})}"
    )

    assert printed(line, X, Z) == line
