"""Random modules: valid, reproducible, of every kind, and stored as XLA prints them."""

from collections import Counter

import pytest

from layoutsim.ir import Module, Opcode, array_leaves, has_layout
from layoutsim.ir.traverse import post_order
from layoutsim.testing import Limits, random_module
from layoutsim.text import ParseOptions, parse_module
from layoutsim.verify import verify

SEEDS = range(60)
KEEP_AUTOMATIC = ParseOptions(keep_module_auto_layouts=True)


def modules(backend: str) -> list[Module]:
    limits = Limits(devices=4, backend=backend)
    return [random_module(seed, limits) for seed in SEEDS]


@pytest.mark.parametrize("backend", ["gpu", "cpu"])
def test_modules_are_valid(backend: str) -> None:
    assert {seed: findings for seed, module in enumerate(modules(backend)) if (findings := verify(module))} == {}


def test_equal_seeds_make_equal_modules() -> None:
    assert [m.to_text() for m in modules("gpu")] == [m.to_text() for m in modules("gpu")]


def test_modules_read_back_as_they_were_printed() -> None:
    for module in modules("gpu"):
        text = module.to_text()

        assert parse_module(text, options=KEEP_AUTOMATIC).to_text() == text


def test_computations_are_stored_in_post_order() -> None:
    for module in modules("gpu"):
        for computation in module.computations:
            assert list(computation.instructions) == post_order(computation)


def test_every_family_occurs() -> None:
    limits = Limits(devices=4)
    made = Counter(i.opcode for seed in range(400) for c in random_module(seed, limits).computations for i in c.instructions)

    assert [opcode for opcode in _EXPECTED if not made[opcode]] == []


_EXPECTED = [
    *(Opcode.DOT, Opcode.CONVOLUTION, Opcode.REDUCE, Opcode.REDUCE_WINDOW, Opcode.SORT, Opcode.TRANSPOSE, Opcode.RESHAPE),
    *(Opcode.BROADCAST, Opcode.CONCATENATE, Opcode.PAD, Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE),
    *(Opcode.GATHER, Opcode.SCATTER, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL, Opcode.FUSION, Opcode.CUSTOM_CALL),
    *(Opcode.TUPLE, Opcode.OPT_BARRIER, Opcode.ALL_GATHER, Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL),
    *(Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_BROADCAST, Opcode.RAGGED_ALL_TO_ALL, Opcode.ASYNC_START, Opcode.SEND),
    *(Opcode.RECV, Opcode.INFEED, Opcode.FFT, Opcode.TRIANGULAR_SOLVE, Opcode.CHOLESKY, Opcode.RAGGED_DOT, Opcode.SCAN),
    *(Opcode.BITCAST_CONVERT, Opcode.COPY_START, Opcode.SET_DIMENSION_SIZE),
]


def test_entry_layouts_are_of_every_kind() -> None:
    kinds: Counter[str] = Counter()
    for module in modules("gpu"):
        assert module.entry_layout is not None
        for shape in (*module.entry_layout.parameters, module.entry_layout.result):
            for _, leaf in array_leaves(shape):
                default = leaf.layout is not None and leaf.minor_to_major == tuple(range(leaf.rank))[::-1]
                kinds["automatic" if not has_layout(leaf) else "default" if default else "other"] += 1

    assert set(kinds) == {"automatic", "default", "other"}


def test_one_device_needs_no_collectives() -> None:
    collectives = [
        i.opcode
        for seed in SEEDS
        for c in random_module(seed).computations
        for i in c.instructions
        if i.opcode.spec.is_collective
    ]

    assert collectives == []
