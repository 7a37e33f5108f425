"""Missing nodes besides transfers: prompted models, selectors, stages without a run.

A page about the whole plan has to count all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from finished_stages import MODEL, finish_all, opened
from report_results import Asked, make_results
from tasktransfer import cli
from tasktransfer.designs.transfer.frames import MEAN, PROMPTED
from tasktransfer.designs.transfer.tables.table2 import compute_table2
from tasktransfer.operate.status import ProgressWatcher
from tasktransfer.present.page.common_blocks import format_warnings
from tasktransfer.results.common_frames import MISSING
from tasktransfer.results.store import build_frame
from tasktransfer.results.study import Study
from transfer_frames import read_frames

DECODER = {"name": "d", "family": "decoder", "checkpoint": "tiny", "max_length": 512}
KEYS: dict[str, Any] = {
    "models": [MODEL, DECODER],
    "prompted": [{"model": "d", "shots": [0, 4]}],
    "selectors": ["tfidf"],
    "seeds": 2,
}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Write a study with every training, but without evaluations or values of selectors."""
    monkeypatch.chdir(tmp_path)
    study = opened(**KEYS)
    finish_all(study, measured=True)
    return study


def test_what_status_counts_as_missing_is_in_the_tables(
    study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["collect", "--config", "study.yaml"]) == 0
    counts = {
        row["kind"]: (row["left"], row["total"])
        for row in ProgressWatcher(study).get_progress()["others"]
    }
    left, total = counts["evaluation"]
    assert left == total == len(study.plan.evaluations)
    said = capsys.readouterr().out
    assert f"{total} of {total} evaluations" in said and "1 of 1 fits" in said
    frames = read_frames(study)
    assert frames.metadata.facts[MISSING] == "1 of 1 fits, 12 of 12 evaluations"
    missing = frames["missing"]
    assert missing["method"].value_counts().to_dict() == {
        "prompted": 12,
        "selector": 4,  # a model and seed each, of one fit
    }
    assert missing["shots"].value_counts().to_dict() == {"0": 4, "4": 8}
    assert set(missing["state"]) == {"waiting"}


def test_a_stage_that_no_run_ends_with_is_listed(study: Study) -> None:
    study = opened(**KEYS, algorithms=["multitask_finetune"])
    finish_all(study, measured=True)
    last = {run.stages[-1].digest for run in study.plan.runs if run.stages}
    stage = next(stage for stage in study.plan.stages if stage.digest not in last)
    Path(study.get_record_path(stage)).unlink()
    assert cli.main(["collect", "--config", "study.yaml"]) == 0
    frames = read_frames(study)
    total = len(study.plan.stages)
    assert frames.metadata.facts[MISSING].startswith(f"1 of {total} training runs, ")
    missing = frames["missing"]
    (row,) = missing[missing["method"] == "stage"].to_dict("records")
    assert (row["model"], row["seed"], row["node"]) == (stage.model.name, stage.seed, stage.path)


def test_runs_are_counted_once_however_many_of_their_nodes_are_missing() -> None:
    wording = {"method": "prompted", "model": "d", "seed": 0, "target": "a", "state": "waiting"}
    rows = [wording | {"path": path} for path in ("x", "y")]
    missing = pd.DataFrame([*rows, {**wording, "seed": 1, "path": "z"}])
    first, second = format_warnings(missing, pd.DataFrame(), "3 of 9 evaluations")
    assert first == "2 planned runs have no result: 2 waiting (prompted)."
    assert second == "No record exists for 3 of 9 evaluations. A run may need several records."


def test_transfers_from_two_sources_are_two_runs() -> None:
    run = {"method": "multitask", "model": "d", "seed": 0, "target": "a", "state": "waiting"}
    missing = pd.DataFrame([run | {"sources": source} for source in ("b", "c")])
    (line,) = format_warnings(missing, pd.DataFrame())
    assert line == "2 planned runs have no result: 2 waiting (multitask)."


@pytest.mark.parametrize(("seeds", "runs", "complete"), [(1, "3 of 6", False), (2, "6 of 6", True)])
def test_table_2_counts_runs_of_prompted_models(seeds: int, runs: str, complete: bool) -> None:
    """One of two seeds of three tasks is half of the runs, and gives no complete row."""
    row = ("D", "d", 4, MEAN, 20.0, 19.0, 21.0, 2, 1.0, seeds, 3, 3, 9, 9, "written", 0.0, 5)
    prompted = build_frame([(*row, "unknown", 2)], PROMPTED)
    results = make_results(Asked(tasks={"D": ["a", "b"]}))
    frame = compute_table2(results.replace({"prompted": prompted}))
    assert frame is not None
    (last,) = frame[frame["algorithm"].str.startswith("prompted")].to_dict("records")
    assert f"{last['n_cells']} of {last['n_expected']}" == runs
    assert bool(last["complete"]) is complete
