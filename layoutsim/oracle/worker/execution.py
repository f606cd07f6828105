"""Run a program that the CPU compiler compiled, on arguments in a file; the results go to another one.

Both are ``.npz`` files whose arrays are called ``DEVICE/LEAF``. Types that numpy does not have are widened in them: floats
below 32 bits that are no ``f16`` to ``float32``, integers below eight bits to ``int8`` and ``uint8``.
"""

# jax is no dependency of layoutsim, and has no types.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def execute(loaded: Any, devices: Sequence[Any], types: Sequence[str], arguments: Path, results: Path) -> None:
    """Run ``loaded`` once.

    Args:
        types: element type of each argument leaf, as HLO spells it.
        arguments: with every leaf for each device.
    """
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.config.update("jax_enable_x64", True)
    # Each device's array differs, and only the executable, which does not look, could tell that from a replicated one.
    everywhere = NamedSharding(Mesh(np.array(devices), ("device",)), PartitionSpec())
    with np.load(arguments) as given:
        inputs: list[Any] = []
        for leaf, name in enumerate(types):
            shards = [jax.device_put(given[f"{d}/{leaf}"].astype(_dtype(name)), device) for d, device in enumerate(devices)]
            inputs.append(jax.make_array_from_single_device_arrays(shards[0].shape, everywhere, shards))
    outputs = loaded.execute_sharded(inputs).disassemble_into_single_device_arrays()
    found = {f"{d}/{leaf}": _widened(shard) for leaf, shards in enumerate(outputs) for d, shard in enumerate(shards)}
    np.savez(results, **found)


def _dtype(name: str) -> Any:
    """The type of numpy or ``ml_dtypes`` for a type of HLO."""
    import ml_dtypes
    import numpy as np

    if name == "pred":
        return np.dtype(bool)
    if name == "bf16":
        return np.dtype(ml_dtypes.bfloat16)
    if found := re.fullmatch(r"f(\d)(e.*)", name):
        return np.dtype(getattr(ml_dtypes, f"float{found[1]}_{found[2]}"))
    kind, bits = name[0], int(name[1:])
    if bits < 8:
        return np.dtype(getattr(ml_dtypes, ("int" if kind == "s" else "uint") + str(bits)))
    return np.dtype({"s": "int", "u": "uint", "f": "float", "c": "complex"}[kind] + str(bits))


def _widened(shard: Any) -> Any:
    import numpy as np

    value = np.asarray(shard)
    if value.dtype.kind in "biufc" and value.dtype.isbuiltin == 1:
        return value
    name = value.dtype.name
    return value.astype(np.float32 if "float" in name else np.uint8 if name.startswith("u") else np.int8)
