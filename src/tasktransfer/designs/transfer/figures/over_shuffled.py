"""The second heatmap: what the source's labels give beyond its texts.

The same picture as the heatmap of improvements, of the table ``controls``: deltas over
``shuffled_source`` in points, in place of improvements over the baseline.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from tasktransfer.designs.transfer.collect.planned import BASELINE
from tasktransfer.designs.transfer.collect.results import Results
from tasktransfer.designs.transfer.controls import CONTROLLED, SHUFFLED
from tasktransfer.designs.transfer.figures.heatmap import Words, heatmap
from tasktransfer.designs.transfer.statistics.cells import MARKED

_WORDS = Words("delta minus that of the source with permuted labels, points", "Points", "")


def over_shuffled(results: Results, dataset: str) -> Figure | None:
    """Draw the figure of one dataset; None where no source was trained with permuted labels."""
    cells, missing = _cells(results.statistics.controls), _missing(results)
    if cells.empty:
        return None
    return heatmap(
        replace(
            results,
            tables=replace(results.tables, missing=missing),
            statistics=replace(results.statistics, cells=cells),
        ),
        dataset,
        _WORDS,
    )


def _cells(controls: pd.DataFrame) -> pd.DataFrame:
    """What the heatmap reads of cells, over the control; ``improvement`` is in points."""
    there = controls[controls[f"{SHUFFLED}_delta"].notna()]
    delta, q = there[f"{SHUFFLED}_delta"], there[f"{SHUFFLED}_q"]
    return there.assign(
        n_seeds=there[f"{SHUFFLED}_seeds"],
        delta=delta,
        improvement=delta,
        q=q,
        significant=q <= MARKED,
    )


def _missing(results: Results) -> pd.DataFrame:
    """The missing runs that leave a cell without a number: transfers, baselines, and controls as if
    they were the transfer."""
    missing, controls = results.tables.missing, results.tables.control_missing
    own = missing[missing["algorithm"].isin([BASELINE, CONTROLLED])]
    shuffled = controls[controls["algorithm"] == SHUFFLED].assign(algorithm=CONTROLLED)
    return pd.concat([own, shuffled], ignore_index=True) if len(shuffled) else own
