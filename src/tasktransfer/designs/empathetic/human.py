"""Readers and summaries of human judgements (section 5.2), the user's own and the paper's.

Files are CSV. Each line of ratings is ``model,instance,rater,empathy,relevance,fluency``, with
ratings from 1 to 5. Each line of choices is ``first,second,instance,rater,choice``, and the choice
is first, second, equal or neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.errors import DataError, format_location
from tasktransfer.files.data_files import read_csv_rows
from tasktransfer.stats.bootstrap import Trainings, compute_mean_confidence
from tasktransfer.stats.cells import NO_SEED
from tasktransfer.stats.draws import build_dialogue_units, compute_jackknife_scores

RATINGS = ("model", "instance", "rater", "empathy", "relevance", "fluency")
CHOICES = ("first", "second", "instance", "rater", "choice")
ANSWERS = ("first", "second", "equal", "neither")
SCALES = RATINGS[3:]
LOWEST, HIGHEST = 1.0, 5.0
"""Ends of the scale of ratings."""
TINY = 1e-9
"""Largest spread of means, without one context in turn, that is due to rounding."""
GOLD = "Gold"
EMOTION_MODELS = ("multi", "pre1", "pre3", "pre5", "Ens-tran", "Ens-dm+")
"""Models with emotion or topic context, by their names after ``ret-`` or ``gen-`` in Figure 5.

