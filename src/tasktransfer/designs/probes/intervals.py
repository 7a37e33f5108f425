"""Intervals and tests of the scores, of differences from word counts, and of layers.

Dialogues are resampled as clusters, and seeds are treated as a sample too (``stats.cells``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasktransfer.core.nodes import Stage
from tasktransfer.designs.probes.config import get_config
from tasktransfer.designs.probes.facts import CONTROL, format_reply_task_name
from tasktransfer.designs.probes.frames import ABOVE_WORDS, INTERVALS, LAYERS, REPLIES
from tasktransfer.designs.probes.plan import WORDS, get_layer, map_word_count_names
from tasktransfer.metrics import open_labels
from tasktransfer.metrics.answers import encode_answers
from tasktransfer.metrics.labels import Sums, compute_proportion
from tasktransfer.metrics.measures import MEASURES
from tasktransfer.results.frames import Frames
from tasktransfer.results.rows import read_record_rows, select_task_rows
from tasktransfer.results.schema import PRIOR, SHUFFLED
from tasktransfer.results.state import RECORD
from tasktransfer.results.store import cast_columns
from tasktransfer.results.study import Study
from tasktransfer.stats.answers import is_collapsed
from tasktransfer.stats.cells import (
    NO_SEED,
    Cell,
    Key,
    Scored,
    build_cell_table,
    compute_mean_over_test_sets,
    gather_cells,
    score_tallies,
)

CELL = ["corpus", "model", "snapshot", "probe"]
OWN = ""
"""Name of the probe itself among the classifiers of a fit."""
REFERENCES = {
    PRIOR: {"classifier": PRIOR},
    SHUFFLED: {"classifier": SHUFFLED},
    "untrained": {"snapshot": "untrained"},
}
"""Reference that a probe is compared with → the keys in which it differs from the probe."""


ALL = "all"
"""Name of a mean: over the probes without the control, or over the models."""

Pair = tuple[Cell, Cell]
"""An encoder's probe, and the same probe on counts of the words that the encoder reads."""


def make_intervals(frames: Frames) -> pd.DataFrame:
    """Return the frame ``intervals``: each probe's F1 and its differences from references."""
    scored = frames.compute_once(score_fits)
    return add_constant_counts(
        build_intervals(frames.compute_once(gather_study_cells)), frames["probed"], scored.constant
    )


# --- cells --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScoredFits:
    """The classifiers of all fits.

    Attributes:
        scores: record of a fit → name of a classifier in its rows → its scores.
        constant: (record of a fit, task) of the probes that give a constant answer.
    """

    scores: Mapping[str, Mapping[str, Scored]]
    constant: Collection[tuple[str, str]]


def score_fits(frames: Frames) -> ScoredFits:
    """Read the predictions of every fit, and score its classifiers."""
    records = map(str, frames["probed"]["record"].unique())
    rows = {record: _read_rows(frames.study, record) for record in records}
    constant = {(r, task) for r, frame in rows.items() for task in _find_constant_tasks(frame)}
    return ScoredFits(
        {record: _score_classifiers(frame) for record, frame in rows.items()}, constant
    )


def gather_study_cells(frames: Frames) -> dict[Key, Cell]:
    """Map the values of ``CELL`` and a classifier to the classifier's scores over seeds."""
    return gather_classifier_cells(frames.compute_once(score_fits).scores, frames["probed"])


def gather_classifier_cells(
    scored: Mapping[str, Mapping[str, Scored]], scores: pd.DataFrame
) -> dict[Key, Cell]:
    """Group the scores of each classifier by seed. Models without epochs have no seed.

    Args:
        scored: record of a fit → name of a classifier in its rows → its scores.
        scores: the table ``probed``.
    """
    return gather_cells(
        (
            (*names, classifier),
            NO_SEED if pd.isna(epoch) else seed,
            scored[record][_format_task_rows_label(names, classifier)],
        )
        for *names, epoch, seed, record in scores[[*CELL, "epoch", "seed", "record"]].itertuples(
            index=False
        )
        for classifier in (OWN, PRIOR, SHUFFLED)
    )


# --- intervals ----------------------------------------------------------------------------------


def build_intervals(estimates: Mapping[Key, Cell]) -> pd.DataFrame:
    """Build the table ``intervals`` for all classifiers, with 0 in the column ``constant``."""
    ours = {key: cell for key, cell in estimates.items() if key[-1] == OWN}
    table = build_cell_table(
        ours, [*CELL, "classifier"], REFERENCES, lambda _, against: against or None, estimates
    )
    own = table["against"] == ""
    table["compared_with"] = table["against"].mask(own, "nothing")
    table["p"] = table["p"].mask(own)
    return cast_columns(table.assign(constant=0), INTERVALS)


def _format_task_rows_label(names: Sequence[str], classifier: str) -> str:
    """Return the task name of a probe's classifier in the rows of a fit."""
    task = f"{names[0]}_{names[-1]}"
    return f"{task}+{classifier}" if classifier else task


