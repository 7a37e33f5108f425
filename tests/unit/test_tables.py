from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from record_factory import (
    AS_ALL,
    Run,
    constructed,
    make_plan,
    make_record,
    make_study,
    record_path,
    single_source_runs,
    stage_of_run,
)

from tasktransfer.core.fidelity import Fidelity
from tasktransfer.core.specs import Training
from tasktransfer.designs.transfer.frames import FRAMES
from tasktransfer.errors import RecordError
from tasktransfer.results.frames import COMMON, compute_frames_version, list_column_names
from tasktransfer.results.mixtures import Comparison, iterate_facts
from transfer_frames import (
    COLUMNS,
    compute_frames,
    read_frames,
    write_collected_tables,
    write_constructed,
)

TASKS = ("a_task", "b_task", "c_task")
RUNS = single_source_runs("DailyDialog", ["bert"], TASKS, [0, 1], ["multitask"])


WRITTEN = (*COMMON, "transfer_runs", "control_runs", "training_curves")
"""Frames that are made from records, of a study without prompted models, references or mixes."""


def score(run: Run) -> float:
    """Return baselines of 40, 50 and 60 by task, plus the seed.

    Transfer adds 4 from a_task, and otherwise loses 5.
    """
    *_, sources, target, seed = run
    base = {"a_task": 40.0, "b_task": 50.0, "c_task": 60.0}[target] + seed
    return base + (0.0 if not sources else 4.0 if sources == ("a_task",) else -5.0)


