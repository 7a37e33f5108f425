"""Relation between transfer and the instances or dialogues that two tasks share.

There are two bases. `test instances` are test instances with the same id; the predictions contain
these ids, so records are enough. Few tasks label the same instances (the two emotion tasks of
Friends, emotion and act of DailyDialog). `training dialogues` are distinct dialogues with a
training instance of both tasks; ``tasktransfer data stats`` counts them if the dialogues are
available.
"""

from __future__ import annotations

import itertools
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pandas as pd

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.statistics.deltas import (
    average_over_seeds,
    build_cube,
    build_matrix,
    group_by_dataset,
    list_distinct,
    select_fresh_deltas,
)
from tasktransfer.errors import RecordError, format_missing_columns
from tasktransfer.results.frames import Frames
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import read_rows
from tasktransfer.results.store import Metadata, Order, build_frame
from tasktransfer.stats.correlation import compute_matrix_correlation
from tasktransfer.stats.draws import Floats

TEST_INSTANCES = "test instances"
TRAINING_DIALOGUES = "training dialogues"
INSTANCES = ("dataset", "task", "instance_id")
"""Columns of ``collect_test_instances``."""


def make_overlap(frames: Frames) -> pd.DataFrame:
    """Return the frame ``overlap``, shared test instances and training dialogues of tasks."""
    root = Path(frames.study.config.results)
    instances = collect_test_instances(frames["transfer_runs"], root)
    return compute_overlap(instances, _select_training_counts(frames), frames.metadata.order)


def make_overlap_effect(frames: Frames) -> pd.DataFrame:
    """Return the frame ``overlap_effect``, the correlation of overlap with deltas."""
    deltas = frames.compute_once(select_fresh_deltas)
    return compute_overlap_effect(frames["overlap"], deltas, frames.metadata.order)


def collect_test_instances(runs: pd.DataFrame, root: Path) -> pd.DataFrame:
    """Return the distinct test instances of every task, from the predictions of one baseline.

    Args:
        runs: columns of ``columns.RUNS``.
        root: the results folder that ``path`` is relative to.

    Returns:
        Columns ``INSTANCES``. A task without a baseline run that has predictions has no rows.

    Raises:
        RecordError: a record or predictions file is absent, damaged or changed; names it.
    """
    usable = runs[(runs["algorithm"] == BASELINE) & runs["has_predictions"]]
    rows = [
        (dataset, target, name)
        for dataset, target, path in usable.drop_duplicates(["dataset", "target"])[
            ["dataset", "target", "path"]
        ].itertuples(index=False, name=None)
        for name in dict.fromkeys(_read_instance_ids(root / path, target))
    ]
    return pd.DataFrame(rows, columns=list(INSTANCES), dtype="str")


def _read_instance_ids(path: Path, target: str) -> list[str]:
    expected = read_record(path)["rows"]
    if expected is None:
        raise RecordError(
            f"{path}: The record lists no predictions, but the collected tables list predictions "
            "of this run. Run `tasktransfer collect` again."
        )
    table = read_rows(path.with_name(expected["file"]), expected)
    pairs = zip(table["task"].to_pylist(), table["instance_id"].to_pylist(), strict=True)
    return [name for task, name in pairs if task == target]


def compute_overlap(
    instances: pd.DataFrame, training: pd.DataFrame | None = None, order: Order | None = None
) -> pd.DataFrame:
    """Compute the fraction of each target's data that each source also contains.

    Args:
        instances: columns ``INSTANCES``, distinct rows.
        training: columns dataset, source, target, shared, of, one row per ordered pair of tasks
            (``data.stats.count_training_overlap``). None if unknown.
        order: order of the rows (``Metadata.order``).

    Returns:
        Columns of ``columns.OVERLAP``: per dataset and basis, one row for every ordered pair of
        tasks that have instances or dialogues.
    """
    counted = {TEST_INSTANCES: _count_shared_instances(instances)}
    if training is not None:
        counted[TRAINING_DIALOGUES] = training
    datasets = pd.concat([counts["dataset"] for counts in counted.values()])
    rows = [
        (dataset, source, target, basis, shared, of, shared / of)
        for dataset in list_distinct(datasets, "dataset", order)
        for basis, counts in counted.items()
        for source, target, shared, of in _order_counts(counts[counts["dataset"] == dataset], order)
    ]
    return build_frame(rows, columns.OVERLAP)


