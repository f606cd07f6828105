"""Replica groups in XLA's three spellings."""

import pytest

from layoutsim.errors import ShapeError
from layoutsim.ir.replica_groups import (
    DeviceMesh,
    IotaReplicaGroups,
    ListReplicaGroups,
    MeshAxis,
    MeshReplicaGroups,
    canonical_iota,
)


def test_iota_groups_are_the_rows_of_a_transposed_range() -> None:
    # arange(8).reshape(2, 4).T.reshape(4, 2)
    assert IotaReplicaGroups(4, 2, (2, 4), (1, 0)).groups() == ((0, 4), (1, 5), (2, 6), (3, 7))


@pytest.mark.parametrize(
    ("reshape", "transpose", "canonical"),
    [
        ((2, 2, 2), (2, 0, 1), ((4, 2), (1, 0))),
        ((1, 8), (0, 1), ((8,), (0,))),
        ((2, 3, 4), (0, 1, 2), ((24,), (0,))),
        ((2, 1, 4), (2, 1, 0), ((2, 4), (1, 0))),
        ((1, 1), (1, 0), ((1,), (0,))),
    ],
)
def test_canonical_iota(reshape: tuple[int, ...], transpose: tuple[int, ...], canonical: object) -> None:
    assert canonical_iota(reshape, transpose) == canonical


def test_canonical_iota_means_the_same_groups() -> None:
    long = IotaReplicaGroups(4, 2, (2, 2, 2), (2, 0, 1))

    assert IotaReplicaGroups.canonical(4, 2, (2, 2, 2), (2, 0, 1)).groups() == long.groups()


def test_iota_groups_must_cover_the_devices() -> None:
    with pytest.raises(ShapeError, match="2 groups of 3 are not the 8 devices"):
        IotaReplicaGroups(2, 3, (8,), (0,))


def test_mesh_groups_vary_the_listed_axes() -> None:
    mesh = DeviceMesh((("a", 2), ("b", 4)))

    assert MeshReplicaGroups(mesh, (MeshAxis("b"),)).groups() == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert MeshReplicaGroups(mesh, (MeshAxis("a"),)).groups() == ((0, 4), (1, 5), (2, 6), (3, 7))


def test_a_sub_axis_splits_its_axis() -> None:
    # b = 4 split into (pre 2, size 2): b = 2 * high + low, the sub-axis is low
    mesh = DeviceMesh((("a", 2), ("b", 4)))

    assert MeshReplicaGroups(mesh, (MeshAxis("b", 2, 2),)).groups() == ((0, 1), (2, 3), (4, 5), (6, 7))


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        (ListReplicaGroups(), "{}"),
        (ListReplicaGroups(((0, 1), (2, 3))), "{{0,1},{2,3}}"),
        (IotaReplicaGroups(2, 4, (8,), (0,)), "[2,4]<=[8]"),
        (IotaReplicaGroups(2, 4, (4, 2), (1, 0)), "[2,4]<=[4,2]T(1,0)"),
        (MeshReplicaGroups(DeviceMesh((("a", 2), ("b", 4))), (MeshAxis("b", 1, 2),)), "mesh['a'=2,'b'=4] {'b':(1)2}"),
    ],
)
def test_text(groups: object, text: str) -> None:
    assert groups.to_text() == text  # type: ignore[attr-defined]
