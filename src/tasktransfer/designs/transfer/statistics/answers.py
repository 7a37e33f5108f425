"""Frames about test answers: ``labels``, ``confusions``, ``errors`` and ``collapsed``.

Scores and confusions of single labels cover baselines and references of tasks with one label per
input. The frame ``errors`` covers the user's own tasks. It names an instance by its file and line,
and never contains its text. Collapsed runs, which give the same answer to almost every instance,
are only counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import Fit, Stage
from tasktransfer.core.references import MOST_FREQUENT
from tasktransfer.core.runs import Run
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.runs import BASELINE, is_reference
from tasktransfer.designs.transfer.statistics.without_transfer import get_reference_seed
from tasktransfer.errors import RecordError
from tasktransfer.results.frames import Frames, list_column_names
from tasktransfer.results.rows import read_columns, select_task_rows
from tasktransfer.results.schema import RowsFile
from tasktransfer.results.store import build_frame
from tasktransfer.stats.answers import (
    LEAST_SHARE,
    MEASURES,
    LabelAnswers,
    compute_label_scores,
    count_confusions,
    find_common_answer,
    read_label_answers,
)
from tasktransfer.tasks.card import SINGLE_LABEL, Task

_VERSION = 2
"""Version of the computation. Increase it when a code change changes a row."""

_CELL = list_column_names(columns.COLLAPSED)[:7]
_RUN = ("seed", "predictions", "predictions_rows", "predictions_sha256")


class _Run(NamedTuple):
    """A run with predictions; ``file`` is relative to the results folder."""

    seed: int
    file: str
    rows: int
    sha256: str


def make_collapsed(frames: Frames) -> pd.DataFrame:
    """Return the frame ``collapsed``, reusing unchanged rows of the earlier frame."""
    runs = pd.concat([frames["transfer_runs"], frames["control_runs"]], ignore_index=True)
    root, earlier = Path(frames.study.config.results), frames.earlier.get("collapsed")
    return compute_collapsed_table(runs, root, earlier)


def compute_collapsed_table(
    runs: pd.DataFrame, root: Path, previous: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Compute the table ``collapsed``: one row per baseline, cell and control with predictions.

    Args:
        runs: columns of ``columns.RUNS``.
        root: the results folder that the paths in the tables are relative to.
        previous: an earlier result; its rows are reused if the predictions are unchanged.

    Returns:
        Columns ``columns.COLLAPSED``.

    Raises:
        RecordError: a predictions file has changed since it was collected.
    """
    runs = runs[runs["predictions"].notna()]
    earlier = _index_collapse_numbers(previous)
    cells: dict[tuple[Any, ...], list[_Run]] = defaultdict(list)
    for *names, seed, file, rows, sha256 in runs[[*_CELL, *_RUN]].itertuples(
        index=False, name=None
    ):
        names[3] = tuple(names[3])  # the sources, which must be hashable
        cells[tuple(names)].append(_Run(int(seed), file, int(rows), sha256))
    table: list[tuple[Any, ...]] = []
    for cell, members in cells.items():
        members.sort(key=lambda run: run.seed)
        # A file may contain the answers to several targets.
        card = _find_card(cell[0], cell[-1])
        kind = [card.kind] if card is not None and card.kind == "rating" else []
        read = [[run.seed, run.sha256] for run in members]
        inputs = compute_digest([_VERSION, cell[-1], read, *kind])
        numbers = earlier.get(inputs) or _compute_collapse_numbers(members, root, cell[-1], card)
        table.append((*cell[:3], list(cell[3]), *cell[4:], *numbers, inputs))
    return build_frame(table, columns.COLLAPSED)


def _find_card(dataset: str, task: str) -> Task | None:
    """Return the card of a task, or None if this study does not declare the task."""
    known = DATASETS.get(dataset)
    return None if known is None else known.tasks.get(task)


def _index_collapse_numbers(previous: pd.DataFrame | None) -> dict[str, tuple[Any, ...]]:
    if previous is None or list(previous.columns) != list_column_names(columns.COLLAPSED):
        return {}
    plain = previous.astype(object).where(previous.notna(), None)
    numbers = list_column_names(columns.COLLAPSED)[7:-1]
    rows = plain[["inputs", *numbers]].itertuples(index=False, name=None)
    return {inputs: tuple(row) for inputs, *row in rows}


def _compute_collapse_numbers(
    runs: Sequence[_Run], root: Path, target: str, card: Task | None
) -> tuple[Any, ...]:
    seeds: list[int] = []
    shares: list[float] = []
    answer = None
    for run in runs:
        text, share = _read_common_answer(run, root, target, card)
        shares.append(share)
        if share >= LEAST_SHARE:
            seeds.append(run.seed)
            answer = text if answer is None else answer
    return len(runs), len(seeds), seeds, answer, max(shares)


def _read_common_answer(run: _Run, root: Path, target: str, card: Task | None) -> tuple[str, float]:
    """Read a run's most common answer (parts joined by ", ") and its fraction of the test set."""
    path = root / run.file
    expected: RowsFile = {"file": path.name, "rows": run.rows, "sha256": run.sha256}
    try:
        table = select_task_rows(read_columns(path, expected, ["prediction", "task"]), target)
    except RecordError as error:
        raise RecordError(
            f"{str(error).rstrip('.')}. The predictions file has changed since it was collected. "
            "Run `tasktransfer collect` again."
        ) from error
    return find_common_answer(table["prediction"], card)


