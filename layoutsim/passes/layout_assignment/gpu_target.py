"""What the GPU rules need to know of a device (layout spec, 6.2 and 6.3)."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class GpuTarget(StrEnum):
    """A device to compile for."""

    P100 = "p100"
    V100 = "v100"
    A100 = "a100"
    H100 = "h100"
    B200 = "b200"
    RDNA = "rdna"
    CDNA = "cdna"
    CDNA_NHWC = "cdna-nhwc"
    """With ``TF_USE_ROCM_NHWC`` set."""

    @property
    def facts(self) -> GpuFacts:
        return _FACTS[self]


@frozen
class GpuFacts:
    """What the rules ask of a device.

    Attributes:
        capability: major number of the CUDA compute capability; 0 for ROCm devices.
        rocm_nhwc: a ROCm device has NHWC convolutions, and XLA was told to use them.
    """

    capability: int
    rocm_nhwc: bool = False

    @property
    def is_cuda(self) -> bool:
        return self.capability > 0

    @property
    def is_blackwell(self) -> bool:
        return self.capability >= 10


_FACTS = {
    GpuTarget.P100: GpuFacts(6),
    GpuTarget.V100: GpuFacts(7),
    GpuTarget.A100: GpuFacts(8),
    GpuTarget.H100: GpuFacts(9),
    GpuTarget.B200: GpuFacts(10),
    GpuTarget.RDNA: GpuFacts(0),
    GpuTarget.CDNA: GpuFacts(0),
    GpuTarget.CDNA_NHWC: GpuFacts(0, rocm_nhwc=True),
}
