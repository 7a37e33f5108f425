"""Simulate how often the interval of a grouped rank correlation contains the true value.

``python -m benchmarks.grouped_correlation`` prints one row per setting: the numbers of
models, of training runs per model and of snapshots per run, and the true correlations of the
models' means and of their paths over epochs. The last column is the fraction of simulated studies
whose interval contains the true value, the correlation over many models.
"""

from __future__ import annotations

import argparse

import numpy as np

from tasktransfer.stats.draws import Floats
from tasktransfer.stats.grouped_correlation import (
    Model,
    Over,
    compute_correlation,
    compute_grouped_correlation,
)

OVERS: tuple[Over, ...] = ("all", "between", "within")
SETTINGS = ((5, 2, 3), (5, 3, 6))
"""Numbers of models, trainings and snapshots."""
CORRELATIONS = ((0.0, 0.0), (0.6, 0.3), (-0.5, 0.8))
"""Correlations of models' means, and of the paths shared by a model's trainings."""
MANY = 400


def sample_study(
    random: np.random.Generator, size: tuple[int, int, int], correlations: tuple[float, float]
) -> list[Model]:
    """Sample both variables of a study as effects of model, training run and epoch, plus noise."""
    models, trainings, snapshots = size

    def sample_both(shape: tuple[int, ...], correlation: float) -> Floats:
        turn = np.linalg.cholesky(np.array([[1, correlation], [correlation, 1]]))
        pairs: Floats = random.normal(size=(*shape, 2)) @ turn.T
        return pairs

    between, within = correlations
    points = (
        sample_both((models, 1, 1), between)
        + sample_both((models, 1, snapshots), within)
        + 0.5 * sample_both((models, trainings, 1), 0.0)
        + 0.3 * sample_both((models, trainings, snapshots), 0.0)
    )
    return [list(model) for model in points]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--studies", type=int, default=400)
    asked = parser.parse_args()
    random = np.random.default_rng(0)
    print("| models, trainings, snapshots | between | within | over | true | held, % |")
    print("|---|---|---|---|---|---|")
    for size in SETTINGS:
        for correlations in CORRELATIONS:
            studies = [sample_study(random, size, correlations) for _ in range(asked.studies)]
            worlds = [sample_study(random, (MANY, *size[1:]), correlations) for _ in range(3)]
            for over in OVERS:
                truth = float(np.mean([compute_correlation(world, over) for world in worlds]))
                told = [compute_grouped_correlation(study, over) for study in studies]
                held = np.mean([one.low <= truth <= one.high for one in told])
                row = (", ".join(map(str, size)), *correlations, over, round(truth, 2))
                print("|", " | ".join(map(str, row)), f"| {100 * held:.0f} |", flush=True)


if __name__ == "__main__":
    main()
