"""How sure the scores are, and what they say together: tables of ``tasktransfer statistics``.

Dialogues are resampled whole, and seeds are a sample too (``stats.bootstrap``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from tasktransfer.core.nodes import Stage
from tasktransfer.designs.probes.claims import (
    AGREEMENT,
    CLAIMS,
    agreement_of_rankings,
    bleu_and_probes,
)
from tasktransfer.designs.probes.collect import read_table
from tasktransfer.designs.probes.facts import reply_of
from tasktransfer.metrics import open_labels
from tasktransfer.metrics.answers import coded
from tasktransfer.results.finished import is_whole
from tasktransfer.results.probe_rows import PRIOR, SHUFFLED
from tasktransfer.results.rows import rows_beside, rows_of
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study
from tasktransfer.stats.bootstrap import Trainings, confidence, confidence_of_mean, estimate
from tasktransfer.stats.draws import Units, dialogues, resampled_scores, unit_weights
from tasktransfer.stats.false_discovery import false_discovery
from tasktransfer.tables.store import Columns, frame_of, read_frame, write_frame

Floats = npt.NDArray[np.float64]
TEXT, NUMBER, WHOLE = pa.string(), pa.float64(), pa.int64()

_CELL: Columns = (
    ("corpus", TEXT, "dialogues"),
    ("model", TEXT, "model; words: counts of words"),
    ("snapshot", TEXT, "what was probed"),
    ("probe", TEXT, "fact that is asked for"),
)
INTERVALS: Columns = (
    *_CELL,
    ("compared_with", TEXT, "nothing (the score itself), prior, shuffled or untrained"),
    ("seeds", WHOLE, "trainings"),
    ("value", NUMBER, "mean micro-F1, or its mean difference, points"),
    ("sd", NUMBER, "sample standard deviation of the score over seeds; null with one"),
    ("low", NUMBER, "95 % interval over seeds and dialogues"),
    ("high", NUMBER, "95 % interval over seeds and dialogues"),
    ("p", NUMBER, "two-sided, of no difference; null for the score itself"),
    ("q", NUMBER, "the same with control of the false discovery rate over all compared alike"),
)
REPLIES: Columns = (
    ("corpus", TEXT, "dialogues"),
    ("model", TEXT, "model, as the study names it"),
    ("seeds", WHOLE, "trainings"),
    ("bleu2", NUMBER, "mean BLEU-2 on the test split, of the best round by the dev split"),
    ("sd", NUMBER, "sample standard deviation over seeds; null with one"),
    ("low", NUMBER, "95 % interval over seeds and dialogues"),
    ("high", NUMBER, "95 % interval over seeds and dialogues"),
)
TABLES: dict[str, Columns] = {
    "intervals": INTERVALS,
    "replies": REPLIES,
    "claims": CLAIMS,
    "agreement": AGREEMENT,
}

REFERENCES = (PRIOR, SHUFFLED, "untrained")


def write_statistics(study: Study) -> None:
    """Write the statistics of the tables that are there."""
    scores, metadata = read_table(study, "scores")
    rounds, _ = read_table(study, "rounds")
    cells = list(_intervals(study, scores))
    frames = {
        "intervals": frame_of(cells, INTERVALS),
        "replies": frame_of(_replies(study), REPLIES),
        "claims": frame_of(bleu_and_probes(scores, rounds), CLAIMS),
        "agreement": frame_of(agreement_of_rankings(scores), AGREEMENT),
    }
    frames["intervals"]["q"] = (
        frames["intervals"]
        .groupby("compared_with")["p"]
        .transform(lambda p: false_discovery(p.to_numpy(np.float64)))
    )
    for name, columns in TABLES.items():
        write_frame(Path(study.tables, f"{name}.parquet"), frames[name], columns, metadata)


def read_statistics(study: Study, name: str) -> pd.DataFrame:
    """A table that ``write_statistics`` wrote."""
    return read_frame(Path(study.tables, f"{name}.parquet"), TABLES[name])[0]


# --- intervals ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scored:
    """A fit's classifiers: name in the rows → score, and scores on dialogues drawn anew."""

    score: Mapping[str, float]
    resampled: Mapping[str, Floats]
    units: Mapping[str, Units]


