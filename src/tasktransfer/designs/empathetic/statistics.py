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
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.empathetic.frames import CONTROL_DIFFERENCES, DIFFERENCES, SUMMARY
from tasktransfer.designs.empathetic.methods import (
    BASE,
    BROUGHT,
    CONTROLS,
    CONTROLS_OF_ENSEMBLES,
    NOT_COMPARABLE,
    get_group,
    is_ensemble,
)
from tasktransfer.metrics import bleu
from tasktransfer.metrics.labels import Sums, compute_proportion
from tasktransfer.metrics.measures import MEASURES
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import cast_columns
from tasktransfer.stats.cells import (
    NO_SEED,
    Cell,
    Key,
    Scored,
    build_cell_table,
    gather_cells,
    score_tallies,
)

CELL = ["setting", "method", "measure", "pool"]
PERPLEXITY, LOG_PERPLEXITY = "perplexity", "log perplexity"
"""Measure of a value, and the measure of its differences."""
WORD_PERPLEXITY = "word_perplexity"
"""Perplexity per word of prompted models, whose tokens are not the tokens of trained models."""
FINISHED: dict[str, Callable[[Sums], Sums]] = {
    "bleu": lambda sums: 100 * bleu.compute_mean_bleu(sums),
    **dict.fromkeys(
        (PERPLEXITY, WORD_PERPLEXITY),
        lambda sums: np.asarray(np.exp(sums[..., 0] / sums[..., 1])),
    ),
}
"""Measure → function of summed tallies (..., columns). All other measures are proportions."""


def make_summary(frames: Frames) -> pd.DataFrame:
    """Return the frame ``summary``: each measure with its interval."""
    estimated = frames.compute_once(compare_with_base)
    own = estimated[estimated["against"] == ""].rename(columns={"clusters": "dialogues"})
    return cast_columns(own, SUMMARY)


def make_differences(frames: Frames) -> pd.DataFrame:
    """Return the frame ``differences``: the score of each method minus that of Base."""
    estimated = frames.compute_once(compare_with_base)
    differences = estimated[estimated["against"] == BASE].rename(columns={"value": "difference"})
    differences["measure"] = differences["measure"].replace(PERPLEXITY, LOG_PERPLEXITY)
    differences["comparable"] = ~differences["method"].isin(NOT_COMPARABLE)
    return cast_columns(differences, DIFFERENCES)


def make_control_differences(frames: Frames) -> pd.DataFrame:
    """Return the frame ``control_differences``: each ensemble minus each of its controls."""
    cells = frames.compute_once(estimate_measures)
    against = {control: {"method": control} for control in CONTROLS_OF_ENSEMBLES}
    compared = {key: cell for key, cell in cells.items() if is_ensemble(key[1])}
    table = build_cell_table(compared, CELL, against, lambda key, name: name or None, cells)
    table = table[table["against"] != ""].rename(columns={"value": "difference"})
    table["measure"] = table["measure"].replace(PERPLEXITY, LOG_PERPLEXITY)
    return cast_columns(table, CONTROL_DIFFERENCES)


def estimate_measures(frames: Frames) -> dict[Key, Cell]:
    """Map each (setting, method, measure, pool) to an estimate over seeds and dialogues."""
    once = find_untrained_cells(frames["measured"])
    return gather_cells(_score_runs(frames["rows"], once))


def compare_with_base(frames: Frames) -> pd.DataFrame:
    """Return a table of every method's measures and of their differences from Base."""
    cells = frames.compute_once(estimate_measures)
    return build_cell_table(cells, CELL, {BASE: {"method": BASE}}, _choose_family)


def find_untrained_cells(scores: pd.DataFrame) -> frozenset[Key]:
    """Return the cells whose seeds share one record because their models are not trained."""
    several = scores.groupby(CELL).agg(seeds=("seed", "nunique"), records=("record", "nunique"))
    once = several[(several["seeds"] > 1) & (several["records"] == 1)]
    return frozenset(tuple(map(str, key)) for key in once.index)


def _score_runs(rows: pd.DataFrame, once: Collection[Key]) -> Iterator[tuple[Key, int, Scored]]:
    for group, run in rows.groupby([*CELL, "seed"], sort=False):
        *names, seed = map(str, group)
        key, named = tuple(names), names[2]
        finish = FINISHED.get(named, lambda sums: 100 * compute_proportion(sums))
        # Accuracies have several names, one per kind of text.
        measure = MEASURES.get(named, MEASURES["accuracy"])
        scored = score_tallies(run["tally"].tolist(), run["dialogue"], finish, measure)
        yield key, NO_SEED if key in once else int(seed), scored


def _choose_family(key: Key, against: str) -> str | None:
    """Return the family of tests to which a difference belongs, or None if it is not tested.

    Controls of ensembles and the user's own repliers do not change the q of the methods.
    """
    if key[1] in CONTROLS:
        return None
    own = key[1] in CONTROLS_OF_ENSEMBLES or get_group(key[1]) == BROUGHT
    return f"{against} {get_group(key[1])}" if own else against


def make_by_emotion(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``by_emotion``, one per method and emotion."""
    rows = frames["rows"].query("measure == 'p_at_1'")
    for (method, emotion), some in rows.groupby(["method", "emotion"], sort=False):
        right = np.array(some["tally"].tolist())
        each = len(some) // max(1, some["seed"].nunique())
        yield method, emotion, 100 * float(right[:, 0].mean()), each


def make_pools_chosen(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``pools_chosen``, one per method, pool and dataset."""
    rows = frames["rows"].query("measure == 'bleu' and chosen_from != ''")
    for (method, pool), some in rows.groupby(["method", "pool"], sort=False):
        shares = some["chosen_from"].value_counts(normalize=True)
        for dataset, share in shares.items():
            yield method, pool, str(dataset), 100 * float(share)
