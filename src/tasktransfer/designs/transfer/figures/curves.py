"""Figures of curves: over the amount of training data, over rounds, and of bandits' weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tasktransfer.core.references import METHODS
from tasktransfer.designs.transfer.runs import (
    NO_MODEL,
    explain_short_names,
    fit_short_names,
    get_algorithm_label,
)
from tasktransfer.present.kit.panels import (
    create_panels,
    fit_figure_to_panels,
    is_in_first_column,
    make_line_entry,
    set_panel_title,
)
from tasktransfer.present.kit.paper import add_caption_notes
from tasktransfer.present.kit.series import plot_line_with_band
from tasktransfer.present.kit.style import (
    INK,
    LABEL_POINTS,
    Look,
    add_legend_below,
    add_title,
    despine,
    fold_name,
    get_series_look,
    set_log_x_axis,
)
from tasktransfer.results.frames import Frames

# --- learning curves ---


_WIDTH, _HEIGHT = 3.4, 2.6


def plot_learning_curve(frames: Frames) -> Figure | None:
    """Draw each method's scores and forecast, or return None if there is no learning curve."""
    rows = frames["learning_curve"]
    if rows.empty:
        return None
    panels = list(rows.groupby(["dataset", "target"], sort=False))
    methods = list(dict.fromkeys(zip(rows["method"], rows["model"], strict=True)))
    figure, axes = create_panels(len(panels), _WIDTH, _HEIGHT, shared="none")
    for panel, ((dataset, target), of_task) in zip(axes, panels, strict=True):
        set_panel_title(panel, f"{dataset}, {target}")
        for rank, (method, model) in enumerate(methods):
            curve = of_task[(of_task["method"] == method) & (of_task["model"] == model)]
            _draw_learning_curve(panel, curve, get_series_look(rank), 1 + 0.02 * rank)
        set_log_x_axis(panel, of_task["dialogues"].tolist())
        panel.set_xlabel("training dialogues", fontsize=9)
        panel.set_ylabel("score", fontsize=9)
    entries = [
        make_line_entry(
            METHODS[method] if model == NO_MODEL else f"{METHODS[method]}, {model}",
            get_series_look(rank),
        )
        for rank, (method, model) in enumerate(methods)
    ]
    add_legend_below(figure, entries)
    add_title(figure, "Scores by number of training dialogues", None, frames.metadata)
    fit_figure_to_panels(figure, axes, _WIDTH, _HEIGHT)
    return figure


def _draw_learning_curve(axes: Axes, curve: pd.DataFrame, look: Look, shift: float) -> None:
    """Draw the measured points with a solid line, and the forecast with a dotted line."""
    measured = curve[curve["fraction"] <= 1]
    for rows, style in ((measured, look.line), (curve[curve["fraction"] >= 1], ":")):
        x = rows["dialogues"].to_numpy() * shift
        axes.plot(x, rows["score"], color=look.colour, ls=style, lw=1.2)
    x, y = curve["dialogues"].to_numpy() * shift, curve["score"].to_numpy()
    errors = [y - curve["low"].to_numpy(), curve["high"].to_numpy() - y]
    colour = look.colour
    axes.errorbar(
        *(x, y, errors),
        fmt=look.marker,
        ms=4,
        elinewidth=0.8,
        capsize=2,
        color=colour,
        ecolor=colour,
    )


# --- loss and dev score by round ---


MEASURES = {"loss": "loss", "dev_score": "dev score"}
_MEANS = ["model", "algorithm", "target", "round"]


