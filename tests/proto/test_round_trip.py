"""Modules written as protos and read again print as before: one small module for each family of instructions."""

import pytest

from layoutsim.proto import module_from_bytes, module_to_bytes
from layoutsim.text import ParseOptions, parse_module

pytest.importorskip("google.protobuf")

ADD = "add_f32 { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
LESS = "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }\n"

BODIES = {
    "elementwise": """
        x = f32[2,3]{0,1} parameter(0)
        y = f32[2,3] parameter(1)
        c = pred[2,3] compare(x, y), direction=GE, type=TOTALORDER
        t = f32[2,3] tanh(x), result_accuracy={mode=highest}
        l = f32[2,3] logistic(y), result_accuracy={tolerance={atol=0.5,rtol=0.25,ulps=3}}
        p = f32[2,3] reduce-precision(l), exponent_bits=5, mantissa_bits=7
        ROOT s = f32[2,3] select(c, t, p)""",
    "movement": """
        x = s32[4,6] parameter(0)
        i = s32[] parameter(1)
        r = s32[2,12] reshape(x), inferred_dimension=1
        s = s32[2,3] slice(x), slice={[0:4:2], [3:6]}
        z = s32[] constant(0)
        p = s32[3,9] pad(s, z), padding=0_1_0x1_2_1, sharding={devices=[2,1]<=[2]}
        d = s32[1,6] dynamic-slice(x, i, z), dynamic_slice_sizes={1,6}
        u = s32[4,6] dynamic-update-slice(x, d, z, i)
        v = s32[6,4]{0,1} transpose(u), dimensions={1,0}
        w = s32[6,4] reverse(v), dimensions={0}
        b = s32[6,4,2] broadcast(w), dimensions={0,1}
        n = s32[5] iota(), iota_dimension=0
        k = s32[5,1] reshape(n)
        ROOT t = (s32[6,4,2], s32[5,1], s32[3,9], s32[2,12]) tuple(b, k, p, r)""",
    "gather": """
        x = f32[8,16] parameter(0)
        i = s32[3,1] parameter(1)
        g = f32[3,16] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
          slice_sizes={1,16}, indices_are_sorted=true
        ROOT s = f32[8,16] scatter(x, i, g), update_window_dims={1}, inserted_window_dims={0},
          scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=add_f32""",
    "dot": """
        x = bf16[4,8,16] parameter(0)
        y = bf16[4,16,2] parameter(1)
        ROOT d = f32[4,8,2] dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0},
          rhs_contracting_dims={1}, operand_precision={high,highest}, algorithm=dot_bf16_bf16_f32_x3""",
    "convolution": """
        x = f32[1,5,5,4] parameter(0)
        k = f32[3,3,2,6] parameter(1)
        ROOT c = f32[1,3,7,6] convolution(x, k), window={size=3x3 stride=2x1 pad=1_1x2_2 rhs_reversal=1x0},
          dim_labels=b01f_01io->b01f, feature_group_count=2, convolution_kind=fprop""",
    "reductions": """
        x = f32[8,4] parameter(0)
        z = f32[] constant(0)
        r = f32[4] reduce(x, z), dimensions={0}, to_apply=add_f32
        w = f32[4,4] reduce-window(x, z), window={size=2x1 stride=2x1}, to_apply=add_f32
        s = f32[8,4] sort(x), dimensions={1}, is_stable=true, to_apply=less
        k = (f32[8,2], s32[8,2]) topk(s), k=2, largest=true
        ROOT t = (f32[4], f32[4,4], (f32[8,2], s32[8,2])) tuple(r, w, k)""",
    "linear algebra": """
        a = f32[3,3] parameter(0)
        b = f32[3,2] parameter(1)
        c = f32[3,3] cholesky(a), lower=true
        t = f32[3,2] triangular-solve(c, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
        f = c64[3,2] fft(t), fft_type=RFFT, fft_length={2}
        n = (f32[3,2], f32[2], f32[2]) batch-norm-training(t, t1, t2), epsilon=0.001, feature_index=1
        ROOT r = (c64[3,2], (f32[3,2], f32[2], f32[2])) tuple(f, n)""".replace(
        "n = (", "t1 = f32[2] parameter(2)\n t2 = f32[2] parameter(3)\n n = ("
    ),
    "custom call": """
        x = f32[4,4] parameter(0)
        ROOT c = (f32[4,4]{0,1}, u8[64]) custom-call(x), custom_call_target="a\\"b", operand_layout_constraints={f32[4,4]{0,1}},
          custom_call_has_side_effect=true, output_to_operand_aliasing={{0}: (0, {})}, schedule=SCHEDULE_LATEST,
          api_version=API_VERSION_TYPED_FFI, frontend_attributes={k="v",j={"a": 1}},
          metadata={op_type="t" op_name="n/é" source_file="f.py" source_line=3 stack_frame_id=1}, backend_config={"x": "}"}""",
    "random": """
        s = u64[2] parameter(0)
        a = f32[] constant(0)
        b = f32[] constant(1)
        r = f32[4] rng(a, b), distribution=rng_uniform
        g = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_three_fry
        u = u64[2] rng-get-and-update-state(), delta=3
        ROOT t = (f32[4], (u64[2], u32[4]), u64[2]) tuple(r, g, u)""",
    "effects": """
        x = f32[2] parameter(0)
        t = token[] after-all()
        i = (f32[2], token[]) infeed(t), infeed_config="in"
        j = token[] get-tuple-element(i), index=1
        o = token[] outfeed(x, j), outfeed_shape=f32[2], outfeed_config="out"
        s = (f32[2], u32[], token[]) send(x, o), channel_id=2, is_host_transfer=true
        d = token[] send-done(s), channel_id=2, is_host_transfer=true
        ROOT y = f32[2] add-dependency(x, d)""",
    "collectives": """
        x = f32[8,4] parameter(0)
        g = f32[8,16] all-gather(x), channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0), dimensions={1}, use_global_device_ids=true
        r = f32[8,16] all-reduce(g), channel_id=2, replica_groups={{0,1},{2,3,4,5,6,7}}, use_global_device_ids=true,
          to_apply=add_f32
        s = f32[2,16] reduce-scatter(r), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=add_f32
        m = f32[2,16] all-reduce(s), channel_id=3, replica_groups=mesh['a'=2,'b'=4] {'b'}, to_apply=add_f32
        a = f32[2,16] all-to-all(m), replica_groups={{0,1}}, dimensions={0}
        p = f32[2,16] collective-permute(a), source_target_pairs={{0,1},{1,0}}
        i = u32[] partition-id()
        ROOT t = (f32[2,16], u32[]) tuple(p, i)""",
    "async": """
        x = f32[8,4] parameter(0)
        s = (f32[8,4], f32[8,16]) all-gather-start(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={1}
        d = f32[8,16] all-gather-done(s)
        c = (f32[8,16]{1,0:S(5)}, f32[8,16], u32[]) copy-start(d), cross_program_prefetch_index=0
        e = f32[8,16]{1,0:S(5)} copy-done(c)
        a = ((f32[8,16]{1,0:S(5)}), f32[8,16]) negate-start(e), async_execution_thread="side"
        ROOT b = f32[8,16] negate-done(a)""",
    "shapes": """
        x = f32[<=8,4]{1,0:T(8,128)(2,1)S(1)} parameter(0)
        y = bf16[8,4]{0,1:T(4,*)E(16)} parameter(1)
        n = s32[] get-dimension-size(x), dimensions={0}
        ROOT t = (s32[], f32[<=8,4]{1,0:T(8,128)(2,1)S(1)}, ()) tuple(n, x, e), sharding={{replicated}, {manual}}
        """.replace("ROOT", "e = () tuple()\n ROOT"),
    "shardings": """
        a = f32[8,4] parameter(0), sharding={devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}
        b = f32[8,4] parameter(1), sharding={devices=[2,1]1,0 metadata={op_name="x"}}
        c = f32[8,4] parameter(2), sharding={maximal device=3}
        d = f32[8,4] parameter(3), sharding={devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}
        e = f32[8,4] parameter(4), sharding={mesh['a'=2,'b'=4], [{'a', 'b':(1)2}, {?}], replicated={'b':(2)2}}
        f = f32[8,4] parameter(5), sharding={replicated shard_as 4}, parameter_replication={true}
        ROOT t = (f32[8,4], f32[8,4]) tuple(a, b), sharding={{unknown}, {devices=[2,1]<=[2]}}""",
    "constants": """
        a = s32[2,3]{0,1} constant({ { 1, 2, 3 }, { 4, 5, 6 } })
        b = bf16[3] constant({1.5, -inf, nan})
        c = f8e4m3fn[2] constant({448, -0.5})
        d = c64[2] constant({(1, -2), (0.5, inf)})
        e = pred[3] constant({1, 0, 1})
        f = s4[3] constant({-8, 7, -1})
        g = f16[2] constant({65504, 6e-08})
        h = u64[1] constant({18446744073709551615})
        i = f64[] constant(1e-300)
        j = (s8[2], f32[]) constant(({-128, 127}, 2))
        ROOT t = (s32[2,3]{0,1}, bf16[3], c64[2]) tuple(a, b, d)""",
}


