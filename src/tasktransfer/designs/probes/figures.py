"""Figures: F1 by epoch, representations on two axes, BLEU against F1, ties under resampling."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from tasktransfer.config.places import on_disk
from tasktransfer.designs.probes.claims import ON, bleu_and_f1, means_over_probes
from tasktransfer.designs.probes.collect import read_table
from tasktransfer.designs.probes.config import probes_config
from tasktransfer.designs.probes.intervals import read_statistics
from tasktransfer.designs.probes.plan import WORDS
from tasktransfer.errors import DataError
from tasktransfer.files import replacing
from tasktransfer.files.data_files import csv_rows
from tasktransfer.results.study import Study
from tasktransfer.stats.resampling import generator
from tasktransfer.tables.metadata import Metadata

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
"""Okabe and Ito's, told apart by colour-blind readers."""
MARKERS = "osD^vP*"
LETTERS_AN_INCH = 11
"""Of a title."""

DRAWS, TENTH, JUDGEMENTS, TIES = 50_000, 10, 2_000, 0.35
"""Figure 1: so many draws of a tenth of 2,000 judgements, about 35 % of them ties."""


def write_figures(study: Study) -> None:
    """Draw every figure, PNG and PDF."""
    scores, metadata = read_table(study, "probed")
    rounds, _ = read_table(study, "rounds")
    projections, _ = read_table(study, "projections")
    claims = read_statistics(study, "claims")
    for name, figure in (
        ("f1_by_epoch", _f1_by_epoch(scores, metadata)),
        ("representations", _representations(projections, metadata)),
        ("bleu_against_f1", _bleu_against_f1(scores, rounds, claims, metadata)),
    ):
        _name_stand_ins(figure, metadata)
        _save(study, name, figure)
    _save(study, "ties", _ties(probes_config(study).probes.judgements))


def _save(study: Study, name: str, figure: Figure) -> None:
    folder = Path(study.figures)
    folder.mkdir(parents=True, exist_ok=True)
    for ending in ("png", "pdf"):
        with replacing(folder / f"{name}.{ending}") as part:
            figure.savefig(part, format=ending, dpi=110, metadata=_undated(ending))


def _entitle(figure: Figure, text: str) -> None:
    """A title in as many lines as its figure's width asks for."""
    letters = int(figure.get_figwidth() * LETTERS_AN_INCH)
    figure.suptitle(
        "\n".join(textwrap.fill(one, letters) for one in text.splitlines()), fontsize=11
    )


def _name_stand_ins(figure: Figure, metadata: Metadata) -> None:
    """What stands in for an input of the paper, below everything."""
    told = "; ".join(f"{name}: {text}" for name, text in metadata.facts.items())
    letters = int(1.4 * figure.get_figwidth() * LETTERS_AN_INCH)
    text = textwrap.fill(told, letters)
    if figure.legends:  # it stands at the lower edge too, and would lie over the text
        figure.legends[0].set_title(text, prop=FontProperties(size=7))
    else:
        figure.supxlabel(text, fontsize=7)


def _undated(ending: str) -> dict[str, None] | None:
    return {"CreationDate": None} if ending == "pdf" else None


