"""The Python API."""

from __future__ import annotations

import subprocess
import sys
from html import escape
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest

import tasktransfer as tt
from finished_stages import opened
from tasktransfer.errors import ConfigError, RecordError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["demo", "panel-demo", "probes-demo", "empathetic-demo"])
def results(request: pytest.FixtureRequest, tmp_path: Path) -> tt.Results:
    with ZipFile(ROOT / "tests" / "fixtures" / f"{request.param}.zip") as pack:
        pack.extractall(tmp_path)
    return tt.load_results(tmp_path)


def test_tables_are_data_frames(results: tt.Results) -> None:
    assert {"runs", "scores", "missing", "problems"} <= set(results)
    for name in results:
        assert isinstance(results[name], pd.DataFrame)
    assert len(results.runs) > 0
    assert results.runs is results["runs"]
    pd.testing.assert_frame_equal(
        results.scores, pd.read_parquet(results.folder / "scores.parquet")
    )


def test_a_repr_has_at_most_ten_lines_and_the_study(results: tt.Results) -> None:
    lines = repr(results).splitlines()
    assert len(lines) <= 10
    assert results.metadata["study"] in lines[0]
    assert f"{len(results.runs):,} rows" in repr(results)


def test_columns_have_meanings(results: tt.Results) -> None:
    described = results.describe("runs")
    assert list(described["column"]) == list(results.runs.columns)
    assert described["meaning"].str.len().gt(0).all()
    longest = max(described["meaning"], key=len)
    assert len(longest) > 50 and "..." not in repr(described)
    assert longest in repr(described) and escape(longest) in described._repr_html_()


def test_what_is_not_there_is_refused(results: tt.Results, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="Did you mean 'scores'"):
        results["score"]
    with pytest.raises(RecordError, match="no tables of a study"):
        tt.load_results(tmp_path / "nowhere")
    (tmp_path / "tables" / "runs.parquet").write_bytes(b"no Parquet")
    with pytest.raises(RecordError, match=r"runs\.parquet: The table cannot be read"):
        tt.load_results(tmp_path)


def test_a_plan_lists_the_runs(here: Path) -> None:
    study = opened()
    plan = tt.plan("study.yaml")
    assert len(plan.runs) == len(study.plan.runs)
    assert plan.trainings == len(study.plan.stages)
    assert {"method", "model", "seed", "target"} <= set(plan.runs)
    assert f"{len(plan.runs):,} runs" in repr(plan)
    assert tt.open_study("study.yaml").config.digest == study.config.digest
    with pytest.raises(ConfigError, match="The file does not exist"):
        tt.run("nothing.yaml")


def test_the_package_is_imported_lazily() -> None:
    code = (
        "import sys, tasktransfer as tt; assert 'pandas' not in sys.modules; tt.load_results; "
        "assert not {'torch', 'transformers', 'snakemake'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {"load_results", "open_study", "plan", "run"} <= set(dir(tt))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tt.nothing