def roundtrip(text: str) -> tuple[str, str]:
    module = parse_module(text, options=ParseOptions(keep_module_auto_layouts=True))
    return module.to_text(), module_from_bytes(module_to_bytes(module)).to_text()


@pytest.mark.parametrize("name", BODIES)
def test_instructions_survive(name: str) -> None:
    before, after = roundtrip(f"HloModule m\n{ADD}{LESS}ENTRY e {{{BODIES[name]}\n}}\n")

    assert after == before


def test_control_flow_survives() -> None:
    before, after = roundtrip("""HloModule m
        body { s = (s32[], f32[2]) parameter(0)
          ROOT r = (s32[], f32[2]) copy(s) }
        cond { s = (s32[], f32[2]) parameter(0)  i = s32[] get-tuple-element(s), index=0
          n = s32[] constant(3)  ROOT c = pred[] compare(i, n), direction=LT }
        one { x = f32[2] parameter(0)  ROOT y = f32[2] negate(x) }
        two { x = f32[2] parameter(0)  ROOT y = f32[2] exponential(x) }
        fused { x = f32[2] parameter(0)  ROOT y = f32[2] sine(x) }
        ENTRY e {
          s = (s32[], f32[2]) parameter(0)
          w = (s32[], f32[2]) while(s), condition=cond, body=body, backend_config={"known_trip_count":{"n":"3"}}
          i = s32[] get-tuple-element(w), index=0
          x = f32[2] get-tuple-element(w), index=1
          b = f32[2] conditional(i, x, x, x), branch_computations={one, two, one}
          p = pred[] constant(true)
          d = f32[2] conditional(p, b, b), true_computation=one, false_computation=two
          f = f32[2] fusion(d), kind=kLoop, calls=fused, output_to_operand_aliasing={{}: (0, {})}
          ROOT c = f32[2] call(f), to_apply=one, control-predecessors={b}
        }""")

    assert after == before


