"""Replica groups: which devices take part in a collective together, in XLA's three spellings (text spec, section 5.1).

All three have the same meaning, a list of groups of ids (:meth:`groups`); each keeps the form it was written in.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Protocol

import numpy as np
from attrs import field, frozen

from layoutsim.errors import ShapeError

Groups = tuple[tuple[int, ...], ...]

MAX_DEVICES = 1 << 24
"""A number of devices from which on a short text would take gigabytes once its groups are listed."""


class ReplicaGroups(Protocol):
    """What every spelling offers. An empty list means one group of everybody."""

    def groups(self) -> Groups: ...

    @property
    def group_size(self) -> int:
        """Size of the first group; 0 when there is none."""
        ...

    def to_text(self) -> str: ...


@frozen(cache_hash=True)
class ListReplicaGroups:
    """``{{0,1},{2,3}}``."""

    lists: Groups = ()

    def groups(self) -> Groups:
        return self.lists

    @property
    def group_size(self) -> int:
        return len(self.lists[0]) if self.lists else 0

    def to_text(self) -> str:
        return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in self.lists) + "}"


def canonical_iota(reshape: tuple[int, ...], transpose: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Drop size-1 dimensions and merge neighbours that stay adjacent and in order (text spec, 1.11).

    ``canonical_iota((2, 2, 2), (2, 0, 1)) == ((4, 2), (1, 0))``.
    """
    kept = [d for d in range(len(reshape)) if reshape[d] != 1]
    order = [kept.index(d) for d in transpose if reshape[d] != 1]
    sizes = [reshape[d] for d in kept]
    runs: list[list[int]] = []
    for d in order:
        if runs and runs[-1][-1] + 1 == d:
            runs[-1].append(d)
        else:
            runs.append([d])
    by_source = sorted(runs)
    merged = tuple(math.prod(sizes[d] for d in run) for run in by_source)
    if not merged:
        return (1,), (0,)
    return merged, tuple(by_source.index(run) for run in runs)


@frozen(cache_hash=True)
class IotaReplicaGroups:
    """``[groups,size]<=[reshape]T(transpose)``: ``arange`` reshaped, transposed, and cut into equal groups.

    Raises:
        ShapeError: the two sides name different numbers of devices, or too many; or ``transpose`` is not a permutation.
    """

    group_count: int
    group_size: int
    reshape: tuple[int, ...] = field(converter=tuple)
    transpose: tuple[int, ...] = field(converter=tuple)

    def __attrs_post_init__(self) -> None:
        if sorted(self.transpose) != list(range(len(self.reshape))):
            raise ShapeError(f"T{self.transpose} is not a permutation of the dimensions of {list(self.reshape)}")
        if min((self.group_count, self.group_size, *self.reshape)) < 1:
            raise ShapeError("numbers of groups and devices must be at least 1")
        if max(math.prod(self.reshape), self.group_count, self.group_size) > MAX_DEVICES:
            raise ShapeError(f"more than {MAX_DEVICES:,} devices are not modelled")
        if self.group_count * self.group_size != math.prod(self.reshape):
            raise ShapeError(
                f"{self.group_count} groups of {self.group_size} are not the {math.prod(self.reshape)} devices of "
                f"{list(self.reshape)}"
            )

    @staticmethod
    def canonical(group_count: int, group_size: int, reshape: tuple[int, ...], transpose: tuple[int, ...]) -> IotaReplicaGroups:
        if sorted(transpose) == list(range(len(reshape))):
            reshape, transpose = canonical_iota(reshape, transpose)
        return IotaReplicaGroups(group_count, group_size, reshape, transpose)

    def groups(self) -> Groups:
        ids = np.arange(math.prod(self.reshape)).reshape(self.reshape).transpose(self.transpose)
        rows: list[list[int]] = ids.reshape(self.group_count, self.group_size).tolist()
        return tuple(map(tuple, rows))

    def to_text(self) -> str:
        permuted = f"T({','.join(map(str, self.transpose))})" if len(self.reshape) > 1 else ""
        return f"[{self.group_count},{self.group_size}]<=[{','.join(map(str, self.reshape))}]{permuted}"


