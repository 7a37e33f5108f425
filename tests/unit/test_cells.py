"""The cells of a study: content, source runs, and recomputed rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cell_studies import (
    A_CELL,
    RESULTS,
    TASKS,
    a_run,
    count_reads,
    find_cells,
    finished_study,
    gather,
    of_plan,
    one,
    record_of,
    replace_column,
    select_rows,
)

from study_records import write_stage
from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.designs.transfer.statistics.cells import compute_cells
from tasktransfer.errors import RecordError
from tasktransfer.results.frames import list_column_names
from tasktransfer.results.rows import select_task_rows
from tasktransfer.results.study import Study
from tasktransfer.stats import bootstrap, draws
from tasktransfer.stats.bootstrap import compute_q_values


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Write a finished study into the working directory, in which emotions help a lot."""
    monkeypatch.chdir(tmp_path)
    return finished_study()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return count_reads(monkeypatch)


# --- rows ---------------------------------------------------------------------------------------


def test_a_row_for_every_run_set(study: Study) -> None:
    tables = gather(study)
    found = tables["cells"]
    assert tables["problems"].empty
    assert list(found.columns) == list_column_names(columns.CELLS)
    # Two models, two algorithms, six pairs; two models with several sources.
    assert len(found) == 2 * 2 * 6 + 2
    assert (found["n_sources"] == 2).sum() == 2
    assert found["seeds"].tolist() == [[0, 1, 2]] * 26
    assert (found["instances"] == 40).all()
    means = tables["deltas"].groupby(["model", "algorithm", "source", "target"], sort=False)[
        "delta"
    ]
    assert found["delta"].tolist() == pytest.approx(means.mean().tolist())
    numbers = found[["delta", "standard_error", "degrees", "low", "high", "p", "q"]]
    assert np.isfinite(numbers.to_numpy()).all()


def test_a_row_is_the_bootstrap_of_its_runs(study: Study) -> None:
    tables = gather(study)
    row = one(tables["cells"], **A_CELL)
    deltas = select_rows(tables["deltas"], **A_CELL)
    assert row.score == pytest.approx(deltas["score"].mean())
    assert row.baseline_score == pytest.approx(deltas["baseline_score"].mean())
    assert row.improvement == pytest.approx(100 * row.delta / row.baseline_score)
    by_seed = deltas["delta"].var() / 3
    assert row.standard_error**2 >= by_seed - 1e-9
    assert row.low < row.delta < row.high
    assert (row.low <= 0 <= row.high) == (row.p >= 0.05)


def test_order_of_the_records_does_not_matter(study: Study) -> None:
    tables = gather(study)
    runs, deltas = tables["transfer_runs"].iloc[::-1], tables["deltas"].iloc[::-1]
    keys = ["model", "algorithm", "source", "target"]
    left, right = (
        each.sort_values(keys).reset_index(drop=True)
        for each in (
            tables["cells"].drop(columns="baseline_state"),
            compute_cells(runs, deltas, RESULTS),
        )
    )
    pd.testing.assert_frame_equal(left, right)


def test_several_sources_are_adjusted_among_themselves(study: Study) -> None:
    found = gather(study)["cells"]
    for several in (True, False):
        family = found[(found["n_sources"] > 1) == several]
        assert family["q"].tolist() == pytest.approx(compute_q_values(family["p"]).tolist())
    assert (found["significant"] == (found["q"] <= 0.05)).all()
    assert found["significant"].any()
    assert not found["significant"].all()


def test_only_seeds_that_have_both_runs_count(study: Study) -> None:
    record_of(study, a_run(study)).unlink()
    baseline = next(
        run
        for run in select_transfer_runs(study.plan)
        if (run.method, run.about["target"], run.seed) == ("baseline", TASKS[2], 2)
    )
    record_of(study, baseline).unlink()
    found = gather(study)["cells"]
    assert one(found, **A_CELL).seeds == [0, 2]
    without = found[(found["model"] == "tiny-bert") & (found["target"] == TASKS[2])]
    assert without["seeds"].tolist() == [[0, 1]] * len(without)


def test_without_rows_the_seeds_alone_are_judged(study: Study) -> None:
    tables = gather(study)
    here = tables["transfer_runs"]["digest"] == a_run(study).stages[-1].digest
    assert here.sum() == 2, "the way back is the same training"
    for name in ("predictions", "predictions_rows", "predictions_sha256", "test_set"):
        tables["transfer_runs"][name] = (
            tables["transfer_runs"][name].astype(object).where(~here, None)
        )
    row = one(tables["cells"], **A_CELL)
    deltas = select_rows(tables["deltas"], **A_CELL)
    assert row.instances == 0
    assert row.standard_error == pytest.approx((deltas["delta"].var() / 3) ** 0.5)
    assert row.degrees == pytest.approx(2)


def test_equal_runs_are_no_effect(study: Study) -> None:
    """The transfer run has the predictions of the baseline."""
    target = TASKS[1]
    baselines = {
        run.seed: run
        for run in select_transfer_runs(study.plan)
        if (run.model, run.method, run.about["target"]) == ("tiny-bert", "baseline", target)
    }
    for seed, baseline in baselines.items():
        run = next(
            run
            for run in select_transfer_runs(study.plan)
            if (run.model, run.method, run.about["sources"], run.about["target"], run.seed)
            == ("tiny-bert", "multitask", (TASKS[0],), target, seed)
        )
        _copy_result(record_of(study, baseline), record_of(study, run))
    row = one(gather(study)["cells"], **A_CELL)
    assert (row.delta, row.standard_error, row.low, row.high, row.p) == (0, 0, 0, 0, 1)
    assert not row.significant


