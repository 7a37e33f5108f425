"""The paper's numbers (Zhang et al., PoE) as data frames.

Each CSV in this folder names its table.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pandas as pd

from tasktransfer.designs.panel.sources.cards import RATED

AVERAGES = {
    "ConvAI2": "Average (PersonaChat)",
    "DailyDialog": "Average (DailyDialog)",
    "TopicalChat": "Average (TopicalChat)",
    "Empathetic": "Average (Empathetic)",
    "Reddit": "Average (Reddit)",
    "out-of-domain": "Average (Other)",
    "all": "Average (All)",
}
"""Domain → name of the average of its sets. Table IV has one average, named ``Average``."""
ROUNDING = 0.0101
"""Maximum difference between the mean of rounded rows and the rounded mean of the rows."""


@cache
def _read_csv(name: str) -> pd.DataFrame:
    with files(__package__).joinpath(f"{name}.csv").open(encoding="utf-8") as lines:
        return pd.read_csv(lines, comment="#")


def read_table(name: str) -> pd.DataFrame:
    """Return a table of the paper: ``table1`` to ``table8``, or ``resources``."""
    return _read_csv(name).copy()


def read_correlations(table: int) -> pd.DataFrame:
    """Return a table of published correlations (III, IV, V, VI or VIII), rated sets × methods."""
    frame = read_table(f"table{table}")
    if "spearman" not in frame:
        return frame.drop(columns=["row", "out_of_domain"]).set_index("dataset")
    raters = (
        frame["metric"]
        if "metric" in frame
        else frame["model"] + ", " + frame["k_percent"].astype(str) + " %"
    )
    return frame.assign(rater=raters).pivot_table("spearman", "dataset", "rater", sort=False)


def list_members(table: int, average: str) -> frozenset[str]:
    """Return the rated sets that a table's printed average covers, by the paper's names."""
    domains = {
        rated_set.published: rated_set.domain or "out-of-domain" for rated_set in RATED.values()
    }
    return frozenset(
        rated_set
        for rated_set in read_correlations(table).index
        if rated_set in domains
        and average in (AVERAGES[domains[rated_set]], AVERAGES["all"], "Average")
    )


def find_deviating_averages(table: int, off: float = ROUNDING) -> pd.DataFrame:
    """Return the printed averages that differ from the mean of the table's own rows.

    The columns are average, rater, printed and of_rows.
    """
    wide = read_correlations(table)
    rows = []
    for name in (name for name in wide.index if name.startswith("Average")):
        means = wide.loc[sorted(list_members(table, name))].mean()
        rows += [
            (name, rater, wide.loc[name, rater], means[rater])
            for rater in wide.columns
            if abs(means[rater] - wide.loc[name, rater]) > off
        ]
    return pd.DataFrame(rows, columns=["average", "rater", "printed", "of_rows"])
