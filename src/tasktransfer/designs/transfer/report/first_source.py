"""What to train on before a target: the source with the largest gain, how sure it is, and what it
would take to know where nothing is sure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from tasktransfer.designs.transfer.pairs import is_foreign
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.tables.names import algorithm_label

LEVEL = 0.05
FEW_TARGETS = 2
MOST = 1000
"""Seeds, or times the labels, beyond which a difference is called too small."""


def first_sources(cells: pd.DataFrame, runs: pd.DataFrame) -> list[str]:
    """A sentence or two for each target and model; none where there are many targets, and the
    question is another.

    Args:
        cells: columns of ``columns.CELLS``; those of one source are looked at.
        runs: columns of ``columns.RUNS``, whose seconds tell what another seed costs.
    """
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    if len(singles[["dataset", "target"]].drop_duplicates()) > FEW_TARGETS:
        return []
    sentences: list[str] = []
    by_target = singles.groupby(["dataset", "target", "model"], sort=False)
    for (dataset, target, model), group in by_target:
        where = f"{dataset}/{target}"
        if singles["model"].nunique() > 1:
            where += f" with {model}"
        last = group.sort_values("delta").iloc[-1]
        best = {str(name): value for name, value in last.items()}
        source = str(best["source"])
        named = source if is_foreign(source) else f"{dataset}/{source}"
        how = algorithm_label(str(best["algorithm"]))
        gain = f"{best['delta']:+.1f} points{_interval(best)}"
        if best["delta"] > 0 and bool(best["significant"]):
            sure = ", ".join(filter(None, (gain, _chance(best))))
            sentences.append(f"{where}: train on {named} first ({how}): {sure}.")
            continue
        count = group["source"].nunique()
        which = (
            f"none of the {count} sources helps" if count > 1 else "its one source does not help"
        )
        likely = ", ".join(filter(None, (gain, _chance(best))))
        sentences.append(f"{where}: {which} surely. Best is {named} ({how}): {likely}.")
        sentences += _what_would_tell(best, count, _seconds(runs, best))
    return sentences


def _interval(cell: Mapping[str, Any]) -> str:
    low, high = cell["low"], cell["high"]
    return "" if math.isnan(low) else f" [{low:+.1f}, {high:+.1f}]"


def _chance(cell: Mapping[str, Any]) -> str:
    """The chance that a cell's true difference is above 0: of the t distribution whose interval it
    has, no value being likelier beforehand than another; by itself, whatever the other sources."""
    error, degrees = cell["standard_error"], cell["degrees"]
    if not (error > 0 and degrees > 0):
        return ""
    from scipy.stats import t  # noqa: PLC0415  # slow to import

    chance = 100 * float(t.cdf(cell["delta"] / error, degrees))
    shown = "more than 99.9" if chance > 99.9 else f"{chance:.3g}"
    return f"a gain with a chance of {shown} %"


def _what_would_tell(cell: Mapping[str, Any], sources: int, seconds: float) -> Iterator[str]:
    """How many more seeds, or test dialogues, would tell the best source's gain from none, if it is
    what it is now: its error has a part that falls with seeds and one that falls with dialogues."""
    if not cell["delta"] > 0:
        yield "No source has a gain that more trainings could make sure."
        return
    if cell["n_seeds"] < 2:
        yield "With one seed nothing tells how much trainings differ: run two or more (seeds: 3)."
        return
    from scipy.stats import norm  # noqa: PLC0415

    needed = (cell["delta"] / float(norm.ppf(1 - LEVEL / 2 / sources))) ** 2
    of_test = 0.0 if math.isnan(cell["test_error"]) else float(cell["test_error"]) ** 2
    of_seeds = max(float(cell["standard_error"]) ** 2 - of_test, 0.0)
    ways = []
    if needed > of_test:
        more = math.ceil(cell["n_seeds"] * of_seeds / (needed - of_test)) - int(cell["n_seeds"])
        hours = f", about {more * seconds / 3600:.2g} more hours of training" if seconds else ""
        ways += [f"{more} more seeds{hours}"] if 0 < more < MOST else []
    if needed > of_seeds and cell["dialogues"]:
        more = math.ceil((of_test / (needed - of_seeds) - 1) * cell["dialogues"])
        enough = 0 < more < MOST * cell["dialogues"]
        ways += [f"{more:,} more test dialogues with labels"] if enough else []
    if ways:
        yield f"If that gain is real, {' or '.join(ways)} would tell it from none."
    else:
        yield (
            "To tell that gain from none takes more seeds and more test dialogues together, of "
            "each several times what there is."
        )


def _seconds(runs: pd.DataFrame, cell: Mapping[str, Any]) -> float:
    """Of training for another seed of a cell: the transfer and its target's baseline."""
    own = runs[
        (runs["dataset"] == cell["dataset"])
        & (runs["model"] == cell["model"])
        & (runs["target"] == cell["target"])
    ]
    transfer = (own["algorithm"] == cell["algorithm"]) & (own["source"] == cell["source"])
    either = own[transfer | (own["algorithm"] == BASELINE)]
    return float(either.groupby(["algorithm", "source"])["seconds"].mean().sum())
