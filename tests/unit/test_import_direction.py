"""Structure of the package: imports point downward only.

Nothing below the designs depends on one, heavy packages are imported in their packages only, and
the imports of every start are light.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks import structure

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tasktransfer"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"__init__", "errors", "files"}),
    frozenset({"core"}),
    frozenset({"config"}),
    frozenset({"tasks"}),
    frozenset({"metrics"}),
    frozenset({"datasets"}),
    frozenset({"data"}),
    frozenset({"layers"}),
    frozenset({"encoding"}),
    frozenset({"models"}),
    frozenset({"results"}),
    frozenset({"training"}),
    frozenset({"evaluation", "fits"}),
    frozenset({"stats"}),
    frozenset({"present"}),
    frozenset({"selection"}),
    frozenset({"jobs"}),
    frozenset({"operate"}),
    frozenset({"designs"}),
    frozenset({"cli"}),
    frozenset({"api", "__main__"}),
)
"""Lowest first. A module imports from its own room and from those below, and from no other room of
its layer but for the first one's modules. ``results`` lies below ``training`` because a training
writes the folder of its node; ``operate`` below ``designs`` because a design's commands (explain,
the opening of a study for Snakemake) walk nodes as the others do."""

TORCH = ("torch.", "transformers.", "tokenizers.", "safetensors.torch.")
TORCH_HOMES = frozenset({"encoding", "layers", "models", "training", "evaluation"})

LIGHT = frozenset({"yaml", "pydantic", "pydantic_core", "typing_extensions"})
"""What every start may import beside the standard library."""

MODULES_TO_THE_PAGE = {"transfer": 113, "panel": 74, "empathetic": 73, "probes": 61}
"""Modules that a design passes from a record to the page, in rooms that read records.

If ``python -m benchmarks.structure`` prints less, lower them. They rise only with new tables and
figures.
"""
REPEATED_CLASSES = 25
"""Class names that several modules define. This ceiling only falls too: a concept has one name."""

UNTYPED_DICTIONARIES = 172
"""``dict[str, Any]`` in the package. The ceiling only falls: rows and JSON that pass between
modules are a dataclass, a named tuple or a typed dictionary."""


class Import(NamedTuple):
    """An import. ``module``: dotted, with the imported name; ``place``: file and line."""

    module: str
    place: str
    at_top: bool
    for_types: bool


FILES = {path: path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py"))}


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Yield everything that a file imports."""
    return tuple(_imports(ast.parse(path.read_text(encoding="utf-8")), path))


def _imports(tree: ast.Module, path: Path) -> Iterator[Import]:
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield Import(name, f"{path}:{node.lineno}", node in tree.body, id(node) in for_types)


def room(relative: Path) -> str:
    """Return the module or package directly under ``tasktransfer`` that contains a file."""
    return relative.parts[0].removesuffix(".py")


ROOMS = {room(relative) for relative in FILES.values()}


def own_room(module: str) -> str | None:
    """Return the room of an imported module; None if it is not part of this package."""
    package, _, below = module.partition(".")
    if package != "tasktransfer":
        return None
    first = below.partition(".")[0]
    return first if first in ROOMS else "__init__"


def layer(name: str) -> int:
    for number, names in enumerate(LAYERS):
        if name in names:
            return number
    raise AssertionError(f"{name} is in no layer: add it to LAYERS where it belongs")


def test_imports_point_downward() -> None:
    for path, relative in FILES.items():
        own = room(relative)
        for module, place, _, for_types in imports(path):
            assert module.split(".")[0] != "benchmarks", f"{place}: benchmarks/ is not installed"
            other = own_room(module)
            if other in (None, own) or for_types:
                continue
            lower = layer(own) == layer(other) == 0 or layer(other) < layer(own)
            lower |= (own, other) == ("__init__", "api")  # lazily: the package's front door
            assert lower, f"{place}: {own} imports {module}"


def test_nothing_below_the_designs_knows_which_design_asked() -> None:
    """Not for types either."""
    for path, relative in FILES.items():
        if layer(room(relative)) < layer("designs"):
            for each in imports(path):
                assert own_room(each.module) != "designs", f"{each.place}: imports {each.module}"


def test_designs_know_few_other_designs() -> None:
    """A submission is made from a transfer study; panels rate dialogues of empathetic studies."""
    pairs = {
        (*relative.parts[1:2], each.module.split(".")[2])
        for path, relative in FILES.items()
        if relative.parts[0] == "designs" and len(relative.parts) > 2
        for each in imports(path)
        if each.module.startswith("tasktransfer.designs.")
    }
    folders = {path.name for path in (SOURCE / "designs").iterdir() if path.is_dir()}
    known = {(own, other) for own, other in pairs if own != other and other in folders}
    assert known == {("challenge", "transfer"), ("panel", "empathetic")}


