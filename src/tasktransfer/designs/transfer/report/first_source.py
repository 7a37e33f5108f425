"""What to train on before a target: the source with the largest gain, how certain that is, and what
it would take to know where no gain is significant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from tasktransfer.designs.transfer.pairs import is_foreign
from tasktransfer.designs.transfer.report.collapsed_runs import CollapsedRuns
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.tables.names import algorithm_label
from tasktransfer.tables.numbers import p_equals

LEVEL = 0.05
FEW_TARGETS = 2
MOST = 1000
"""Seeds, or times the labels, beyond which a difference is called too small."""
ONE_RUN = (
    "With one run nothing tells how much trainings differ, so no gain is tested: train two seeds "
    "or more (seeds: 3)."
)


def first_sources(
    cells: pd.DataFrame, runs: pd.DataFrame, collapsed: pd.DataFrame | None = None
) -> list[str]:
    """Return a sentence or two for each target and model; none where there are many targets, and
    the question is another.

    Args:
        cells: columns of ``columns.CELLS``; those of one source are looked at.
        runs: columns of ``columns.RUNS``, whose seconds tell what another seed costs.
        collapsed: columns of ``columns.COLLAPSED``; None: no predictions are known.
    """
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    if len(singles[["dataset", "target"]].drop_duplicates()) > FEW_TARGETS:
        return []
    one_label = CollapsedRuns(pd.DataFrame() if collapsed is None else collapsed)
    sentences: list[str] = []
    by_target = singles.groupby(["dataset", "target", "model"], sort=False)
    for (dataset, target, model), group in by_target:
        where = f"{dataset}/{target}"
        if singles["model"].nunique() > 1:
            where += f" with {model}"
        last = group.sort_values("delta").iloc[-1]
        best = {str(name): value for name, value in last.items()}
        sentences.append(f"{where}: {_best_source(best, group, one_label)}")
        if not (best["delta"] > 0 and _is_significant(best)):
            count = group["source"].nunique()
            sentences += _what_would_tell(best, count, _seconds(runs, best))
    return list(dict.fromkeys(sentences))  # what one run cannot tell is told once


def _best_source(best: Mapping[str, Any], group: pd.DataFrame, one_label: CollapsedRuns) -> str:
    """Return what the largest gain of a target is and whether it is significant."""
    source = str(best["source"])
    named = source if is_foreign(source) else f"{best['dataset']}/{source}"
    how = algorithm_label(str(best["algorithm"]))
    is_collapsed = one_label.describe(best)
    facts = [f"{best['delta']:+.1f} points{_interval(best)}"]
    if best["n_seeds"] > 1 and not is_collapsed:
        facts += filter(None, [_chance(best)])
    told = ", ".join(facts)
    if is_collapsed:
        told += f"; {is_collapsed}"
    if best["delta"] > 0 and _is_significant(best):
        return f"train on {named} first ({how}): {told}, {p_equals('q', best['q'])}."
    count = group["source"].nunique()
    if best["n_seeds"] < 2:
        of = f"best of {count} sources" if count > 1 else "only source"
        return f"the {of} is {named} ({how}): {told}; one run each, not tested."
    which = f"none of the {count} sources helps" if count > 1 else "its one source does not help"
    return f"{which} significantly. Best is {named} ({how}): {told}."


def _is_significant(cell: Mapping[str, Any]) -> bool:
    return cell["n_seeds"] > 1 and bool(cell["significant"])


def _interval(cell: Mapping[str, Any]) -> str:
    low, high = cell["low"], cell["high"]
    return "" if math.isnan(low) else f" [{low:+.1f}, {high:+.1f}]"


def _chance(cell: Mapping[str, Any]) -> str:
    """Return the chance that a cell's true difference is above 0, in whole percent.

    It is that of the t distribution whose interval the cell has, no value being likelier beforehand
    than another; by itself, whatever the other sources. A few trainings bear no decimals, and no
    more than 99 %.
    """
    error, degrees = cell["standard_error"], cell["degrees"]
    if not (error > 0 and degrees > 0):
        return ""
    from scipy.stats import t  # noqa: PLC0415  # slow to import

    chance = 100 * float(t.cdf(cell["delta"] / error, degrees))
    shown = "> 99" if chance > 99 else "< 1" if chance < 1 else f"{chance:.0f}"
    return f"chance of a gain {shown} %"


def _what_would_tell(cell: Mapping[str, Any], sources: int, seconds: float) -> Iterator[str]:
    """Yield how many more seeds, or test dialogues, would tell the best source's gain from none, if
    it is what it is now: its error has a part that falls with seeds and one that falls with
    dialogues."""
    if cell["n_seeds"] < 2:
        yield ONE_RUN
        return
    if not cell["delta"] > 0:
        yield "No source has a gain that more trainings could make significant."
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
    """Return the seconds of training for another seed of a cell: the transfer and its target's
    baseline."""
    own = runs[
        (runs["dataset"] == cell["dataset"])
        & (runs["model"] == cell["model"])
        & (runs["target"] == cell["target"])
    ]
    transfer = (own["algorithm"] == cell["algorithm"]) & (own["source"] == cell["source"])
    either = own[transfer | (own["algorithm"] == BASELINE)]
    return float(either.groupby(["algorithm", "source"])["seconds"].mean().sum())