def _intervals(study: Study, scores: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    told = {place: _scored(study, place) for place in scores["record"].unique()}
    by = ["corpus", "model", "snapshot", "probe"]
    groups = {key: rows.sort_values("seed") for key, rows in scores.groupby(by, sort=False)}
    for (corpus, model, snapshot, probe), rows in groups.items():
        task = f"{corpus}_{probe}"
        ours, units = _trainings(rows, told, task), told[rows["record"].iloc[0]].units[task]
        sd = float(ours.scores.std(ddof=1)) if len(rows) > 1 else None
        cell, own = (corpus, model, snapshot, probe), confidence_of_mean(ours, units)
        mean = float(ours.scores.mean())
        yield (*cell, "nothing", len(ours.seeds), mean, sd, own.low, own.high, None, None)
        for reference in (PRIOR, SHUFFLED):
            theirs = _trainings(rows, told, f"{task}+{reference}")
            yield (*cell, reference, *_compared(ours, theirs, units, sd))
        untrained = groups.get((corpus, model, "untrained", probe))
        if untrained is not None and snapshot != "untrained":
            theirs = _trainings(untrained, told, task)
            yield (*cell, "untrained", *_compared(ours, theirs, units, sd))


def _scored(study: Study, place: str) -> _Scored:
    frame = rows_beside(Path(study.config.results, place, RECORD)).to_pandas()
    score, resampled, units = {}, {}, {}
    for name, rows in frame.groupby("task", sort=False):
        unit = dialogues(rows["cluster"].tolist())
        answers, golds = (list(map(tuple, rows[column])) for column in ("prediction", "gold"))
        tally = open_labels.tally(coded(answers), coded(golds))
        score[name] = float(100 * open_labels.micro_f1(tally.sum(axis=0)))
        # One dialogue has many turns, and all classifiers of a task meet the same draws.
        weights = unit_weights(name.partition("_")[0], name.partition("+")[0], unit.count)
        resampled[name] = resampled_scores(
            unit.summed(tally), weights, lambda sums: 100 * open_labels.micro_f1(sums)
        )
        units[name] = unit
    return _Scored(score, resampled, units)


def _trainings(rows: pd.DataFrame, told: Mapping[str, _Scored], name: str) -> Trainings:
    fits = [told[place] for place in rows["record"]]
    return Trainings(
        tuple(int(seed) for seed in rows["seed"]),
        np.array([fit.score[name] for fit in fits]),
        np.stack([fit.resampled[name] for fit in fits]),
    )


def _compared(
    ours: Trainings, theirs: Trainings, units: Units, sd: float | None
) -> tuple[Any, ...]:
    estimated = estimate(ours, theirs, units)
    sure = confidence(estimated)
    return len(ours.seeds), estimated.delta, sd, sure.low, sure.high, sure.p, None


def _replies(study: Study) -> Iterator[tuple[Any, ...]]:
    """BLEU-2 of the models' own replies, a mean over instances: dialogues are resampled whole."""
    groups: dict[tuple[str, str], list[Stage]] = {}
    for stage in study.plan.stages:
        if is_whole(study, stage):
            groups.setdefault((stage.dataset, stage.model.name), []).append(stage)
    for (corpus, model), stages in groups.items():
        task, scores, resampled = reply_of(corpus), [], []
        for stage in sorted(stages, key=lambda one: one.seed):
            rows = rows_of(rows_beside(Path(study.record(stage))), task)
            unit = dialogues(rows["cluster"].to_pylist())
            sums = np.stack([rows["score"].to_numpy(), np.ones(rows.num_rows)], axis=1)
            weights = unit_weights(corpus, task, unit.count)
            scores.append(float(sums[:, 0].mean()))
            resampled.append(resampled_scores(unit.summed(sums), weights, _mean))
        ours = Trainings(
            tuple(sorted(stage.seed for stage in stages)), np.array(scores), np.stack(resampled)
        )
        sd = float(ours.scores.std(ddof=1)) if len(scores) > 1 else None
        sure = confidence_of_mean(ours, unit)
        yield (corpus, model, len(scores), float(ours.scores.mean()), sd, sure.low, sure.high)


def _mean(sums: Floats) -> Floats:
    means: Floats = sums[..., 0] / sums[..., 1]
    return means
