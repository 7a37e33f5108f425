"""Test whether the sources of a target differ: do their differences repeat with other data?

    python -m benchmarks.source_differences results/minilm-matrix

For each dataset and algorithm, the score of each source on a target is compared with the mean of
the target's other sources, once with one seed on one half of the test dialogues, and once with
another seed on the other half. Neither training randomness nor test dialogues are shared, so a
positive covariance of the two means that sources differ. The p value (one-sided) comes from
permutations: in each, every seed of a target gets its own permutation of the sources, on both
halves of the dialogues. q values correct for the number of rows. The baseline cancels out, because
all sources of a target and seed share it. A target with large differences between its sources
counts for more than others; the table names the target that contributes most.

Prints one row per dataset, model and algorithm: covariance, correlation, p and q value, number of
targets, and the target that contributes most with its fraction of the covariance. The columns
``p_without`` and ``q_without`` are computed without this target.
"""

from __future__ import annotations

import argparse
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

import tasktransfer as tt
from tasktransfer.designs.transfer.statistics.by_dialogue import (
    DialogueScores,
    compute_dialogue_scores,
)
from tasktransfer.stats.bootstrap import compute_q_values

PERMUTATIONS = 9999
Floats = npt.NDArray[np.float64]
Pairs = dict[tuple[int, int], tuple[Floats, Floats]]
"""Two seeds → a target's centred scores with the first seed and with the second one."""
Products = dict[tuple[int, int], Floats]
"""Two seeds → products of their centred scores, (sources, sources)."""


def center_sources(
    runs: pd.DataFrame, scored: DialogueScores, seed: int, sources: list[str]
) -> Floats | None:
    """Return each source's score minus their mean, (halves, splits, sources).

    None if a source has no run with this seed.
    """
    of_seed = runs[runs["seed"] == seed].set_index("source")
    if not set(sources) <= set(of_seed.index):
        return None
    names = [tuple(of_seed.loc[source, ["model", "digest"]]) for source in sources]
    if not all(name in scored.halves for name in names):
        return None
    scores = np.stack([scored.halves[name] for name in names], axis=-1)
    return np.asarray(scores - scores.mean(axis=-1, keepdims=True))


def collect_pairs(runs: pd.DataFrame, scored: DialogueScores) -> Pairs:
    """Return a target's centred scores for each ordered pair of seeds, (splits, sources) each.

    The first is from one seed on the first half of the dialogues, the second from another seed on
    the second half.
    """
    sources = sorted(runs["source"].unique())
    if len(sources) < 3:
        return {}
    found = {
        int(seed): center_sources(runs, scored, seed, sources)
        for seed in sorted(runs["seed"].unique())
    }
    centred = {seed: scores for seed, scores in found.items() if scores is not None}
    return {(a, b): (centred[a][0], centred[b][1]) for a, b in permutations(centred, 2)}


def compare_sources(
    runs: pd.DataFrame, scored: dict[tuple[str, str], DialogueScores]
) -> pd.DataFrame:
    """Return one row per dataset, model and algorithm."""
    single = runs[runs["n_sources"] == 1]
    rows = []
    for (dataset, model, algorithm), group in single.groupby(
        ["dataset", "model", "algorithm"], sort=False
    ):
        pairs = {
            str(target): collect_pairs(own, scored[dataset, target])
            for target, own in group.groupby("target")
            if (dataset, target) in scored
        }
        pairs = {target: found for target, found in pairs.items() if found}
        if pairs:
            rows.append((dataset, model, algorithm, *test_covariance(pairs)))
    names = ["dataset", "model", "algorithm", "covariance", "correlation", "p", "targets"]
    table = pd.DataFrame(rows, columns=[*names, "most", "fraction", "p_without"])
    q = {f"q{each}": compute_q_values(table[f"p{each}"]) for each in ("", "_without")}
    return table.assign(**q)


def test_covariance(
    pairs: dict[str, Pairs],
) -> tuple[float, float, float, int, str, float, float]:
    """Return the columns of a row from ``covariance`` to ``p_without``."""
    products = {
        target: {seeds: multiply(*pair) for seeds, pair in found.items()}
        for target, found in pairs.items()
    }
    each = {target: mean_trace(found) for target, found in products.items()}
    total = sum(each.values())
    spread = sum(
        np.mean([np.sqrt((a * a).sum(1).mean() * (b * b).sum(1).mean()) for a, b in found.values()])
        for found in pairs.values()
    )
    cells = sum(next(iter(found.values()))[0].shape[1] for found in pairs.values())
    row = (float(total) / cells, float(total / spread), compute_p(products), len(pairs))
    if total <= 0:  # no target has a fraction of a covariance that is not positive
        return (*row, "", np.nan, np.nan)
    most = max(each, key=lambda target: each[target])
    rest = {target: found for target, found in products.items() if target != most}
    return (*row, most, float(each[most] / total), compute_p(rest))


def multiply(a: Floats, b: Floats) -> Floats:
    """Return the products of each source's a with each source's b, mean over splits."""
    return np.asarray(np.einsum("ks,kt->st", a, b) / len(a))


def mean_trace(found: Products) -> float:
    """Return the covariance of a target's sources, mean over pairs of seeds."""
    return float(np.mean([product.trace() for product in found.values()]))


def compute_p(products: dict[str, Products]) -> float:
    """Return the one-sided p value of the sum of the targets' covariances, by permutation.

    Each permutation reorders the sources independently for every seed of every target. The order
    is the same in all pairs of seeds with this seed, and for both halves of the test dialogues,
    because the same training runs are scored on both halves.
    """
    random = np.random.default_rng(0)
    observed = sum(map(mean_trace, products.values()))
    sums = np.zeros(PERMUTATIONS)
    for found in products.values():
        sources = np.arange(len(next(iter(found.values()))))
        seeds = {seed for pair in found for seed in pair}
        orders = {
            seed: random.permuted(np.tile(sources, (PERMUTATIONS, 1)), axis=1) for seed in seeds
        }
        each = [product[orders[a], orders[b]].sum(axis=1) for (a, b), product in found.items()]
        sums += np.mean(each, axis=0)
    return float((1 + (sums >= observed - 1e-12).sum()) / (1 + PERMUTATIONS))


def main() -> None:
    """Read a study's results and print the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, help="results folder of a transfer study")
    chosen = parser.parse_args()
    runs = tt.load_results(chosen.results)["transfer_runs"]
    found = compare_sources(runs, compute_dialogue_scores(runs, chosen.results))
    print(found.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