@frozen(cache_hash=True)
class MeshAxis:
    """``'name'``, or a part of an axis: ``'name':(pre_size)size``."""

    name: str
    pre_size: int | None = None
    size: int | None = None

    def to_text(self) -> str:
        part = "" if self.pre_size is None else f":({self.pre_size}){self.size}"
        return f"'{self.name}'{part}"


@frozen(cache_hash=True)
class DeviceMesh:
    """``mesh['a'=2,'b'=4]`` with device ids: none for 0, 1, 2, ..., explicit, or an iota with a transpose."""

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] = ()
    iota_reshape: tuple[int, ...] = ()
    iota_transpose: tuple[int, ...] = ()

    @property
    def device_count(self) -> int:
        return math.prod(size for _, size in self.axes)

    def devices(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """Device ids in the shape of the axes."""
        sizes = tuple(size for _, size in self.axes)
        if self.device_ids:
            return np.array(self.device_ids, dtype=np.int64).reshape(sizes)
        ids = np.arange(self.device_count, dtype=np.int64)
        if self.iota_reshape:
            ids = ids.reshape(self.iota_reshape).transpose(self.iota_transpose)
        return ids.reshape(sizes)

    def to_text(self) -> str:
        axes = ",".join(f"'{name}'={size}" for name, size in self.axes)
        ids = ""
        if self.device_ids:
            ids = f", device_ids=({','.join(map(str, self.device_ids))})"
        elif self.iota_reshape:
            reshape, transpose = (",".join(map(str, x)) for x in (self.iota_reshape, self.iota_transpose))
            ids = f", device_ids=([{reshape}]T({transpose}))"
        return f"mesh[{axes}]{ids}"


@frozen(cache_hash=True)
class MeshReplicaGroups:
    """``mesh['a'=2,'b'=4] {'b'}``: a group varies the listed axes, in that order, and fixes the rest."""

    mesh: DeviceMesh
    axes: tuple[MeshAxis, ...]

    def groups(self) -> Groups:
        devices = self.mesh.devices()
        splits, listed = self._split_axes()
        fine = devices.reshape([size for sizes in splits for size in sizes])
        rest = [d for d in range(fine.ndim) if d not in listed]
        group_size = math.prod(fine.shape[d] for d in listed)
        rows: list[list[int]] = fine.transpose(rest + listed).reshape(-1, group_size).tolist()
        return tuple(map(tuple, rows))

    def _split_axes(self) -> tuple[list[list[int]], list[int]]:
        """Sizes into which each mesh axis is cut, and the fine dimensions that the listed axes cover, in their order."""
        cuts = {name: {1, size} for name, size in self.mesh.axes}
        for axis in self.axes:
            if axis.pre_size is not None and axis.size is not None:
                cuts[axis.name] |= {axis.pre_size, axis.pre_size * axis.size}
        bounds = {name: sorted(values) for name, values in cuts.items()}
        splits = [[hi // lo for lo, hi in pairwise(b)] or [1] for b in bounds.values()]
        first = dict(zip(bounds, np.cumsum([0, *map(len, splits)]).tolist(), strict=False))
        sizes = dict(self.mesh.axes)
        listed: list[int] = []
        for axis in self.axes:
            lo = axis.pre_size or 1
            hi = lo * axis.size if axis.size is not None else sizes[axis.name]
            steps = bounds[axis.name]
            listed += [first[axis.name] + i for i in range(len(steps) - 1) if lo <= steps[i] < hi]
        return splits, listed

    @property
    def group_size(self) -> int:
        sizes = dict(self.mesh.axes)
        return math.prod(sizes[a.name] if a.size is None else a.size for a in self.axes)

    def to_text(self) -> str:
        return f"{self.mesh.to_text()} {{{','.join(axis.to_text() for axis in self.axes)}}}"
