"""The study's figures: correlations by set and method, few-shot curves, experts by rated set."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tasktransfer.designs.panel.printed import caption_of, read_tables
from tasktransfer.designs.panel.statistics import OWN_MINUS_OTHERS
from tasktransfer.files import replacing
from tasktransfer.results.study import Study
from tasktransfer.tables.metadata import Metadata, in_order

MARKS = "osD^vP*Xh<>p"


def draw(study: Study) -> None:
    """Write every figure as PNG and PDF."""
    read, metadata = read_tables(study)
    caption, out = caption_of(metadata), Path(study.figures)
    out.mkdir(parents=True, exist_ok=True)
    _correlations(read["correlations"], metadata, caption, out)
    _few(read["few"], metadata, caption, out)
    _experts(read["experts"], metadata, caption, out)


def _correlations(own: pd.DataFrame, metadata: Metadata, caption: str, out: Path) -> None:
    """A group a rated set, a mark a method; in-domain sets first."""
    methods = in_order(own["method"], metadata.order.get("method", ()))
    sets = in_order(own["set"], metadata.order.get("set", ()))
    inside = dict(zip(own["set"], own["in_domain"], strict=True))
    sets.sort(key=lambda name: not inside[name])
    width = max(7.0, 1.1 * len(sets) + 3)
    figure = Figure(figsize=(width, 5), layout="constrained")
    axis = figure.subplots()
    for place, method in enumerate(methods):
        mine = own[own["method"] == method].set_index("set").reindex(sets)
        x = np.arange(len(sets)) + (place - (len(methods) - 1) / 2) * 0.8 / len(methods)
        value = mine["value"].to_numpy(float)
        ends = [value - mine["low"].to_numpy(float), mine["high"].to_numpy(float) - value]
        axis.errorbar(
            x, value, yerr=np.clip(np.nan_to_num(ends), 0, None), fmt=MARKS[place % len(MARKS)],
            color=f"C{place % 10}", markersize=5, elinewidth=0.8, label=method,
        )  # fmt: skip
    axis.axhline(0, color="0.4", linewidth=0.8)
    outside = sum(bool(inside[name]) for name in sets)
    if 0 < outside < len(sets):
        axis.axvline(outside - 0.5, color="0.4", linestyle=":")
    names = [name if inside[name] else f"{name}\n(out of domain)" for name in sets]
    axis.set_xticks(range(len(sets)), names, rotation=30 if len(sets) > 4 else 0, ha="center")
    axis.set(ylabel="Spearman's correlation x 100", title=metadata.study)
    axis.grid(axis="y", alpha=0.25)
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    said = f"Bars: 95 % intervals over contexts and seeds. {caption}"
    _save(figure, said, out, "correlations", width)


def _few(few: pd.DataFrame, metadata: Metadata, caption: str, out: Path) -> None:
    """A panel a rated set: correlation by share of the ratings."""
    sets = in_order(few["set"], metadata.order.get("set", ()))
    width = 4.2 * max(1, len(sets)) + 1.5
    figure = Figure(figsize=(width, 4.2), layout="constrained")
    axes = figure.subplots(1, max(1, len(sets)), squeeze=False)
    for axis, name in zip(axes[0], sets or [""], strict=True):
        mine = few[(few["set"] == name) & (few["by"] != "")]
        for place, ((method, by), some) in enumerate(mine.groupby(["method", "by"])):
            for column, line in (("held_out", "-"), ("all_items", ":")):
                error = some["held_out_sd" if column == "held_out" else "all_sd"].fillna(0)
                which = "held-out items" if line == "-" else "all items"
                label = f"{method}, {by} drawn, {which}"
                axis.errorbar(
                    some["percent"], some[column], yerr=error, fmt=f"{MARKS[place]}{line}",
                    color=f"C{place}", markersize=5, elinewidth=0.8, label=label,
                )  # fmt: skip
        for control in few[(few["set"] == name) & (few["method"] == "cosine-last")]["all_items"]:
            axis.axhline(control, color="0.4", linestyle="--", label="cosine-last, untrained")
        axis.set(xlabel="percent of the ratings drawn", ylabel="Spearman's correlation x 100")
        axis.set_title(name or "no few-shot transfer in this study")
        axis.grid(alpha=0.25)
        if name:
            axis.legend(fontsize=7)
    said = f"Bars: standard deviation over draws. All items include those of training. {caption}"
    _save(figure, said, out, "few_shot", width)


def _experts(experts: pd.DataFrame, metadata: Metadata, caption: str, out: Path) -> None:
    """Which expert rates what best: a row an expert, a column a rated set; own domains framed."""
    own = experts[(experts["method"] == "panel") & (experts["expert"] != OWN_MINUS_OTHERS)]
    sets = in_order(own["set"], metadata.order.get("set", ()))
    rows = in_order(own["expert"], metadata.order.get("domain", ()))
    width = max(6.0, 0.95 * len(sets) + 3)
    figure = Figure(figsize=(width, 0.7 * len(rows) + 2.6), layout="constrained")
    axis = figure.subplots()
    if rows:
        values = own.pivot(index="expert", columns="set", values="value").loc[rows, sets]
        image = axis.imshow(values.to_numpy(float), cmap="RdBu", vmin=-100, vmax=100, aspect="auto")
        figure.colorbar(image, label="Spearman x 100")
        for one in own.to_dict("records"):
            y, x = rows.index(one["expert"]), sets.index(one["set"])
            strong = abs(one["value"]) > 60
            axis.text(
                x, y, f"{one['value']:.0f}", ha="center", va="center", fontsize=8,
                color="white" if strong else "black",
            )  # fmt: skip
            if one["own"]:
                axis.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, linewidth=2))
    else:
        axis.text(0.5, 0.5, "no panel in this study", ha="center", transform=axis.transAxes)
    turn = 30 if len(sets) > 4 else 0
    axis.set_xticks(range(len(sets)), sets, rotation=turn, ha="right" if turn else "center")
    axis.set_yticks(range(len(rows)), rows)
    axis.set(ylabel="expert", title="Experts by rated set (framed: the set's own domain)")
    _save(figure, caption, out, "experts", width)


def _save(figure: Figure, caption: str, out: Path, name: str, width: float) -> None:
    figure.supxlabel("\n".join(textwrap.wrap(caption, int(17 * width))), fontsize=7)
    for ending in ("png", "pdf"):
        with replacing(out / f"{name}.{ending}") as part:
            figure.savefig(part, format=ending, dpi=150)
