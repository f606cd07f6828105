"""Arithmetic of layouts: pure functions on sizes and ``minor_to_major`` orders (layout spec, section 2).

Orders are tuples of dimension numbers, most minor first. Everything here is cached: a module has few distinct shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from math import prod

from layoutsim.errors import LayoutError
from layoutsim.ir import layout

Order = tuple[int, ...]
Sizes = tuple[int, ...]
Cut = tuple[int, int]


def default_order(rank: int) -> Order:
    """``(rank-1, ..., 1, 0)``."""
    return tuple(range(rank - 1, -1, -1))


def move_to_major(order: Order, dimension: int) -> Order:
    """The order with ``dimension`` most major, the others as they were."""
    return (*(d for d in order if d != dimension), dimension)


def move_to_minor(order: Order, dimension: int) -> Order:
    """The order with ``dimension`` most minor, the others as they were."""
    return (dimension, *(d for d in order if d != dimension))


@cache
def keep_dimensions(order: Order, kept: Sizes) -> Order:
    """The order of the dimensions in ``kept`` (ascending), renumbered from 0."""
    number = {d: i for i, d in enumerate(sorted(kept))}
    return tuple(number[d] for d in order if d in number)


def delete_dimensions(order: Order, deleted: Sequence[int]) -> Order:
    """The order without ``deleted``, the others renumbered from 0."""
    return keep_dimensions(order, tuple(d for d in range(len(order)) if d not in deleted))


def append_minor(order: Order) -> Order:
    """The order of an array with one more dimension behind the others, laid out most minor."""
    return (len(order), *order)


def true_rank(sizes: Sizes) -> int:
    """Number of dimensions whose size is not 1."""
    return sum(size != 1 for size in sizes)


@cache
def common_factors(a: Sizes, b: Sizes) -> tuple[Cut, ...]:
    """Cut points ``(i, j)`` such that between consecutive ones the sizes in ``a`` and in ``b`` have equal products.

    The groups are as small as possible. With zeros in the sizes there is at most one group behind the common prefix.
    """
    assert prod(a) == prod(b), f"{a} and {b} differ in element count"
    if a == b:
        return tuple((i, i) for i in range(len(a) + 1))
    prefix = 0
    while prefix < min(len(a), len(b)) and a[prefix] == b[prefix]:
        prefix += 1
    end = (len(a), len(b))
    rest = prod(a[prefix:])
    if rest != prod(b[prefix:]):  # zeros in the prefix hide that the rests do not match
        return ((0, 0), end)
    cuts = [(i, i) for i in range(prefix)]
    if rest == 0:
        return (*cuts, (prefix, prefix), end)
    return (*cuts, *_cuts_behind(a, b, prefix))


def _cuts_behind(a: Sizes, b: Sizes, prefix: int) -> list[Cut]:
    """Cuts from ``(prefix, prefix)`` on: take from the side whose product is smaller, cut whenever they meet."""
    cuts: list[Cut] = []
    i = j = prefix
    product_a = product_b = 1
    while True:
        if product_a == product_b and (not cuts or (i, j) != cuts[-1]):
            cuts.append((i, j))
        more_a, more_b = i < len(a), j < len(b)
        if not more_a and not more_b:
            return cuts
        level = product_a == product_b
        take_a = product_a < product_b or (more_a and (not more_b or (level and a[i] <= b[j])))
        take_b = product_b < product_a or (more_b and (not more_a or (level and b[j] <= a[i])))
        if take_a:
            product_a *= a[i]
            i += 1
        if take_b:
            product_b *= b[j]
            j += 1


@cache
def only_ones_change(a: Sizes, b: Sizes) -> bool:
    """Whether a reshape from ``a`` to ``b`` does nothing but insert and delete dimensions of size 1 (or 0)."""
    kept = [start for start, end in pairwise(common_factors(a, b)) if end == (start[0] + 1, start[1] + 1)]
    kept_a, kept_b = {i for i, _ in kept}, {j for _, j in kept}
    return all(size <= 1 for i, size in enumerate(a) if i not in kept_a) and all(
        size <= 1 for j, size in enumerate(b) if j not in kept_b
    )


@cache
def align(sizes: Sizes, order: Order, target: Sizes) -> Order | None:
    """The order of ``target`` that makes a reshape from ``sizes`` laid out as ``order`` a bitcast, or ``None``.

    Dimensions of size 1 in the target come most major, in descending order.
    """
    aligned = _align_real(sizes, order, target)
    if aligned is None:
        return None
    return (*aligned, *(d for d in reversed(range(len(target))) if target[d] == 1))


@cache
def align_in_place(sizes: Sizes, order: Order, target: Sizes, template: Order) -> Order | None:
    """As :func:`align`, but dimensions of size 1 stand behind the same dimension as they do in ``template``."""
    aligned = _align_real(sizes, order, target)
    if aligned is None:
        return None
    leading: list[int] = []
    following: dict[int, list[int]] = {}
    place = leading
    for d in template:
        if target[d] == 1:
            place.append(d)
        else:
            place = following[d] = []
    return (*leading, *(x for d in aligned for x in (d, *following[d])))


def _align_real(sizes: Sizes, order: Order, target: Sizes) -> Order | None:
    """The order of the target's dimensions of size other than 1, in the target's numbers.

    Raises:
        LayoutError: the order has another rank; a bitcast in the input, which XLA does not expect either, can lead to that.
    """
    if len(order) != len(sizes):
        raise LayoutError(f"layout {layout(order)} does not fit an array of rank {len(sizes)}")
    real = tuple(d for d, size in enumerate(sizes) if size != 1)
    real_target = tuple(d for d, size in enumerate(target) if size != 1)
    aligned = _align_without_ones(
        tuple(sizes[d] for d in real), keep_dimensions(order, real), tuple(target[d] for d in real_target)
    )
    return None if aligned is None else tuple(real_target[d] for d in aligned)


def _align_without_ones(sizes: Sizes, order: Order, target: Sizes) -> Order | None:
    """Every group of factors must lie in one piece, in C order; then the target's groups follow in the same order."""
    groups = list(pairwise(common_factors(sizes, target)))
    group_of = [0] * len(sizes)
    for number, ((start, _), (end, _)) in enumerate(groups):
        place = order.index(start) if start < len(sizes) else 0
        for d in range(start, end):
            group_of[d] = number
            if place < 0 or order[place] != d:
                return None
            place -= 1
    out: list[int] = []
    at = 0
    while len(out) < len(target):
        (start, target_start), (end, target_end) = groups[group_of[order[at]]]
        out += reversed(range(target_start, target_end))
        at += end - start
    return tuple(out)


