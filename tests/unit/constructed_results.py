"""Frames from constructed records, and checks of a figure's layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from record_factory import Run, Scorer, constructed

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.statistics.controls import compute_controls
from tasktransfer.present.kit.style import fix_layout
from tasktransfer.results.frames import Frames, list_column_names
from transfer_frames import compute_frames


def results_of(
    folder: Path,
    runs: Iterable[Run],
    score: Scorer,
    *,
    lengths: pd.DataFrame | None = None,
    leave_out: Callable[[Run], bool] = lambda run: False,
    **changes: Any,
) -> Frames:
    """Return the frames of constructed records."""
    frames = compute_frames(constructed(folder, runs, score, leave_out=leave_out, **changes))
    return frames if lengths is None else frames.replace({"lengths": lengths})


def with_cells(results: Frames, **values: Any) -> Frames:
    """Return the results with columns of ``cells`` replaced."""
    return results.replace({"cells": results["cells"].assign(**values)})


def with_shuffled_sources(results: Frames) -> Frames:
    """Return the results with a control that scores half of every single-source cell."""
    cells = results["cells"]
    over = cells[cells["n_sources"] == 1].assign(
        control="shuffled_source",
        baseline_score=lambda one: one["score"] / 2,
        delta=lambda one: one["score"] / 2,
        improvement=100.0,
    )[list_column_names(columns.CONTROL_CELLS)]
    judged = compute_controls(over, cells, ["shuffled_source"])
    return results.replace({"control_cells": over, "controls": judged})


def with_sizes(results: Frames, sizes: dict[str, int]) -> Frames:
    """Return the results with other numbers of training instances, without unnamed tasks."""
    old = results["sizes"]
    new = old[old["task"].isin(sizes)].assign(train=lambda rows: rows["task"].map(sizes))
    return results.replace({"sizes": new})


def lengths_of(dataset: str, longest: int = 300) -> pd.DataFrame:
    """Return length distributions with a long tail, as ``compute_length_distributions`` does."""
    rows = [
        (dataset, unit, length, 100_000 // length**2)
        for unit in ("utterance_words", "dialogue_turns", "dialogue_words")
        for length in range(1, longest + 1)
    ]
    return pd.DataFrame(rows, columns=["dataset", "unit", "length", "count"])


def flaws(figure: Figure) -> list[str]:
    """List overlapping texts, texts outside the canvas, and legends over panels of a figure.

    Notes below the figure are not checked, because ``save`` adds room for them.
    """
    fix_layout(figure)
    boxes = _drawn_texts(figure)
    notes = {repr(text.get_text()) for text in figure.texts if text.get_gid()}
    on_canvas = [(name, box) for name, box in boxes if name not in notes]
    found = [f"outside: {name}" for name, box in on_canvas if not _inside(box, figure.bbox)]
    found += [
        f"{name} over {other}"
        for place, (name, box) in enumerate(boxes)
        for other, second in boxes[:place]
        if _overlap(box, second)
    ]
    panels = [axes.get_tightbbox() for axes in figure.axes]
    for legend in figure.legends:
        extent = legend.get_window_extent()
        found += ["legend over a panel" for panel in panels if panel and _overlap(extent, panel)]
    return found


def _drawn_texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Yield each text on the canvas with its extent in pixels.

    Ticks beyond an axis' limits, for example, are not drawn.
    """
    drawn: dict[int, Text] = {}
    draw = Text.draw

    def noting(text: Text, renderer: Any) -> None:
        if text.get_visible() and text.get_text().strip():
            drawn[id(text)] = text
        draw(text, renderer)

    with mock.patch.object(Text, "draw", noting):
        figure.draw_without_rendering()
    return [(repr(text.get_text()), text.get_window_extent()) for text in drawn.values()]


def _inside(box: Bbox, canvas: Any) -> bool:
    return bool(
        box.x0 >= canvas.x0 - 1
        and box.x1 <= canvas.x1 + 1
        and box.y0 >= canvas.y0 - 1
        and box.y1 <= canvas.y1 + 1
    )


def _overlap(one: Any, other: Any) -> bool:
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(wide > 1 and high > 1)
