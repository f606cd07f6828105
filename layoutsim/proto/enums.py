"""Enumerations of HLO's protos: numbers and their spellings in HLO text (text spec, sections 1.8 and 7.6).

An empty spelling stands for "not set", which text leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from layoutsim.errors import ParseError

COMPARISON_DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
COMPARISON_TYPES = ("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")
FUSION_KINDS = ("kLoop", "kInput", "kOutput", "kCustom")

PRECISIONS = dict(enumerate(("default", "high", "highest")))
DOT_ALGORITHMS = dict(
    enumerate(
        (
            "",
            "dot_any_f8_any_f8_f32",
            "dot_any_f8_any_f8_f32_fast_accum",
            "dot_f16_f16_f16",
            "dot_f16_f16_f32",
            "dot_bf16_bf16_bf16",
            "dot_bf16_bf16_f32",
            "dot_bf16_bf16_f32_x3",
            "dot_bf16_bf16_f32_x6",
            "dot_tf32_tf32_f32",
            "dot_tf32_tf32_f32_x3",
            "dot_f32_f32_f32",
            "dot_f64_f64_f64",
            "dot_bf16_bf16_f32_x9",
        )
    )
)
CONVOLUTION_KINDS = dict(enumerate(("", "fprop", "dgrad", "wgrad")))
FFT_TYPES = dict(enumerate(("FFT", "IFFT", "RFFT", "IRFFT")))
TRANSPOSES = dict(enumerate(("", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")))
DISTRIBUTIONS = {1: "rng_uniform", 2: "rng_normal"}
RNG_ALGORITHMS = dict(enumerate(("rng_default", "rng_three_fry", "rng_philox")))
PADDING_TYPES = dict(enumerate(("", "PADDING_VALID", "PADDING_SAME")))
CUSTOM_CALL_SCHEDULES = dict(enumerate(("", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")))
CUSTOM_CALL_API_VERSIONS = {
    1: "",  # ORIGINAL is what text means by saying nothing
    2: "API_VERSION_STATUS_RETURNING",
    3: "API_VERSION_STATUS_RETURNING_UNIFIED",
    4: "API_VERSION_TYPED_FFI",
}

SPARSITY = re.compile(r"(lhs|rhs)=\{\s*sparsity=(\d+)x(\d+)\s+dimension=(\d+)\s+stride=(\d+)\s*\}")


def name_of(names: Mapping[int, str], number: int, what: str) -> str:
    """The spelling of ``number``.

    Raises:
        ParseError: there is none.
    """
    if number not in names:
        raise ParseError(f"unknown {what} number {number}")
    return names[number]


def number_of(names: Mapping[int, str], name: str) -> int:
    """The number of a spelling that the parser accepted."""
    return next(number for number, known in names.items() if known == name)