def one(frame: pd.DataFrame, **keys: Any) -> Any:
    for key, value in keys.items():
        frame = frame[frame[key] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


def test_each_run_is_a_row_and_each_delta_is_against_its_own_seed(tmp_path: Path) -> None:
    tables = compute_frames(constructed(tmp_path, RUNS, score))
    assert len(tables["transfer_runs"]) == 6 + 12
    assert len(tables["deltas"]) == 12
    row = one(tables["deltas"], source="a_task", target="b_task", seed=1)
    assert (row.score, row.baseline_score, row.delta) == (55.0, 51.0, 4.0)
    assert row.improvement == pytest.approx(100 * 4 / 51)
    assert one(tables["deltas"], source="b_task", target="c_task", seed=0).delta == -5.0
    run = one(tables["transfer_runs"], source="c_task", target="a_task", seed=0)
    assert run.score == 35.0
    assert run.path == record_path(("DailyDialog", "bert", "multitask", ("c_task",), "a_task", 0))
    assert (run.train_size, run.dev_size, run.test_size, run.seconds) == (100, 10, 4, 2.0)
    assert tables["missing_runs"].empty
    assert tables["problems"].empty


def test_scores_are_long_over_test_and_the_best_dev_epoch(tmp_path: Path) -> None:
    tables = compute_frames(constructed(tmp_path, RUNS, score))
    found = tables["scores"].query("sources == 'a_task' and target == 'b_task' and seed == 0")
    assert set(zip(found.split, found.measure, found.value, strict=True)) == {
        ("test", "accuracy", 54.0),
        ("test", "score", 54.0),
        ("dev", "accuracy", 54.0),
    }


def test_what_is_written_is_read_back_with_its_footer(tmp_path: Path) -> None:
    collected = constructed(tmp_path, RUNS, score, synthetic=["DailyDialog"])
    tables, again = compute_frames(collected), write_constructed(collected)
    metadata = again.metadata
    assert metadata == tables.metadata
    assert (metadata.study, metadata.synthetic, metadata.records) == ("constructed", True, 12)
    assert metadata.shorts["dialogue_nli"] == "DNLI"
    for name in WRITTEN:
        assert list(again[name].columns) == list_column_names(COLUMNS[name])
        pd.testing.assert_frame_equal(tables[name], again[name])
    field = pq.read_schema(tmp_path / "tables" / "transfer_runs.parquet").field("score")
    assert b"test split" in field.metadata[b"description"]


def test_holes_are_listed_with_their_reason(tmp_path: Path) -> None:
    gone = {
        ("DailyDialog", "bert", "multitask", ("a_task",), "b_task", 1),
        ("DailyDialog", "bert", "baseline", (), "c_task", 0),
    }
    tables = compute_frames(constructed(tmp_path, RUNS, score, leave_out=lambda r: r in gone))
    missing = tables["missing_runs"]
    assert one(missing, source="a_task", target="b_task").reason == "no record"
    assert one(missing, algorithm="baseline").target == "c_task"
    orphans = missing[missing.reason == "its baseline is missing"]
    assert set(zip(orphans.source, orphans.target, orphans.seed, strict=True)) == {
        ("a_task", "c_task", 0),
        ("b_task", "c_task", 0),
    }
    assert len(missing) == 4
    row = one(tables["deltas"], source="a_task", target="c_task", seed=0)
    assert row.score == 64.0
    assert math.isnan(row.delta)
    assert math.isnan(row.improvement)


def test_a_zero_baseline_has_a_delta_but_no_percentage(tmp_path: Path) -> None:
    collected = constructed(tmp_path, RUNS, lambda run: 7.0 if run[3] else 0.0)
    deltas = compute_frames(collected)["deltas"]
    assert (deltas.delta == 7.0).all()
    assert deltas.improvement.isna().all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"record": {"synthetic": True}}, "synthetic of DailyDialog is"),
        ({"stage_of": {"revision": "r2"}}, "data_revision of DailyDialog is 'r1'"),
        ({"stage_of": {"few_sample": False}}, "few_sample of DailyDialog"),
        (
            {"stage_of": {"training": Training(fidelity=Fidelity(scoring="tlidb"))}},
            "scoring of DailyDialog bert is 'default'",
        ),
        ({"stage_of": {"weights": "sha256:other"}}, "weights of bert is 'sha256:bert'"),
        ({"stage_of": {"recipe": 99}}, "provenance.recipe of DailyDialog b_task, encoder is"),
        (
            {"record": {"sizes": {"b_task": {"train": 9, "dev": 9, "test": 4}}}},
            "sizes.b_task of DailyDialog",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(changes: dict[str, Any], said: str) -> None:
    """Independently of the plan, because no plan of one config has such records."""
    run = ("DailyDialog", "bert", "baseline", (), "b_task", 1)
    comparison = Comparison()
    for one in RUNS:
        add(comparison, one)
    with pytest.raises(RecordError) as refusal:
        add(comparison, run, changes.get("stage_of", {}), **changes.get("record", {}))
    assert said in str(refusal.value)
    assert str(refusal.value).count("metrics.json") == 2


def add(
    comparison: Comparison, run: Run, stage_of: Mapping[str, Any] = AS_ALL, **changes: Any
) -> None:
    """Compare the record of a run with those before it."""
    record = make_record(run, 51.0, stage_of, **changes)
    facts = iterate_facts(stage_of_run(run, **stage_of), record)
    comparison.add(dict(facts), record_path(run, **stage_of))


def test_two_datasets_may_have_two_data_revisions() -> None:
    comparison = Comparison()
    for run in RUNS:
        add(comparison, run)
    for run in single_source_runs("Friends", ["bert"], TASKS[:2], [0], ["multitask"]):
        add(comparison, run, {"revision": "r2"})


def test_several_sources_are_joined_and_kept_apart(tmp_path: Path) -> None:
    several = ("DailyDialog", "bert", "multitask", ("a_task", "b_task"), "c_task", 0)
    tables = compute_frames(constructed(tmp_path, [*RUNS, several], score))
    row = one(tables["deltas"], n_sources=2)
    expected = ("a_task+b_task", ["a_task", "b_task"], -5.0)
    assert (row.source, list(row.sources), row.delta) == expected


def test_nothing_usable_is_an_error_with_the_first_holes(tmp_path: Path) -> None:
    study = make_study(tmp_path, make_plan(RUNS))
    with pytest.raises(RecordError, match="None of 18 planned runs has a usable record"):
        write_collected_tables(study)
    path = tmp_path / record_path(RUNS[0])
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with pytest.raises(RecordError, match=r"damaged: .*not valid JSON"):
        write_collected_tables(study)
    assert not (tmp_path / "tables" / "runs.parquet").exists()


def test_damaged_tables_are_refused(tmp_path: Path) -> None:
    study = write_constructed(constructed(tmp_path, RUNS, score)).study
    file = tmp_path / "tables" / "runs.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:-30])
    with pytest.raises(RecordError, match=r"runs\.parquet: The table cannot be read"):
        read_frames(study)


def test_analysis_needs_no_torch() -> None:
    code = (
        "import sys; from tasktransfer.designs.transfer.figures import heatmap, pair_means; "
        "import tasktransfer.selection.choose; "
        "print([m for m in sys.modules if m in ('torch', 'transformers') "
        "or m.startswith('tasktransfer.training')])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "[]"


def test_changed_columns_or_code_change_the_version_of_the_tables() -> None:
    """Otherwise finished studies would keep tables that cannot be read."""
    first, *others = FRAMES
    changed = (replace(first, columns=first.columns[:-1]), replace(first, version=99))
    versions = {compute_frames_version([frame, *others]) for frame in (first, *changed)}
    assert len(versions) == 3
