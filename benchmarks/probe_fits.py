"""Measure the time to fit a probe for slot values: hundreds of logistic regressions as one problem.

``python -m benchmarks.probe_fits`` prints JSON with wall and CPU seconds for data of the size of
AllValues (644 labels, 10,000 rows of 256 features). For comparison, scikit-learn fits a few labels
one by one, and its time for all labels is extrapolated.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from tasktransfer.fits.linear_probes import fit_one_vs_rest_classifiers

Floats = npt.NDArray[np.float64]


def sample_task(rows: int, features: int, labels: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Sample correlated features like an encoder's, and labels as frequent as MultiWOZ's values.

    The k-th label is in a fraction of rows proportional to 1/k. Half of each is predictable from
    the features.
    """
    chance = np.random.default_rng(seed)
    hidden = chance.normal(size=(rows, 40))
    inputs = np.tanh(hidden @ chance.normal(size=(40, features)) / 6)
    scores = hidden @ chance.normal(size=(40, labels)) / 6 + chance.normal(size=(rows, labels))
    shares = np.maximum(0.2 / np.arange(1, labels + 1), 3 / rows)
    bounds = np.array([np.quantile(scores[:, k], 1 - share) for k, share in enumerate(shares)])
    return inputs, (scores > bounds).astype(np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--labels", type=int, default=644)
    parser.add_argument("--sample", type=int, default=4, help="labels that scikit-learn fits")
    size = parser.parse_args()
    inputs, wanted = sample_task(size.rows, size.features, size.labels)
    wall, processor = time.perf_counter(), time.process_time()
    fitted = fit_one_vs_rest_classifiers(inputs, wanted, 1.0, 250)
    told = {
        "rows": size.rows,
        "features": size.features,
        "labels": size.labels,
        "iterations": fitted.iterations,
        "converged": fitted.converged,
        "wall_seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processor,
    }
    chosen = np.linspace(0, size.labels - 1, size.sample).astype(int)
    processor = time.process_time()
    for label in chosen:
        LogisticRegression(C=1.0, max_iter=250).fit(inputs, wanted[:, label])
    each = (time.process_time() - processor) / max(1, size.sample)
    told["scikit_learn_processor_seconds"] = each * size.labels
    print(json.dumps({k: round(v, 2) if isinstance(v, float) else v for k, v in told.items()}))


if __name__ == "__main__":
    main()
