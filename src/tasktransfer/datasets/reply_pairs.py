"""Shared code of next-utterance datasets: cards, instances, and random splits."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tasktransfer.datasets.dataset import TurnLength
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance, MetricSpec, Prompt, Task

TURN_END = "<turn>"
"""Marker after each turn of a context. Models that read turns one by one (HRED) split there."""

SPLIT_SEED = 0
SPLIT_FRACTIONS = (0.7, 0.15, 0.15)
"""Fractions of the dialogues for train, dev and test."""

MIN_DIALOGUES = 10


def build_reply_task(name: str, dataset: str, citation: str, licence: str) -> Task:
    """Return the card of a next-utterance task with the measure BLEU-2."""
    return Task(
        name=name,
        short="Reply",
        dataset=dataset,
        kind="reply",
        labels=(),
        metrics=tuple(
            MetricSpec(metric) for metric in ("bleu2", "rouge_l", "meteor", "bleu2_exchanged")
        ),
        query="",
        prompt=Prompt("", max_answer_tokens=30),
        description="The next utterance of the dialogue.",
        citation=citation,
        licence=licence,
        paper_metrics=("bleu2",),
    )


def build_probe_task(
    probe: str, dataset: str, description: str, citation: str, licence: str
) -> Task:
    """Return the card of a probing task with open labels, scored by micro-F1."""
    return Task(
        name=f"{dataset}_{probe}",
        short=probe,
        dataset=dataset,
        kind="open_labels",
        labels=(),
        metrics=(MetricSpec("f1", "micro"),),
        query="",
        prompt=Prompt("", max_answer_tokens=1),
        description=description,
        citation=citation,
        licence=licence,
    )


def join_turns(turns: Sequence[str]) -> str:
    """Join turns into one text, with the marker ``TURN_END`` after each turn."""
    return " ".join(f"{turn} {TURN_END}" for turn in turns)


def build_reply_instance(
    name: str, number: int, turns: Sequence[str], task: str, labels: Mapping[str, Any], kind: str
) -> Instance:
    """Return an instance whose target is the turn with index ``number``.

    Args:
        name: name of the dialogue.
        number: index of the turn.
        turns: all turns of the dialogue.
        task: name of the task.
        labels: probe → labels, stored as JSON in the query's field ``labels``.
        kind: topic or type of the whole dialogue, stored in the query's field ``type``.
    """
    context = join_turns(turns[:number])
    return Instance(
        id=f"{name}-{number}",
        dialogue_id=name,
        task=task,
        context=context,
        focus=len(context),
        query={"labels": json.dumps(labels), "type": kind},
        options=(),
        target=(turns[number],),
    )


def measure_turn_lengths(
    name: str, split: str, turns: Sequence[str], speakers: tuple[str, str]
) -> Iterator[TurnLength]:
    """Yield the number of words in each turn of a dialogue with alternating speakers."""
    for number, text in enumerate(turns):
        speaker, count = speakers[number % 2], len(text.split())
        yield TurnLength(name, split, True, str(number), (speaker,), count)


def assign_random_splits(names: Iterable[str], location: str) -> Mapping[str, str]:
    """Assign dialogues to splits (70, 15 and 15 %) by a fixed shuffle of their names.

    Raises:
        DataError: there are too few dialogues to split.
    """
    ordered = sorted(names)
    if len(ordered) < MIN_DIALOGUES:
        raise DataError(
            f"{location}: The {len(ordered)} dialogues of the release are too few to split into "
            f"{', '.join(SPLITS)}. Use at least {MIN_DIALOGUES} dialogues."
        )
    random.Random(SPLIT_SEED).shuffle(ordered)
    ends = [round(len(ordered) * sum(SPLIT_FRACTIONS[: n + 1])) for n in range(len(SPLITS))]
    begins = [0, *ends[:-1]]
    return {
        name: split
        for split, begin, end in zip(SPLITS, begins, ends, strict=True)
        for name in ordered[begin:end]
    }
