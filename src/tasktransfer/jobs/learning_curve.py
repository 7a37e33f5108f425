"""Learning curves: scores on nested samples of the training dialogues."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.core.nodes import Data, Fit
from tasktransfer.core.nodes.data import FRACTIONS, NEXT
from tasktransfer.core.references import (
    LIMIT_TEST,
    LIMIT_TRAIN,
    MODEL,
    MOST_FREQUENT,
    REFERENCES,
    SCORING,
    SPLIT,
)
from tasktransfer.data.cache import MANIFEST, read_instances
from tasktransfer.data.samples import select_dialogues, select_instances
from tasktransfer.datasets import get_task
from tasktransfer.errors import DataError, RecordError
from tasktransfer.evaluation.reference import Answers, Embed, Reference
from tasktransfer.files.progress import show_progress
from tasktransfer.jobs import inputs
from tasktransfer.jobs.needs import get_fit_model
from tasktransfer.jobs.reference_job import create_predictor
from tasktransfer.metrics.measures import MEASURES
from tasktransfer.results.study import Study
from tasktransfer.stats.cells import NO_SEED, Scored, gather_cells, score_tallies
from tasktransfer.stats.learning_curve import compute_curve
from tasktransfer.tasks.card import Instance, Task

CurveRow = tuple[Any, ...]
"""A row in the order of the design's columns: dataset, model, target, method, fraction, number of
dialogues, number of instances, and the numbers of a ``CurvePoint``."""


def compute_learning_curves(
    study: Study, dataset: str, name: str, seeds: int, no_model: str
) -> list[CurveRow]:
    """Compute the learning curve of each reference of a study on a task.

    Args:
        study: a study whose dialogues are prepared.
        dataset, name: the task.
        seeds: number of samples of each size.
        no_model: name of the model of references that read none.

    Returns:
        The rows; none if no reference learns from dialogues.

    Raises:
        DataError: scikit-learn is not installed, or there are too few training dialogues.
        RecordError: the dialogues are not prepared.
    """
    fits = {
        (fit.learner, str(fit.settings.get(MODEL))): fit  # one for all seeds
        for fit in study.plan.fits
        if fit.learner in REFERENCES
        and fit.data.name == dataset
        and name in fit.tasks
        and SPLIT not in fit.settings
    }
    learning = [fit for fit in fits.values() if fit.learner != MOST_FREQUENT]
    rows: list[CurveRow] = []
    for fit in show_progress(learning, "learning curves"):
        model = get_fit_model(study, fit).name if MODEL in fit.settings else no_model
        names = (dataset, model, name, fit.learner)
        rows += [
            (*names, *row) for row in _compute_curve(study, fit, get_task(dataset, name), seeds)
        ]
    return rows


def _compute_curve(study: Study, fit: Fit, task: Task, seeds: int) -> Iterator[CurveRow]:
    train, test = (
        read_limited_instances(study, fit.data, task.name, split, fit.settings.get(limit))
        for split, limit in (("train", LIMIT_TRAIN), ("test", LIMIT_TEST))
    )
    predict = create_predictor(study, fit, _embed_once)
    yield from score_samples(
        task, predict, train, test, seeds, fit.settings.get(SCORING, "default")
    )


def read_limited_instances(
    study: Study, data: Data, task: str, split: str, limit: int | None
) -> list[Instance]:
    """Read a task's instances of a split, up to a limit.

    Raises:
        RecordError: the dialogues are not prepared.
    """
    folder = inputs.get_cache(study, data)
    if not (folder / MANIFEST).exists():
        raise RecordError(
            f"{folder}: The dialogues are not prepared. Run the study with `tasktransfer run`."
        )
    return select_instances(read_instances(folder, task, split), limit)


def score_samples(
    task: Task,
    predict: Reference,
    train: Sequence[Instance],
    test: Sequence[Instance],
    seeds: int,
    scoring: Scoring = "default",
) -> Iterator[CurveRow]:
    """Yield fraction, dialogues, instances and score of each point of a learning curve.

    Raises:
        DataError: there are fewer than four training dialogues.
    """
    dialogues = list_training_dialogues(task.name, train)
    score = partial(_score_predictions, task, test, scoring)
    scored = [((f"{1.0}",), NO_SEED, score(predict(task, train, test, 0)))]  # first: all texts
    sizes: dict[float, list[int]] = {1.0: [len(train)]}
    for fraction, seed in product(FRACTIONS[:-1], range(seeds)):
        names = select_dialogues(dialogues, fraction, seed)
        sample = [instance for instance in train if instance.dialogue_id in names]
        sizes.setdefault(fraction, []).append(len(sample))
        scored.append(((f"{fraction}",), seed, score(predict(task, sample, test, seed))))
    yield from build_curve_rows(scored, len(dialogues), sizes)


def list_training_dialogues(task: str, train: Sequence[Instance]) -> list[str]:
    """Return the sorted IDs of the training dialogues.

    Raises:
        DataError: there are fewer than four.
    """
    dialogues = sorted({instance.dialogue_id for instance in train})
    if len(dialogues) < 1 / FRACTIONS[0]:
        raise DataError(
            f"{task}: The number of training dialogues is {len(dialogues)}, which is too few for a "
            "learning curve. Provide more dialogues."
        )
    return dialogues


def build_curve_rows(
    scored: Iterable[tuple[tuple[str], int, Scored]],
    dialogues: int,
    sizes: Mapping[float, Sequence[int]],
) -> Iterator[CurveRow]:
    """Yield fraction, dialogues, instances and score of each point with its forecast.

    Args:
        scored: fraction as text, seed and score of each training on a sample.
        dialogues: number of all training dialogues.
        sizes: fraction → numbers of training instances of its samples.
    """
    cells = {float(key): cell for (key,), cell in gather_cells(scored).items()}
    for point in compute_curve(cells):
        numbers = astuple(point)
        count = round(point.fraction * dialogues)
        instances = fmean(sizes.get(point.fraction, [point.fraction * fmean(sizes[1.0])]))
        yield (numbers[0], count, round(instances), *numbers[1:])


def _score_predictions(
    task: Task, test: Sequence[Instance], scoring: Scoring, predictions: Answers
) -> Scored:
    golds = [instance.target for instance in test]
    tallies = metrics.tally_instances(
        task,
        metrics.encode_answers(predictions),
        metrics.encode_answers(golds),
        fidelity=scoring,
    )
    finish = partial(metrics.compute_score_from_sums, task, fidelity=scoring)
    clusters = [instance.dialogue_id for instance in test]
    return score_tallies(tallies, clusters, finish, MEASURES["score"])


def _embed_once(embed: Embed) -> Embed:
    """Wrap an embedding function so that it embeds each distinct text only once."""
    known: dict[str, Any] = {}

    def embed_known(texts: Sequence[str]) -> Any:
        if fresh := [text for text in texts if text not in known]:
            known.update(zip(fresh, embed(fresh), strict=True))
        return np.stack([known[text] for text in texts])

    return embed_known


def describe_curve(rows: Sequence[CurveRow]) -> list[str]:
    """Describe, in one sentence per method, the gain from more dialogues."""
    sentences = []
    for *names, fraction, dialogues, _, _, score, lowest, highest, gain, low, high in rows:
        if fraction == FRACTIONS[-1]:
            last = (
                f"{names[3]} ({names[1]}): 75 → 100 % of the {dialogues:,} "
                f"training dialogues gave {_format_gain(gain, low, high)} points"
            )
        elif fraction == NEXT:
            sentences.append(
                f"{last}. Labelling about as many again is likely to give "
                f"{_format_gain(gain, low, high)}.{_explain_scale_end(score, lowest, highest)}"
            )
    return sentences


def _explain_scale_end(score: float, low: float, high: float) -> str:
    """Explain an interval that ends at the forecast itself, or return "".

    A forecast and its interval are scores, which are at most 100 and at least 0.
    """
    if high >= 100 and f"{score:.1f}" == f"{high:.1f}":
        return " The interval ends at the forecast, because a score cannot be above 100."
    if low <= 0 and f"{score:.1f}" == f"{low:.1f}":
        return " The interval begins at the forecast, because a score cannot be below 0."
    return ""


def _format_gain(gain: float, low: float, high: float) -> str:
    interval = "" if math.isnan(low) else f" [{low:+.1f}, {high:+.1f}]"
    return f"{gain:+.1f}{interval}".replace("-", "−")