Multitask is included, because only then do Table 5's means come out.
"""


@dataclass(frozen=True, slots=True)
class RatingSummary:
    """Mean, standard error and interval of a model's ratings, by scale.

    ``error`` treats ratings as independent, as the paper does. ``interval`` has the ends of the
    95 % interval of the mean over contexts, each resampled with all its ratings; NaN if unknown.
    """

    model: str
    ratings: int
    mean: Mapping[str, float]
    error: Mapping[str, float]
    interval: Mapping[str, tuple[float, float]]


def read_ratings(file: Path) -> list[RatingSummary]:
    """Read the ratings of each model, in the order of the file.

    Raises:
        DataError: a line is invalid; the message has file, line, value and remedy.
    """
    by_model: dict[str, list[tuple[int, ...]]] = {}
    contexts: dict[str, list[str]] = {}
    for line, row in _read_lines(file, RATINGS):
        for name, value in zip(SCALES, row[3:], strict=True):
            if value not in {"1", "2", "3", "4", "5"}:
                raise DataError(
                    f"{format_location(file, line)}: The column {name} contains {value!r}, which "
                    "is not a rating. Write a number from 1 to 5."
                )
        by_model.setdefault(row[0], []).append(tuple(map(int, row[3:])))
        contexts.setdefault(row[0], []).append(row[1])
    return [_summarise_ratings(model, rows, contexts[model]) for model, rows in by_model.items()]


def _summarise_ratings(
    model: str, rows: Sequence[tuple[int, ...]], contexts: Sequence[str]
) -> RatingSummary:
    columns = list(zip(*rows, strict=True))
    means = [sum(column) / len(column) for column in columns]
    errors = [_compute_standard_error(column) for column in columns]
    intervals = [_compute_interval(column, contexts) for column in columns]
    return RatingSummary(
        model,
        len(rows),
        dict(zip(SCALES, means, strict=True)),
        dict(zip(SCALES, errors, strict=True)),
        dict(zip(SCALES, intervals, strict=True)),
    )


def _compute_standard_error(values: Sequence[int]) -> float:
    count, mean = len(values), sum(values) / len(values)
    if count < 2:
        return math.nan
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (count - 1) / count)


def _compute_interval(values: Sequence[int], contexts: Sequence[str]) -> tuple[float, float]:
    """Return the ends of the 95 % interval of the mean over contexts.

    Contexts are left out in turn with all their ratings. Both ends are NaN for one context, and if
    the mean is the same whichever context is left out.
    """
    units = build_dialogue_units(contexts)
    tally = units.sum_tally(np.array([(value, 1) for value in values], np.float64))
    resampled = compute_jackknife_scores(tally, lambda sums: sums[..., 0] / sums[..., 1])
    if units.count < 2 or np.ptp(resampled) < TINY:
        return math.nan, math.nan
    mean = np.array([sum(values) / len(values)])
    trainings = Trainings((NO_SEED,), mean, resampled[None])
    sure = compute_mean_confidence(trainings, units, least=LOWEST, most=HIGHEST)
    return sure.low, sure.high


def read_choices(file: Path) -> pd.DataFrame:
    """Read pairwise choices as a matrix of ratios, as in the paper's Figure 5.

    A ratio is the number of times the row's model was chosen over the column's, divided by the
    number of times the column's was chosen. It is infinite if the row's model was always chosen, 0
    if it never was, and NaN for pairs without a decided comparison. The answers ``equal`` and
    ``neither`` count for neither side.

    Raises:
        DataError: a line is invalid; the message has file, line, value and remedy.
    """
    wins: dict[tuple[str, str], int] = {}
    models: dict[str, None] = {}
    for line, (first, second, _, _, choice) in _read_lines(file, CHOICES):
        where = format_location(file, line)
        if choice not in ANSWERS:
            raise DataError(
                f"{where}: The value {choice!r} is not a choice. Write {', '.join(ANSWERS)}."
            )
        if first == second:
            raise DataError(
                f"{where}: The model {first!r} is compared with itself. Use two different models."
            )
        models |= {first: None, second: None}
        pair = {"first": (first, second), "second": (second, first)}.get(choice)
        if pair:
            wins[pair] = wins.get(pair, 0) + 1
    names = list(models)

    def compute_ratio(row: str, column: str) -> float:
        won, lost = wins.get((row, column), 0), wins.get((column, row), 0)
        if lost:
            return won / lost
        return math.inf if won else math.nan

    cells = {column: [compute_ratio(row, column) for row in names] for column in names}
    return pd.DataFrame(cells, index=pd.Index(names))


def _read_lines(file: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    empty = True
    for line, row in read_csv_rows(file, columns):
        empty = False
        for name, cell in zip(columns, row, strict=True):
            if not cell.strip():
                raise DataError(
                    f"{format_location(file, line)}: The column {name} is empty. Write a value in "
                    "this column."
                )
        yield line, row
    if empty:
        raise DataError(f"{file}: The file has a header but no judgements. Add at least one line.")


# --- the paper's numbers ------------------------------------------------------------------------


@cache
def read_published(table: str) -> pd.DataFrame:
    """Return a table of the paper as printed: ``table2`` to ``table9``, or ``figure5``."""
    text = files("tasktransfer.designs.empathetic").joinpath("published", f"{table}.csv")
    with text.open(encoding="utf-8") as lines:
        return pd.read_csv(lines, comment="#")


def read_figure5() -> pd.DataFrame:
    """Return the published choices as ratios, row over column. The diagonal is 0."""
    return read_published("figure5").set_index("model")


def compute_table5(ratios: pd.DataFrame) -> dict[str, float]:
    """Compute Table 5 from Figure 5: the mean choice ratio of each pair of models.

    Five of the six printed values are reproduced. Emotion Context Models vs Pretrain (gen) is
    printed as 5.73, but the mean is 5.64.
    """

    def mean(rows: Sequence[str], columns: Sequence[str]) -> float:
        return float(ratios.loc[list(rows), list(columns)].to_numpy().mean())

    def select_models(setting: str) -> list[str]:
        return [name for name in ratios.index if name.startswith(setting)]

    emotion = {s: [f"{s}-{name}" for name in EMOTION_MODELS] for s in ("ret", "gen")}
    models = [name for name in ratios.index if name != GOLD]
    return {
        "Gold Response vs. Models": mean([GOLD], models),
        "Generation vs. Retrieval": mean(select_models("gen"), select_models("ret")),
        "Emotion Context Models vs Pretrain (ret)": mean(emotion["ret"], ["ret-pretrain"]),
        "Emotion Context Models vs Pretrain (gen)": mean(emotion["gen"], ["gen-pretrain"]),
        "Emotion Context Models vs Base (ret)": mean(emotion["ret"], ["ret-base"]),
        "Emotion Context Models vs Base (gen)": mean(emotion["gen"], ["gen-base"]),
    }


def as_rows(rated: Sequence[RatingSummary]) -> list[dict[str, Any]]:
    """Return mean ratings, standard errors and intervals as rows of Table 3."""
    return [
        {
            "model": model.model,
            "ratings": model.ratings,
            **{name: model.mean[name] for name in SCALES},
            **{f"{name}_sem": model.error[name] for name in SCALES},
            **{f"{name}_low": model.interval[name][0] for name in SCALES},
            **{f"{name}_high": model.interval[name][1] for name in SCALES},
        }
        for model in rated
    ]
