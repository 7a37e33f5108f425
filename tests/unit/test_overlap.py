"""Instances and dialogues that tasks share, and their effect on the deltas."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from delta_frames import make_deltas
from record_factory import Run, make_record, record_path

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.statistics.overlap import (
    INSTANCES,
    TEST_INSTANCES,
    TRAINING_DIALOGUES,
    collect_test_instances,
    compute_overlap,
    compute_overlap_effect,
)
from tasktransfer.errors import RecordError
from tasktransfer.results.rows import Row, write_rows
from tasktransfer.results.store import build_frame
from tasktransfer.stats import correlation


def instances(**tasks: str) -> pd.DataFrame:
    rows = [("DailyDialog", task, name) for task, ids in tasks.items() for name in ids]
    return pd.DataFrame(rows, columns=list(INSTANCES))


def training(*rows: tuple[str, str, int, int]) -> pd.DataFrame:
    return pd.DataFrame(
        [("DailyDialog", *row) for row in rows],
        columns=["dataset", "source", "target", "shared", "of"],
    )


def test_shares_by_hand_in_the_order_of_the_study() -> None:
    table = compute_overlap(
        instances(a="pqrs", b="rstuvwxy", c="z"),
        training(("a", "b", 3, 4), ("b", "a", 3, 6), ("c", "a", 0, 6), ("a", "c", 0, 0)),
        {"task": ["c", "b", "a"]},
    )
    assert list(table.drop(columns="dataset").itertuples(index=False, name=None)) == [
        ("c", "b", TEST_INSTANCES, 0, 8, 0.0),
        ("c", "a", TEST_INSTANCES, 0, 4, 0.0),
        ("b", "c", TEST_INSTANCES, 0, 1, 0.0),
        ("b", "a", TEST_INSTANCES, 2, 4, 0.5),
        ("a", "c", TEST_INSTANCES, 0, 1, 0.0),
        ("a", "b", TEST_INSTANCES, 2, 8, 0.25),
        ("c", "a", TRAINING_DIALOGUES, 0, 6, 0.0),
        ("b", "a", TRAINING_DIALOGUES, 3, 6, 0.5),
        ("a", "b", TRAINING_DIALOGUES, 3, 4, 0.75),
    ]


def test_training_dialogues_without_predictions() -> None:
    table = compute_overlap(instances(), training(("a", "b", 1, 2)))
    assert table["basis"].to_list() == [TRAINING_DIALOGUES]


def write_run(root: Path, run: Run, ids: list[str] | None) -> Path:
    """Write a run's record with predictions of these instances, or without any."""
    path = root / record_path(run)
    path.parent.mkdir(parents=True)
    target = run[4]
    changes: dict[str, object] = {}
    if ids is not None:
        rows = [Row(i, target, name, ("x",), ("x",), 100.0) for i, name in enumerate(ids)]
        result = {"measures": {"accuracy": 100.0}, "score": 100.0, "instances": len(ids)}
        digest = make_record(run, 100.0)["node"]["digest"]
        changes["rows"] = write_rows(path.parent, rows, digest=digest, dataset=run[0])
        changes["results"] = {target: result}
    path.write_text(json.dumps(make_record(run, 100.0, **changes)))
    return path


def runs_of(*paths: Path, root: Path) -> pd.DataFrame:
    """Return the columns of runs that the test compares."""
    rows = []
    for path in paths:
        record = json.loads(path.read_text())
        (target,) = record["results"]
        has = record["rows"] is not None
        stage, place = record["node"], path.relative_to(root).as_posix()
        rows.append((stage["dataset"], stage["model"], stage["step"], target, place, has))
    columns = ["dataset", "model", "algorithm", "target", "path", "has_predictions"]
    return pd.DataFrame(rows, columns=columns)


def test_ids_come_from_the_first_baseline_with_predictions(tmp_path: Path) -> None:
    runs = runs_of(
        write_run(tmp_path, ("DailyDialog", "bert", "baseline", (), "a_task", 0), None),
        write_run(tmp_path, ("DailyDialog", "bert", "baseline", (), "a_task", 1), ["p", "q", "q"]),
        write_run(tmp_path, ("DailyDialog", "gpt2", "baseline", (), "a_task", 1), ["other"]),
        write_run(tmp_path, ("DailyDialog", "bert", "multitask", ("a_task",), "b_task", 1), ["z"]),
        root=tmp_path,
    )
    found = collect_test_instances(runs, tmp_path)
    assert list(found.itertuples(index=False, name=None)) == [
        ("DailyDialog", "a_task", "p"),
        ("DailyDialog", "a_task", "q"),
    ]


@pytest.mark.parametrize("damage", ["gone", "cut", "other"])
def test_damaged_predictions_are_named(tmp_path: Path, damage: str) -> None:
    run = ("DailyDialog", "bert", "baseline", (), "a_task", 0)
    runs = runs_of(write_run(tmp_path, run, ["p", "q"]), root=tmp_path)
    file = (tmp_path / record_path(run)).with_name("rows.parquet")
    if damage == "gone":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:100])
    else:
        row = Row(0, "a_task", "p", ("x",), ("x",), 0.0)
        write_rows(file.parent, [row], digest="d", dataset="DailyDialog")
    with pytest.raises(RecordError, match=r"rows\.parquet"):
        collect_test_instances(runs, tmp_path)


def test_effect_by_hand() -> None:
    """Four tasks in a ring: each shares data with the next, and helps it."""
    tasks = "abcd"
    following = {task: tasks[(i + 1) % 4] for i, task in enumerate(tasks)}
    pairs = [(s, t, int(following[s] == t), 1) for s in tasks for t in tasks if s != t]
    shared = compute_overlap(instances(a="p", b="q", c="r", d="s"), training(*pairs))
    deltas = make_deltas(lambda m, al, s, t, seed: 5.0 if following[s] == t else 1.0)
    effect = compute_overlap_effect(shared, deltas).set_index("basis")
    found = effect.loc[TRAINING_DIALOGUES]
    assert (found.n_pairs, found.correlation) == (12, pytest.approx(1))
    assert found.p == pytest.approx(4 / 24)  # turning the ring changes nothing
    nothing_shared = effect.loc[TEST_INSTANCES]
    assert nothing_shared.n_pairs == 12
    assert math.isnan(nothing_shared.correlation)
    assert math.isnan(nothing_shared.p)


def test_p_is_uniform_where_sharing_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "RESAMPLES", 10)
    monkeypatch.setattr(correlation, "MOST_RENAMED_IN_FULL", 5)
    monkeypatch.setattr(correlation, "RENAMINGS", 99)
    noise = np.random.default_rng(0)
    tasks = "abcdef"
    p = []
    for _ in range(80):
        rows = [(s, t, int(noise.integers(0, 10)), 10) for s in tasks for t in tasks if s != t]
        helpful = dict(zip(tasks, noise.normal(size=6), strict=True))
        deltas = make_deltas(
            lambda m, al, s, t, seed, h=helpful: float(h[s] + noise.normal()),
            tasks=tasks,
            seeds=[0],
        )
        p.append(
            compute_overlap_effect(compute_overlap(instances(), training(*rows)), deltas)["p"].iloc[
                0
            ]
        )
    assert np.mean(np.array(p) <= 0.05) <= 0.11
    assert 0.42 <= np.mean(p) <= 0.58


def test_nothing_gives_empty_tables() -> None:
    shared = compute_overlap(collect_test_instances(build_frame([], columns.RUNS), Path()))
    assert shared.empty
    assert compute_overlap_effect(shared, make_deltas(lambda *name: 1.0)).empty
