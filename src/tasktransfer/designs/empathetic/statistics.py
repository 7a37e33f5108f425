"""Intervals over dialogues and seeds together, paired differences to Base, P@1 by emotion.

Perplexity is the exponential of a mean, and seeds scatter in its ratio: its mean over seeds, its
interval and its differences are made of the logarithm.

A model that is judged as it was released is one evaluation, whatever the number of seeds: how sure
its value is, dialogues alone say; its difference to Base is to each of Base's seeds.

Dialogues are drawn whole; every run of a test set meets the same draws (``stats.draws``), and the
seeds of a method and of Base are paired (``stats.bootstrap``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.empathetic import columns
from tasktransfer.metrics import bleu
from tasktransfer.results.study import Study
from tasktransfer.stats.bootstrap import Trainings, confidence_of_mean, confidences, estimate
from tasktransfer.stats.draws import Units, dialogues, resampled_scores, unit_weights
from tasktransfer.stats.false_discovery import false_discovery
from tasktransfer.tables.store import frame_of, read_frame, write_frame

Sums = np.ndarray[Any, np.dtype[np.float64]]
CELL = ["setting", "method", "measure", "pool"]
BASE, NOT_COMPARABLE = "base", ("emoprepend-gold",)
CONTROLS = (*NOT_COMPARABLE, "emoprepend-random")
"""What is known to help or not: no part of the family whose false discoveries are controlled."""
PERPLEXITY, LOG_PERPLEXITY = "perplexity", "log perplexity"
"""A measure, and what its differences are of."""


def score_of(measure: str) -> Callable[[Sums], Sums]:
    """From summed tallies (..., columns) to the measure; of perplexity, to 100 times its logarithm,
    as scores are in hundredths."""
    if measure == "bleu":
        return lambda sums: np.asarray(100 * bleu.finish(sums), np.float64)
    return lambda sums: 100 * sums[..., 0] / sums[..., 1]


def make_statistics(study: Study) -> None:
    """Write the statistics' tables from the collected ones."""
    folder = Path(study.tables)
    rows, metadata = read_frame(folder / "rows.parquet", columns.ROWS, "collect again")
    scores, _ = read_frame(folder / "scores.parquet", columns.SCORES, "collect again")
    frames = statistics(rows, judged_once(scores))
    for name, frame in frames.items():
        write_frame(folder / f"{name}.parquet", frame, columns.STATISTICS[name], metadata)


def judged_once(scores: pd.DataFrame) -> frozenset[tuple[str, ...]]:
    """The cells whose seeds have one record in common: nothing was trained."""
    several = scores.groupby(CELL).agg(seeds=("seed", "nunique"), records=("record", "nunique"))
    once = several[(several["seeds"] > 1) & (several["records"] == 1)]
    return frozenset(tuple(map(str, key)) for key in once.index)


def statistics(
    rows: pd.DataFrame, once: Collection[tuple[str, ...]] = ()
) -> dict[str, pd.DataFrame]:
    """Table → frame, from the rows of all evaluations; ``once``: see ``judged_once``."""
    cells: dict[tuple[str, ...], tuple[Trainings, Units]] = {
        (key := tuple(map(str, group))): _trainings(cell, key)
        for group, cell in rows.groupby(CELL, sort=False)
    }
    summary = []
    for key, (of_seeds, units) in cells.items():
        trainings = first_seed(of_seeds) if key in once else of_seeds
        logs = key[2] == PERPLEXITY
        most = np.inf if logs else 100.0
        sure = confidence_of_mean(trainings, units, most=most)
        numbers = np.array([trainings.scores.mean(), sure.low, sure.high])
        told = np.exp(numbers / 100) if logs else numbers
        summary.append((*key, len(trainings.seeds), *told.tolist(), units.count))
    return {
        "summary": frame_of(summary, columns.SUMMARY),
        "differences": frame_of(_differences(cells), columns.DIFFERENCES),
        "by_emotion": frame_of(_by_emotion(rows), columns.BY_EMOTION),
        "pools_chosen": frame_of(_pools(rows), columns.POOLS_CHOSEN),
    }


def _trainings(cell: pd.DataFrame, key: tuple[str, ...]) -> tuple[Trainings, Units]:
    score = score_of(key[2])
    seeds, scores, drawn = [], [], []
    units = None
    for seed, one in cell.groupby("seed"):
        tally = np.array(one["tally"].tolist(), np.float64)
        units = dialogues(one["dialogue"].tolist())
        weights = unit_weights(key[0], key[2], units.count)
        seeds.append(int(str(seed)))
        scores.append(float(score(tally.sum(axis=0))))
        drawn.append(resampled_scores(units.summed(tally), weights, score))
    assert units is not None
    resampled = np.stack(drawn) if units.count > 1 else None
    return Trainings(tuple(seeds), np.array(scores), resampled), units


def first_seed(trainings: Trainings) -> Trainings:
    """The first of trainings that are all the same."""
    drawn = trainings.resampled
    return Trainings(
        trainings.seeds[:1], trainings.scores[:1], None if drawn is None else drawn[:1]
    )


def _differences(cells: dict[tuple[str, ...], tuple[Trainings, Units]]) -> list[tuple[Any, ...]]:
    keys, estimates, seeds = [], [], []
    for key, (trainings, units) in cells.items():
        base = cells.get((key[0], BASE, *key[2:]))
        if base is not None and key[1] != BASE:
            measure = LOG_PERPLEXITY if key[2] == PERPLEXITY else key[2]
            keys.append((*key[:2], measure, key[3]))
            estimates.append(estimate(trainings, base[0], units))
            seeds.append(len({*trainings.seeds} & {*base[0].seeds}))
    sure = confidences(estimates)
    tested = [key[1] not in CONTROLS for key in keys]
    q = false_discovery([c.p if each else np.nan for c, each in zip(sure, tested, strict=True)])
    made: list[tuple[Any, ...]] = []
    for key, n, e, c, each in zip(keys, seeds, estimates, sure, q, strict=True):
        unit = 100 if key[2] == LOG_PERPLEXITY else 1
        told = np.array([e.delta, c.low, c.high]) / unit
        made.append((*key, n, *told.tolist(), c.p, float(each), key[1] not in NOT_COMPARABLE))
    return made


def _by_emotion(rows: pd.DataFrame) -> list[tuple[Any, ...]]:
    mine = rows[rows["measure"] == "p_at_1"]
    made = []
    for (method, emotion), some in mine.groupby(["method", "emotion"], sort=False):
        right = np.array(some["tally"].tolist())
        each = len(some) // max(1, some["seed"].nunique())
        made.append((method, emotion, 100 * float(right[:, 0].mean()), each))
    return made


def _pools(rows: pd.DataFrame) -> list[tuple[Any, ...]]:
    mine = rows[(rows["measure"] == "bleu") & (rows["chosen_from"] != "")]
    made = []
    for (method, pool), some in mine.groupby(["method", "pool"], sort=False):
        shares = some["chosen_from"].value_counts(normalize=True)
        made += [(method, pool, str(home), 100 * float(share)) for home, share in shares.items()]
    return made
