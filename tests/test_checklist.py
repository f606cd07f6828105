"""Every fact of the memory spec's checklist (section 16) is held by a test that says so."""

from __future__ import annotations

import pytest

FACTS = range(1, 103)
_FOLDERS = ("analysis", "memory", "passes")


class _Marks:
    """Gathers the numbers of ``checklist`` marks of what is collected."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers("checklist"):
                self.numbers.update(mark.args)


def test_every_fact_has_a_test(request: pytest.FixtureRequest) -> None:
    marks = _Marks()
    folders = [str(request.config.rootpath / "tests" / name) for name in _FOLDERS]
    options = ["--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    assert pytest.main([*options, *folders], plugins=[marks]) == 0

    assert marks.numbers == set(FACTS)
