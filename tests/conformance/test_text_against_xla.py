"""Our text in XLA's own parser: it must be taken, and mean the same module as the text it was read from.

Both are compared through XLA's printer, which shows operands, shapes, layouts and attributes. And our printer must write what
XLA's writes, character by character, in the presets that do not depend on hashes.

Not compared: constants that the original text elides, which XLA fills with a counter.
"""

import gzip
import os
from pathlib import Path

import pytest

from layoutsim.ir.equality import module_differences
from layoutsim.text import ParseOptions, parse_module
from layoutsim.text.print_options import CANONICAL, DEFAULT, SHORT_PARSABLE
from layoutsim.text.printer import print_module

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", ROOT.parent / "shared"))
SMALL_BYTES = 25_000
"""Packed size up to which every file is tested; of the larger ones every tenth, unless LAYOUTSIM_ALL is set."""

FOUND = sorted(SHARED.glob("oracle/*/*/*.hlo.gz")) + sorted(SHARED.glob("cases/*.hlo"))
OURS = sorted((ROOT / "fixtures").rglob("*.hlo")) + sorted((ROOT / "fixtures").rglob("*.hlo.gz"))

if not FOUND:
    pytest.skip(f"no oracle folders in {SHARED} (set LAYOUTSIM_SHARED)", allow_module_level=True)

hlo = pytest.importorskip("jaxlib._hlo", reason="needs jaxlib, whose parser is the reference")

ALL = bool(os.environ.get("LAYOUTSIM_ALL"))


def _chosen() -> list[Path]:
    """Every small recorded module, some of the large, all text fixtures, and a sample of everyone else's fixtures."""
    recorded = [f for i, f in enumerate(FOUND) if ALL or f.stat().st_size < SMALL_BYTES or i % 10 == 0]
    legal = [f for f in OURS if "verify" not in f.parts]
    return recorded + [f for i, f in enumerate(legal) if ALL or "text" in f.parts or i % 10 == 0]


CHOSEN = _chosen()


def _text(file: Path) -> str:
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()


def _name(file: Path) -> str:
    return "/".join(file.parts[-3:]).removesuffix(".gz")


def _options(text: str):
    options = hlo.HloPrintOptions()
    options.print_large_constants = "{...}" not in text
    return options


def _without_frames(text: str) -> str:
    """XLA renumbers stack frames when it reads, so a second reading sees other numbers."""
    return text.partition("\nFileNames")[0] + text.partition("\nStackFrames")[2] if "\nFileNames" in text else text


@pytest.mark.parametrize("file", CHOSEN, ids=_name)
def test_xla_reads_our_text_as_it_reads_the_original(file: Path) -> None:
    text = _text(file)
    options = _options(text)

    theirs = hlo.hlo_module_from_text(text).to_string(options)
    ours = hlo.hlo_module_from_text(parse_module(text).to_text()).to_string(options)

    assert _without_frames(ours) == _without_frames(theirs)


@pytest.mark.parametrize("file", CHOSEN, ids=_name)
def test_text_reads_back_as_an_equal_module_on_both_paths(file: Path) -> None:
    text = _text(file)
    module = parse_module(text)
    printed = module.to_text()
    again = parse_module(printed)

    assert module_differences(module, parse_module(text, options=ParseOptions(fast=False))) == []
    assert module_differences(module, again) == []
    assert again.to_text() == printed


@pytest.mark.parametrize("file", [f for i, f in enumerate(CHOSEN) if ALL or i % 6 == 0 or f.parent.name == "text"], ids=_name)
@pytest.mark.parametrize("preset", ["default", "short_parsable", "canonical"])
def test_presets_print_what_xla_prints(file: Path, preset: str) -> None:
    theirs_options = hlo.HloPrintOptions() if preset == "default" else getattr(hlo.HloPrintOptions, preset)()
    ours_options = {"default": DEFAULT, "short_parsable": SHORT_PARSABLE, "canonical": CANONICAL}[preset]
    loss_free = hlo.HloPrintOptions()
    loss_free.print_large_constants = True
    module = hlo.hlo_module_from_text(_text(file))
    module = hlo.hlo_module_from_text(module.to_string(loss_free))  # stack frames numbered once and for all

    ours = print_module(parse_module(module.to_string(loss_free)), ours_options)

    assert ours.strip().splitlines() == module.to_string(theirs_options).strip().splitlines()
