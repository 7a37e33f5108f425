"""Plot the first picture of the README from the tables of the shipped matrix.

    make figures && .venv-figures/bin/python docs/first_picture.py

Left: the mean effect of each algorithm with its 95 % interval. Right: the effect of every source on
every target of Friends, with the cells whose interval includes 0 faded. The file contains the
plotted numbers (PNG text "Description"), which a test compares with the shipped pack.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from tasktransfer.datasets import get_task

TABLES = Path("results/minilm-matrix/tables")
PICTURE = Path("docs/images/first-picture.png")
ALGORITHMS = {
    "pretrain_finetune": "pre-train → fine-tune",
    "multitask": "multitask",
    "multitask_finetune": "multitask → fine-tune",
}
GAIN, LOSS, GREY = "#0b6aa2", "#c4561b", "#767676"
DATASET, ALGORITHM = "Friends", "multitask_finetune"
LARGEST = 10.0
"""Points at which the colour of a cell is full."""


def list_numbers(summary: pd.DataFrame, cells: pd.DataFrame) -> dict[str, list[list[Any]]]:
    """Return the rows that the picture shows, with numbers rounded to two digits."""
    chosen = cells[(cells.dataset == DATASET) & (cells.algorithm == ALGORITHM)]
    effects = summary[["dataset", "algorithm", "mean", "joint_low", "joint_high"]]
    pairs = chosen[["source", "target", "delta", "low", "high", "baseline_score"]]
    tables = {"effects": effects, "cells": pairs}
    return {name: table.round(2).to_numpy().tolist() for name, table in tables.items()}


def plot_algorithms(axes: Axes, summary: pd.DataFrame) -> None:
    """Draw a forest plot: one row per dataset and algorithm, filled if the interval excludes 0."""
    position = 0.0
    ticks: dict[float, str] = {}
    for dataset in ("Friends", "DailyDialog"):
        rows = summary[summary.dataset == dataset].set_index("algorithm")
        axes.text(-5.6, position, dataset, fontweight="bold", va="center")
        for algorithm, name in ALGORITHMS.items():
            position -= 1
            row = rows.loc[algorithm]
            excludes_0 = row.joint_low > 0 or row.joint_high < 0
            colour = (GAIN if row["mean"] > 0 else LOSS) if excludes_0 else GREY
            axes.plot([row.joint_low, row.joint_high], [position] * 2, color=colour, linewidth=2.5)
            face = colour if excludes_0 else "white"
            axes.plot(row["mean"], position, "o", color=colour, markerfacecolor=face, markersize=8)
            axes.text(
                8.4,
                position,
                f"{row['mean']:+.1f}".replace("-", "−"),
                va="center",
                ha="right",
                color=colour,
            )
            ticks[position] = name
        position -= 1.4
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set(xlim=(-5.8, 8.6), ylim=(position + 0.8, 0.7))
    axes.set_xlabel("mean change in score over fine-tuning on the target alone, in points")
    axes.set_title("Does training on another task help?", loc="left", fontweight="bold")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def plot_pairs(axes: Axes, cells: pd.DataFrame) -> None:
    """Draw a heatmap of sources by targets; the diagonal holds the baselines' scores."""
    chosen = cells[(cells.dataset == DATASET) & (cells.algorithm == ALGORITHM)]
    tasks = list(dict.fromkeys(chosen.target))
    short = {task: get_task(DATASET, task).short for task in tasks}
    for cell in chosen.itertuples():
        row, column = tasks.index(cell.source), tasks.index(cell.target)
        excludes_0 = cell.low > 0 or cell.high < 0
        strength = min(1.0, abs(cell.delta) / LARGEST) * (1.0 if excludes_0 else 0.3)
        draw_cell(axes, row, column, blend(GAIN if cell.delta > 0 else LOSS, strength))
        ink = "white" if strength > 0.6 else "black" if excludes_0 else GREY
        weight = "bold" if excludes_0 else "normal"
        text = f"{cell.delta:+.1f}".replace("-", "−")
        axes.text(column, row, text, ha="center", va="center", color=ink, fontweight=weight)
    for place, target in enumerate(tasks):
        score = chosen[chosen.target == target].baseline_score.iloc[0]
        draw_cell(axes, place, place, to_rgb("#dddddd"))
        axes.text(place, place, f"{score:.0f}", ha="center", va="center")
    names = [f"{task.replace('_', ' ')} ({short[task]})" for task in tasks]
    axes.set_yticks(range(len(tasks)), names)
    axes.set_xticks(range(len(tasks)), [short[task] for task in tasks])
    axes.set(xlim=(-0.5, len(tasks) - 0.5), ylim=(len(tasks) - 0.5, -0.5), aspect="equal")
    axes.set_xlabel("target")
    title = f"Which source helps which target?\n({DATASET}, {ALGORITHMS[ALGORITHM]}, points)"
    axes.set_title(title, loc="left", fontweight="bold")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def draw_cell(axes: Axes, row: int, column: int, colour: tuple[float, float, float]) -> None:
    """Fill one cell of the heatmap."""
    low, width = -0.48, 0.96
    axes.add_patch(plt.Rectangle((column + low, row + low), width, width, color=colour, zorder=0))


def blend(colour: str, strength: float) -> tuple[float, float, float]:
    """Return a colour mixed with white; ``strength`` is from 0 (white) to 1."""
    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def main() -> None:
    """Plot the picture, or exit with the command that makes its tables."""
    if not (TABLES / "cells.parquet").exists():
        sys.exit(f"{TABLES}: no tables. Run `make figures` first.")
    plt.rcParams.update({"font.size": 10, "axes.titlesize": 11})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(13, 4.6), width_ratios=(1.15, 1), layout="constrained"
    )
    summary, cells = (pd.read_parquet(TABLES / f"{name}.parquet") for name in ("summary", "cells"))
    plot_algorithms(left, summary)
    plot_pairs(right, cells)
    numbers = json.dumps(list_numbers(summary, cells))
    figure.savefig(PICTURE, dpi=130, metadata={"Software": None, "Description": numbers})


if __name__ == "__main__":
    main()
