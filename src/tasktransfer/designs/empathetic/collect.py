"""Frames of an empathetic study's records: measures, instances, costs and dialogues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from tasktransfer.core.nodes import Evaluation, Fit
from tasktransfer.core.runs import Run
from tasktransfer.designs.empathetic.config import get_config
from tasktransfer.designs.empathetic.frames import LABELS, SHARED
from tasktransfer.designs.empathetic.sources.cards import ED, EMOTION_CUT, EMOTION_OF_CONTEXT
from tasktransfer.designs.empathetic.sources.dialogues import (
    EmpatheticDialogue,
    count_shared_utterances,
    find_release,
    find_shared_situations,
    read_dialogues,
)
from tasktransfer.errors import DataError
from tasktransfer.metrics import bleu
from tasktransfer.metrics.answers import encode_answers
from tasktransfer.results.collect import Collected
from tasktransfer.results.common_frames import build_metadata
from tasktransfer.results.costs import compute_hours, describe_hardware
from tasktransfer.results.frame_files import read_earlier_rows
from tasktransfer.results.frames import Frames
from tasktransfer.results.state import RECORD
from tasktransfer.results.store import Metadata
from tasktransfer.stats.answers import is_collapsed

Values = tuple[Any, ...]
MEASURED = {
    (EMOTION_CUT.name, "test"): "accuracy_cut",
    (EMOTION_OF_CONTEXT.name, "test"): "accuracy_contexts",
    (EMOTION_OF_CONTEXT.name, "train"): "accuracy_training_contexts",
}
"""Task and split → name of a classifier's accuracy; ``accuracy`` for all others."""


def build_study_metadata(collected: Collected) -> Metadata:
    """Return the metadata of the study's frames, with the limit on candidate pools."""
    order = {"method": list(dict.fromkeys(run.method for run in collected.study.plan.runs))}
    pool = get_config(collected.study).evaluation.limit_pool
    return build_metadata(collected, order=order, cuts=f"limit_pool {pool}" if pool else "")


def _list_evaluations(collected: Collected) -> Iterator[tuple[Run, Evaluation]]:
    for run in collected.study.plan.runs:
        yield from ((run, node) for node in run.evaluations if collected.has_record(node))


def make_measured(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``measured``, one per run and measure."""
    collected = frames.collected
    for run, evaluation in _list_evaluations(collected):
        yield from _make_measured_rows(collected, run, evaluation)


def make_rows(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``rows``, one per run, measure and instance."""
    collected = frames.collected
    for run, evaluation in _list_evaluations(collected):
        yield from _make_instance_rows(collected, run, evaluation)


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
            (tally,) = bleu.tally_ngrams(
                encode_answers([(reply[0],)]), encode_answers([(gold[0],)])
            ).tolist()
        elif measure in ("perplexity", "word_perplexity"):
            tally = [row["predicted_value"], row["gold_value"]]
        else:
            tally = [row["score"] / 100, 1.0]
        emotion = gold[-1] if len(gold) > 1 or measure == "accuracy" else ""
        origin = reply[1] if measure == "bleu" and len(reply) > 1 else ""
        names = row["cluster"], row["instance_id"]
        yield *_make_key(run), named, _get_pool(evaluation), *names, emotion, origin, tally


def make_costs(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``costs``, one per run with trainings."""
    collected = frames.collected
    for run in collected.study.plan.runs:
        stages = [stage for stage in run.stages if collected.has_record(stage)]
        if isinstance(run.outcome, Fit) or not stages or len(stages) < len(run.stages):
            continue
        last = run.stages[-1]
        record = collected.record(last)
        counts = record["provenance"]["training"].get("parameters")
        size = 0
        if counts:  # The paper counts fixed positions for retrieval only.
            size = counts["all" if run.about["setting"] == "retrieval" else "learnable"]
        examples = max((sizes["train"] for sizes in record["sizes"].values()), default=0)
        hours = [compute_hours(collected.record(stage)) for stage in stages]
        yield *_make_key(run), size, hours[-1], sum(hours), describe_hardware(record), examples


def make_labels(frames: Frames) -> list[Values]:
    """Return the rows of ``labels``, or the earlier frame's rows if the dialogues are missing.

    Raises:
        DataError: the dialogues are damaged.
    """
    dialogues = frames.compute_once(find_dialogues)
    if dialogues is None:
        return read_earlier_rows(frames.study, "labels", LABELS)
    counts = Counter(dialogue.emotion for dialogue in dialogues)
    return [(label, n, 100 * n / len(dialogues)) for label, n in counts.most_common()]


def make_shared(frames: Frames) -> list[Values]:
    """Return the rows of ``shared``, or the earlier frame's rows if the dialogues are missing.

    Raises:
        DataError: the dialogues are damaged.
    """
    dialogues = frames.compute_once(find_dialogues)
    if dialogues is None:
        return read_earlier_rows(frames.study, "shared", SHARED)
    situations = find_shared_situations(dialogues)
    shared, total = count_shared_utterances(dialogues)
    return [
        *(
            ("situation", text, " ".join(splits), 1, len(dialogues))
            for text, splits in sorted(situations.items())
        ),
        ("utterances of four words or more", "", "test train", shared, total),
    ]


def find_dialogues(frames: Frames) -> list[EmpatheticDialogue] | None:
    """Return the study's dialogues, or None if they are no longer available.

    Raises:
        DataError: the dialogues are damaged.
    """
    try:
        place = Path(find_release(Path(frames.study.get_release(ED))))
    except DataError:
        return None
    return read_dialogues(place)