def add_constant_counts(
    table: pd.DataFrame, scores: pd.DataFrame, constant: Collection[tuple[str, str]]
) -> pd.DataFrame:
    """Add the column ``constant``, the number of fits with constant answers, to the table.

    Args:
        table: the table ``intervals``.
        scores: the table ``probed``.
        constant: (record of a fit, task) of the probes that give a constant answer.
    """
    own = scores.assign(
        constant=[
            (record, _format_task_rows_label(names, OWN)) in constant
            for *names, record in scores[[*CELL, "record"]].itertuples(index=False)
        ]
    )
    counts = own.groupby(CELL, sort=False)["constant"].sum()
    keys = pd.MultiIndex.from_frame(table[CELL])
    return cast_columns(table.assign(constant=counts.reindex(keys).to_numpy()), INTERVALS)


def _read_rows(study: Study, where: str) -> pa.Table:
    return read_record_rows(Path(study.config.results, where, RECORD))


def _find_constant_tasks(rows: pa.Table) -> Iterator[str]:
    for task in pc.unique(rows["task"]).to_pylist():
        if is_collapsed(rows.filter(pc.equal(rows["task"], task))["prediction"], empty=True):
            yield task


def _score_classifiers(rows: pa.Table) -> dict[str, Scored]:
    frame = rows.to_pandas()
    return {str(name): _score_classifier(rows) for name, rows in frame.groupby("task", sort=False)}


def _score_classifier(rows: pd.DataFrame) -> Scored:
    answers, golds = (
        encode_answers(list(map(tuple, rows[name]))) for name in ("prediction", "gold")
    )
    tallies = open_labels.tally_label_sets(answers, golds)
    return score_tallies(tallies, rows["cluster"], _compute_micro_f1_percent, MEASURES["micro_f1"])


def _compute_micro_f1_percent(sums: Sums) -> Sums:
    return 100 * open_labels.compute_micro_f1(sums)


# --- word counts --------------------------------------------------------------------------------


def make_above_words(frames: Frames) -> pd.DataFrame:
    """Return the frame ``above_words``: mean F1 of encoders minus F1 of word counts."""
    return compare_with_words(
        frames.compute_once(gather_study_cells), map_word_count_names(get_config(frames.study))
    )


def compare_with_words(estimates: Mapping[Key, Cell], readings: Mapping[str, str]) -> pd.DataFrame:
    """Compute the mean F1 of encoders minus that of word counts, the table ``above_words``.

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
    means = {key: _average_pairs(group) for key, group in groups.items()}
    counts = {key: len(group) for key, group in groups.items()}
    encoders = {(*key, ""): encoder for key, (encoder, _) in {**pairs, **means}.items()}
    words = {(*key, WORDS): counted for key, (_, counted) in {**pairs, **means}.items()}
    table = build_cell_table(
        encoders, [*CELL, "of"], {WORDS: {"of": WORDS}}, _choose_family, references=words
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


def _average_pairs(pairs: list[Pair]) -> Pair:
    encoders, words = zip(*pairs, strict=True)
    return compute_mean_over_test_sets(encoders), compute_mean_over_test_sets(words)


def _choose_family(key: Key, against: str) -> object:
    """Return the family of tests of a comparison: single probes, model means or overall means."""
    _, model, _, probe, _ = key
    return (probe == ALL, model == ALL) if against else None


# --- layers -------------------------------------------------------------------------------------


def make_layers(frames: Frames) -> pd.DataFrame:
    """Return the frame ``layers``: scores by layer, averaged over probes."""
    return build_layers(frames.compute_once(gather_study_cells), frames["above_words"])


def build_layers(estimates: Mapping[Key, Cell], above_words: pd.DataFrame) -> pd.DataFrame:
    """Compute the table ``layers`` with scores by layer.

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
        layer=pd.Series([get_layer(key[2]) for key in keys], table.index, dtype=float),
        probes=[len(groups.get(key, [0])) for key in keys],
        prior=[np.mean(priors[key]) for key in keys],
        above_words=control["value"].to_numpy(),
        above_low=control["low"].to_numpy(),
        above_high=control["high"].to_numpy(),
        q=control["q"].to_numpy(),
    )
    return cast_columns(table.assign(words=table["f1"] - table["above_words"]), LAYERS)


# --- replies ------------------------------------------------------------------------------------


def make_replies(frames: Frames) -> pd.DataFrame:
    """Return the frame ``replies``: BLEU-2 of the models' replies as a mean over instances."""
    study, rounds = frames.study, frames["rounds"]
    trained = {*rounds[["corpus", "model", "seed"]].itertuples(index=False, name=None)}
    stages = [
        stage
        for stage in study.plan.stages
        if (stage.dataset, stage.model.name, stage.seed) in trained
    ]
    runs = (
        ((training.dataset, training.model.name), training.seed, _score_replies(study, training))
        for training in stages
    )
    table = build_cell_table(gather_cells(runs), ["corpus", "model"], {})
    return cast_columns(table.rename(columns={"value": "bleu2"}), REPLIES)


def _score_replies(study: Study, stage: Stage) -> Scored:
    rows = select_task_rows(
        read_record_rows(Path(study.get_record_path(stage))), format_reply_task_name(stage.dataset)
    )
    scores = rows["score"].to_numpy()
    tallies = np.stack([scores, np.ones_like(scores)], axis=1)
    return score_tallies(
        tallies, rows["cluster"].to_pylist(), compute_proportion, MEASURES["bleu2"]
    )
