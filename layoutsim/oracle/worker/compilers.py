"""The two real compilers: the GPU's through its plugin, for a machine that is not there, and the CPU's through jaxlib."""

# jax and jaxlib are no dependencies of layoutsim, and jaxlib has no types.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, cast

from c_interface import Plugin
from module_text import Order, as_replicas, entry_orders


def release() -> str:
    """The version of jax that the compilers belong to."""
    import jax

    return str(jax.__version__)


class Compiler(Protocol):
    """Takes HLO text; what the passes did is in the dump folder afterwards, whether or not compiling succeeded."""

    def compile(self, text: str) -> dict[str, int]:
        """Sizes in bytes by kind; raises the compiler's own errors."""
        ...


class GpuCompiler:
    """A module goes in as a proto, so names, copies and inner layouts arrive as written."""

    def __init__(self, target: Path, device_count: int) -> None:
        import jax_plugins.xla_cuda12 as package

        library = Path(str(package.__file__)).with_name("xla_cuda_plugin.so")
        topology = _topology(device_count)
        options = {"target_config": target.read_text(), "topology": topology}
        self._plugin = Plugin(str(library), topology, options)
        self._device_count = device_count

    def compile(self, text: str) -> dict[str, int]:
        text = as_replicas(text) if self._device_count > 1 else text
        proto, options = _proto_and_options(text, self._device_count)
        return self._plugin.compile(proto, options.SerializeAsString())


class CpuCompiler:
    """A module goes in as StableHLO, which renames instructions, flattens tuples and drops inner layouts."""

    def __init__(self, device_count: int) -> None:
        import jax

        self._devices: list[Any] = jax.devices("cpu")[:device_count]

    def compile(self, text: str) -> dict[str, int]:
        from jaxlib._jax import mlir

        text = as_replicas(text) if len(self._devices) > 1 else text
        proto, options = _proto_and_options(text, len(self._devices))
        program = mlir.hlo_to_stablehlo(proto)
        stats = self._devices[0].client.compile_and_load(program, self._devices, options).get_compiled_memory_stats()
        kinds = ("generated_code", "argument", "output", "alias", "temp")
        return {kind: getattr(stats, f"{kind}_size_in_bytes") for kind in kinds}


def _topology(device_count: int) -> str:
    """Slices, hosts and devices a host, as the GPU topology is spelled."""
    if device_count > 8 and device_count % 8 == 0:
        return f"1x{device_count // 8}x8"
    return f"1x1x{device_count}"


def _proto_and_options(text: str, device_count: int) -> tuple[bytes, Any]:
    import numpy as np
    from jax._src import compiler
    from jaxlib import _hlo as hlo

    proto: bytes = hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    assignment = np.arange(device_count).reshape(device_count, 1)
    options = compiler.get_compile_options(num_replicas=device_count, num_partitions=1, device_assignment=assignment)
    options.executable_build_options.use_spmd_partitioning = False
    options.executable_build_options.use_shardy_partitioner = False
    if orders := entry_orders(text):
        program = hlo.XlaComputation(proto).program_shape()
        arguments, results = map(iter, orders)
        options.argument_layouts = [_laid_out(shape, arguments) for shape in program.parameter_shapes()]
        options.executable_build_options.result_layout = _laid_out(program.result_shape(), results)
    return proto, options


def _laid_out(shape: Any, orders: Any) -> Any:
    """``shape`` with the next orders on its array leaves."""
    from jaxlib import _hlo as hlo

    if shape.is_tuple():
        return hlo.Shape.tuple_shape([_laid_out(part, orders) for part in shape.tuple_shapes()])
    if not shape.is_array():
        return shape
    order = cast("Order", next(orders))
    return hlo.Shape.array_shape(shape.element_type(), shape.dimensions(), order) if order is not None else shape
