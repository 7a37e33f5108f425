"""Measures of the package's structure, on a small package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks import structure

FILES = {
    "__init__": '"""The package."""\nfrom tasktransfer import api\n',
    "api": "from tasktransfer.stats import other\n",
    "cli/analyse": """
from tasktransfer.cli import options

def collect_tables(study): design.collect(study)

def compute_statistics(study): design.statistics(study)

def draw_study_figures(study):
    from tasktransfer.designs.shown import write_figures
    write_figures(study)

def write_study_report(study):
    from tasktransfer.designs.shown import write_report
    write_report(study)
""",
    "cli/options": "",
    "core": "class Run: pass\n",
    "designs/shown": """
from tasktransfer.present.view import View

def write_figures(study):
    from tasktransfer.present import figures
    return View(study)

def write_report(study):
    from tasktransfer.present.page import write

def explain(study):
    from tasktransfer.operate import explain
""",
    "designs/small/design": """
from tasktransfer.designs.small import commands
from tasktransfer.designs.small.plan import plan
from tasktransfer.designs.small.shown import SHOWN

def _compute(study):
    return _write(study)

def _write(study):
    from tasktransfer.stats.means import means

SMALL = Design(
    plan=plan, collect=commands.collect_tables, statistics=_compute, shown=lambda _: SHOWN
)
""",
    "designs/small/commands": """
from tasktransfer import core, __version__
from tasktransfer.designs.small.plan import plan

def collect_tables(study):
    from tasktransfer.results import gather

def choose(study):
    plan(study)
""",
    "designs/small/plan": "",
    "designs/small/shown": """
if TYPE_CHECKING:
    from tasktransfer.designs.small import drawn
else:
    drawn = LazyPackage("tasktransfer.designs.small").drawn
TABLE, FIGURE = "designs.small.table", "designs.small.figure"
SHOWN = (late(TABLE, "make"), late("tasktransfer.designs.small.answer:say"), late(name), drawn.plot)
REMEDY = print("stats.other: unknown. Choose a number.")
""",
    "designs/small/table": "",
    "designs/small/drawn": "",
    "designs/small/figure": "",
    "designs/small/answer": "from tasktransfer.core import Run\n",
    "operate": "def explain(): pass\n",
    "present/__init__": "",
    "present/figures": "def draw(): pass\n",
    "present/page": "def write(): pass\n",
    "present/view": '''"""A docstring
of two lines."""

# a comment
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasktransfer.stats import other

class Run:
    """Another."""

    text = """two
lines"""

class View: pass
''',
    "results": "def gather(): import tasktransfer.core\n",
    "stats/means": "def means(): pass\n",
    "stats/other": "",
}


@pytest.fixture
def modules(tmp_path: Path) -> structure.Modules:
    for name, text in FILES.items():
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return structure.read_modules(tmp_path)


def test_commands_pass_what_their_functions_import(modules: structure.Modules) -> None:
    passed = structure.trace_commands(modules, structure.build_graph(modules), "small")
    assert structure.find_designs(modules) == {"small": "designs.small.design"}
    declared = {f"designs.small.{name}" for name in ("shown", "table", "figure", "answer", "drawn")}
    declared |= {"core"}
    assert passed == {
        "collect": {"results", "core"},
        "statistics": {"stats.means"},
        "figures": {"present.view", "present.figures", *declared},
        "report": {"present.page", *declared},
    }
    assert structure.count_after_records(passed["collect"]) == 1


def test_a_design_without_a_field_for_a_command_is_refused(modules: structure.Modules) -> None:
    tree = ast.parse("SMALL = Design(collect=print, statistics=print)")
    changed = {**modules, "designs.small.design": structure.Module("", Path(), tree)}
    with pytest.raises(ValueError, match="Design has no shown"):
        structure.trace_commands(changed, structure.build_graph(changed), "small")


def test_modules_named_in_strings_are_found(modules: structure.Modules) -> None:
    assert [call for _, call in structure.find_lazy_names(modules)] == [
        "late(TABLE, 'make')",
        "late('tasktransfer.designs.small.answer:say')",
    ]


def test_repeated_names_and_lines_are_counted(modules: structure.Modules) -> None:
    assert structure.find_repeated(modules, ast.ClassDef) == {"Run": ["core", "present.view"]}
    functions = structure.find_repeated(modules, ast.FunctionDef)
    assert functions == {
        "collect_tables": ["cli.analyse", "designs.small.commands"],
        "explain": ["designs.shown", "operate"],
    }
    assert structure.count_code_lines(modules["present.view"]) == 7
    assert structure.count_lines(modules)["core"] == (1, 1, 1)
    assert structure.count_lines(modules)["designs/small"][0] == 8


def test_all_measures_are_printed(
    modules: structure.Modules, capsys: pytest.CaptureFixture[str]
) -> None:
    structure.print_structure(modules, with_names=True)
    printed = capsys.readouterr().out
    assert "small: collect 2 / 1 / 0, statistics 1 / 1 / 0, figures 8 / 7 / 5" in printed
    assert "calls that name a module in a string: 2" in printed
    assert "Run: core present.view" in printed
