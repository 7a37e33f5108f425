"""Figure of the selectors' regret over their cost, with intervals and the noise floor as a band."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasktransfer.errors import format_quantity
from tasktransfer.present.kit.paper import add_caption_notes
from tasktransfer.present.kit.style import (
    ALGORITHM_COLOURS,
    INK,
    LABEL_POINTS,
    add_title,
    despine,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata
from tasktransfer.selection.declared import RANDOM
from tasktransfer.selection.regret import FLOORS, LEADING, select_leading_rows
from tasktransfer.selection.values import describe_left_out_targets

LEAST_SECONDS = 0.1
"""Smallest cost on the logarithmic axis; cheaper selectors are drawn here."""
APART = 1.25
"""Smallest ratio of neighbouring x positions, which separates selectors of similar cost."""
ROOM_FOR_NAMES = 1.45
"""Factor of the y limit that leaves room for names above their intervals."""
FLOOR_NOTE = (
    "The noise floor and the dotted line (a random ranking) are evaluated with half of the seeds, "
    "and everything else with all seeds. Compare the noise floor only with the dotted line."
)
"""Sentence of the caption."""


def plot_study_regret(label: Callable[[str], str], frames: Frames) -> Figure | None:
    """Draw regret against cost, or return None if no target has two sources to rank."""
    rows = select_leading_rows(frames)
    if rows.empty:
        return None
    return plot_regret(rows, frames.metadata, label, describe_left_out_targets(frames))


def plot_regret(
    table: pd.DataFrame,
    metadata: Metadata,
    label: Callable[[str], str] = str,
    notes: Sequence[str] = (),
) -> Figure:
    """Draw regret against cost in one panel per model and algorithm.

    Args:
        table: columns of ``selection.declared.REGRET``. With several datasets, only the rows over
            all of them are drawn.
        label: function from an algorithm to its label.
        notes: sentences for the caption.
    """
    rows = table[(table["measure"] == LEADING) & table["value"].notna()]
    datasets = list(dict.fromkeys(rows["dataset"]))
    rows = rows[rows["dataset"] == ("all" if "all" in datasets else datasets[0])]
    panels = list(rows.groupby(["model", "algorithm"], sort=False))
    figure = Figure(figsize=(7.0, 2.3 * len(panels) + 0.9), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
    for place, (names, group) in zip(axes, panels, strict=True):
        model, algorithm = map(str, names)
        _draw_panel(place, group)
        place.set_ylabel(f"{model}\n{label(algorithm)}\nregret@1, points", fontsize=8)
    axes[-1].set_xlabel("seconds per target (log scale)", fontsize=LABEL_POINTS)
    targets, seeds = int(rows["n_targets"].max()), int(rows["n_seeds"].max())
    what = f"Regret of selectors over their cost, {format_quantity(targets, 'target')}"
    add_title(figure, what, seeds, metadata)
    add_caption_notes(figure, notes)
    if rows["floor"].notna().any():
        add_caption_notes(figure, [FLOOR_NOTE])
    if (rows["low"] < 0).any():
        add_caption_notes(figure, ["Regret is never negative, so intervals are cut off at 0."])
    return figure


def _draw_panel(axes: Axes, group: pd.DataFrame) -> None:
    despine(axes)
    axes.set_xscale("log")
    floor = float(group["floor"].iloc[0])
    if np.isfinite(floor):
        axes.axhspan(0, floor, color="#e4dcc8", zorder=0)
        _label_line(axes, floor / 2, FLOORS["floor"])
        random = float(group["floor_random"].iloc[0])
        axes.axhline(random, color=INK, lw=0.8, ls=":", zorder=1)
        _label_line(axes, random, FLOORS["floor_random"])
    chance = group[group["selector"] == RANDOM]
    if len(chance):
        axes.axhline(float(chance["value"].iloc[0]), color=INK, lw=0.8, ls="--", zorder=1)
        _label_line(axes, float(chance["value"].iloc[0]), "random")
    others: list[Any] = group[group["selector"] != RANDOM].to_dict("records")
    x = 0.0
    for row in sorted(others, key=lambda other: other["seconds"]):
        x = max(row["seconds"], LEAST_SECONDS, APART * x)
        axes.plot([x, x], [max(0.0, row["low"]), row["high"]], color=INK, lw=1.2, zorder=2)
        axes.plot(
            x, row["value"], "o", color=ALGORITHM_COLOURS[0], mec=INK, mew=0.8, ms=6, zorder=3
        )
        axes.annotate(row["selector"], (x, row["high"]), xytext=(0, 3), rotation=90, fontsize=7,
                      textcoords="offset points", ha="center", va="bottom")  # fmt: skip
    axes.margins(x=0.05)
    axes.set_ylim(bottom=0, top=float(group["high"].max()) * ROOM_FOR_NAMES)


def _label_line(axes: Axes, height: float, name: str) -> None:
    """Write a line's name to the right of its panel."""
    axes.text(1.005, height, name, va="center", fontsize=7, color=INK,
              transform=axes.get_yaxis_transform())  # fmt: skip
