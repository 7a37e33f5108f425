"""Frames of the transfer study for readers: declarations, documentation, notebook."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
import yaml
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from study_records import write_records
from tasktransfer.cli import main
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.columns_page import format_columns_page
from tasktransfer.designs.transfer.frames import FRAMES
from tasktransfer.present.page.common_blocks import STATES
from tasktransfer.results.frames import Frame
from tasktransfer.results.store import build_schema
from transfer_frames import COLUMNS

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "heatmap.ipynb"


def test_frames_are_declared_without_any_heavy_package() -> None:
    heavy = ("torch", "transformers", "scipy", "matplotlib", "pandas", "pyarrow")
    code = (
        "import sys; import tasktransfer.designs.transfer.frames; "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "[]"


@pytest.mark.parametrize("frame", [f for f in FRAMES if f.make is not None], ids=lambda f: f.name)
def test_every_frame_is_made_by_a_function_with_a_docstring(frame: Frame) -> None:
    assert frame.make is not None
    made_by = getattr(import_module(frame.make.__module__), frame.make.__name__)
    assert made_by.__doc__


def test_the_page_of_columns_is_fresh() -> None:
    file = ROOT / "docs" / "columns.md"
    assert file.read_text(encoding="utf-8") == format_columns_page(), (
        f"{file} is stale: make schemas"
    )


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_is_described(table: str) -> None:
    for field in build_schema(COLUMNS[table]):
        assert field.metadata[b"description"].strip(), field.name


def test_the_documents_name_every_table_and_state() -> None:
    page = (ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")
    for name in COLUMNS:
        assert re.search(rf"\b{name}\b", page), name
    for state in STATES:
        assert f"| `{state}` |" in page


# --- the notebook ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write tables and statistics of a small constructed study."""
    folder = tmp_path_factory.mktemp("notebook")
    tasks = ["emotion_recognition", "dialogue_nli", "topic_classification"]
    keys = {
        "study": "constructed",
        "datasets": {"DailyDialog": {"tasks": tasks}},
        "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
        "seeds": 2,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("study.yaml").write_text(yaml.safe_dump(keys))
        write_records(open_study("study.yaml"))
        for command in ("collect", "statistics"):
            assert main([command, "--config", "study.yaml"]) == 0
    return folder / "results" / "tables"


def execute(notebook: nbformat.NotebookNode, tables: Path, patch: pytest.MonkeyPatch) -> None:
    """Run the notebook in a kernel of this Python, in its folder, as Jupyter does."""
    patch.setenv("TABLES", str(tables))
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(notebook, timeout=120, resources=resources).execute()


def test_the_notebook_draws_figure_3_again(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    execute(notebook, tables, monkeypatch)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == 2
    printed = "".join(output.get("text", "") for output in outputs)
    assert "SYNTHETIC (tiny world), study constructed: 42 runs, 18 cells" in printed


def test_a_failing_cell_fails(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells[1].source += "\nassert len(cells) == 0"
    with pytest.raises(CellExecutionError, match="AssertionError"):
        execute(notebook, tables, monkeypatch)


@pytest.mark.parametrize("path", sorted(NOTEBOOK.parent.glob("*.ipynb")), ids=lambda p: p.name)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(
        not cell.outputs and cell.execution_count is None
        for cell in notebook.cells
        if cell.cell_type == "code"
    )
