"""Figure of loss and dev score by round, with two panels per target."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasktransfer.designs.transfer.tables.names import (
    explain_short_names,
    fit_short_names,
    get_algorithm_label,
)
from tasktransfer.present.kit.panels import create_panels, make_line_entry, set_panel_title
from tasktransfer.present.kit.paper import add_caption_notes
from tasktransfer.present.kit.series import plot_line_with_band
from tasktransfer.present.kit.style import (
    LABEL_POINTS,
    Look,
    add_legend_below,
    add_title,
    get_series_look,
)
from tasktransfer.results.frames import Frames

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
            _draw_panel(axes, rows, measure, looks)
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


def _draw_panel(
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
