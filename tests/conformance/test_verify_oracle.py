"""The verifier has nothing to say about what the real compiler takes in, passes on and puts out."""

import gzip
import os
from pathlib import Path

import pytest

from layoutsim.text import parse_module
from layoutsim.verify import AFTER_LAYOUT_ASSIGNMENT, VerifyOptions, verify

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
FILES = sorted(SHARED.glob("oracle/*/*/*.hlo.gz"))

if not FILES:
    pytest.skip(f"no oracle folders in {SHARED} (set LAYOUTSIM_SHARED)", allow_module_level=True)


def _name(file: Path) -> str:
    return "/".join(file.relative_to(SHARED / "oracle").parts).removesuffix(".hlo.gz")


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_modules_of_the_real_compiler_are_valid(file: Path) -> None:
    options = VerifyOptions() if file.name.startswith("before_layout") else AFTER_LAYOUT_ASSIGNMENT
    module = parse_module(gzip.decompress(file.read_bytes()).decode())

    assert [str(finding) for finding in verify(module, options)] == []