def compute_mean_curves(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and range of curves over sources and seeds, by model, algorithm and target.

    Returns:
        Columns model, algorithm, target, round, ``runs`` (number of runs that reached the round),
        and mean, min and max of loss and dev score (``loss_mean`` and so on).
    """
    groups = curves.groupby(_MEANS, sort=False)
    tables = [
        groups[measure].agg(["mean", "min", "max"]).add_prefix(f"{measure}_")
        for measure in MEASURES
    ]
    return pd.concat([groups.size().rename("runs"), *tables], axis=1).reset_index()


def select_mean_curves(dataset: str, frames: Frames) -> pd.DataFrame:
    """Return the mean curves that the figure of a dataset shows."""
    curves = frames["training_curves"]
    return compute_mean_curves(curves[curves["dataset"] == dataset])


def plot_training_curves(frames: Frames, dataset: str) -> Figure | None:
    """Draw the loss and the dev score of each target, with a line per model and algorithm.

    A line is the mean over sources and seeds, and its band the range of the runs. None without
    runs.
    """
    means = select_mean_curves(dataset, frames)
    if means.empty:
        return None
    targets = frames.metadata.order_names("task", means["target"])
    short = fit_short_names(targets, frames.metadata.shorts)
    pairs = list(means[["model", "algorithm"]].drop_duplicates().itertuples(index=False, name=None))
    looks = {pair: get_series_look(rank) for rank, pair in enumerate(pairs)}
    figure, panels = create_panels(2 * len(targets), 1.5, 1.35, shared="none", group=2)
    places = iter(panels)
    for target in targets:
        rows = means[means["target"] == target]
        for measure, label in MEASURES.items():
            axes = next(places)
            _draw_measure(axes, rows, measure, looks)
            set_panel_title(axes, f"{short[target]}: {label}")
    several = means["model"].nunique() > 1
    entries = [
        make_line_entry(f"{get_algorithm_label(name)}{f', {model}' if several else ''}", look)
        for (model, name), look in looks.items()
    ]
    add_legend_below(figure, entries)
    curves = frames["training_curves"]
    seeds = int(curves.loc[curves["dataset"] == dataset, "seed"].nunique())
    add_title(figure, f"{dataset}: loss and dev score by round", seeds, frames.metadata)
    add_caption_notes(figure, explain_short_names(short))
    return figure


def _draw_measure(
    axes: Axes, rows: pd.DataFrame, measure: str, looks: dict[tuple[str, str], Look]
) -> None:
    for (model, algorithm), look in looks.items():
        some = rows[(rows["model"] == model) & (rows["algorithm"] == algorithm)].sort_values(
            "round"
        )
        x, mean, low, high = (
            some[name].to_numpy(np.float64)
            for name in ("round", *(f"{measure}_{part}" for part in ("mean", "min", "max")))
        )
        plot_line_with_band(axes, x, mean, look, low=low, high=high)
    axes.set_xlabel("round", fontsize=LABEL_POINTS)
    axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]


# --- weights of sources by round ---


_COLUMNS = 3


def plot_mixing(frames: Frames) -> Figure | None:
    """Draw one panel per model, algorithm and target, or return None if no run mixed sources.

    A panel has one line per source, the mean weight over seeds, with the range over seeds. A dotted
    line marks equal weights.
    """
    rows = frames["mixing"]
    if rows.empty:
        return None
    panels = list(rows.groupby(["model", "algorithm", "dataset", "target"], sort=False))
    sources = list(dict.fromkeys(rows["source"]))
    names = fit_short_names([*sources, *rows["target"].unique()], frames.metadata.shorts)
    figure, grid = create_panels(len(panels), 2.9, 2.2, columns=_COLUMNS, shared="y")
    for axes, (key, panel) in zip(grid, panels, strict=True):
        model, algorithm, _, target = map(str, key)
        _draw_weights(axes, panel, sources)
        title = f"{get_algorithm_label(algorithm)}: {names[target]}, {model}"
        axes.set_title(fold_name(title, 2.6, 8.5), fontsize=8.5)
        if is_in_first_column(axes):
            axes.set_ylabel("weight", fontsize=9)
    grid[0].set_ylim(0, 1)
    entries = [
        Line2D([], [], color=look.colour, marker=look.marker, ls=look.line, label=names[source])
        for source, look in (
            (source_name, get_series_look(rank)) for rank, source_name in enumerate(sources)
        )
    ]
    add_legend_below(figure, [*entries, Line2D([], [], color=INK, ls=":", label="equal weights")])
    seeds = int(rows["seed"].nunique())
    add_title(figure, "Weights of sources over training", seeds, frames.metadata)
    add_caption_notes(figure, explain_short_names(names))
    return figure


def _draw_weights(axes: Axes, panel: pd.DataFrame, sources: list[str]) -> None:
    despine(axes, zero=None)
    of_panel = panel.groupby(["source", "round"])["weight"].agg(["mean", "min", "max"])
    here = [source for source in sources if source in of_panel.index]
    for source in here:
        look, values = get_series_look(sources.index(source)), of_panel.loc[source]
        rounds = values.index.to_numpy()
        axes.fill_between(rounds, values["min"], values["max"], color=look.colour, alpha=0.15, lw=0)
        axes.plot(rounds, values["mean"], color=look.colour, marker=look.marker, ls=look.line, ms=4)
    axes.axhline(1 / len(here), color=INK, lw=0.8, ls=":")
    axes.set_xlabel("round", fontsize=9)
    axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