def _panels(count: int, width: float = 3.0, height: float = 2.4) -> tuple[Figure, list[Any]]:
    columns = min(4, max(1, count))
    rows = max(1, math.ceil(count / columns))
    figure = Figure(figsize=(width * columns, height * rows + 0.8), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    flat = list(axes.flat)
    for spare in flat[count:]:
        spare.set_axis_off()
    return figure, flat


def _f1_by_epoch(scores: pd.DataFrame, metadata: Metadata) -> Figure:
    """A panel a probe: mean over seeds by epoch, prior as a line, counts of words as another."""
    trained = one_a_seed(scores)
    models = metadata.ordered("model", trained["model"])
    keys = list(trained[["corpus", "probe"]].drop_duplicates().itertuples(index=False))
    figure, axes = _panels(len(keys))
    for axis, (corpus, probe) in zip(axes, keys, strict=False):
        rows = trained[(trained["corpus"] == corpus) & (trained["probe"] == probe)]
        for number, model in enumerate(models):
            means = rows[rows["model"] == model].groupby("epoch")["f1"].mean()
            style = {"color": COLOURS[number % 7], "marker": MARKERS[number % 7]}
            axis.plot(means.index, means, label=model, markersize=4, linewidth=1.2, **style)
        axis.axhline(rows["prior"].mean(), color="0.4", linestyle="--", label="best constant")
        same = (scores["corpus"] == corpus) & (scores["probe"] == probe)
        of_words = scores[same & (scores["snapshot"] == WORDS)]
        for _, one in of_words.iterrows():
            axis.axhline(one["f1"], color="0.4", linestyle=":", label="counts of words")
        axis.set_title(f"{probe} ({corpus})", fontsize=9)
        axis.set_ylim(0, 100)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.tick_params(labelsize=7)
    figure.supylabel("micro-F1 of the probe")
    _legend(figure, axes)
    title = "what the encoder knows by epoch (0: untrained)"
    _entitle(figure, f"{metadata.mark}{metadata.study}: {title}")
    return figure


def one_a_seed(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores of epochs, each training's once: where its best epoch is the last, one snapshot has
    both names."""
    return scores.dropna(subset=["epoch"]).drop_duplicates([*ON, "probe"])


def _legend(figure: Figure, axes: Iterable[Any]) -> None:
    handles, labels = next(iter(axes)).get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    if named:
        lines, names = list(named.values()), list(named)
        figure.legend(lines, names, loc="outside lower center", ncols=4, fontsize=8)


def _representations(projections: pd.DataFrame, metadata: Metadata) -> Figure:
    """Training turns on two principal components, log counts (Figure 2); the first seed."""
    keys = ["corpus", "model", "snapshot"]
    clouds = dict(list(projections.groupby(keys, sort=False)))
    figure, axes = _panels(len(clouds), 2.8, 2.6)
    for axis, ((corpus, model, snapshot), cloud) in zip(axes, clouds.items(), strict=False):
        points = cloud["first"], cloud["second"]
        axis.hexbin(*points, gridsize=80, bins="log", cmap="viridis", mincnt=1)
        share = f"{cloud['variance'].iloc[0]:.0f} % of the variance"
        axis.set_title(f"{model}, {snapshot}\n{corpus}, {share}", fontsize=8)
        axis.tick_params(labelsize=6)
    _entitle(figure, f"{metadata.mark}Representations on two principal components")
    return figure


def _bleu_against_f1(
    scores: pd.DataFrame, rounds: pd.DataFrame, claims: pd.DataFrame, metadata: Metadata
) -> Figure:
    """Mean F1 over probes against dev BLEU-2, a point a model, seed and epoch."""
    means = means_over_probes(bleu_and_f1(scores, rounds))
    corpora = list(dict.fromkeys(means["corpus"]))
    figure, axes = _panels(len(corpora), 5.0, 3.8)
    for axis, corpus in zip(axes, corpora, strict=False):
        for number, model in enumerate(metadata.ordered("model", means["model"])):
            some = means[(means["corpus"] == corpus) & (means["model"] == model)]
            style = {"color": COLOURS[number % 7], "marker": MARKERS[number % 7]}
            axis.scatter(some["bleu2"], some["f1"], label=model, s=28, **style)
        of_means = claims[(claims["corpus"] == corpus) & (claims["probe"] == "all")]
        claim = of_means.set_index("over")
        axis.set(xlabel="BLEU-2 on the dev split", ylabel="mean micro-F1 over probes")
        of_all, within = (_with_interval(claim.loc[over]) for over in ("all", "within"))
        title = f"{corpus}: rank correlation\nof all points {of_all}, within models {within}"
        axis.set_title(title, fontsize=9)
    _legend(figure, axes)
    _entitle(figure, f"{metadata.mark}{metadata.study}")
    return figure


def _with_interval(claim: pd.Series[Any]) -> str:
    interval = "" if pd.isna(claim["low"]) else f" [{claim['low']:.2f}, {claim['high']:.2f}]"
    return f"{claim['rho']:.2f}{interval}"


def ties_resampled(
    judgements: npt.NDArray[np.bool_], draws: int = DRAWS, drawn: int = JUDGEMENTS // TENTH
) -> npt.NDArray[np.float64]:
    """The share of ties, per cent, in each of many draws of so many judgements without repetition
    (Figure 1's method).

    Args:
        judgements: whether each judgement is a tie.
    """
    chance = generator("ties", judgements.astype(np.float64))
    ties = int(judgements.sum())
    return 100 * chance.hypergeometric(ties, len(judgements) - ties, drawn, draws) / drawn


def _ties(place: str | None) -> Figure:
    """Of a user's judgements, or of made-up ones: the paper's are not released."""
    if place is None:
        judgements, named = np.arange(JUDGEMENTS) < TIES * JUDGEMENTS, "MADE-UP judgements"
    else:
        judgements, named = read_judgements(Path(on_disk(place))), f"Judgements of {place}"
    drawn = max(1, len(judgements) // TENTH)
    shares = ties_resampled(judgements, drawn=drawn)
    figure, (axis,) = _panels(1, 6.0, 3.6)
    step = max(0.5, 100 / drawn)
    axis.hist(shares, bins=np.arange(shares.min() - step / 2, shares.max() + step, step))
    axis.set(xlabel=f"ties among {drawn} judgements, per cent", ylabel="draws")
    _entitle(
        figure,
        f"{named} ({len(judgements):,}, {judgements.mean():.0%} ties): {DRAWS:,} draws of {drawn}\n"
        f"standard deviation {shares.std():.1f} points, by sampling alone",
    )
    return figure


def read_judgements(file: Path) -> npt.NDArray[np.bool_]:
    """Whether each judgement of a CSV file is a tie: its column ``choice`` says ``tie`` then.

    Raises:
        DataError: the file cannot be read, lacks the column, or has no judgement.
    """
    choices = [choice.strip() for _, (choice,) in csv_rows(file, ("choice",))]
    if not choices:
        raise DataError(f"{file}: no line after the first; give a judgement a line")
    return np.array([choice == "tie" for choice in choices], dtype=bool)
