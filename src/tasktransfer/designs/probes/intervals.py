"""Intervals and tests of the scores: tables of ``tasktransfer statistics``.

Dialogues are resampled as clusters, and seeds are treated as a sample too (``stats.cells``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasktransfer.core.nodes import Stage
from tasktransfer.designs.probes.claims import (
    AGREEMENT,
    CLAIMS,
    compare_rankings,
    correlate_bleu,
)
from tasktransfer.designs.probes.collect import read_table
from tasktransfer.designs.probes.facts import name_reply_task
from tasktransfer.designs.probes.plan import AS_IT_IS, WORDS
from tasktransfer.metrics import open_labels
from tasktransfer.metrics.answers import encode_answers
from tasktransfer.metrics.labels import Sums, compute_proportion
from tasktransfer.metrics.measures import MEASURES
from tasktransfer.results.finished import is_whole
from tasktransfer.results.probe_rows import PRIOR, SHUFFLED
from tasktransfer.results.rows import read_record_rows, select_task_rows
from tasktransfer.results.state import RECORD
from tasktransfer.results.store import Columns, build_frame, cast_columns, read_frame, write_frame
from tasktransfer.results.study import Study
from tasktransfer.stats.cells import NO_SEED, Scored, build_cell_table, gather_cells, score_tallies
from tasktransfer.stats.collapsed import is_collapsed

TEXT, NUMBER, WHOLE = pa.string(), pa.float64(), pa.int64()

_CELL: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config, or words for counts of words"),
    ("snapshot", TEXT, "snapshot that was probed"),
    ("probe", TEXT, "probe"),
)
INTERVALS: Columns = (
    *_CELL,
    ("compared_with", TEXT, "nothing (the score itself), prior, shuffled or untrained"),
    ("seeds", WHOLE, "number of seeds; for a difference, seeds that both sides have"),
    ("value", NUMBER, "mean micro-F1, or its mean difference, points"),
    ("sd", NUMBER, "sample standard deviation of the score over seeds; null for one seed"),
    ("low", NUMBER, "lower end of the 95 % interval over seeds and dialogues"),
    ("high", NUMBER, "upper end of the 95 % interval over seeds and dialogues"),
    ("p", NUMBER, "two-sided p-value of no difference; null for the score itself"),
    (
        "q",
        NUMBER,
        "p after false-discovery control over all comparisons with the same reference; null for "
        "one seed",
    ),
    ("constant", WHOLE, "number of seeds whose probe gives one answer to at least 99 % of turns"),
)
REPLIES: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config"),
    ("seeds", WHOLE, "number of seeds"),
    ("bleu2", NUMBER, "mean BLEU-2 on the test split, for the best epoch by the dev split"),
    ("sd", NUMBER, "sample standard deviation over seeds; null for one seed"),
    ("low", NUMBER, "lower end of the 95 % interval over seeds and dialogues"),
    ("high", NUMBER, "upper end of the 95 % interval over seeds and dialogues"),
)
TABLES: dict[str, Columns] = {
    "intervals": INTERVALS,
    "replies": REPLIES,
    "claims": CLAIMS,
    "agreement": AGREEMENT,
}

CELL = ["corpus", "model", "snapshot", "probe"]
OWN = ""
"""Name of the probe itself among the classifiers of a fit."""
REFERENCES = {
    PRIOR: {"classifier": PRIOR},
    SHUFFLED: {"classifier": SHUFFLED},
    "untrained": {"snapshot": "untrained"},
}
"""Reference that a probe is compared with → the keys in which it differs from the probe."""


def write_statistics(study: Study) -> None:
    """Compute the statistics from the collected tables, and write them."""
    scores, metadata = read_table(study, "probed")
    rounds, _ = read_table(study, "rounds")
    rows = {str(record): _read_rows(study, record) for record in scores["record"].unique()}
    scored = {record: _score_classifiers(frame) for record, frame in rows.items()}
    constant = {(r, task) for r, frame in rows.items() for task in _find_constant_tasks(frame)}
    frames = {
        "intervals": add_constant(compute_intervals(scored, scores), scores, constant),
        "replies": _compute_replies(study),
        "claims": build_frame(correlate_bleu(scores, rounds), CLAIMS),
        "agreement": build_frame(compare_rankings(scores), AGREEMENT),
    }
    for name, columns in TABLES.items():
        write_frame(Path(study.tables, f"{name}.parquet"), frames[name], columns, metadata)


def read_statistics(study: Study, name: str) -> pd.DataFrame:
    """Read a table that ``write_statistics`` wrote."""
    remedy = f"run `tasktransfer statistics {study.arguments()}` again"
    return read_frame(Path(study.tables, f"{name}.parquet"), TABLES[name], remedy)[0]


# --- intervals ----------------------------------------------------------------------------------


def compute_intervals(
    scored: Mapping[str, Mapping[str, Scored]], scores: pd.DataFrame
) -> pd.DataFrame:
    """Compute the table ``intervals``.

    Args:
        scored: record of a fit → name of a classifier in its rows → its scores.
        scores: the table ``probed``.
    """
    estimated = gather_cells(
        (
            (*names, classifier),
            _choose_seed(names, seed),
            scored[record][_name_rows(names, classifier)],
        )
        for *names, seed, record in scores[[*CELL, "seed", "record"]].itertuples(index=False)
        for classifier in (OWN, PRIOR, SHUFFLED)
    )
    ours = {key: cell for key, cell in estimated.items() if key[-1] == OWN}
    table = build_cell_table(
        ours, [*CELL, "classifier"], REFERENCES, lambda _, against: against or None, estimated
    )
    own = table["against"] == ""
    table["compared_with"] = table["against"].mask(own, "nothing")
    table["p"] = table["p"].mask(own)
    return cast_columns(table.assign(constant=0), INTERVALS)


def _choose_seed(names: Sequence[str], seed: int) -> int:
    """Return the seed of a training, or ``NO_SEED`` for models that are probed as they are."""
    return NO_SEED if names[CELL.index("snapshot")] in (WORDS, AS_IT_IS) else seed


def _name_rows(names: Sequence[str], classifier: str) -> str:
    """Return the task name in the rows of a probe's classifier."""
    task = f"{names[0]}_{names[-1]}"
    return f"{task}+{classifier}" if classifier else task


