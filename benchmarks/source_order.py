"""Measure how often two models agree on which of two sources of a target is better.

    python -m benchmarks.source_order --tables results/base-models/tables \\
        --against results/minilm-matrix/tables

Two sources of one target are compared by mean test scores over seeds, after the same algorithm. No
baseline is needed, so cells with a missing baseline count too. Ties count half. Also prints the
agreement of two seeds of the same model on the same transfers, and of each pair of models.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

KEYS = ["dataset", "algorithm", "target", "source"]


def compare_models(runs: pd.DataFrame, against: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each pair of sources of a target that is in both tables.

    Columns are ``target`` and ``same``, which is 1 if both models prefer the same source, 0 if not,
    and 0.5 if one of them has a tie.

    Args:
        runs: columns of ``tables/runs.parquet``, for one model.
        against: columns of ``tables/runs.parquet``, for another model.
    """
    rows = []
    mine, other = (_compute_mean_scores(table) for table in (runs, against))
    shared = mine.index.intersection(other.index)
    for key, group in pd.DataFrame(index=shared).groupby(KEYS[:-1]):
        for a, b in combinations(group.index, 2):
            signs = np.sign(mine[a] - mine[b]) * np.sign(other[a] - other[b])
            rows.append((key[0], key[2], (1 + signs) / 2))
    return pd.DataFrame(rows, columns=["dataset", "target", "same"])


def compare_seeds(runs: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Compare a model's first seed with its second, as ``compare_models``.

    Only transfers that are also in ``cells`` (of another model) count.
    """
    own = runs.merge(cells[KEYS].drop_duplicates(), on=KEYS)
    first, second = sorted(own["seed"].unique())[:2]
    return compare_models(own[own["seed"] == first], own[own["seed"] == second])


def compute_share(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Return the mean of ``same`` and its 95 % t interval over targets, within 0 and 1.

    A t interval with the few targets' degrees of freedom is used, because percentile bootstraps
    over few clusters are too narrow. Targets with more comparisons weigh more.
    """
    targets = rows.groupby(["dataset", "target"])["same"].agg(["sum", "count"])
    mean = targets["sum"].sum() / targets["count"].sum()
    residuals = (targets["sum"] - mean * targets["count"]) / targets["count"].mean()
    error = residuals.std(ddof=1) / np.sqrt(len(targets))
    margin = stats.t.ppf(0.975, len(targets) - 1) * error
    return float(mean), float(max(0, mean - margin)), float(min(1, mean + margin))


def format_sentence(rows: pd.DataFrame) -> str:
    """Return a sentence that states the agreement."""
    mean, low, high = compute_share(rows)
    alike = f"{rows['same'].sum():g} of {len(rows)} comparisons of two sources agree"
    interval = f"95 % interval over targets {100 * low:.0f} to {100 * high:.0f} %"
    return f"{alike}: {100 * mean:.0f} %, {interval}"


def _compute_mean_scores(runs: pd.DataFrame) -> pd.Series:
    """Return the mean test score of each transfer from one source."""
    return runs[runs["source"] != ""].groupby(KEYS)["score"].mean()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--against", type=Path, required=True)
    chosen = parser.parse_args()
    runs, against = (pd.read_parquet(f / "runs.parquet") for f in (chosen.tables, chosen.against))
    models = dict(iter(runs.groupby("model")))
    for model, own in models.items():
        print(f"{model}: {format_sentence(compare_models(own, against))}")
    for (one, own), (two, other) in combinations(models.items(), 2):
        print(f"{one} and {two}: {format_sentence(compare_models(own, other))}")
    if against["seed"].nunique() > 1:
        print(
            f"first and second seed of --against: {format_sentence(compare_seeds(against, runs))}"
        )


if __name__ == "__main__":
    main()
