"""Figure of the weights that a bandit gives to sources, by round."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tasktransfer.designs.transfer.tables.names import (
    explain_short_names,
    fit_short_names,
    get_algorithm_label,
)
from tasktransfer.present.kit.panels import create_panels, is_in_first_column
from tasktransfer.present.kit.paper import add_caption_notes
from tasktransfer.present.kit.style import (
    INK,
    add_legend_below,
    add_title,
    despine,
    fold_name,
    get_series_look,
)
from tasktransfer.results.frames import Frames

COLUMNS = 3


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
    figure, grid = create_panels(len(panels), 2.9, 2.2, columns=COLUMNS, shared="y")
    for axes, (key, panel) in zip(grid, panels, strict=True):
        model, algorithm, _, target = map(str, key)
        _draw_panel(axes, panel, sources)
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


def _draw_panel(axes: Axes, panel: pd.DataFrame, sources: list[str]) -> None:
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