def add_constant(
    table: pd.DataFrame, scores: pd.DataFrame, constant: Collection[tuple[str, str]]
) -> pd.DataFrame:
    """Return the table with the column ``constant``.

    Args:
        table: the table ``intervals``.
        scores: the table ``probed``.
        constant: (record of a fit, task) of the probes that give a constant answer.
    """
    own = scores.assign(
        constant=[
            (record, _name_rows(names, OWN)) in constant
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
    tallies = open_labels.tally(answers, golds)
    return score_tallies(tallies, rows["cluster"], _finish_micro_f1, MEASURES["micro_f1"])


def _finish_micro_f1(sums: Sums) -> Sums:
    return 100 * open_labels.compute_micro_f1(sums)


def _compute_replies(study: Study) -> pd.DataFrame:
    """Return BLEU-2 of the models' replies as a mean over instances."""
    stages = [stage for stage in study.plan.stages if is_whole(study, stage)]
    runs = (
        ((training.dataset, training.model.name), training.seed, _score_replies(study, training))
        for training in stages
    )
    table = build_cell_table(gather_cells(runs), ["corpus", "model"], {})
    return cast_columns(table.rename(columns={"value": "bleu2"}), REPLIES)


def _score_replies(study: Study, stage: Stage) -> Scored:
    rows = select_task_rows(
        read_record_rows(Path(study.record(stage))), name_reply_task(stage.dataset)
    )
    scores = rows["score"].to_numpy()
    tallies = np.stack([scores, np.ones_like(scores)], axis=1)
    return score_tallies(
        tallies, rows["cluster"].to_pylist(), compute_proportion, MEASURES["bleu2"]
    )
