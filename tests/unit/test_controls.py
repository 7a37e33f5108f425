"""What a cell shows beside its controls."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from controlled_study import RESULTS, TASKS, finished, gather

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.runs import TransferRun as Run
from tasktransfer.designs.transfer.statistics.cells import cells
from tasktransfer.designs.transfer.statistics.controls import (
    BEATS,
    CANNOT_TELL,
    EXPLAINED,
    HURTS,
    controls,
    over_control,
    verdict_of,
)

Row = dict[str, Any]


def one(delta: float, q: float = 0.01, seeds: int = 5) -> Row:
    return {"delta": delta, "q": q, "n_seeds": seeds}


def judged(cell: Row, **each: Row) -> tuple[str, str]:
    return verdict_of(cell, each, list(CONTROLS))


ABOVE = {name: one(5.0) for name in CONTROLS}


@pytest.mark.parametrize(
    ("cell", "each", "verdict"),
    [
        (one(10.0), ABOVE, (BEATS, "")),
        (one(-3.0), ABOVE, (HURTS, "")),
        (one(-3.0, q=0.2), {n: one(-1.0, q=0.5) for n in CONTROLS}, (CANNOT_TELL, "")),
        # The control alone gives most of the delta, and what remains may be nothing.
        (one(10.0), ABOVE | {"self_transfer": one(1.0, q=0.6)}, (EXPLAINED, "self_transfer")),
        # What remains may be nothing, and may be most of it: seeds are too few to tell.
        (one(10.0), ABOVE | {"self_transfer": one(8.0, q=0.2)}, (CANNOT_TELL, "")),
        # The shuffled source does better: whatever the transfer gives, it is not the source's task.
        (one(1.0, q=0.7), ABOVE | {"shuffled_source": one(-4.0)}, (EXPLAINED, "shuffled_source")),
        (one(10.0), dict(list(ABOVE.items())[:2]), (CANNOT_TELL, "")),
        (one(10.0), ABOVE | {"self_transfer": one(5.0, np.nan)}, (CANNOT_TELL, "")),
        (one(10.0, seeds=1), ABOVE, (CANNOT_TELL, "")),
        (one(10.0), ABOVE | {"self_transfer": one(-5.0, seeds=1)}, (CANNOT_TELL, "")),
    ],
)
def test_a_verdict(cell: Row, each: dict[str, Row], verdict: tuple[str, str]) -> None:
    assert judged(cell, **each) == verdict


def test_all_controls_that_explain_are_named() -> None:
    each = ABOVE | {name: one(0.5, q=0.9) for name in ("self_transfer", "longer_baseline")}
    assert judged(one(10.0), **each) == (EXPLAINED, "self_transfer+longer_baseline")


# --- from records -------------------------------------------------------------------------------


def quality(run: Run) -> float:
    """The first source helps by its labels, the second by anything but them."""
    helps = {TASKS[0]: 0.9, TASKS[1]: 0.7, TASKS[2]: 0.5}
    if run.algorithm == "shuffled_source":
        return 0.7 if run.sources == (TASKS[1],) else 0.5
    return helps[run.sources[0]] if run.sources else 0.5


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("study"))
        finished(quality, seeds=8)
        tables = gather()
        yield tables, controls(tables, RESULTS, cells(tables, RESULTS))


def test_a_row_for_every_single_source_cell_of_the_controlled_algorithm(table: Any) -> None:
    _, frame = table
    assert list(frame.columns) == columns.names("controls")
    assert set(frame["algorithm"]) == {"pretrain_finetune"}
    assert len(frame) == 6
    assert (frame[[f"{name}_seeds" for name in CONTROLS]] == 8).all().all()


def test_what_labels_give_beats_the_controls_and_what_texts_give_is_explained(table: Any) -> None:
    _, frame = table
    verdicts = {row.source: row.verdict for row in frame.itertuples() if row.target == TASKS[2]}
    assert verdicts == {TASKS[0]: BEATS, TASKS[1]: EXPLAINED}
    explained = frame[(frame["source"] == TASKS[1]) & (frame["target"] == TASKS[2])].iloc[0]
    assert explained["explained_by"] == "shuffled_source"


def test_a_delta_over_a_control_is_paired_by_seed_target_and_source(table: Any) -> None:
    tables, frame = table
    for name, control in CONTROLS.items():
        runs = tables.control_runs[tables.control_runs["algorithm"] == name]
        for row in frame.to_dict("records"):
            others = runs[runs["target"] == row["target"]]
            others = others[others["source"] == row["source"]] if control.of_source else others
            score = row["delta"] + _baseline(tables, row)
            assert row[f"{name}_delta"] == pytest.approx(score - others["score"].mean())


def _baseline(tables: Any, row: Row) -> float:
    runs = tables.runs
    own = runs[(runs["algorithm"] == "baseline") & (runs["target"] == row["target"])]
    return float(own["score"].mean())


def test_over_a_control_cells_have_an_interval_and_a_test(table: Any) -> None:
    tables, frame = table
    found = over_control(tables, RESULTS, "self_transfer")
    assert (found["instances"] == 40).all()
    assert found["q"].tolist() == pytest.approx(frame["self_transfer_q"].tolist())


def test_a_study_without_controls_has_no_rows(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finished(quality, controls=[], seeds=2)
    tables = gather()
    assert controls(tables, RESULTS, cells(tables, RESULTS)).empty


def test_where_a_control_is_missing_nothing_beats_it(table: Any) -> None:
    tables, _ = table
    kept = tables.control_runs[tables.control_runs["algorithm"] != "longer_baseline"]
    gone = columns.frame("control_missing", []).reindex([0]).assign(algorithm="longer_baseline")
    holed = dataclasses.replace(tables, control_runs=kept, control_missing=gone)
    frame = controls(holed, RESULTS, cells(tables, RESULTS))
    assert BEATS not in set(frame["verdict"])
    assert pd.isna(frame["longer_baseline_delta"]).all()
