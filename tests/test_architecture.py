"""The rules between the parts of layoutsim (design: a module imports only from what stands left of it)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "layoutsim"

LAYERS = [
    {"errors", "garbage"},
    {"ir"},
    {"text", "proto", "infer", "analysis"},
    {"build", "load"},
    {"verify"},
    {"passes"},
    {"memory"},
    {"interp"},
    {"report", "oracle"},
    {"experiments"},
    {"testing"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# Module.to_text() is promised to users on the IR's own class; it imports the printer when called.
EXCEPTIONS = {("ir/module.py", "text"), ("ir/module.py", "report")}

PACKING = ("memory/problem.py", "memory/check.py", "memory/interval_index.py", "memory/problem_csv.py", "memory/heaps/")


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("layoutsim"):
            found |= {node.module} if node.module != "layoutsim" else {f"layoutsim.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.startswith("layoutsim.")}
    return found


def _files() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_left(path: Path) -> None:
    relative = path.relative_to(ROOT).as_posix()
    own = relative.split("/")[0].removesuffix(".py")
    if own not in LEVEL:
        return
    parts = {name.split(".")[1] for name in _imports(path)}

    upward = {p for p in parts if p in LEVEL and LEVEL[p] > LEVEL[own] and (relative, p) not in EXCEPTIONS}

    assert upward == set()


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_packing_knows_nothing_of_hlo(path: Path) -> None:
    relative = path.relative_to(ROOT).as_posix()
    if not relative.startswith(PACKING):
        return
    foreign = {
        name
        for name in _imports(path)
        if name != "layoutsim.errors"
        and not name.removeprefix("layoutsim.")
        .replace(".", "/")
        .startswith(tuple(p.removesuffix(".py").rstrip("/") for p in PACKING))
    }

    assert foreign == set()


def test_every_package_is_in_a_layer() -> None:
    top = {p.name.removesuffix(".py") for p in ROOT.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}

    assert top - {"__init__", "__main__"} <= set(LEVEL)
