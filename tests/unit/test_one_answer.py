"""Collapsed runs: counted, listed, never left out. And what the report says beside controls."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from controlled_study import RESULTS, TASKS, finished, gather

import study_records
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.results import Results, Statistics
from tasktransfer.designs.transfer.figures.over_shuffled import over_shuffled
from tasktransfer.designs.transfer.report.control_tables import control_tables
from tasktransfer.designs.transfer.report.reference_table import reference_tables
from tasktransfer.designs.transfer.runs import TransferRun as Run
from tasktransfer.designs.transfer.statistics import one_answer as module
from tasktransfer.designs.transfer.statistics.cells import cells
from tasktransfer.designs.transfer.statistics.controls import controls
from tasktransfer.designs.transfer.statistics.one_answer import collapsed_cells, one_answer
from tasktransfer.designs.transfer.statistics.top1 import top1
from tasktransfer.tables.metadata import Metadata


def quality(run: Run) -> float:
    return 0.9 if run.sources == (TASKS[0],) and run.algorithm != "shuffled_source" else 0.5


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of a study in which two seeds of one transfer collapsed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("study"))
        study = finished(quality)
        patch.setattr(study_records, "_tested", _always_the_first(study_records._tested))
        for run in study.plan.runs:
            about = (run.method, run.about["sources"], run.about["target"])
            if about == ("pretrain_finetune", (TASKS[1],), TASKS[2]) and run.seed < 2:
                study_records.write_stage(study, run.scored, quality)
        tables = gather()
        assert tables.problems.empty
        over = cells(tables, RESULTS)
        frames = {name: columns.frame(name, []) for name in columns.STATISTICS} | {
            "cells": over,
            "controls": controls(tables, RESULTS, over),
            "top1": top1(tables.deltas, tables.runs),
            "one_answer": one_answer(tables, RESULTS),
        }
        order = {"task": TASKS}
        metadata = Metadata("controlled", "c" * 64, True, len(tables.runs), order=order)
        yield Results(tables, Statistics(**frames), metadata, None)


def _always_the_first(tested: Any) -> Any:
    """Predictions of a model that gives its first label, whatever it is asked."""

    def constant(stage: Any, task: Any, quality: Any) -> Any:
        rows, _ = tested(stage, task, quality)
        answer = (task.labels[0],)
        golds = [row.gold for row in rows]
        answers = [answer] * len(rows)
        each = study_records.metrics.instance_scores(task, answers, golds)
        rows = [
            dataclasses.replace(row, prediction=answer, score=score)
            for row, score in zip(rows, each, strict=True)
        ]
        values = study_records.metrics.evaluate(task, answers, golds)
        score = study_records.metrics.score(task, values)
        return rows, {"metrics": values, "score": score, "instances": len(rows)}

    return constant


def test_every_run_and_control_has_a_row_and_two_are_collapsed(results: Results) -> None:
    frame = results.statistics.one_answer
    assert len(frame) == len(results.tables.runs) + len(results.tables.control_runs)
    collapsed = frame[frame["collapsed"]]
    assert collapsed["seed"].tolist() == [0, 1]
    assert set(collapsed["source"]) == {TASKS[1]}
    assert (collapsed["share"] == 1).all()


def test_collapsed_runs_are_counted_by_cell_and_stay_in_it(results: Results) -> None:
    (cell,) = collapsed_cells(results.statistics.one_answer).to_dict("records")
    assert (cell["source"], cell["target"]) == (TASKS[1], TASKS[2])
    assert (cell["collapsed"], cell["runs"]) == (2, 5)
    over = results.statistics.cells
    own = over[(over["source"] == TASKS[1]) & (over["algorithm"] == "pretrain_finetune")]
    assert own["n_seeds"].tolist() == [5, 5]


@pytest.mark.parametrize(("same", "of", "collapsed"), [(99, 100, True), (98, 100, False)])
def test_the_threshold(same: int, of: int, collapsed: bool) -> None:
    assert (same / of >= module.COLLAPSED) is collapsed


def test_predictions_that_were_read_before_are_not_read_again(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = results.statistics.one_answer
    monkeypatch.setattr(module, "read_columns", None)
    again = one_answer(results.tables, Path("nowhere"), frame)
    pd.testing.assert_frame_equal(again, frame)


def test_the_report_has_controls_top1_and_collapsed_runs(results: Results) -> None:
    tables = {table.name: table for table in control_tables(results)}
    assert list(tables) == ["top1", "controls", "collapsed", "collapsed-runs"]
    assert tables["controls"].count == 6
    assert tables["collapsed-runs"].count == 2
    verdicts = [row[-2] for block in tables["controls"].blocks for row in block]
    assert "beats all controls" in {*verdicts, *(row[-1] for row in tables["controls"].blocks[0])}
    assert "beats all controls" in tables["controls"].note


def test_references_stand_beside_the_baselines(results: Results) -> None:
    reference = pd.DataFrame(
        [("DailyDialog", TASKS[0], "most_frequent", 6.25)],
        columns=["dataset", "task", "reference", "score"],
    )
    assert reference_tables(results) == []
    (table,) = reference_tables(dataclasses.replace(results, reference=reference))
    rows = table.blocks[0]
    assert [row[1] for row in rows] == sorted(TASKS, key=[row[1] for row in rows].index)
    assert next(row for row in rows if row[1] == TASKS[0])[2] == "6.25"


def test_the_second_heatmap_is_of_deltas_over_the_shuffled_source(results: Results) -> None:
    figure = over_shuffled(results, "DailyDialog")
    assert figure is not None
    texts = {text.get_text() for axes in figure.axes for text in axes.texts}
    row = results.statistics.controls.iloc[0]
    assert f"{row['shuffled_source_delta']:+.1f}".replace("-", "−") in texts
    assert "%" not in "".join(texts)


def test_without_shuffled_sources_there_is_no_second_heatmap(results: Results) -> None:
    none = dataclasses.replace(results.statistics, controls=columns.frame("controls", []))
    assert over_shuffled(dataclasses.replace(results, statistics=none), "DailyDialog") is None