def _count_shared_instances(instances: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for dataset, own in instances.groupby("dataset"):
        sets = {str(task): set(ids) for task, ids in own.groupby("task")["instance_id"]}
        rows += [
            (dataset, source, target, len(sets[source] & sets[target]), len(sets[target]))
            for source, target in itertools.permutations(sets, 2)
        ]
    return pd.DataFrame(rows, columns=["dataset", "source", "target", "shared", "of"])


def _order_counts(counts: pd.DataFrame, order: Order | None) -> list[tuple[str, str, int, int]]:
    """Sort counts of shared data in the study's order, omitting empty targets."""
    tasks = list_distinct(pd.concat([counts["source"], counts["target"]]), "task", order)
    shared_of = {
        (source, target): (int(shared), int(of))
        for source, target, shared, of in counts[["source", "target", "shared", "of"]].itertuples(
            index=False, name=None
        )
    }
    return [
        (*pair, *shared_of[pair])
        for pair in itertools.permutations(tasks, 2)
        if pair in shared_of and shared_of[pair][1] > 0
    ]


def compute_overlap_effect(
    overlap: pd.DataFrame, deltas: pd.DataFrame, order: Order | None = None
) -> pd.DataFrame:
    """Correlate the fraction of shared data with the delta over pairs of tasks.

    Args:
        overlap: columns of ``columns.OVERLAP``.
        deltas: columns of ``columns.DELTAS``; multi-source runs are ignored.
        order: order of the rows (``Metadata.order``).

    Returns:
        Columns of ``columns.OVERLAP_EFFECT``, one row per group and basis. NaN with fewer than 3
        pairs, or if all pairs share the same fraction (such as none).
    """
    rows: list[tuple[Any, ...]] = []
    for dataset, tasks, groups in group_by_dataset(deltas, order):
        shares = _build_share_matrices(overlap[overlap["dataset"] == dataset], tasks)
        for key, group in groups.items():
            seeds = sorted(group["seed"].unique())
            means = average_over_seeds(build_cube(group, tasks, seeds))
            for basis, share in shares.items():
                effect = compute_matrix_correlation(share, means, dataset, *key, basis)
                rows.append((dataset, *key, basis, *astuple(effect)))
    return build_frame(rows, columns.OVERLAP_EFFECT)


def _build_share_matrices(overlap: pd.DataFrame, tasks: list[str]) -> dict[str, Floats]:
    """Map each kind of data to a matrix of shared fractions (sources × targets)."""
    return {
        str(basis): build_matrix(rows, tasks, "share")
        for basis, rows in overlap.groupby("basis", sort=False)
    }


def _select_training_counts(frames: Frames) -> pd.DataFrame | None:
    """Return the counts of shared training dialogues for the study's tasks, or None.

    Raises:
        RecordError: the dialogues were counted in other data than the runs used.
    """
    shared, runs = frames["overlap_data"], frames["transfer_runs"]
    if not len(shared.columns):
        return None
    path = Path(frames.study.tables, "overlap_data.parquet")
    wanted = {"dataset", "source", "target", "shared", "of", "synthetic", "few_sample"}
    remedy = f"Run `tasktransfer data stats --out {path.parent}` again, or delete the file"
    absent = sorted(wanted - set(shared.columns))
    if absent:
        raise RecordError(f"{path}: {format_missing_columns(absent)} {remedy}.")
    _check_same_data(path, shared, runs, frames.metadata, remedy)
    studied = set(runs["target"]) | set(runs["sources"].explode().dropna())
    return shared[shared["source"].isin(studied) & shared["target"].isin(studied)]


def _check_same_data(
    path: Path, shared: pd.DataFrame, runs: pd.DataFrame, metadata: Metadata, remedy: str
) -> None:
    """Raise RecordError if dialogues were counted in data other than the runs' data.

    Synthetic dialogues do not apply to runs on real ones, nor full data to few-sample runs.
    """
    of_runs = runs.drop_duplicates("dataset").set_index("dataset")["few_sample"]
    for row in shared.drop_duplicates("dataset").itertuples(index=False):
        counted = _describe_data(bool(row.synthetic), bool(row.few_sample))
        trained = _describe_data(
            metadata.is_synthetic(str(row.dataset)),
            bool(of_runs.get(row.dataset, row.few_sample)),
        )
        if counted != trained:
            raise RecordError(
                f"{path}: The overlap of the dataset {row.dataset} was computed on {counted}, but "
                f"the runs were trained on {trained}. {remedy}."
            )


def _describe_data(synthetic: bool, few_sample: bool) -> str:
    kind = "synthetic" if synthetic else "real"
    return f"{kind} {'few-sample' if few_sample else 'full'} data"
