"""Cells compared with their controls, top-1, and runs that predict one answer."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

from simulated_controls import KINDS, verdicts
from simulated_studies import DIALOGUES
from study_records import write_records
from tasktransfer.core.runs import Run
from tasktransfer.designs import open_study
from tasktransfer.designs.challenge.records import list_submission_records
from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.algorithms import CONTROLS
from tasktransfer.designs.transfer.runs import is_control
from tasktransfer.designs.transfer.statistics.answers import compute_collapsed_table
from tasktransfer.designs.transfer.statistics.by_dialogue import compute_dialogue_scores
from tasktransfer.designs.transfer.statistics.choices import compute_top1
from tasktransfer.designs.transfer.statistics.controls import (
    BEATS,
    CANNOT_TELL,
    EXPLAINED,
    HURTS,
    NOT_JUDGED,
    ControlEffect,
    compute_control_cells,
    judge_cell,
)
from tasktransfer.errors import RecordError
from tasktransfer.results.collect import gather_records as collected
from tasktransfer.results.frames import Frames, list_column_names
from tasktransfer.results.rows import Row, write_rows
from tasktransfer.results.study import Study
from tasktransfer.stats.answers import find_common_answer
from transfer_frames import compute_frames

HELPS, IDLE, TARGET = "emotion_recognition", "dialogue_nli", "topic_classification"
KEYS: dict[str, Any] = {
    "study": "constructed",
    "datasets": {
        "DailyDialog": {
            "tasks": [HELPS, IDLE, TARGET],
            "pairs": [{"source": s, "target": TARGET} for s in (HELPS, IDLE)],
        }
    },
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "algorithms": ["pretrain_finetune"],
    "controls": list(CONTROLS),
    "seeds": 5,
    "baseline_seeds": 8,
}
RESULTS = Path("results")


def quality(run: Run) -> float:
    """Return scores in which only one source helps, as long as its answers are right."""
    return 0.95 if (run.about["sources"], run.method) == ((HELPS,), "pretrain_finetune") else 0.3


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(yaml.safe_dump(KEYS))
    study = open_study("study.yaml")
    write_records(study, quality)
    return study


def gather(study: Study) -> Frames:
    return compute_frames(collected(study))


def test_controls_have_tables_of_their_own(study: Study) -> None:
    tables = gather(study)
    assert tables["problems"].empty
    assert set(tables["transfer_runs"]["algorithm"]) == {"baseline", "pretrain_finetune"}
    assert tables["control_runs"]["algorithm"].value_counts().to_dict() == {
        "self_transfer": 5,
        "longer_baseline": 5,
        "shuffled_source": 10,
    }
    assert set(tables["scores"]["method"]) == {"baseline", "pretrain_finetune", *CONTROLS}
    assert len(tables["deltas"]) == 10
    assert (tables["transfer_runs"]["algorithm"] == "baseline").sum() == 8 * 3


def test_the_source_that_helps_beats_all_controls_and_the_other_does_not(study: Study) -> None:
    tables = gather(study)
    table = tables["controls"]
    assert list(table.columns) == list_column_names(columns.CONTROLS)
    assert table.groupby("source")["control"].agg(list).to_dict() == {
        HELPS: list(CONTROLS),
        IDLE: list(CONTROLS),
    }
    told = table.drop_duplicates("source").set_index("source")["verdict"]
    assert told[HELPS] == BEATS
    assert told[IDLE] == CANNOT_TELL
    scores = tables["control_runs"].groupby(["algorithm", "source"])["score"].mean()
    transfer = tables["deltas"].groupby("source")["score"].mean()
    for row in table.itertuples():
        own = scores[row.control, row.source if row.control == "shuffled_source" else ""]
        assert row.control_score == pytest.approx(own)
        assert row.delta == pytest.approx(transfer[row.source] - own)
        assert row.low < row.delta < row.high


def test_the_second_heatmaps_cells_are_over_the_shuffled_source(study: Study) -> None:
    tables = gather(study)
    plain, over, table = (tables[name] for name in ("cells", "control_cells", "controls"))
    over = over[over["control"] == "shuffled_source"].set_index("source")
    wanted = table[table["control"] == "shuffled_source"].set_index("source")
    for source in (HELPS, IDLE):
        shuffled = wanted.loc[source, "control_delta"]
        own = plain.set_index("source").loc[source, "delta"]
        assert over.loc[source, "delta"] == pytest.approx(own - shuffled)
        assert over.loc[source, "baseline_score"] == wanted.loc[source, "control_score"]


def test_only_cells_whose_runs_changed_are_computed_again(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = gather(study)
    before = tables["control_cells"]
    monkeypatch.setattr(
        "tasktransfer.designs.transfer.statistics.cells.TallyReader",
        lambda *_: pytest.fail("computed again"),
    )
    again = compute_control_cells(tables["transfer_runs"], tables["control_runs"], RESULTS, before)
    pd.testing.assert_frame_equal(again, before)


@pytest.mark.parametrize("seeds", [0, 1])
def test_a_missing_control_leaves_its_row_open(study: Study, seeds: int) -> None:
    for run in study.plan.runs:
        if run.method == "self_transfer" and run.seed >= seeds:
            Path(study.get_record_path(run.stages[-1])).unlink()
    tables = gather(study)
    assert tables["missing_runs"].empty
    missing = tables["missing"]["method"]
    assert missing[missing.isin(CONTROLS)].tolist() == ["self_transfer"] * (5 - seeds)
    table = tables["controls"]
    incomplete = table[table["control"] == "self_transfer"]
    assert incomplete["n_seeds"].tolist() == [seeds, seeds]
    assert incomplete["q"].isna().all()
    assert incomplete["delta"].notna().tolist() == [seeds > 0] * 2
    assert BEATS not in set(table["verdict"])


def test_cells_of_one_seed_are_marked_as_not_tested(study: Study) -> None:
    first = open_study("study.yaml", {"seeds": 1})
    assert set(gather(first)["controls"]["verdict"]) == {NOT_JUDGED}


NONE = math.nan
MISSING = (NONE, NONE, NONE)


@pytest.mark.parametrize(
    ("delta", "q", "over", "said"),
    [
        (9.0, 0.01, [(5.0, 8.0, 0.01), (6.0, 9.0, 0.05)], BEATS),
        (9.0, 0.01, [(5.0, 8.0, 0.01), (6.0, 9.0, 0.06)], CANNOT_TELL),
        (9.0, 0.01, [(5.0, 8.0, 0.01), MISSING], CANNOT_TELL),
        (9.0, 0.01, [(5.0, 8.0, 0.01), (6.0, NONE, NONE)], CANNOT_TELL),
        # Who beats all controls has a gain first.
        (-0.8, 0.30, [(5.0, 8.0, 0.01), (6.0, 9.0, 0.01)], CANNOT_TELL),
        (0.8, 0.30, [(5.0, 8.0, 0.01), (6.0, 9.0, 0.01)], CANNOT_TELL),
        # A slightly better control is no evidence; one with significantly half of the gain is.
        (3.0, 0.001, [(-0.01, 1.9, 0.99)], CANNOT_TELL),
        (3.0, 0.001, [(-0.01, 1.4, 0.99)], EXPLAINED),
        (3.0, 0.001, [MISSING, (-0.01, 1.4, 0.99)], EXPLAINED),
        (3.0, 0.30, [(-0.01, 1.4, 0.99)], CANNOT_TELL),
        (-2.0, 0.30, [(-1.0, 1.0, 0.5)], CANNOT_TELL),
        (-2.0, 0.05, [(5.0, 8.0, 0.01)], HURTS),
        (-2.0, NONE, [(5.0, 8.0, NONE)], NOT_JUDGED),
        (9.0, NONE, [(5.0, 8.0, NONE)], NOT_JUDGED),
    ],
)
def test_verdicts(
    delta: float, q: float, over: list[tuple[float, float, float]], said: str
) -> None:
    assert judge_cell(delta, q, [ControlEffect(*one) for one in over]) == said


def test_cells_that_controls_equal_rarely_beat_them_and_a_source_of_its_own_does() -> None:
    """Simulated heatmaps in which sources give nothing, as much as a control, or more.

    See also ``benchmarks/statistics_simulation.py verdicts``.
    """
    regime = replace(DIALOGUES[5], dialogues=40, gain=0.15)
    chance = np.random.default_rng(11)
    judged = [said for _ in range(6) for said in verdicts(regime, KINDS, 6, chance)]
    false = [said == BEATS for kind, said in judged if not kind.beats]
    assert np.mean(false) <= 0.05
    alone = [said for kind, said in judged if kind.name == "the source alone gives it"]
    assert alone.count(BEATS) / len(alone) > 0.8
    every = [said for kind, said in judged if kind.name == "all controls give it all"]
    assert every.count(EXPLAINED) / len(every) > 0.8


def test_top1_beside_what_did_not_choose_it(study: Study) -> None:
    tables = gather(study)
    dialogues = compute_dialogue_scores(tables["transfer_runs"], RESULTS)
    (row,) = compute_top1(tables["deltas"], tables["transfer_runs"], dialogues).to_dict("records")
    best = tables["deltas"].groupby("source")["delta"].mean().max()
    assert (row["n_targets"], row["n_seeds"]) == (1, 5)
    # One source is far ahead on every seed and dialogue: however it is chosen, it is the one.
    assert row["top1"] == pytest.approx(best)
    own = tables["deltas"][tables["deltas"]["source"] == HELPS]
    halves = dialogues["DailyDialog", TARGET].halves
    judged = [
        halves["tiny-bert", run] - halves["tiny-bert", baseline]
        for run, baseline in zip(own["digest"], own["baseline_digest"], strict=True)
    ]
    assert row["top1_heldout"] == pytest.approx(np.mean(judged))
    assert row["top1_heldout"] == pytest.approx(best, abs=5)
    assert row["top1_heldout_low"] < best < row["top1_heldout_high"]


def test_a_run_that_gives_one_answer_is_counted_and_stays(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = gather(study)
    one = tables["transfer_runs"].index[
        (tables["transfer_runs"]["source"] == HELPS) & (tables["transfer_runs"]["seed"] == 3)
    ][0]
    rows = [Row(i, TARGET, f"{TARGET}-{i}", ("work",), ("work",), 100.0) for i in range(40)]
    made = {"digest": "d", "dataset": "DailyDialog", "file": "one.parquet"}
    file = write_rows(RESULTS, rows, **made)
    tables["transfer_runs"].loc[one, ["predictions", "predictions_sha256"]] = [
        "one.parquet",
        file["sha256"],
    ]
    runs = pd.concat([tables["transfer_runs"], tables["control_runs"]])
    table = compute_collapsed_table(runs, RESULTS)
    cell = table[table["source"].eq(HELPS) & table["algorithm"].eq("pretrain_finetune")].iloc[0]
    assert (cell.n_runs, cell.n_collapsed, cell.seeds, cell.answer) == (5, 1, [3], "work")
    assert table["n_collapsed"].sum() == 1
    assert len(table) == 3 + 2 + 1 + 1 + 2
    Path("results/one.parquet").unlink()
    pd.testing.assert_frame_equal(compute_collapsed_table(runs, RESULTS, table), table)
    # Rows of another version are recomputed, but their inputs are gone.
    monkeypatch.setattr(f"{compute_collapsed_table.__module__}._VERSION", 0)
    with pytest.raises(RecordError, match=r"one\.parquet"):
        compute_collapsed_table(runs, RESULTS, table)


@pytest.mark.parametrize(("others", "share"), [(1, 0.99), (2, 0.98)])
def test_99_of_100_answers_are_one(others: int, share: float) -> None:
    answers = [("a", "b")] * (100 - others) + [("b", "a")] * others
    assert find_common_answer(pa.chunked_array([answers]), None) == ("a, b", share)


def test_a_submission_has_no_control_behind_it(study: Study) -> None:
    free = replace(study, config=study.config.model_copy(update={"rules": "challenge"}))
    records = list_submission_records(free, "DailyDialog", "tiny-bert")
    control = {
        study.get_record_path(stage)
        for run in study.plan.runs
        if is_control(run)
        for stage in run.stages
        if stage.kind == "control" or stage is run.stages[-1]
    }
    assert records
    assert not control & set(records)
