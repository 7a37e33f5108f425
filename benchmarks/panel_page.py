"""Print the tables of docs/panel.md from a study's results.

    python benchmarks/panel_page.py [results/panel-laptop]

Prints correlations by set and method, with percentiles over jointly resampled contexts and seeds,
and the number of correlations above 0. It also prints ceilings, differences, means over sets,
few-shot transfer, response selection, the labeller and the cost of training.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.panel.statistics import build_rated_sets
from tasktransfer.metrics.measures import compute_spearman
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata
from tasktransfer.stats.clustered import resample_spearman

METHODS = ("panel", "panel-mean", "single", "twin", "single-leaky", "twin-leaky", "untrained")
LOOKED_AT = {"Persona_Zhao", "DailyDialog_Gupta"}
PAIRED = {
    "twin": ("cosine-whole", "cosine-last", "cosine-max", "twin-leaky", "single"),
    "single": ("cosine-last", "single-leaky"),
}
NO_STUDY: Any = None
CONTROLS = ("cosine-last", "cosine-whole", "cosine-max", "word-overlap", "length")


def main(results: str = "results/panel-laptop") -> None:
    tables = {
        file.stem: pd.read_parquet(file) for file in sorted(Path(results, "tables").glob("*"))
        if file.suffix == ".parquet"
    }  # fmt: skip
    own = tables["correlations"]
    for methods in (METHODS, CONTROLS):
        _print_table(own, [method for method in methods if method in {*own["method"]}])
    ceilings = tables["ceilings"].set_index("set")
    print("\n| set | halves agree | reliability | ceiling |\n|---|---|---|---|")
    for name, one in ceilings.round(0).iterrows():
        shown = (f"{one[column]:.0f}" for column in ("split_half", "reliability", "ceiling"))
        print(f"| {name} | {' | '.join(shown)} |")
    _print_differences(tables["tests"])
    _print_mean_differences(tables)
    for name in ("averages", "few", "hits", "trainings"):
        frame = tables[name]
        if name == "averages":
            frame = frame[frame["over"].isin(["all", "in-domain", "out-of-domain"])]
        if name == "trainings":
            frame = frame.groupby("kind", sort=False).agg(
                trainings=("label", "size"), minutes=("hours", lambda h: 60 * h.sum()),
                dev_score=("dev_score", "mean"), accuracy=("test_accuracy", "mean"),
                constant=("test_constant", "mean"), balanced=("test_balanced", "mean"),
            )  # fmt: skip
        print(f"\n{name}\n{frame.round(2).to_string()}")


def _print_table(own: pd.DataFrame, methods: list[str]) -> None:
    print(f"\n| set | {' | '.join(methods)} |\n|---|{'---|' * len(methods)}")
    for name in own["set"].unique():
        some = own[own["set"] == name].set_index("method")
        cells = [
            f"{one['value']:.0f} [{one['bootstrap_low']:.0f}, {one['bootstrap_high']:.0f}]"
            for one in (some.loc[method] for method in methods)
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    means = own[own["method"].isin(methods)].groupby("method")["value"].mean()
    print(f"| mean | {' | '.join(f'{means[method]:.1f}' for method in methods)} |")
    above = own[own["bootstrap_low"] > 0].groupby("method")["set"].size()
    print(f"| above 0 | {' | '.join(str(above.get(method, 0)) for method in methods)} |")


def _print_differences(tests: pd.DataFrame) -> None:
    for against in tests["against"].unique():
        mean = tests[(tests["against"] == against) & (tests["seed"] == "mean")]
        print(f"\nminus {against}, resampling contexts (q); Williams' q")
        for method, some in mean.groupby("method", sort=False):
            told = ", ".join(
                f"{one['set']} {one['difference']:.0f} [{one['low']:.0f}, {one['high']:.0f}] "
                f"({one['q']:.3f}; {one['t_q']:.3f})"
                for one in some.to_dict("records")
            )
            print(f"{method}: {told}")


def _print_mean_differences(tables: dict[str, pd.DataFrame]) -> None:
    """Print differences between methods' means over sets (first seed), with contexts resampled.

    They are printed for all sets, and without the two sets that benchmarks/panel_factors.py uses.
    """
    sets = build_rated_sets(Frames(NO_STUDY, tables, Metadata("", "", False, 0)))
    moved: dict[str, dict[str, tuple[float, np.ndarray]]] = {}
    for one in sets:
        for (method, domain), given in one.given.items():
            if not domain:
                values = next(iter(given.values()))
                told = (
                    compute_spearman(values, one.gold),
                    resample_spearman(values, one.gold, one.weights),
                )
                moved.setdefault(method, {})[one.name] = told
    print(
        "\nmeans over sets, differences [95 % interval over contexts]: all; without those two sets"
    )
    for method, others in PAIRED.items():
        for other in (each for each in others if method in moved and each in moved):
            shown = []
            for names in (moved[method], {*moved[method]} - LOOKED_AT):
                each = [
                    (a - b, (x - y).var(ddof=1))
                    for a, x, b, y in ((*moved[method][n], *moved[other][n]) for n in names)
                ]
                value, variance = np.sum(each, axis=0)
                value, reach = value / len(each), 1.96 * variance**0.5 / len(each)
                ends = f"[{100 * (value - reach):.1f}, {100 * (value + reach):.1f}]"
                shown.append(f"{100 * value:.1f} {ends}")
            print(f"{method} minus {other}: {'; '.join(shown)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