def test_the_header_survives() -> None:
    before, after = roundtrip("""HloModule m, is_scheduled=true, input_output_alias={ {0}: (1, {}, must-alias) },
          buffer_donor={ (0, {}) }, entry_computation_layout={(f32[2,3], f32[2,3]{0,1})->(f32[2,3]{0,1}, f32[2,3])},
          frontend_attributes={a="b"}

        FileNames
        1 "a.py"

        FunctionNames
        1 "f"

        FileLocations
        1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=2}

        StackFrames
        1 {file_location_id=1 parent_frame_id=1}

        ENTRY e {
          x = f32[2,3] parameter(0)
          unused = f32[2,3] negate(x)
          y = f32[2,3]{0,1} parameter(1)
          ROOT t = (f32[2,3]{0,1}, f32[2,3]) tuple(y, x)
        }""")

    assert after.replace(" ", "") == before.replace(" ", "")  # the parser keeps the frames' text as written


def test_counts_are_lost_and_can_be_passed_in() -> None:
    module = parse_module("HloModule m, replica_count=2, num_partitions=4\nENTRY e { ROOT x = f32[] parameter(0) }")
    data = module_to_bytes(module)

    assert module_from_bytes(data).config.num_partitions == 1
    assert module_from_bytes(data, replica_count=2, num_partitions=4).config == module.config