def _copy_result(source: Path, target: Path) -> None:
    """Copy score and predictions of one record to another."""
    given, record = (json.loads(path.read_text()) for path in (source, target))
    own, other = (pq.read_table(path.with_name("rows.parquet")) for path in (source, target))
    (task,) = given["results"]
    table = pa.concat_tables(
        select_task_rows(other if name != task else own, name).replace_schema_metadata()
        for name in record["results"]
    ).replace_schema_metadata(own.schema.metadata)
    footer = {**table.schema.metadata, b"node": record["node"]["digest"].encode()}
    pq.write_table(table.replace_schema_metadata(footer), target.with_name("rows.parquet"))
    content = target.with_name("rows.parquet").read_bytes()
    rows = {**record["rows"], "sha256": hashlib.sha256(content).hexdigest()}
    record |= {"results": record["results"] | given["results"], "rows": rows}
    target.write_text(json.dumps(record))


# --- recomputed rows ------------------------------------------------------------------------------


def test_nothing_changed_nothing_read(study: Study, reads: list[str]) -> None:
    first = gather(study)["cells"]
    # Every run once: 2 models * 3 seeds * (3 baselines + 12 pairs + 1 of several sources). Three
    # pairs of multitask share a training.
    assert (len(reads), len(set(reads))) == (2 * 3 * 16, 2 * 3 * 13)
    reads.clear()
    pd.testing.assert_frame_equal(find_cells(study, first), first)
    assert reads == []


def test_a_new_transfer_run_costs_its_cell(study: Study, reads: list[str]) -> None:
    run = a_run(study)
    record_of(study, run).unlink()
    before = gather(study)["cells"]
    write_stage(study, of_plan(study, run), lambda _: 0.95)
    reads.clear()
    after = find_cells(study, before)
    # Its cell, and that of the way back: three transfer runs and three baselines each.
    assert len(reads) == 12
    assert one(after, **A_CELL).seeds == [0, 1, 2]
    changed = after["inputs"] != before["inputs"]
    assert changed.sum() == 2
    pd.testing.assert_frame_equal(after, gather(study)["cells"])


def test_a_new_baseline_costs_the_cells_of_its_target_and_model(
    study: Study, reads: list[str]
) -> None:
    before = gather(study)["cells"]
    write_stage(study, a_run(study, "baseline", "").stages[-1], lambda _: 0.2)
    reads.clear()
    after = find_cells(study, before)
    changed = after[after["inputs"] != before["inputs"]]
    # Two algorithms from two sources, and the one of several sources.
    assert len(changed) == 5
    assert set(changed["target"]) == {TASKS[2]}
    assert set(changed["model"]) == {"tiny-bert"}
    assert len(reads) == 5 * 3 + 3


def test_q_of_untouched_cells_follows_the_others(study: Study) -> None:
    before = gather(study)["cells"]
    for run in select_transfer_runs(study.plan):
        if run.method == "multitask" and run.about["sources"] == (TASKS[1],):
            write_stage(study, of_plan(study, run), lambda _: 1.0)
    after = find_cells(study, before)
    same = after["inputs"] == before["inputs"]
    assert (after.loc[same, "p"] == before.loc[same, "p"]).all()
    assert (after.loc[same, "q"] != before.loc[same, "q"]).any()
    pd.testing.assert_frame_equal(after, gather(study)["cells"])


@pytest.mark.parametrize("statistic", [draws, bootstrap])
def test_another_version_of_the_statistics_recomputes_all(
    study: Study, reads: list[str], monkeypatch: pytest.MonkeyPatch, statistic: Any
) -> None:
    before = gather(study)["cells"]
    reads.clear()
    monkeypatch.setattr(statistic, "VERSION", statistic.VERSION + 1)
    after = find_cells(study, before)
    assert len(reads) == 2 * 3 * 16
    assert (after["inputs"] != before["inputs"]).all()


def test_predictions_that_change_after_they_were_collected_are_refused(study: Study) -> None:
    tables = gather(study)
    path = record_of(study, a_run(study)).with_name("rows.parquet")
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(RecordError, match=rf"{re.escape(str(path))}.*SHA-256.*collect` again"):
        tables["cells"]


# --- runs without a cell --------------------------------------------------------------------------


def answer_another_instance(path: Path) -> None:
    ids = pq.read_table(path.with_name("rows.parquet"))["instance_id"].to_pylist()
    ids[3] = "someone-else"
    replace_column(path, "instance_id", ids)


def predict_another_label(path: Path) -> None:
    table = pq.read_table(path.with_name("rows.parquet"))
    predictions, golds = table["prediction"].to_pylist(), table["gold"].to_pylist()
    right = next(i for i, gold in enumerate(golds) if predictions[i] == gold)
    predictions[right] = next(gold for gold in golds if gold != golds[right])
    replace_column(path, "prediction", predictions)


def remove_predictions(path: Path) -> None:
    path.with_name("rows.parquet").unlink()


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (answer_another_instance, "was tested on other instances"),
        (predict_another_label, "of the predictions for .* the record contains"),
        (remove_predictions, "The file is missing"),
    ],
)
def test_damaged_predictions_are_named_and_left_out(
    study: Study, damage: Callable[[Path], None], error: str
) -> None:
    path = record_of(study, a_run(study))
    damage(path)
    tables = gather(study)
    assert set(tables["problems"]["path"]) == {path.relative_to(RESULTS).as_posix()}
    assert tables["problems"]["error"].str.contains(error).all()
    assert one(tables["cells"], **A_CELL).seeds == [0, 2]
