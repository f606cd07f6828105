"""What a folder holds of one compilation: the module at its stages, and XLA's buffer assignment.

The files have plain names (``before_layout``, ``after_layout``, ``final``, ``buffer-assignment``), or they are an XLA dump
(:mod:`layoutsim.load`). Of several modules in a dump the one is taken whose dumps are largest.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from layoutsim.errors import InputError
from layoutsim.ir.module import Module
from layoutsim.load import AFTER_LAYOUT, BEFORE_LAYOUT, SCHEDULED, DumpFile, list_dump, load
from layoutsim.memory.report_format import AssignmentReport, parse_assignment_report

BUFFER_ASSIGNMENT = "buffer-assignment"
_ENDING = re.compile(r"(\.hlo)?(\.txt|\.hlo|\.pb)?(\.gz)?$")


@frozen
class Recorded:
    """One compilation's files.

    Attributes:
        folder: where they are.
        files: by stage (``before_layout``, ``after_layout``, ``scheduled``) or :data:`BUFFER_ASSIGNMENT`.
    """

    folder: Path
    files: Mapping[str, Path] = field(repr=False)

    def has(self, *names: str) -> bool:
        """Whether all these files are there."""
        return all(name in self.files for name in names)

    @property
    def is_bare(self) -> bool:
        """Whether the compiler ran layout assignment and copy insertion only, as the folder's name says."""
        return self.folder.resolve().name.endswith("-bare")

    @property
    def is_for_cpu(self) -> bool:
        """Whether the scheduled module's file says that it is the CPU compiler's."""
        return SCHEDULED in self.files and ".cpu_after_optimizations" in self.files[SCHEDULED].name

    def module(self, stage: str) -> Module:
        """The module at a stage.

        Raises:
            InputError: it is not there.
        """
        return load(self._file(stage))

    def report(self) -> AssignmentReport:
        """XLA's buffer assignment.

        Raises:
            InputError: it is not there.
        """
        return read_assignment_report(self._file(BUFFER_ASSIGNMENT))

    def _file(self, name: str) -> Path:
        if name not in self.files:
            wanted = "final" if name == SCHEDULED else name
            raise InputError(f"{self.folder} holds no {wanted}; there are {', '.join(self.files) or 'no dumps at all'}")
        return self.files[name]


def find_recorded(folder: Path) -> Recorded:
    """The files of the compilation in ``folder``.

    Raises:
        InputError: it is not a folder.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a dump folder; to ask the compiler about one module, use --live")
    stages = _largest_module(list_dump(folder))
    files = {stage: folder / stages[stage].file for stage in (BEFORE_LAYOUT, AFTER_LAYOUT, SCHEDULED) if stage in stages}
    report = _report_beside(folder, files.get(SCHEDULED))
    return Recorded(folder, files if report is None else {**files, BUFFER_ASSIGNMENT: report})


def _largest_module(dump: tuple[DumpFile, ...]) -> dict[str, DumpFile]:
    by_module: dict[str, dict[str, DumpFile]] = {}
    for file in dump:
        by_module.setdefault(file.module, {})[file.stage] = file
    sizes = {module: sum(file.size_bytes for file in stages.values()) for module, stages in by_module.items()}
    return by_module[max(sizes, key=sizes.__getitem__)] if sizes else {}


def _report_beside(folder: Path, scheduled: Path | None) -> Path | None:
    """``X-buffer-assignment.txt`` of a dump's scheduled module ``X.txt``, or plain ``buffer-assignment``."""
    stems = [BUFFER_ASSIGNMENT]
    if scheduled is not None:
        stems.insert(0, f"{_ENDING.sub('', scheduled.name)}-{BUFFER_ASSIGNMENT}")
    names = [f"{stem}{ending}" for stem in stems for ending in (".txt", ".txt.gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_assignment_report(path: Path) -> AssignmentReport:
    """Parse XLA's ``buffer-assignment.txt``, packed or not."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return parse_assignment_report(text.decode(errors="replace"), str(path))
