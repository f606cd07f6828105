"""What the printer shows, and XLA's presets (text spec, section 6.1)."""

from __future__ import annotations

from enum import Enum

from attrs import frozen


class Subcomputations(Enum):
    """How called computations are shown at the instruction that calls them."""

    OFF = "off"
    NAME_ONLY = "name only"
    FULL_BODIES = "full bodies"


class ReplicaGroupForm(Enum):
    AS_WRITTEN = "as written"
    FULL_LIST = "full list"


@frozen(kw_only=True)
class PrintOptions:
    """Options of the printer under XLA's names; the defaults are XLA's.

    Attributes:
        print_large_constants: print arrays of more than ten elements, and tuples, instead of ``{...}``.
        index_comment_interval: every so many operands or tuple elements an ``/*index=N*/`` comment; 0 for none.
        canonicalize_instruction_names: ``tmp_0``, ``tmp_1``, ... in the order of printing.
        sugar_loses_names: print asynchronous operations with sugar even if their wrappers' names are lost.
        newer_xla: also print what readers before mid 2026 refuse (``is_stable`` of topk).
    """

    print_large_constants: bool = False
    subcomputations: Subcomputations = Subcomputations.NAME_ONLY
    print_metadata: bool = True
    print_backend_config: bool = True
    print_operand_shape: bool = False
    print_operand_names: bool = True
    index_comment_interval: int = 5
    print_program_shape: bool = True
    print_percent: bool = True
    print_control_dependencies: bool = True
    canonicalize_instruction_names: bool = False
    print_ids: bool = True
    replica_groups: ReplicaGroupForm = ReplicaGroupForm.AS_WRITTEN
    print_parameter_number: bool = True
    sugar_loses_names: bool = True
    newer_xla: bool = False


DEFAULT = PrintOptions()
"""What XLA prints into dumps: large constants elided."""

ROUND_TRIP = PrintOptions(print_large_constants=True, sugar_loses_names=False)
"""Nothing is lost: reading the text gives an equal module."""

SHORT_PARSABLE = PrintOptions(
    print_large_constants=True,
    print_metadata=False,
    index_comment_interval=0,
    print_program_shape=False,
    print_percent=False,
    print_control_dependencies=False,
)

CANONICAL = PrintOptions(
    subcomputations=Subcomputations.FULL_BODIES,
    print_metadata=False,
    print_backend_config=False,
    print_operand_shape=True,
    print_operand_names=False,
    index_comment_interval=0,
    print_program_shape=False,
    print_percent=False,
    print_control_dependencies=False,
    canonicalize_instruction_names=True,
)
"""For comparing instructions; not meant to be read back."""

FINGERPRINT = PrintOptions(
    subcomputations=Subcomputations.FULL_BODIES,
    print_metadata=False,
    print_backend_config=False,
    print_operand_shape=True,
    print_operand_names=False,
    index_comment_interval=0,
    print_program_shape=False,
    print_percent=False,
    print_control_dependencies=False,
    canonicalize_instruction_names=True,
    print_ids=False,
    replica_groups=ReplicaGroupForm.FULL_LIST,
)
"""As canonical, without any name; not meant to be read back."""
