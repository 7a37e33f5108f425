"""The figures of the empathetic design: scores of methods, and ratios of people's choices."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from tasktransfer.files import replacing
from tasktransfer.tables.metadata import Metadata, in_order

RANGE = 30
"""Ratios beyond it, and its inverse, have the colours of the scale's ends."""


def draw_scores(
    summary: pd.DataFrame, metadata: Metadata, out: Path, bars: str, caption: str
) -> None:
    """P@1 (retrieval) and perplexity (generation) against AVG BLEU, a point a
    method. ``bars``: what the intervals are over."""
    panels = (("retrieval", "p_at_1", "P@1, percent"), ("generation", "perplexity", "perplexity"))
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    axes = figure.subplots(1, 2)
    marks = "osD^vP*Xh<>p"
    order = in_order(summary["method"], metadata.order.get("method", ()))
    for axis, (setting, measure, label) in zip(axes, panels, strict=True):
        mine = summary[summary["setting"] == setting]
        across = mine[mine["measure"] == measure].set_index("method")
        upward = mine[(mine["measure"] == "bleu") & mine["pool"].isin(["", "ED"])].set_index(
            "method"
        )
        for place, method in enumerate(order):
            if method not in across.index or method not in upward.index:
                continue
            x, y = across.loc[method], upward.loc[method]
            axis.errorbar(
                x["value"], y["value"],
                xerr=[[max(0.0, x["value"] - x["low"])], [max(0.0, x["high"] - x["value"])]],
                yerr=[[max(0.0, y["value"] - y["low"])], [max(0.0, y["high"] - y["value"])]],
                fmt=marks[place % len(marks)], color=f"C{place % 10}", elinewidth=0.7,
                markersize=7, label=method,
            )  # fmt: skip
        if not len(across):
            axis.text(0.5, 0.5, "not studied", ha="center", transform=axis.transAxes)
        else:
            axis.legend(fontsize=8)
        axis.set(xlabel=label, ylabel="AVG BLEU", title=setting)
        axis.grid(alpha=0.25)
        if measure == "perplexity" and len(across):
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.xaxis.set_major_formatter(ScalarFormatter())
            axis.xaxis.set_minor_formatter(NullFormatter())
    figure.suptitle(_wrapped(f"{metadata.mark}{metadata.study}", 120), fontsize=11)
    figure.supxlabel(_wrapped(f"Bars: {bars} {caption}"), fontsize=7)
    _save(figure, out, "p_at_1_and_bleu")


def draw_ratios(ratios: pd.DataFrame, title: str, out: Path, name: str) -> None:
    """Ratios of choices as in Figure 5, row over column, on a scale of logarithms; the diagonal and
    pairs without a ratio (NaN) stay empty, and those that are 0 or infinite are at its ends."""
    values = ratios.to_numpy(float)
    empty = np.isnan(values) | np.eye(len(values), dtype=bool)
    shown = np.ma.masked_array(np.clip(values, 1 / RANGE, RANGE), empty)
    figure = Figure(figsize=(9.5, 8), layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(shown, cmap="RdBu", norm=LogNorm(1 / RANGE, RANGE))
    places = range(len(ratios))
    axis.set_xticks(places, ratios.columns, rotation=60, ha="right", fontsize=8)
    axis.set_yticks(places, ratios.index, fontsize=8)
    for row in places:
        for column in places:
            if not empty[row, column]:
                value = values[row, column]
                strong = abs(np.log(shown[row, column])) > np.log(8)
                axis.text(
                    column, row, "∞" if np.isinf(value) else f"{value:g}", ha="center", va="center",
                    fontsize=6, color="white" if strong else "black",
                )  # fmt: skip
    figure.colorbar(image, label="times the row was chosen over the column / the contrary")
    figure.suptitle(title, fontsize=11)
    _save(figure, out, name)


def _wrapped(text: str, width: int = 170) -> str:
    return "\n".join(textwrap.wrap(text, width))


def _save(figure: Figure, out: Path, name: str) -> None:
    for ending in ("png", "pdf"):
        with replacing(out / f"{name}.{ending}") as part:
            figure.savefig(part, format=ending, dpi=150)
