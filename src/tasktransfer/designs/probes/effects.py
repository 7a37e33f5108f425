"""The answer as a picture: the effect of training on the F1 of each probe."""

from __future__ import annotations

from matplotlib.figure import Figure

from tasktransfer.designs.probes.answer import select_trained
from tasktransfer.designs.probes.facts import CONTROL
from tasktransfer.designs.probes.plan import UNTRAINED
from tasktransfer.present.columns import Row
from tasktransfer.present.html import to_records
from tasktransfer.present.kit.forest import draw_forests, finish_forests
from tasktransfer.present.kit.panels import make_line_entry
from tasktransfer.present.kit.series import Estimate, draw_zero_line
from tasktransfer.present.kit.style import LABEL_POINTS, Look, get_series_look
from tasktransfer.present.sentences import MOST_Q
from tasktransfer.results.frames import Frames


def plot_training_effects(frames: Frames) -> Figure | None:
    """Plot F1 minus that of the untrained encoder: one panel per probe, one line per encoder.

    None if no trained encoder is compared with its untrained version.
    """
    every = frames["intervals"]
    trained = select_trained(every[every["probe"] != CONTROL])
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
                _estimate(row, looks[row["corpus"]])
                for row in to_records(rows[(rows["probe"] == probe) & (rows["model"] == model)])
            ]
            for model in models
        }
        for probe in order("probe", rows["probe"])
    }
    figure, axes = draw_forests(models, panels)
    for panel in axes:
        draw_zero_line(panel)
        panel.set_xlabel("Δ F1, points", fontsize=LABEL_POINTS)
    tested = rows["q"].notna().any()
    note = f"Filled: differs significantly from 0 (q ≤ {MOST_Q}). Hollow: does not."
    finish_forests(
        figure,
        "Probe F1 of the trained encoder minus that of the untrained one",
        len(models),
        int(rows["seeds"].max()),
        frames.metadata,
        entries=[make_line_entry(name, look, linestyle="") for name, look in looks.items()]
        if len(looks) > 1
        else (),
        notes=[note if tested else "Hollow: one run each, so no effect is tested."],
    )
    return figure


def _estimate(row: Row, look: Look) -> Estimate:
    return Estimate("", row["value"], row["low"], row["high"], look, hollow=not row["q"] <= MOST_Q)
