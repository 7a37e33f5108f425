"""Figures: F1 by epoch and by layer, representations, F1 against BLEU, ties under resampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tasktransfer.config.places import expand_path
from tasktransfer.designs.probes.claims import ON, compute_probe_means, join_bleu_and_f1
from tasktransfer.designs.probes.config import get_config
from tasktransfer.designs.probes.intervals import ALL
from tasktransfer.designs.probes.plan import WORDS
from tasktransfer.errors import DataError
from tasktransfer.files.data_files import read_csv_rows
from tasktransfer.present.kit.panels import (
    create_panels,
    draw_reference_line,
    make_line_entry,
    set_panel_title,
)
from tasktransfer.present.kit.paper import add_caption_notes
from tasktransfer.present.kit.series import plot_line_with_band
from tasktransfer.present.kit.style import (
    INK,
    LABEL_POINTS,
    Look,
    add_heading,
    add_legend_below,
    add_title,
    despine,
    get_series_look,
)
from tasktransfer.present.numbers import format_value_with_interval
from tasktransfer.results.frames import Frames
from tasktransfer.stats.draws import create_generator

DRAWS, TENTH, JUDGEMENTS, TIES = 50_000, 10, 2_000, 0.35
"""Figure 1: 50,000 samples of a tenth of 2,000 judgements, about 35 % of which are ties."""


def _assign_styles(models: Sequence[str]) -> dict[str, Look]:
    """Map each model to the colour, marker and line style of its curves."""
    return {model: get_series_look(rank) for rank, model in enumerate(models)}


def _build_legend_entries(looks: Mapping[str, Look], **style: Any) -> list[Any]:
    return [make_line_entry(model, look, **style) for model, look in looks.items()]


def plot_f1_by_epoch(frames: Frames) -> Figure | None:
    """Plot F1 by epoch in one panel per probe, as the mean over seeds with their range as a band.

    Horizontal lines are the best constant answer and a probe on word counts. None if no epoch was
    probed.
    """
    scores, metadata = frames["probed"], frames.metadata
    trained = drop_duplicate_snapshots(scores)
    if trained.empty:
        return None
    looks = _assign_styles(metadata.order_names("model", trained["model"]))
    keys = list(trained[["corpus", "probe"]].drop_duplicates().itertuples(index=False))
    figure, axes = create_panels(len(keys), 2.9, 2.1)
    several = trained["corpus"].nunique() > 1
    for panel, (corpus, probe) in zip(axes, keys, strict=True):
        rows = trained[(trained["corpus"] == corpus) & (trained["probe"] == probe)]
        for model, look in looks.items():
            by = rows[rows["model"] == model].groupby("epoch")["f1"]
            mean = by.mean()
            if len(mean):
                epochs = mean.index.to_numpy(np.float64)
                plot_line_with_band(panel, epochs, mean, look, low=by.min(), high=by.max())
        same = (scores["corpus"] == corpus) & (scores["probe"] == probe)
        words = float(scores[same & (scores["snapshot"] == WORDS)]["f1"].max())  # may be NaN
        constant = float(rows["prior"].mean())
        draw_reference_line(panel, constant, "best constant", below=constant < words)
        if not np.isnan(words):
            below = words <= constant
            draw_reference_line(panel, words, "word counts", style=":", below=below)
        set_panel_title(panel, f"{probe}, {corpus}" if several else str(probe))
        panel.set_ylim(0, 100)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supylabel("micro-F1", fontsize=LABEL_POINTS + 1)
    seeds = int(trained["seed"].nunique())
    band = "Bands: range of the seeds. " if seeds > 1 else ""
    add_legend_below(figure, _build_legend_entries(looks), f"{band}Epoch 0: the untrained model")
    add_title(figure, "Probe F1 by epoch of training", seeds, metadata)
    return figure


def plot_f1_by_layer(frames: Frames) -> Figure | None:
    """Plot F1 by layer with intervals, first the mean over probes, then each probe in a panel.

    Word counts are a line in the colour of the model that reads the words. None if no layer was
    probed.
    """
    rows, metadata = frames["layers"], frames.metadata
    if rows.empty:
        return None
    models = metadata.order_names("model", rows["model"])
    looks = _assign_styles(models)
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
        set_panel_title(panel, f"{title}, {corpus}" if several else title)
        panel.set_ylim(0, 100)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supylabel("micro-F1", fontsize=LABEL_POINTS + 1)
    add_legend_below(
        figure,
        _build_legend_entries(looks),
        "The horizontal axis shows layers. Bands are 95 % intervals over dialogues. Dotted lines "
        "are word counts, by model",
    )
    add_title(figure, "Probe F1 by layer", None, metadata)
    return figure


def drop_duplicate_snapshots(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of epochs without duplicate snapshots.

    If the best epoch of a training is the last, one snapshot has both names.
    """
    return scores.dropna(subset=["epoch"]).drop_duplicates([*ON, "probe"])


