"""Figure of confused labels: gold labels by predicted labels, one panel per method."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasktransfer.core.references import MOST_FREQUENT, REFERENCES
from tasktransfer.designs.transfer.runs import BASELINE, NO_MODEL
from tasktransfer.present.kit import matrix
from tasktransfer.present.kit.panels import create_panels, fit_figure_to_panels, set_panel_title
from tasktransfer.present.kit.paper import (
    describe_label_numbers,
    list_label_fonts,
    number_undrawable_labels,
    print_missing_font_note,
)
from tasktransfer.present.kit.style import (
    add_title,
    choose_text_colour,
    escape_dollar_signs,
    fold_name,
)
from tasktransfer.results.frames import Frames

MOST_LABELS = 15
"""Maximum number of labels with a row of their own."""
MOST_PANELS = 6
MOST_LETTERS = 36
"""Maximum number of letters of a label on an axis."""
OTHERS, NO_LABEL = "other labels", "no label"
_COLOURS = "Blues"


def select_task_frames(dataset: str, task: str, frames: Frames) -> Frames:
    """Return the frames with the confusions of one task."""
    rows = frames["confusions"]
    of_task = rows[(rows["dataset"] == dataset) & (rows["target"] == task)]
    return frames.replace({"confusions": of_task.reset_index(drop=True)})


def plot_confusions(dataset: str, task: str, frames: Frames) -> Figure | None:
    """Draw one panel per method and model, or return None without predictions."""
    rows = select_task_frames(dataset, task, frames)["confusions"]
    rows = rows[rows["method"] != MOST_FREQUENT]
    if rows.empty:
        return None
    labels = choose_labels(rows)
    panels = [*rows.groupby(["method", "model"], sort=False)][:MOST_PANELS]
    columns = list(dict.fromkeys([*labels, *rows["predicted"].map(partial(_get_row_name, labels))]))
    numbers = number_undrawable_labels(columns)
    if numbers:
        print_missing_font_note()
    side = max(1.6, 0.3 * len(columns))
    width = side + 1.2
    figure, axes = create_panels(len(panels), width, side, columns=3, shared="none")
    for panel, (key, of_panel) in zip(axes, panels, strict=True):
        method, model = map(str, key)
        name = "fine-tuned" if method == BASELINE else REFERENCES[method]
        set_panel_title(
            panel, fold_name(name if model == NO_MODEL else f"{name}, {model}", side + 0.3, 8.5)
        )
        _draw_panel(panel, of_panel, labels, columns, numbers)
    axes[0].set_ylabel("gold label", fontsize=9)
    seeds = int(rows["n_seeds"].max())
    title = f"{dataset}: predictions by gold label of {task}, percent"
    add_title(figure, title, seeds, frames.metadata, describe_label_numbers(numbers))
    fit_figure_to_panels(figure, axes, side, side)
    return figure


def choose_labels(rows: pd.DataFrame) -> list[str]:
    """Return the labels that have their own rows, in the order in which they occur.

    They are all labels, or those that are confused most often, over all methods.
    """
    labels = list(dict.fromkeys([*rows["gold"], *rows["predicted"]]))
    labels = [label for label in labels if label]
    if len(labels) <= MOST_LABELS:
        return labels
    wrong = rows[rows["gold"] != rows["predicted"]]
    times = sum(
        wrong.groupby(side)["count"].sum().reindex(labels, fill_value=0)
        for side in ("gold", "predicted")
    )
    assert isinstance(times, pd.Series)
    most = set(times.sort_values(ascending=False, kind="stable").index[:MOST_LABELS])
    return [label for label in labels if label in most]


def _get_row_name(labels: list[str], label: str) -> str:
    """Return the name of the row or column in which a label is counted."""
    return label if label in labels else OTHERS if label else NO_LABEL


def format_label(label: str) -> str:
    """Shorten a long label for an axis, and escape its dollar signs."""
    half = MOST_LETTERS // 2
    short = label if len(label) <= MOST_LETTERS else f"{label[:half]}…{label[1 - half :]}"
    return escape_dollar_signs(short)


def _draw_panel(
    axes: Axes,
    rows: pd.DataFrame,
    labels: list[str],
    columns: list[str],
    numbers: dict[str, str],
) -> None:
    def write(label: str) -> str:
        return numbers.get(label) or format_label(label)

    name = partial(_get_row_name, labels)
    counts = rows.assign(gold=rows["gold"].map(name), predicted=rows["predicted"].map(name))
    table = counts.groupby(["gold", "predicted"])["count"].sum().unstack(fill_value=0)
    golds = [name for name in (*labels, OTHERS) if name in table.index]
    table = table.reindex(index=golds, columns=columns, fill_value=0)
    totals = table.sum(axis=1)
    percent = 100 * table.to_numpy() / totals.to_numpy()[:, None]
    colours = colormaps[_COLOURS](percent / 100 * 0.9)
    corners = [(float(x), float(y)) for y in range(len(golds)) for x in range(len(columns))]
    matrix.fill_cells(axes, corners, colours.reshape(-1, 4))
    for (y, x), value in np.ndenumerate(percent):
        if value:
            ink = choose_text_colour(colours[y, x])
            matrix.write_cell_text(axes, (x, y), f"{value:.0f}", 6.5, ink)
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(golds), 0)
    seeds = int(rows["n_seeds"].max())
    supports = [f"{write(str(n))} ({total // seeds})" for n, total in totals.items()]
    fonts = list_label_fonts()
    axes.set_yticks(np.arange(len(golds)) + 0.5, supports, fontsize=7, family=fonts)
    shown = [*map(write, columns)]
    places = np.arange(len(columns)) + 0.5
    axes.set_xticks(places, shown, fontsize=7, family=fonts, rotation=45, ha="right")
    axes.tick_params(length=0)