def test_torch_stays_at_home() -> None:
    for path, relative in FILES.items():
        if room(relative) not in TORCH_HOMES:
            for module, place, _, for_types in imports(path):
                assert for_types or not f"{module}.".startswith(TORCH), f"{place}: imports {module}"


def of_the_workflow() -> list[str]:
    """Return the imports of the workflow's files."""
    found = []
    for file in [ROOT / "workflow" / "Snakefile", *sorted((ROOT / "workflow/rules").glob("*.smk"))]:
        for module, names in re.findall(
            r"^from (tasktransfer[\w.]*) import (\([^)]*\)|.*)$", file.read_text(), re.MULTILINE
        ):
            found += [f"{module}.{name}" for name in re.findall(r"\w+", names)]
    assert {"tasktransfer.designs.get_design", "tasktransfer.jobs.needs"} <= set(found)
    return found


def of_the_commands() -> list[str]:
    """Return the imports of the command line, and of its commands that need little memory."""
    found = ["tasktransfer.cli"]
    for path, relative in FILES.items():
        if room(relative) == "cli":
            found += light_commands(ast.parse(path.read_text(encoding="utf-8")), path)
    return found


def light_commands(tree: ast.Module, path: Path) -> list[str]:
    """Return the imports of a module's functions that are commands with ``light=True``.

    Functions that open a study for them are included.
    """
    opening = {"open_study", "open_design"} if path.stem == "options" else set()
    light = opening | {
        call.args[2].id
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and any(key.arg == "light" and ast.unparse(key.value) == "True" for key in call.keywords)
        and isinstance(call.args[2], ast.Name)
    }
    functions = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in light
    ]
    assert len(functions) == len(light), f"{path}: not functions of the module: {light}"
    whole = ast.Module([*functions], [])
    return [each.module for each in _imports(whole, path)]


def file_of(name: str) -> Path | None:
    """Return the file of a module of this package; for a name in a module, the module's file."""
    for parts in (name.split(".")[1:], name.split(".")[1:-1]):
        for path in (
            SOURCE.joinpath(*parts, "__init__.py"),
            SOURCE.joinpath(*parts).with_suffix(".py"),
        ):
            if path in FILES:
                return path
    return None


@pytest.mark.parametrize(
    ("start", "there_anyway"), [(of_the_workflow, {"snakemake"}), (of_the_commands, set())]
)
def test_what_every_start_imports_is_light(
    start: Callable[[], list[str]], there_anyway: set[str]
) -> None:
    """Standard library, PyYAML and pydantic, at the top level of all imported modules."""
    allowed = {*sys.stdlib_module_names, *LIGHT, *there_anyway, "tasktransfer"}
    names = start()
    waiting, seen = [file_of(name) for name in names], set[Path]()
    while waiting:
        path = waiting.pop()
        assert path is not None, names
        if path in seen:
            continue
        seen.add(path)
        waiting += [
            folder / "__init__.py" for folder in path.parents if folder / "__init__.py" in FILES
        ]
        for module, place, at_top, for_types in imports(path):
            if at_top and not for_types:
                assert module.split(".")[0] in allowed, f"{place}: imports {module}"
                if own_room(module) is not None:
                    waiting.append(file_of(module))
    assert {room(FILES[path]) for path in seen} >= {"core", "config", "results", "designs"}


def test_rooms_are_few() -> None:
    assert len(ROOMS - {"__init__", "__main__", "api"}) <= 22


@pytest.fixture(scope="module")
def modules() -> structure.Modules:
    return structure.read_modules(SOURCE)


def test_the_way_from_a_record_to_the_page_gets_no_longer(modules: structure.Modules) -> None:
    graph, counts = structure.build_graph(modules), {}
    for design in structure.find_designs(modules):
        commands = structure.trace_commands(modules, graph, design)
        assert "results.collect" in commands["collect"], design
        assert "present.page.page" in commands["report"], design
        counts[design] = structure.count_after_records(set().union(*commands.values()))
    assert counts.keys() == MODULES_TO_THE_PAGE.keys()
    longer = {name: count for name, count in counts.items() if count > MODULES_TO_THE_PAGE[name]}
    assert longer == {}


def test_no_more_classes_share_a_name(modules: structure.Modules) -> None:
    repeated = structure.find_repeated(modules, ast.ClassDef)
    assert len(repeated) <= REPEATED_CLASSES, repeated


def test_no_more_dictionaries_are_untyped(modules: structure.Modules) -> None:
    assert structure.count_untyped_dictionaries(modules) <= UNTYPED_DICTIONARIES


def test_rooms_below_records_are_the_layers_below_results() -> None:
    below = frozenset().union(*LAYERS[: layer("results")]) - {"__init__"}
    assert below == structure.BELOW_RECORDS - {""}


@pytest.mark.parametrize("name", ["utils", "helpers", "misc", "common"])
def test_no_module_is_a_grab_bag(name: str) -> None:
    assert not [path for path in FILES if path.stem == name]
