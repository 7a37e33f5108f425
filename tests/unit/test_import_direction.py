"""Imports point downward only, and heavy packages stay where they belong."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tasktransfer"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "json_text", "own_folders", "locks", "validation", "__init__"}),
    frozenset({"tasks", "algorithms", "stage", "stage_json"}),
    frozenset({"config", "metrics", "predictions", "records", "stage_state"}),
    frozenset({"plan"}),
    frozenset({"data"}),
    frozenset({"models", "analysis"}),
    frozenset({"revisions", "study", "training", "damage", "finished", "forecast", "lacking"}),
    frozenset({"overview", "overview_text", "challenge", "operate", "pilot"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
"""Lowest first. A module imports from its own layer or from those below. ``study`` and
``revisions`` take nothing from ``models`` but the versions in ``models.recipe``."""

TORCH = frozenset({"torch", "transformers", "tokenizers", "safetensors"})
TORCH_HOMES = frozenset({"models", "training"})

FILES = sorted(SOURCE.rglob("*.py"))


def unit(path: Path) -> str:
    """The module or package directly under ``tasktransfer`` that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def layer(name: str) -> int:
    for number, names in enumerate(LAYERS):
        if name in names:
            return number
    raise AssertionError(f"{name} stands in no layer: add it to LAYERS where it belongs")


def imports(path: Path) -> list[tuple[str, int, bool]]:
    """(dotted module, line, whether at the top of the module) of everything that a file imports,
    that for type checking alone left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unseen = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found: list[tuple[str, int, bool]] = []
    for node in ast.walk(tree):
        top = node in tree.body
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno, top) for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            package = ["tasktransfer", *path.relative_to(SOURCE).parent.parts]
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *((node.module or "").split(".") if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
            found += [(name, node.lineno, top) for name in names]
    return found


def own(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "tasktransfer":
        return None
    known = {unit(file) for file in FILES}
    return parts[1] if len(parts) > 1 and parts[1] in known else "__init__"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downward(path: Path) -> None:
    here = layer(unit(path))
    for module, line, _ in imports(path):
        assert module.split(".")[0] != "benchmarks", f"{path}:{line}: benchmarks/ is not installed"
        other = own(module)
        if other is not None:
            assert layer(other) <= here, f"{path}:{line}: {unit(path)} imports {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_torch_stays_in_models_and_training(path: Path) -> None:
    for module, line, _ in imports(path):
        if unit(path) not in TORCH_HOMES:
            assert module.split(".")[0] not in TORCH, f"{path}:{line} imports {module}"
        if unit(path) == "analysis":
            assert own(module) not in TORCH_HOMES, f"{path}:{line} imports {module}"
        if unit(path) in {"study", "revisions"} and own(module) == "models":
            assert module.startswith("tasktransfer.models.recipe."), f"{path}:{line}"


START = (
    "errors",
    "tasks",
    "algorithms",
    "stage",
    "config",
    "plan",
    "revisions",
    "study",
    "damage",
    "finished",
    "forecast",
    "lacking",
    "overview",
    "overview_text",
    "cli",
)


@pytest.mark.parametrize("name", START)
def test_what_is_imported_at_start_is_light(name: str) -> None:
    """Standard library and PyYAML at the top of the modules that every start imports."""
    allowed = {*sys.stdlib_module_names, "yaml", "tasktransfer"}
    for path in (file for file in FILES if unit(file) == name):
        for module, line, top in imports(path):
            if top:
                assert module.split(".")[0] in allowed, f"{path}:{line} imports {module}"


def test_no_module_is_a_grab_bag() -> None:
    assert not [path for path in FILES if path.stem in {"utils", "helpers", "misc", "common"}]