# --- labels ---------------------------------------------------------------------------------------

_Key = tuple[str, str, str, str]
"""Dataset, model, target and method."""


def make_labels(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``labels`` (scores by label)."""
    for key, runs in frames.compute_once(_read_answers).items():
        labels = get_task(key[0], key[2]).labels
        for scores in compute_label_scores(runs):
            numbers = (value for name in MEASURES for value in scores.measures[name])
            counts = (len(runs), scores.support, scores.predicted)
            yield *key, labels[scores.label], *counts, *numbers


def make_confusions(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``confusions``, in the order of the labels."""
    for key, runs in frames.compute_once(_read_answers).items():
        labels = get_task(key[0], key[2]).labels
        for (gold, predicted), count in sorted(count_confusions(runs).items()):
            name = labels[predicted] if predicted >= 0 else ""
            yield *key, labels[gold], name, count, len(runs)


def _read_answers(frames: Frames) -> dict[_Key, list[LabelAnswers]]:
    """Map (dataset, model, target, method) to the answers of each seed."""
    collected = frames.collected
    answers_by_seed: dict[_Key, dict[int, LabelAnswers]] = {}
    for run in collected.runs:
        for node, method, seed, tasks in _list_nodes(run):
            rows = collected.rows(node)
            for task in tasks:
                card = get_task(run.about["dataset"], task)
                of_task = select_task_rows(rows, task)
                if card.kind in SINGLE_LABEL and len(of_task):
                    key = (run.about["dataset"], run.model, task, method)
                    answers = read_label_answers(of_task, card, seed)
                    answers_by_seed.setdefault(key, {}).setdefault(seed, answers)
    return {key: [runs[seed] for seed in sorted(runs)] for key, runs in answers_by_seed.items()}


def _list_nodes(run: Run) -> Iterator[tuple[Fit | Stage, str, int, tuple[str, ...]]]:
    """Yield (node, method, seed, predicted tasks) if the run is a baseline or a reference."""
    if is_reference(run):
        assert isinstance(run.outcome, Fit)
        yield run.outcome, run.about["reference"], get_reference_seed(run), run.outcome.tasks
    elif run.method == BASELINE:
        yield run.stages[-1], BASELINE, run.seed, (run.about["target"],)


# --- errors ---------------------------------------------------------------------------------------

_Task = tuple[str, str]
"""Dataset and target."""
_Method = tuple[str, str]
"""Model and method."""
_Instance = tuple[str, str]
"""Instance and gold label."""
_Predictions = dict[_Instance, dict[_Method, dict[int, str]]]
"""Instance → method → seed → predicted label."""


def make_errors(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``errors``, with the most difficult instances of a task first."""
    for (dataset, target), instances in _read_predictions(frames).items():
        errors = {key: _count_errors(key[1], methods) for key, methods in instances.items()}
        for key in sorted(filter(errors.__getitem__, errors), key=lambda key: (-errors[key], key)):
            instance, gold = key
            for (model, method), seeds in instances[key].items():
                labels = Counter(seeds[seed] for seed in sorted(seeds))
                wrong = sum(label != gold for label in seeds.values())
                ((predicted, _),) = labels.most_common(1)
                place = (dataset, model, target, method, instance, gold)
                yield *place, predicted, wrong, len(seeds)


def _count_errors(gold: str, methods: Mapping[_Method, Mapping[int, str]]) -> float:
    """Return the number of methods that are wrong, each weighted by its fraction of wrong seeds."""
    return sum(
        sum(label != gold for label in seeds.values()) / len(seeds) for seeds in methods.values()
    )


def _read_predictions(frames: Frames) -> dict[_Task, _Predictions]:
    """Read the predictions of baselines and references on the user's own tasks.

    The reference that predicts the most frequent label is left out.
    """
    collected = frames.collected
    predictions: dict[_Task, _Predictions] = {}
    for run in collected.runs:
        dataset = run.about.get("dataset", "")
        if dataset not in DATASETS or not DATASETS[dataset].has_own_files:
            continue
        for node, method, seed, tasks in _list_nodes(run):
            if method == MOST_FREQUENT:
                continue
            rows = collected.rows(node)
            for task in tasks:
                card, of_task = get_task(dataset, task), select_task_rows(rows, task)
                if card.kind not in SINGLE_LABEL or not len(of_task):
                    continue
                answers = read_label_answers(of_task, card, seed)
                instances = predictions.setdefault((dataset, task), {})
                numbers = zip(answers.gold, answers.predicted, strict=True)
                names = of_task["instance_id"].to_pylist()
                for name, (gold, predicted) in zip(names, numbers, strict=True):
                    methods = instances.setdefault((name, card.labels[gold]), defaultdict(dict))
                    label = card.labels[predicted] if predicted >= 0 else ""
                    methods[run.model, method].setdefault(seed, label)
    return predictions
