"""Simulate how often slopes in Figures 4 and 5 are significant without a relation in the data.

    python benchmarks/slope_simulation.py [STUDIES]

Tasks differ as targets and as sources, and their numbers of training samples are sampled (or
permuted) independently. For each spread of tasks, number of tasks and kind of line, prints the
fraction of slopes whose 95 % interval excludes 0 (target: 5 %). Intervals treat cells as
independent, as the figures did earlier, or resample whole tasks. The default takes about a minute
on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from simulated_studies import Matrix, no_trend
from tasktransfer.stats.best_fit import fit_line

SPREADS = {
    "targets differ": {"of_targets": 2.0, "of_sources": 0.3, "of_cells": 0.7},
    "targets and sources differ": {"of_targets": 2.0, "of_sources": 1.0, "of_cells": 1.5},
    "pairs differ most": {"of_targets": 0.5, "of_sources": 0.5, "of_cells": 2.0},
}


def main(studies: int = 400) -> None:
    print(f"slopes that differ from 0, % of {studies}: cells independent -> tasks resampled")
    for name, spread in SPREADS.items():
        for tasks in (10, 7, 4, 3):
            random = np.random.default_rng([1, tasks])
            drawn = [no_trend(tasks, random, **spread) for _ in range(studies)]
            rates = [
                f"{role} {_format_rates(drawn, role)}" for role in ("source", "target", "ratio")
            ]
            print(f"{name:28} {tasks:3} tasks   {'   '.join(rates)}", flush=True)


def _format_rates(drawn: list[Matrix], role: str) -> str:
    before = np.mean([_is_significant_by_cell(cells, role) for cells in drawn])
    after = np.mean([_is_significant_by_task(cells, role) for cells in drawn])
    return f"{100 * before:4.1f} -> {100 * after:4.1f}"


def _is_significant_by_cell(cells: Matrix, role: str) -> bool:
    return bool(stats.linregress(cells.logarithm(role), cells.deltas).pvalue <= 0.05)


def _is_significant_by_task(cells: Matrix, role: str) -> bool:
    fit = fit_line(cells.logarithm(role), cells.deltas, *cells.names)
    if fit is None:
        return False
    low, high = fit.compute_slope_interval()
    return not low <= 0 <= high


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
