"""Forest plots of trained encoders: F1 minus that of word counts, and of the untrained encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from tasktransfer.designs.probes.answer import select_trained_rows
from tasktransfer.designs.probes.facts import CONTROL
from tasktransfer.designs.probes.intervals import ALL
from tasktransfer.designs.probes.plan import AS_IT_IS, UNTRAINED
from tasktransfer.present.columns import Row
from tasktransfer.present.html import to_records
from tasktransfer.present.kit.panels import make_line_entry
from tasktransfer.present.kit.series import (
    GREY,
    Estimate,
    draw_forests,
    draw_zero_line,
    finish_forests,
)
from tasktransfer.present.kit.style import LABEL_POINTS, Look, get_series_look
from tasktransfer.present.numbers import MOST_Q
from tasktransfer.results.frames import Frames

_ALL_ENCODERS = "all encoders"
UNTESTED = "Hollow marks show differences that are not tested, because each encoder has one run."


def plot_difference_from_words(frames: Frames) -> Figure | None:
    """Plot mean F1 over probes minus the mean F1 of word counts, in one panel per corpus.

    Each encoder has a line, with its untrained version in grey. None if no encoder is compared with
    counts of words.
    """
    every = frames["above_words"]
    means = every[(every["probe"] == ALL) & every["value"].notna()]
    encoders = pd.concat([select_trained_rows(means), means[means["snapshot"] == AS_IT_IS]])
    if encoders.empty:
        return None
    order = frames.metadata.order_names
    names = order("model", [name for name in encoders["model"] if name != ALL])
    looks = {True: get_series_look(0), False: Look(GREY, "s", "-")}
    shown = pd.concat([encoders, means[means["snapshot"] == UNTRAINED]])
    lines = {name: name for name in names}
    if len(names) > 1:
        lines[_ALL_ENCODERS] = ALL
    panels = {
        corpus: {
            line: [
                _build_estimate(row, looks[row["snapshot"] != UNTRAINED])
                for row in to_records(shown[(shown["corpus"] == corpus) & (shown["model"] == name)])
            ]
            for line, name in lines.items()
        }
        for corpus in order("corpus", encoders["corpus"])
    }
    used = {"encoder": True, "its untrained version": False}
    entries = [
        make_line_entry(name, looks[key], linestyle="")
        for name, key in used.items()
        if key or (shown["snapshot"] == UNTRAINED).any()
    ]
    return _draw_forest(
        frames, list(lines), panels, shown, "Mean probe F1 minus the F1 of word counts", entries
    )


def plot_training_effects(frames: Frames) -> Figure | None:
    """Plot F1 minus the untrained encoder's F1, in one panel per probe and one line per encoder.

    None if no trained encoder is compared with its untrained version.
    """
    every = frames["intervals"]
    trained = select_trained_rows(every[every["probe"] != CONTROL])
    rows = trained[(trained["compared_with"] == UNTRAINED) & trained["value"].notna()]
    if rows.empty:
        return None
    order = frames.metadata.order_names
    models = order("model", rows["model"])
    corpora = order("corpus", rows["corpus"])
    looks = {corpus: get_series_look(rank) for rank, corpus in enumerate(corpora)}
    panels = {
        probe: {
            model: [
                _build_estimate(row, looks[row["corpus"]])
                for row in to_records(rows[(rows["probe"] == probe) & (rows["model"] == model)])
            ]
            for model in models
        }
        for probe in order("probe", rows["probe"])
    }
    entries = [make_line_entry(name, look, linestyle="") for name, look in looks.items()]
    return _draw_forest(
        frames,
        models,
        panels,
        rows,
        "Probe F1 of the trained encoder minus the F1 of the untrained encoder",
        entries if len(entries) > 1 else [],
    )


def _build_estimate(row: Row, look: Look) -> Estimate:
    return Estimate("", row["value"], row["low"], row["high"], look, hollow=not row["q"] <= MOST_Q)


def _draw_forest(
    frames: Frames,
    lines: Sequence[str],
    panels: Mapping[str, Mapping[str, list[Estimate]]],
    rows: pd.DataFrame,
    title: str,
    entries: list[object],
) -> Figure:
    """Draw the panels of a forest plot with axes, legend, title and notes."""
    figure, axes = draw_forests(lines, panels)
    for panel in axes:
        draw_zero_line(panel)
        left, right = panel.get_xlim()
        panel.set_xlim(min(left, -1), max(right, 1))  # no hundredths of a point on the axis
        panel.set_xlabel("Δ F1, points", fontsize=LABEL_POINTS)
    note = f"Filled marks differ significantly from 0 (q ≤ {MOST_Q}); hollow marks do not."
    tested = rows["q"].notna().any()
    finish_forests(
        figure,
        title,
        len(lines),
        int(rows["seeds"].max()),
        frames.metadata,
        entries=entries,
        notes=[note if tested else UNTESTED],
    )
    return figure
