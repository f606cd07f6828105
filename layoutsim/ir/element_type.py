"""Element types of HLO arrays: names, sizes and classes (``xla/xla_data.proto``; text spec, section 2.1)."""

from __future__ import annotations

from enum import StrEnum


class ElementType(StrEnum):
    """An array element type; the value is its spelling in HLO text."""

    PRED = "pred"
    S1 = "s1"
    S2 = "s2"
    S4 = "s4"
    S8 = "s8"
    S16 = "s16"
    S32 = "s32"
    S64 = "s64"
    U1 = "u1"
    U2 = "u2"
    U4 = "u4"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    F4E2M1FN = "f4e2m1fn"
    F6E2M3FN = "f6e2m3fn"
    F6E3M2FN = "f6e3m2fn"
    F8E3M4 = "f8e3m4"
    F8E4M3 = "f8e4m3"
    F8E4M3B11FNUZ = "f8e4m3b11fnuz"
    F8E4M3FN = "f8e4m3fn"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E5M2 = "f8e5m2"
    F8E5M2FNUZ = "f8e5m2fnuz"
    F8E8M0FNU = "f8e8m0fnu"
    C64 = "c64"
    C128 = "c128"

    @property
    def bits(self) -> int:
        """Width of one value in bits (``pred`` counts as 8)."""
        return _BITS[self]

    @property
    def storage_bytes(self) -> int:
        """Bytes one element takes in memory unless the layout says otherwise: sub-byte types take a whole byte."""
        return max(1, _BITS[self] // 8)

    @property
    def is_pred(self) -> bool:
        return self is ElementType.PRED

    @property
    def is_complex(self) -> bool:
        return self.value[0] == "c"

    @property
    def is_floating(self) -> bool:
        return self.value[0] == "f" or self is ElementType.BF16

    @property
    def is_integral(self) -> bool:
        """Signed and unsigned integers; ``pred`` is not integral."""
        return self.value[0] in "su"

    @property
    def is_signed(self) -> bool:
        """Signed integers and every floating type; complex types are not."""
        return self.value[0] == "s" or self.is_floating

    @property
    def is_unsigned(self) -> bool:
        return self.value[0] == "u"


def _bits(element_type: ElementType) -> int:
    text = element_type.value
    if text == "pred":
        return 8
    return int("".join(c for c in text.lstrip("bsufc").split("e")[0] if c.isdigit()))


_BITS = {element_type: _bits(element_type) for element_type in ElementType}
