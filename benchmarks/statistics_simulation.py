"""How honest intervals and marks are, on simulated studies whose true effect is known.

    python benchmarks/statistics_simulation.py [STUDIES [HEATMAPS]]

Prints, for each regime of what varies, how often the 95 % interval covers the planted effect
(wanted: 93 to 97 in 100), and without any effect the share of a heatmap's cells that are marked
(wanted: at most 5 in 100). The defaults take about ten minutes on one core.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from simulated_studies import REGIMES, Regime, heatmap, studies, true_delta
from tasktransfer.designs.transfer.statistics.cells import MARKED
from tasktransfer.stats import bootstrap
from tasktransfer.stats.false_discovery import false_discovery

TASKS = 10


def main(count: int = 2000, heatmaps: int = 40) -> None:
    print(f"coverage of the 95 % interval, {count} studies each")
    for number, regime in enumerate(REGIMES):
        print(_coverage(regime, count, np.random.default_rng([1, number])), flush=True)
    print(f"\nno effect: share of cells marked, {heatmaps} heatmaps of {TASKS} tasks each")
    for number, regime in enumerate(REGIMES):
        print(_marked(regime, heatmaps, np.random.default_rng([2, number])), flush=True)


def _coverage(regime: Regime, count: int, chance: np.random.Generator) -> str:
    began = time.perf_counter()
    true = true_delta(regime, chance)
    found = list(studies(regime, count, chance))
    sure = bootstrap.confidences(found)
    deltas = np.array([estimate.delta for estimate in found])
    errors = np.array([estimate.standard_error for estimate in found])
    covered = np.mean([one.low <= true <= one.high for one in sure])
    width = np.median([one.high - one.low for one in sure])
    return (
        f"{regime.name:30} true delta {true:5.2f}  covered {100 * covered:5.1f} %"
        f"  standard error {np.sqrt(np.mean(errors**2)):5.2f} (in truth {deltas.std():5.2f})"
        f"  median width {width:5.2f}  {time.perf_counter() - began:4.0f} s"
    )


def _marked(regime: Regime, heatmaps: int, chance: np.random.Generator) -> str:
    began = time.perf_counter()
    regime = replace(regime, gain=0.0)
    p = np.array([heatmap(regime, TASKS, chance) for _ in range(heatmaps)])
    q = np.array([false_discovery(row) for row in p])
    return (
        f"{regime.name:30} marked {100 * np.mean(q <= MARKED):6.3f} %"
        f"  heatmaps with any mark {100 * np.mean((q <= MARKED).any(axis=1)):5.1f} %"
        f"  p <= 0.05 {100 * np.mean(p <= MARKED):5.2f} %  {time.perf_counter() - began:4.0f} s"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
