"""Intervals over dialogues and seeds, paired differences from Base, and P@1 by emotion.

Perplexity is the exponential of a mean, and its variation over seeds is multiplicative. So its mean
over seeds, its interval and its differences are computed on the logarithm.

A model that is evaluated as released has one evaluation, whatever the number of seeds. The interval
of its value is over dialogues only. It is compared with each of Base's seeds.

Dialogues are resampled as clusters, and the seeds of a method and of Base are paired
(``stats.cells``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.empathetic import columns
from tasktransfer.designs.empathetic.methods import BASE, CONTROLS, NOT_COMPARABLE
from tasktransfer.metrics import bleu
from tasktransfer.metrics.labels import Sums, compute_proportion
from tasktransfer.metrics.measures import MEASURES
from tasktransfer.results.store import build_frame, cast_columns, read_frame, write_frame
from tasktransfer.results.study import Study
from tasktransfer.stats.cells import (
    NO_SEED,
    Key,
    Scored,
    build_cell_table,
    gather_cells,
    score_tallies,
)

CELL = ["setting", "method", "measure", "pool"]
PERPLEXITY, LOG_PERPLEXITY = "perplexity", "log perplexity"
"""Measure of a value, and the measure of its differences."""
FINISHED: dict[str, Callable[[Sums], Sums]] = {
    "bleu": lambda sums: 100 * bleu.compute_mean_bleu(sums),
    PERPLEXITY: lambda sums: np.asarray(np.exp(sums[..., 0] / sums[..., 1])),
}
"""Measure → function of summed tallies (..., columns). All other measures are proportions."""


def make_statistics(study: Study) -> None:
    """Compute the statistics from the collected tables, and write them."""
    folder = Path(study.tables)
    remedy = f"run `tasktransfer collect {study.arguments()}` again"
    rows, metadata = read_frame(folder / "rows.parquet", columns.ROWS, remedy)
    scores, _ = read_frame(folder / "measured.parquet", columns.MEASURED, remedy)
    frames = compute_statistics(rows, find_judged_once(scores))
    for name, frame in frames.items():
        write_frame(folder / f"{name}.parquet", frame, columns.STATISTICS[name], metadata)


def find_judged_once(scores: pd.DataFrame) -> frozenset[Key]:
    """Return the cells whose seeds share one record, because nothing was trained."""
    several = scores.groupby(CELL).agg(seeds=("seed", "nunique"), records=("record", "nunique"))
    once = several[(several["seeds"] > 1) & (several["records"] == 1)]
    return frozenset(tuple(map(str, key)) for key in once.index)


def compute_statistics(rows: pd.DataFrame, once: Collection[Key] = ()) -> dict[str, pd.DataFrame]:
    """Compute every statistics table from the rows of all evaluations.

    Args:
        rows: the table ``rows``.
        once: cells whose seeds share one evaluation, see ``find_judged_once``.
    """
    estimated = build_cell_table(
        gather_cells(_score_runs(rows, once)), CELL, {BASE: {"method": BASE}}, _choose_family
    )
    differences = estimated[estimated["against"] == BASE].rename(columns={"value": "difference"})
    differences["measure"] = differences["measure"].replace(PERPLEXITY, LOG_PERPLEXITY)
    differences["comparable"] = ~differences["method"].isin(NOT_COMPARABLE)
    own = estimated[estimated["against"] == ""].rename(columns={"clusters": "dialogues"})
    return {
        "summary": cast_columns(own, columns.SUMMARY),
        "differences": cast_columns(differences, columns.DIFFERENCES),
        "by_emotion": build_frame(_compute_by_emotion(rows), columns.BY_EMOTION),
        "pools_chosen": build_frame(_count_pools(rows), columns.POOLS_CHOSEN),
    }


def _score_runs(rows: pd.DataFrame, once: Collection[Key]) -> Iterator[tuple[Key, int, Scored]]:
    for group, run in rows.groupby([*CELL, "seed"], sort=False):
        *names, seed = map(str, group)
        key, named = tuple(names), names[2]
        finish = FINISHED.get(named, lambda sums: 100 * compute_proportion(sums))
        measure = MEASURES.get(named, MEASURES["accuracy"])  # several, one per kind of text
        scored = score_tallies(run["tally"].tolist(), run["dialogue"], finish, measure)
        yield key, NO_SEED if key in once else int(seed), scored


def _choose_family(key: Key, against: str) -> str | None:
    return None if key[1] in CONTROLS else against


def _compute_by_emotion(rows: pd.DataFrame) -> list[tuple[Any, ...]]:
    mine = rows[rows["measure"] == "p_at_1"]
    made = []
    for (method, emotion), some in mine.groupby(["method", "emotion"], sort=False):
        right = np.array(some["tally"].tolist())
        each = len(some) // max(1, some["seed"].nunique())
        made.append((method, emotion, 100 * float(right[:, 0].mean()), each))
    return made


def _count_pools(rows: pd.DataFrame) -> list[tuple[Any, ...]]:
    mine = rows[(rows["measure"] == "bleu") & (rows["chosen_from"] != "")]
    made = []
    for (method, pool), some in mine.groupby(["method", "pool"], sort=False):
        shares = some["chosen_from"].value_counts(normalize=True)
        made += [(method, pool, str(home), 100 * float(share)) for home, share in shares.items()]
    return made
