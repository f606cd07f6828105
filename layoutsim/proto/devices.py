"""Who takes part: replica groups, meshes and axes as protos (text spec, sections 5.1, 7.4 and 7.5)."""

from __future__ import annotations

import math

from layoutsim.errors import ParseError, ShapeError
from layoutsim.ir.replica_groups import (
    DeviceMesh,
    IotaReplicaGroups,
    ListReplicaGroups,
    MeshAxis,
    MeshReplicaGroups,
    ReplicaGroups,
)
from layoutsim.proto.schema import Message


def read_replica_groups(instruction: Message) -> ReplicaGroups:
    """The groups of a collective, in whichever of the four fields they stand.

    Raises:
        ParseError: the numbers of an iota do not fit each other.
    """
    if instruction.HasField("iota_collective_device_list"):
        return _read_iota(instruction.iota_collective_device_list)
    if instruction.HasField("mesh_axes_replica_group_list"):
        proto = instruction.mesh_axes_replica_group_list
        mesh = read_mesh(proto.mesh)
        return MeshReplicaGroups(mesh, tuple(read_axis(axis, mesh) for axis in proto.axes))
    groups = instruction.collective_device_list.replica_groups or instruction.replica_groups
    return ListReplicaGroups(tuple(tuple(group.replica_ids) for group in groups))


def _read_iota(proto: Message) -> IotaReplicaGroups:
    if any(size <= 0 for size in proto.iota_reshape_dims):
        raise ParseError(f"replica groups have sizes {list(proto.iota_reshape_dims)}, expected positive ones")
    try:
        return IotaReplicaGroups.canonical(
            proto.num_replica_groups,
            proto.num_devices_per_group,
            tuple(proto.iota_reshape_dims),
            tuple(proto.iota_transpose_perm),
        )
    except ShapeError as error:
        raise ParseError(f"replica groups: {error}") from error


def write_replica_groups(groups: ReplicaGroups, instruction: Message) -> None:
    """Put ``groups`` into a collective, in the form they have."""
    if isinstance(groups, IotaReplicaGroups):
        proto = instruction.iota_collective_device_list
        proto.num_replica_groups = groups.group_count
        proto.num_devices_per_group = groups.group_size
        proto.iota_reshape_dims.extend(groups.reshape)
        proto.iota_transpose_perm.extend(groups.transpose)
    elif isinstance(groups, MeshReplicaGroups):
        proto = instruction.mesh_axes_replica_group_list
        write_mesh(groups.mesh, proto.mesh)
        for axis in groups.axes:
            write_axis(axis, groups.mesh, proto.axes.add())
    else:
        instruction.collective_device_list.SetInParent()
        for group in groups.groups():
            instruction.collective_device_list.replica_groups.add(replica_ids=group)


def read_mesh(proto: Message) -> DeviceMesh:
    """The mesh of a ``MeshProto`` with axes.

    Raises:
        ParseError: axis sizes, device ids and the iota do not fit each other.
    """
    axes = tuple((axis.name, axis.size) for axis in proto.axes)
    ids = tuple(proto.device_ids)
    reshape = tuple(proto.iota_transform.reshape_dims)
    transpose = tuple(proto.iota_transform.transpose_perm)
    count = math.prod(size for _, size in axes)
    if count <= 0 or (ids and len(ids) != count) or (reshape and math.prod(reshape) != count):
        raise ParseError(f"a mesh of {count} devices does not fit its {len(ids) or math.prod(reshape)} device ids")
    if sorted(transpose) != list(range(len(reshape))):
        raise ParseError(f"a mesh is transposed by {transpose}, which is not a permutation of {len(reshape)} dimensions")
    return DeviceMesh(axes, ids, *((reshape, transpose) if len(reshape) > 1 else ((), ())))


def write_mesh(mesh: DeviceMesh, proto: Message) -> None:
    """Fill a ``MeshProto``."""
    for name, size in mesh.axes:
        proto.axes.add(name=name, size=size)
    proto.device_ids.extend(mesh.device_ids)
    proto.iota_transform.reshape_dims.extend(mesh.iota_reshape)
    proto.iota_transform.transpose_perm.extend(mesh.iota_transpose)
    if not mesh.iota_reshape:
        proto.ClearField("iota_transform")


def read_axis(proto: Message, mesh: DeviceMesh) -> MeshAxis:
    """One axis, or a part of one.

    Raises:
        ParseError: the mesh has no such axis, or the part does not divide it.
    """
    if not 0 <= proto.mesh_axis_index < len(mesh.axes):
        raise ParseError(f"axis number {proto.mesh_axis_index} of a mesh with {len(mesh.axes)} axes")
    index: int = proto.mesh_axis_index
    name, size = mesh.axes[index]
    if not proto.HasField("sub_axis_info"):
        return MeshAxis(name)
    part = proto.sub_axis_info
    if part.pre_size <= 0 or part.size <= 0 or size % (part.pre_size * part.size):
        raise ParseError(f"part ({part.pre_size}){part.size} does not divide axis {name} of size {size}")
    return MeshAxis(name, part.pre_size, part.size)


def write_axis(axis: MeshAxis, mesh: DeviceMesh, proto: Message) -> None:
    """Fill an ``AxisRefProto``."""
    proto.mesh_axis_index = [name for name, _ in mesh.axes].index(axis.name)
    if axis.pre_size is not None and axis.size is not None:
        proto.sub_axis_info.pre_size = axis.pre_size
        proto.sub_axis_info.size = axis.size
