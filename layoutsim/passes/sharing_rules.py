"""The option of passes that names a backend's rules on sharing memory."""

from __future__ import annotations

from enum import Enum

from layoutsim.analysis.alias_rules import CPU_RULES, DEFAULT_RULES, GPU_RULES, NVIDIA_RULES, AliasRules


class SharingRules(Enum):
    """Whose rules say which operations work in place, and which results may take over an operand's memory."""

    DEFAULT = "default"
    CPU = "cpu"
    GPU = "gpu"
    NVIDIA = "nvidia"

    @property
    def rules(self) -> AliasRules:
        return _RULES[self]


_RULES = {
    SharingRules.DEFAULT: DEFAULT_RULES,
    SharingRules.CPU: CPU_RULES,
    SharingRules.GPU: GPU_RULES,
    SharingRules.NVIDIA: NVIDIA_RULES,
}