def strides(sizes: Sizes, order: Order) -> tuple[int, ...]:
    """Distance in elements between neighbours along each dimension."""
    out = [0] * len(sizes)
    step = 1
    for d in order:
        out[d] = step
        step *= sizes[d]
    return tuple(out)


@cache
def reshape_is_bitcast(sizes: Sizes, order: Order, target: Sizes, target_order: Order) -> bool:
    """Whether a reshape between two laid out arrays leaves every element where it is."""
    if prod(sizes) != prod(target):
        return False
    if prod(sizes) == 0:
        return True
    return _units_agree(sizes, order, target, target_order) and _units_agree(target, target_order, sizes, order)


def _units_agree(sizes: Sizes, order: Order, target: Sizes, target_order: Order) -> bool:
    """Each index with one coordinate 1 and the rest 0 must lie at the same offset in both arrays."""
    physical, target_physical = strides(sizes, order), strides(target, target_order)
    logical = strides(sizes, default_order(len(sizes)))
    target_logical = strides(target, default_order(len(target)))
    for d, size in enumerate(sizes):
        if size <= 1:
            continue
        offset = sum(logical[d] // target_logical[e] % target[e] * target_physical[e] for e in range(len(target)))
        if offset != physical[d]:
            return False
    return True


def transpose_is_bitcast(order: Order, target_order: Order, permutation: Sizes) -> bool:
    """Whether ``target = transpose(source, permutation)`` leaves every element where it is."""
    return transpose_operand_order(target_order, permutation) == order


def transpose_operand_order(order: Order, permutation: Sizes) -> Order:
    """The operand's order that makes a transpose with result order ``order`` a bitcast."""
    return tuple(permutation[d] for d in order)


def transpose_result_order(order: Order, permutation: Sizes) -> Order:
    """The result's order that makes a transpose of an operand laid out as ``order`` a bitcast."""
    return tuple(permutation.index(d) for d in order)


@cache
def is_matrix(order: Order, batch: Sizes, rows: Sizes, columns: Sizes) -> bool:
    """Whether cuBLAS takes an array laid out so as a batch of matrices (``xla/service/gpu/matmul_utils.h``, MatrixLayout).

    Each group of dimensions must lie in one piece, in its own order, and batch dimensions must not be the most minor.
    """
    groups: list[str] = []
    at = 0
    while at < len(order):
        for name, group in (("rows", rows), ("columns", columns), ("batch", batch)):
            if group and order[at] == group[-1]:
                if order[at : at + len(group)] != group[::-1]:
                    return False
                groups.append(name)
                at += len(group)
                break
        else:
            return False
    groups += [name for name, group in (("columns", columns), ("rows", rows), ("batch", batch)) if not group]
    return groups[0] != "batch"


def equal_without_ones(sizes: Sizes, a: Order, b: Order) -> bool:
    """Whether two orders lay out an array alike, since they differ in dimensions of size 1 only."""
    return [d for d in a if sizes[d] != 1] == [d for d in b if sizes[d] != 1]
