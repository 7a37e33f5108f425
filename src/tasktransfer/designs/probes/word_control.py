"""The strongest control: probe F1 of encoders minus that of counts of the words that they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from tasktransfer.designs.probes.config import get_config
from tasktransfer.designs.probes.facts import CONTROL
from tasktransfer.designs.probes.frames import ABOVE_WORDS
from tasktransfer.designs.probes.intervals import CELL, OWN, gather_estimates
from tasktransfer.designs.probes.plan import WORDS, get_layer, name_readings
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import cast_columns
from tasktransfer.stats.cells import Cell, Key, build_cell_table, compute_mean_over_test_sets

ALL = "all"
"""Name of a mean: over the probes without the control, or over the models."""

Pair = tuple[Cell, Cell]
"""An encoder's probe, and the same probe on counts of the words that the encoder reads."""


def make_above_words(frames: Frames) -> pd.DataFrame:
    """Return the frame ``above_words``."""
    return compare_with_words(
        frames.share(gather_estimates), name_readings(get_config(frames.study))
    )


def compare_with_words(estimates: Mapping[Key, Cell], readings: Mapping[str, str]) -> pd.DataFrame:
    """Compute the table ``above_words``.

    Args:
        estimates: cells by corpus, model, snapshot, probe and classifier.
        readings: model → name of the word counts over the words that it reads.
    """
    pairs = dict(_pair_with_words(estimates, readings))
    groups: dict[Key, list[Pair]] = {}
    for (corpus, model, snapshot, probe), pair in pairs.items():
        if probe != CONTROL:
            for name in (model,) if get_layer(snapshot) is not None else (model, ALL):
                groups.setdefault((corpus, name, snapshot, ALL), []).append(pair)
    means = {key: _average(group) for key, group in groups.items()}
    counts = {key: len(group) for key, group in groups.items()}
    told = {(*key, ""): encoder for key, (encoder, _) in {**pairs, **means}.items()}
    words = {(*key, WORDS): counted for key, (_, counted) in {**pairs, **means}.items()}
    table = build_cell_table(
        told, [*CELL, "of"], {WORDS: {"of": WORDS}}, _choose_family, references=words
    )
    own = table["against"] == ""
    f1 = table[own].set_index(CELL)["value"]
    differences = table[~own].assign(
        probes=[
            counts.get(key, 1) for key in table.loc[~own, CELL].itertuples(index=False, name=None)
        ]
    )
    keys = pd.MultiIndex.from_frame(differences[CELL])
    return cast_columns(differences.assign(f1=f1.reindex(keys).to_numpy()), ABOVE_WORDS)


def _pair_with_words(
    estimates: Mapping[Key, Cell], readings: Mapping[str, str]
) -> Iterator[tuple[Key, Pair]]:
    for (corpus, model, snapshot, probe, classifier), cell in estimates.items():
        words = estimates.get((corpus, readings.get(model, model), WORDS, probe, OWN))
        if classifier == OWN and snapshot != WORDS and words is not None:
            yield (corpus, model, snapshot, probe), (cell, words)


def _average(pairs: list[Pair]) -> Pair:
    encoders, words = zip(*pairs, strict=True)
    return compute_mean_over_test_sets(encoders), compute_mean_over_test_sets(words)


def _choose_family(key: Key, against: str) -> object:
    """Return the family of a comparison: single probes, means of a model, or means over models."""
    _, model, _, probe, _ = key
    return (probe == ALL, model == ALL) if against else None
