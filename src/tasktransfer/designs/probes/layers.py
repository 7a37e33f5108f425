"""Probe F1 of each layer of a checkpoint, next to word counts and the best constant answer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from tasktransfer.designs.probes.facts import CONTROL
from tasktransfer.designs.probes.frames import LAYERS
from tasktransfer.designs.probes.intervals import CELL, OWN, gather_estimates
from tasktransfer.designs.probes.plan import get_layer
from tasktransfer.designs.probes.word_control import ALL
from tasktransfer.present.sentences import is_above, is_below
from tasktransfer.results.frames import Frames
from tasktransfer.results.probe_rows import PRIOR
from tasktransfer.results.store import cast_columns
from tasktransfer.stats.cells import Cell, Key, build_cell_table, compute_mean_over_test_sets

KEYS = ["corpus", "model", "layer"]


def make_layers(frames: Frames) -> pd.DataFrame:
    """Return the frame ``layers``."""
    return build_layers(frames.share(gather_estimates), frames["above_words"])


def build_layers(estimates: Mapping[Key, Cell], above_words: pd.DataFrame) -> pd.DataFrame:
    """Compute the table ``layers``.

    Args:
        estimates: cells by corpus, model, snapshot, probe and classifier.
        above_words: the table ``above_words``.
    """
    cells: dict[Key, Cell] = {}
    groups: dict[Key, list[Cell]] = {}
    priors: dict[Key, list[float]] = {}
    for (*names, probe, classifier), cell in estimates.items():
        key, mean = (*names, probe), (*names, ALL)
        if get_layer(names[2]) is None:
            continue
        if classifier == OWN:
            cells[key] = cell
            if probe != CONTROL:
                groups.setdefault(mean, []).append(cell)
        elif classifier == PRIOR:
            prior = float(cell.trainings.scores.mean())
            for each in (key,) if probe == CONTROL else (key, mean):
                priors.setdefault(each, []).append(prior)
    means = {key: compute_mean_over_test_sets(group) for key, group in groups.items()}
    table = build_cell_table({**means, **cells}, CELL, {}).rename(columns={"value": "f1"})
    keys = list(table[CELL].itertuples(index=False, name=None))
    control = above_words.set_index(CELL).reindex(pd.MultiIndex.from_tuples(keys, names=CELL))
    table = table.assign(
        layer=[get_layer(snapshot) for _, _, snapshot, _ in keys],
        probes=[len(groups.get(key, [0])) for key in keys],
        prior=[np.mean(priors[key]) for key in keys],
        above_words=control["value"].to_numpy(),
        above_low=control["low"].to_numpy(),
        above_high=control["high"].to_numpy(),
        q=control["q"].to_numpy(),
    )
    return cast_columns(table.assign(words=table["f1"] - table["above_words"]), LAYERS)


def list_layers(frames: Frames) -> pd.DataFrame:
    """Return the mean over probes of each layer, with counts of its probes."""
    return summarise_layers(frames["layers"])


def summarise_layers(layers: pd.DataFrame) -> pd.DataFrame:
    """Compute the printed table ``layers`` from the frame."""
    real = layers[~layers["probe"].isin([ALL, CONTROL])]
    tested = real.assign(higher=is_above(real, "above_words"), lower=is_below(real, "above_words"))
    counts = tested[tested["q"].notna()].groupby(KEYS, sort=False)[["higher", "lower"]].sum()
    return layers[layers["probe"] == ALL].merge(counts.reset_index(), on=KEYS, how="left")
