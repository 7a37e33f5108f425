"""The figure of probe F1 by layer, with the word-count control as a line."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tasktransfer.designs.probes.word_control import ALL
from tasktransfer.present.kit.panels import (
    create_panels,
    draw_reference_line,
    make_line_entry,
    name_panel,
)
from tasktransfer.present.kit.series import plot_line_with_band
from tasktransfer.present.kit.style import (
    LABEL_POINTS,
    add_legend_below,
    add_title,
    get_series_look,
)
from tasktransfer.results.frames import Frames


def plot_f1_by_layer(frames: Frames) -> Figure | None:
    """Plot F1 by layer with intervals: the mean over probes, then one panel per probe.

    Word counts are a line in the colour of the model that reads the words. None if no layer was
    probed.
    """
    rows, metadata = frames["layers"], frames.metadata
    if rows.empty:
        return None
    models = metadata.order_names("model", rows["model"])
    looks = {model: get_series_look(rank) for rank, model in enumerate(models)}
    keys = list(rows[["corpus", "probe"]].drop_duplicates().itertuples(index=False))
    keys.sort(key=lambda key: key.probe != ALL)
    figure, axes = create_panels(len(keys), 2.9, 2.1)
    several = rows["corpus"].nunique() > 1
    for panel, (corpus, probe) in zip(axes, keys, strict=True):
        shown = rows[(rows["corpus"] == corpus) & (rows["probe"] == probe)]
        for model, look in looks.items():
            of_model = shown[shown["model"] == model].sort_values("layer")
            layers = of_model["layer"].to_numpy(np.float64)
            f1, low, high = (of_model[c].to_numpy(np.float64) for c in ("f1", "low", "high"))
            plot_line_with_band(panel, layers, f1, look, low=low, high=high)
            words = of_model["words"].dropna()
            if len(words):
                panel.axhline(
                    float(words.iloc[0]), color=look.colour, linewidth=1.1, linestyle=":", zorder=1
                )
        draw_reference_line(panel, float(shown["prior"].mean()), "best constant")
        title = "mean over probes" if probe == ALL else str(probe)
        name_panel(panel, f"{title}, {corpus}" if several else title)
        panel.set_ylim(0, 100)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supxlabel("layer", fontsize=LABEL_POINTS + 1)
    figure.supylabel("micro-F1", fontsize=LABEL_POINTS + 1)
    entries = [make_line_entry(model, look) for model, look in looks.items()]
    add_legend_below(
        figure, entries, "Bands: 95 % intervals over dialogues. Dotted: word counts, by model"
    )
    add_title(figure, "Probe F1 by layer", None, metadata)
    return figure
