"""Counter-based random bits: ThreeFry 2x32 and Philox 4x32, bit for bit as XLA's CPU compiler makes them (text spec, 8.6)."""

from __future__ import annotations

import math

import numpy as np

from layoutsim.errors import UnsupportedError
from layoutsim.interp.registry import Call, kernel
from layoutsim.interp.values import Array, Value
from layoutsim.ir import ArrayShape, ElementType, TupleShape
from layoutsim.ir.float_format import numpy_dtype
from layoutsim.ir.payloads import RngBitGeneratorPayload

_LOW = np.uint64(0xFFFFFFFF)
_THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = np.uint32(0x1BD11BDA)
_PHILOX_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_PHILOX_BUMPS = (0x9E3779B9, 0xBB67AE85)


@kernel("rng-bit-generator")
def _rng_bit_generator(call: Call) -> Value:
    algorithm = call.instruction.payload_as(RngBitGeneratorPayload).algorithm
    state = call.array(0).astype(np.uint64).reshape(-1)
    shape = call.instruction.shape
    bits_shape = shape.elements[1] if isinstance(shape, TupleShape) else shape
    assert isinstance(bits_shape, ArrayShape), call.instruction
    if algorithm == "rng_three_fry":
        new, bits = _threefry_bits(state, bits_shape)
    else:  # Philox is the default of XLA's compilers
        new, bits = _philox_bits(state, bits_shape)
    values = _narrowed(bits, bits_shape.element_type, call)
    return (new.reshape(call.array(0).shape), values) if isinstance(shape, TupleShape) else values


def _narrowed(bits: Array, element_type: ElementType, call: Call) -> Array:
    """The low bits as numbers of the result's type."""
    if not element_type.is_integral or element_type.bits < 8:
        raise UnsupportedError(f"{call.instruction.name}: random bits of type {element_type} are not modelled")
    dtype = numpy_dtype(element_type)
    return bits.astype(f"u{dtype.itemsize}").view(dtype)


def _words(values: Array) -> tuple[Array, Array]:
    """Low and high 32 bits."""
    return (values & _LOW).astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32)


def _joined(low: Array, high: Array) -> Array:
    return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))


# -- ThreeFry --------------------------------------------------------------------------------------------------------------


def _threefry(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """20 rounds with a key injection after every four."""
    keys = (*key, key[0] ^ key[1] ^ _THREEFRY_PARITY)
    with np.errstate(over="ignore"):
        x, y = counter[0] + keys[0], counter[1] + keys[1]
        for injection in range(1, 6):
            for rotation in _THREEFRY_ROTATIONS[(injection - 1) % 2]:
                x = x + y
                y = ((y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))) ^ x
            x = x + keys[injection % 3]
            y = y + keys[(injection + 1) % 3] + np.uint32(injection)
    return x, y


def _threefry_bits(state: Array, shape: ArrayShape) -> tuple[Array, Array]:
    key = _words(state[:1])
    if shape.element_type.bits == 64:
        count = shape.element_count
        x, y = _threefry(key, _words(_counters(state[1], count)))
        return _advanced(state, count), _joined(x, y).reshape(shape.dimensions)
    sizes = list(shape.dimensions) or [1]
    axis = next((d for d, size in enumerate(sizes) if size % 2 == 0), int(np.argmax(sizes)))
    half = [-(-size // 2) if d == axis else size for d, size in enumerate(sizes)]
    count = math.prod(half)
    x, y = _threefry(key, _words(_counters(state[1], count)))
    pairs = np.stack([x.reshape(half), y.reshape(half)], axis=axis + 1)
    whole = pairs.reshape([2 * size if d == axis else size for d, size in enumerate(half)])
    cut = whole[tuple(slice(0, size) for size in sizes)]
    return _advanced(state, count), cut.reshape(shape.dimensions)


def _counters(first: np.uint64, count: int) -> Array:
    with np.errstate(over="ignore"):
        return np.arange(count, dtype=np.uint64) + first


def _advanced(state: Array, count: int) -> Array:
    new = state.copy()
    with np.errstate(over="ignore"):
        new[1] = new[1] + np.uint64(count)
    return new


# -- Philox ----------------------------------------------------------------------------------------------------------------


def _philox(key: tuple[int, int], counter: tuple[Array, ...]) -> tuple[Array, ...]:
    """10 rounds; the key moves after each."""
    k0, k1 = key
    x0, x1, x2, x3 = (part.astype(np.uint64) for part in counter)
    for _ in range(10):
        a, b = x0 * _PHILOX_MULTIPLIERS[0], x2 * _PHILOX_MULTIPLIERS[1]
        x0, x1, x2, x3 = (
            (b >> np.uint64(32)) ^ x1 ^ np.uint64(k0),
            b & _LOW,
            (a >> np.uint64(32)) ^ x3 ^ np.uint64(k1),
            a & _LOW,
        )
        k0, k1 = (k0 + _PHILOX_BUMPS[0]) & 0xFFFFFFFF, (k1 + _PHILOX_BUMPS[1]) & 0xFFFFFFFF
    return x0, x1, x2, x3


def _philox_bits(state: Array, shape: ArrayShape) -> tuple[Array, Array]:
    """State is the key, the counter's low word and (with three numbers) its high word, which otherwise is the key."""
    is_wide = shape.element_type.bits == 64
    blocks = -(-shape.element_count * (2 if is_wide else 1) // 4)
    key = int(state[0])
    low, high = int(state[1]), int(state[2]) if len(state) == 3 else key
    counters = _philox_counters(low, high, blocks)
    words = np.stack(_philox((key & 0xFFFFFFFF, key >> 32), counters), axis=-1).reshape(-1)
    bits = words[0::2] | (words[1::2] << np.uint64(32)) if is_wide else words
    after = (low | high << 64) + blocks
    new = state.copy()
    new[1] = np.uint64(after & (2**64 - 1))
    if len(state) == 3:
        new[2] = np.uint64((after >> 64) & (2**64 - 1))
    return new, bits[: shape.element_count].reshape(shape.dimensions)


def _philox_counters(low: int, high: int, blocks: int) -> tuple[Array, ...]:
    """The four words of each block's 128-bit counter."""
    offsets = np.arange(blocks, dtype=np.uint64)
    with np.errstate(over="ignore"):
        lows = offsets + np.uint64(low)
        highs = np.where(lows < offsets, np.uint64((high + 1) & (2**64 - 1)), np.uint64(high))
    return (*_words(lows), *_words(highs))
