"""Tables of the study's records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from tasktransfer.core.nodes import Evaluation, Fit
from tasktransfer.core.runs import Run
from tasktransfer.designs.empathetic import columns
from tasktransfer.designs.empathetic.config import EmpatheticConfig
from tasktransfer.designs.empathetic.sources.cards import ED, EMOTION_CUT, EMOTION_OF_CONTEXT
from tasktransfer.designs.empathetic.sources.dialogues import (
    count_shared_utterances,
    find,
    find_shared_situations,
    read_dialogues,
)
from tasktransfer.errors import DataError
from tasktransfer.metrics import bleu
from tasktransfer.metrics.answers import encode_answers
from tasktransfer.results.collect import Collected, gather
from tasktransfer.results.common_frames import build_metadata, read_earlier_rows, write_collected
from tasktransfer.results.costs import compute_hours, describe_hardware
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study
from tasktransfer.stats.collapsed import is_collapsed

Values = tuple[Any, ...]
MEASURED = {
    (EMOTION_CUT.name, "test"): "accuracy_cut",
    (EMOTION_OF_CONTEXT.name, "test"): "accuracy_contexts",
    (EMOTION_OF_CONTEXT.name, "train"): "accuracy_training_contexts",
}
"""Task and split → name of a classifier's accuracy; ``accuracy`` for all others."""


def collect(study: Study, complete: bool) -> None:
    """Write the tables of all available records.

    Raises:
        RecordError: no run is available, or ``complete`` is true and a record is missing.
    """
    collected = gather(study)
    collected.require(complete=complete)
    there = [(run, each) for run in study.plan.runs for each in run.evaluations]
    there = [(run, each) for run, each in there if collected.has(each)]
    tables: dict[str, list[Values]] = {
        "measured": [
            row for run, each in there for row in _make_measured_rows(collected, run, each)
        ],
        "rows": [row for run, each in there for row in _make_instance_rows(collected, run, each)],
        "costs": list(_make_cost_rows(collected)),
        **read_dialogue_tables(study),
    }
    order = {"method": list(dict.fromkeys(run.method for run in study.plan.runs))}
    assert isinstance(study.config, EmpatheticConfig)
    pool = study.config.evaluation.limit_pool
    metadata = build_metadata(collected, order=order, cuts=f"limit_pool {pool}" if pool else "")
    write_collected(collected, tables, columns.TABLES, metadata, ("setting",))


def _make_key(run: Run) -> Values:
    return run.about["setting"], run.method, run.model, run.seed


def _get_pool(evaluation: Evaluation) -> str:
    return str(evaluation.settings.get("pool", ""))


def _make_measured_rows(collected: Collected, run: Run, evaluation: Evaluation) -> Iterator[Values]:
    task = evaluation.task
    result = collected.record(evaluation)["results"][task]
    rows = collected.rows(evaluation)
    constant = is_collapsed(pc.list_slice(rows["prediction"], 0, 1))
    for measure, value in result["measures"].items():
        named = MEASURED.get((task, evaluation.split), measure)
        where = f"{evaluation.path}/{RECORD}"
        yield (
            *_make_key(run),
            named,
            _get_pool(evaluation),
            value,
            result["instances"],
            where,
            constant,
        )


def _make_instance_rows(collected: Collected, run: Run, evaluation: Evaluation) -> Iterator[Values]:
    measure = evaluation.measures[0]
    named = MEASURED.get((evaluation.task, evaluation.split), measure)
    for row in collected.rows(evaluation).to_pylist():
        reply, gold = row["prediction"], row["gold"]
        if measure == "bleu":
            (tally,) = bleu.tally(
                encode_answers([(reply[0],)]), encode_answers([(gold[0],)])
            ).tolist()
        elif measure == "perplexity":
            tally = [row["predicted_value"], row["gold_value"]]
        else:
            tally = [row["score"] / 100, 1.0]
        emotion = gold[-1] if len(gold) > 1 or measure == "accuracy" else ""
        home = reply[1] if measure == "bleu" and len(reply) > 1 else ""
        names = row["cluster"], row["instance_id"]
        yield *_make_key(run), named, _get_pool(evaluation), *names, emotion, home, tally


def _make_cost_rows(collected: Collected) -> Iterator[Values]:
    for run in collected.study.plan.runs:
        stages = [stage for stage in run.stages if collected.has(stage)]
        if isinstance(run.outcome, Fit) or not stages or len(stages) < len(run.stages):
            continue
        last = run.stages[-1]
        record = collected.record(last)
        counts = record["provenance"]["training"].get("parameters")
        size = 0
        if counts:  # the paper counts fixed positions for retrieval only
            size = counts["all" if run.about["setting"] == "retrieval" else "learnable"]
        examples = max((sizes["train"] for sizes in record["sizes"].values()), default=0)
        hours = [compute_hours(collected.record(stage)) for stage in stages]
        yield *_make_key(run), size, hours[-1], sum(hours), describe_hardware(record), examples


def read_dialogue_tables(study: Study) -> dict[str, list[Values]]:
    """Return the tables ``labels`` and ``shared``, which are counted in the dialogues.

    If the dialogues are no longer available, returns the rows that were collected earlier.

    Raises:
        DataError: the dialogues are damaged.
    """
    try:
        place = Path(find(Path(study.release_of(ED))))
    except DataError:
        return {n: read_earlier_rows(study, n, columns.TABLES[n]) for n in ("labels", "shared")}
    dialogues = read_dialogues(place)
    counts = Counter(dialogue.emotion for dialogue in dialogues)
    labels = [(label, n, 100 * n / len(dialogues)) for label, n in counts.most_common()]
    situations = find_shared_situations(dialogues)
    shared: list[Values] = [
        ("situation", text, " ".join(splits), 1, len(dialogues))
        for text, splits in sorted(situations.items())
    ]
    found, of = count_shared_utterances(dialogues)
    shared.append(("utterances of four words or more", "", "test train", found, of))
    return {"labels": labels, "shared": shared}
