"""The two real compilers: the GPU's through its plugin, for a machine that is not there, and the CPU's through jaxlib."""

# jax and jaxlib are no dependencies of layoutsim, and jaxlib has no types.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from c_interface import Plugin
from execution import execute
from module_text import EntryOrders, Order, as_replicas, entry_orders
from wire import (
    BUILD_OPTIONS_RESULT_LAYOUT,
    MODULE_HOST_PROGRAM_SHAPE,
    OPTIONS_ARGUMENT_LAYOUTS,
    OPTIONS_BUILD_OPTIONS,
    PROGRAM_SHAPE_PARAMETERS,
    PROGRAM_SHAPE_RESULT,
    Edit,
    edit_fields,
    without_layouts,
)


def preload() -> None:
    """Import what the compilers need, so that forks have it already; starts no threads."""
    for name in ("jax._src.compiler", "jax._src.interpreters.mlir"):
        importlib.import_module(name)
    _hlo()


def _hlo() -> Any:
    """The part of jaxlib that reads HLO; before 0.8 it was no module of its own."""
    try:
        from jaxlib import _hlo as hlo
    except ImportError:
        from jaxlib import _jax as hlo
    return hlo


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
        hlo = _hlo()
        text = as_replicas(text) if self._device_count > 1 else text
        proto: bytes = hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
        options = _options(self._device_count)
        orders = entry_orders(text)
        if orders is None:
            return self._plugin.compile(proto, options.SerializeAsString())
        program = hlo.XlaComputation(proto).program_shape()
        arguments, results = map(iter, orders)
        options.argument_layouts = [_laid_out(shape, arguments) for shape in program.parameter_shapes()]
        options.executable_build_options.result_layout = _laid_out(program.result_shape(), results)
        return self._plugin.compile(*_with_free_layouts(proto, options.SerializeAsString(), orders))


class CpuCompiler:
    """A module goes in as StableHLO, which renames instructions, flattens tuples and drops inner layouts."""

    def __init__(self, device_count: int) -> None:
        import jax

        self._devices: list[Any] = jax.devices("cpu")[:device_count]

    def compile(self, text: str) -> dict[str, int]:
        stats = self._loaded(text, _options(len(self._devices))).get_compiled_memory_stats()
        kinds = ("generated_code", "argument", "output", "alias", "temp")
        return {kind: getattr(stats, f"{kind}_size_in_bytes") for kind in kinds}

    def execute(self, text: str, types: Sequence[str], arguments: Path, results: Path) -> None:
        """Compile and run; intermediate values are rounded to their types, as the module says."""
        options = _options(len(self._devices))
        options.env_option_overrides = [("xla_allow_excess_precision", "False")]
        execute(self._loaded(text, options), self._devices, types, arguments, results)

    def _loaded(self, text: str, options: Any) -> Any:
        from jax._src.interpreters.mlir import make_ir_context
        from jaxlib._jax import mlir
        from jaxlib.mlir import ir

        text = as_replicas(text) if len(self._devices) > 1 else text
        program = mlir.hlo_to_stablehlo(_hlo().hlo_module_from_text(text).as_serialized_hlo_module_proto())
        if orders := entry_orders(text):
            with make_ir_context():
                module = ir.Module.parse(program)
                _set_layout_modes(module, *orders)
                program = module.operation.get_asm(enable_debug_info=True)
        return self._devices[0].client.compile_and_load(program, self._devices, options)


def _topology(device_count: int) -> str:
    """Slices, hosts and devices a host, as the GPU topology is spelled."""
    if device_count > 8 and device_count % 8 == 0:
        return f"1x{device_count // 8}x8"
    return f"1x1x{device_count}"


def _options(device_count: int) -> Any:
    import numpy as np
    from jax._src import compiler

    assignment = np.arange(device_count).reshape(device_count, 1)
    options = compiler.get_compile_options(num_replicas=device_count, num_partitions=1, device_assignment=assignment)
    options.executable_build_options.use_spmd_partitioning = False
    options.executable_build_options.use_shardy_partitioner = False
    return options


def _laid_out(shape: Any, orders: Iterator[Order]) -> Any:
    """``shape`` with the next orders on its array leaves."""
    hlo = _hlo()
    if shape.is_tuple():
        return hlo.Shape.tuple_shape([_laid_out(part, orders) for part in shape.tuple_shapes()])
    if not shape.is_array():
        return shape
    order = next(orders)
    return hlo.Shape.array_shape(shape.element_type(), shape.dimensions(), order) if order is not None else shape


def _with_free_layouts(proto: bytes, options: bytes, orders: EntryOrders) -> tuple[bytes, bytes]:
    """Module and options in which leaves without an order have no layout, in the program shape and in the wish."""

    def edits() -> tuple[Edit, Edit]:
        arguments, results = (iter([order is not None for order in part]) for part in orders)
        return (lambda shape: without_layouts(shape, arguments)), (lambda shape: without_layouts(shape, results))

    argument, result = edits()
    program = {PROGRAM_SHAPE_PARAMETERS: argument, PROGRAM_SHAPE_RESULT: result}
    proto = edit_fields(proto, {MODULE_HOST_PROGRAM_SHAPE: lambda shape: edit_fields(shape, program)})
    argument, result = edits()
    build = {BUILD_OPTIONS_RESULT_LAYOUT: result}
    options = edit_fields(
        options,
        {OPTIONS_ARGUMENT_LAYOUTS: argument, OPTIONS_BUILD_OPTIONS: lambda message: edit_fields(message, build)},
    )
    return proto, options


def _set_layout_modes(module: Any, arguments: list[Order], results: list[Order]) -> None:
    """The same wish as attributes of ``@main``, which is how StableHLO carries it; flattened tuples have none."""
    from jaxlib.mlir import ir

    main = next(function for function in module.body if ir.StringAttr(function.attributes["sym_name"]).value == "main")
    for key, orders, types in [
        ("arg_attrs", arguments, main.type.inputs),
        ("res_attrs", results, main.type.results),
    ]:
        arrays = [isinstance(type_, ir.RankedTensorType) for type_ in types]
        if sum(arrays) != len(orders):
            continue
        rest = iter(orders)
        modes = [ir.StringAttr.get(_layout_mode(next(rest) if is_array else ())) for is_array in arrays]
        main.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get({"mhlo.layout_mode": mode}) for mode in modes])


def _layout_mode(order: Order) -> str:
    if order is None:
        return "auto"
    return f"{{{','.join(map(str, order))}}}" if order else "default"