def plot_representations(frames: Frames) -> Figure | None:
    """Plot training turns' representations, projected onto two principal components (Figure 2).

    None if no representations are stored.
    """
    projections = frames["projections"]
    clouds = dict(list(projections.groupby(["corpus", "model", "snapshot"], sort=False)))
    if not clouds:
        return None
    figure, axes = create_panels(len(clouds), 2.8, 2.4, shared="none")
    for panel, ((corpus, model, snapshot), cloud) in zip(axes, clouds.items(), strict=True):
        points = cloud["first"], cloud["second"]
        panel.hexbin(*points, gridsize=80, bins="log", cmap="viridis", mincnt=1)
        share = f"{cloud['variance'].iloc[0]:.0f} % of the variance"
        set_panel_title(panel, f"{model}, {snapshot}\n{corpus}, {share}")
        panel.tick_params(labelsize=6)
    add_title(
        figure, "Representations projected onto two principal components", None, frames.metadata
    )
    return figure


def plot_bleu_against_f1(frames: Frames) -> Figure | None:
    """Plot mean F1 over probes against dev BLEU-2: one point per model, seed and epoch.

    None if no epoch was probed.
    """
    means = compute_probe_means(join_bleu_and_f1(frames["probed"], frames["rounds"]))
    if means.empty:
        return None
    corpora, claims = list(dict.fromkeys(means["corpus"])), frames["claims"]
    looks = _assign_styles(frames.metadata.order_names("model", means["model"]))
    figure, axes = create_panels(len(corpora), 5.0, 3.4, shared="y")
    for panel, corpus in zip(axes, corpora, strict=True):
        for model, look in looks.items():
            some = means[(means["corpus"] == corpus) & (means["model"] == model)]
            panel.scatter(some["bleu2"], some["f1"], s=26, color=look.colour, marker=look.marker)
        of_means = claims[(claims["corpus"] == corpus) & (claims["probe"] == "all")]
        claim = of_means.set_index("over")
        panel.set_xlabel("BLEU-2 on the dev split")
        within, between = (
            format_value_with_interval(row["rho"], row["low"], row["high"], ".2f")
            for row in (claim.loc["within"], claim.loc["between"])
        )
        set_panel_title(panel, f"{corpus}: Spearman within models {within}, between {between}")
    axes[0].set_ylabel("mean micro-F1 over probes")
    add_legend_below(
        figure, _build_legend_entries(looks, linestyle="none"), "Points: epochs of training runs"
    )
    seeds = int(means["seed"].nunique())
    add_title(figure, "BLEU-2 and mean probe F1 of each epoch", seeds, frames.metadata)
    return figure


def resample_ties(
    judgements: npt.NDArray[np.bool_], draws: int = DRAWS, drawn: int = JUDGEMENTS // TENTH
) -> npt.NDArray[np.float64]:
    """Return the percentage of ties in samples of judgements without replacement (Figure 1).

    Args:
        judgements: true for each judgement that is a tie.
        draws: number of samples.
        drawn: number of judgements per sample.

    Returns:
        One percentage per sample, shape (draws,).
    """
    chance = create_generator("ties", judgements.astype(np.float64))
    ties = int(judgements.sum())
    return 100 * chance.hypergeometric(ties, len(judgements) - ties, drawn, draws) / drawn


def plot_ties(frames: Frames) -> Figure:
    """Plot ties in samples of the user's judgements, or of synthetic judgements without a file.

    The paper's judgements are not released.
    """
    given = get_config(frames.study).probes.human_judgements
    if given is None:
        judgements, named = np.arange(JUDGEMENTS) < TIES * JUDGEMENTS, "SYNTHETIC judgements"
    else:
        judgements, named = read_judgements(Path(expand_path(given))), f"Judgements of {given}"
    drawn = max(1, len(judgements) // TENTH)
    shares = resample_ties(judgements, drawn=drawn)
    figure, (axes,) = create_panels(1, 6.0, 3.2)
    step = max(0.5, 100 / drawn)
    bins = np.arange(shares.min() - step / 2, shares.max() + step, step)
    axes.hist(shares, bins=bins.tolist(), color=get_series_look(0).colour)
    despine(axes, zero=None)
    axes.axvline(100 * judgements.mean(), color=INK, linewidth=0.9, linestyle="--")
    axes.set(xlabel=f"ties among {drawn} judgements, percent", ylabel="samples")
    set_panel_title(axes, f"{named}: {len(judgements):,}, {judgements.mean():.0%} ties (dashed)")
    note = f"The standard deviation over the {DRAWS:,} samples is {shares.std():.1f} points."
    add_caption_notes(figure, [note])
    add_heading(figure, ["Percentage of ties in small samples of judgements"])
    return figure


def read_judgements(file: Path) -> npt.NDArray[np.bool_]:
    """Read from a CSV file whether each judgement is a tie.

    Raises:
        DataError: the file cannot be read, lacks the column, or has no judgement.
    """
    choices = [choice.strip() for _, (choice,) in read_csv_rows(file, ("choice",))]
    if not choices:
        raise DataError(
            f"{file}: The file has a header but no judgements. Add one judgement per line."
        )
    return np.array([choice == "tie" for choice in choices], dtype=bool)
