"""Simulate the false positive rate of tests of two equal raters if contexts have several responses.

    python benchmarks/panel_tests_simulation.py [STUDIES]

Responses to one context share a part of their ratings, for human raters and for models. For several
numbers of contexts and responses, prints the fraction of studies with p <= 0.05 although there is
no difference (target: 5 %). The tests are Williams' test, which treats all items as independent,
and resampling of contexts (``stats.clustered.compare_raters``). The default takes about three
minutes on one core.
"""

from __future__ import annotations

import sys

import numpy as np

from tasktransfer.metrics.measures import compute_spearman
from tasktransfer.stats.clustered import compare_raters, compute_williams_test
from tasktransfer.stats.draws import sample_unit_weights

SIZES = ((60, 5), (147, 2), (100, 5))
SHARED = 0.5
"""Fraction of each variance that comes from the context."""
LIKE_PEOPLE = 0.4
"""Correlation of either rater with human ratings, before ranking."""


def main(studies: int = 2000) -> None:
    print(f"significant without a difference, % of {studies}: Williams' test, contexts resampled")
    for contexts, responses in SIZES:
        random = np.random.default_rng([7, contexts, responses])
        of_item = np.repeat(np.arange(contexts), responses)
        weights = sample_unit_weights("simulated", f"{contexts}", contexts)[:, of_item]
        found = np.zeros(2)
        for _ in range(studies):
            people, one, other = sample_study(random, contexts, responses)
            r = (
                compute_spearman(one, people),
                compute_spearman(other, people),
                compute_spearman(one, other),
            )
            p = compare_raters(one, other, people, weights, contexts)[3]
            found += (compute_williams_test(*r, len(people))[1] <= 0.05, p <= 0.05)
        rates = 100 * found / studies
        print(f"{contexts:4} contexts x {responses}: {rates[0]:5.1f} {rates[1]:5.1f}", flush=True)


def sample_study(
    random: np.random.Generator, contexts: int, responses: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sample human ratings and two raters with the same correlation, shape (items,) each."""

    def sample_ratings() -> np.ndarray:
        of_context = np.repeat(random.standard_normal(contexts), responses)
        of_item = random.standard_normal(contexts * responses)
        return np.sqrt(SHARED) * of_context + np.sqrt(1 - SHARED) * of_item

    people = sample_ratings()
    raters = (
        LIKE_PEOPLE * people + np.sqrt(1 - LIKE_PEOPLE**2) * sample_ratings() for _ in range(2)
    )
    one, other = raters
    return people, one, other


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
