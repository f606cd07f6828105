"""Shape inference: the result shape of any opcode from its operands' shapes (text spec, section 3).

Every opcode has a rule; the rules stand by family in ``elementwise``, ``movement``, ``indexing``, ``contraction``,
``reduction``, ``control`` and ``collective``.
"""

from layoutsim.infer import collective, contraction, control, elementwise, indexing, movement, reduction
from layoutsim.infer.collective import shard_count
from layoutsim.infer.elementwise import default_compare_type
from layoutsim.infer.registry import CAN_INFER, RULES, ProgramShape, Site, infer_shape, infer_site, program_shape
from layoutsim.infer.shapes import (
    compatible_up_to_precision,
    component_type,
    higher_type,
    new_array,
    same_type_up_to_precision,
)
from layoutsim.infer.windows import dilated, window_size

__all__ = [
    "CAN_INFER",
    "RULES",
    "ProgramShape",
    "Site",
    "collective",
    "compatible_up_to_precision",
    "component_type",
    "contraction",
    "control",
    "default_compare_type",
    "dilated",
    "elementwise",
    "higher_type",
    "indexing",
    "infer_shape",
    "infer_site",
    "movement",
    "new_array",
    "program_shape",
    "reduction",
    "same_type_up_to_precision",
    "shard_count",
    "window_size",
]
