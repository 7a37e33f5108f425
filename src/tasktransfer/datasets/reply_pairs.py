"""Shared code of next-utterance datasets: contexts of turns, and new random splits."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tasktransfer.datasets.dataset import TurnLength
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance, MetricSpec, Prompt, Task

TURN = "<turn>"
"""Marker after each turn of a context. A model that reads turns one by one (HRED) splits there."""

SPLIT_SEED = 0
SHARES = (0.7, 0.15, 0.15)
"""Fractions of the dialogues for train, dev and test."""

LEAST_DIALOGUES = 10


def make_reply_task(name: str, dataset: str, citation: str, licence: str) -> Task:
    """Return the card of a next-utterance task, scored by BLEU-2."""
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


def probe_task(probe: str, dataset: str, description: str, citation: str, licence: str) -> Task:
    """Return the card of a probe: labels from an open set, scored by micro-F1."""
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
    """Return turns as one text, with ``TURN`` after each."""
    return " ".join(f"{turn} {TURN}" for turn in turns)


def make_reply_instance(
    name: str, number: int, turns: Sequence[str], task: str, labels: Mapping[str, Any], kind: str
) -> Instance:
    """Return the instance whose target is the turn with index ``number``.

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


def turn_lengths(
    name: str, split: str, turns: Sequence[str], speakers: tuple[str, str]
) -> Iterator[TurnLength]:
    """Yield the number of words in each turn of a dialogue with alternating speakers."""
    for number, text in enumerate(turns):
        speaker, count = speakers[number % 2], len(text.split())
        yield TurnLength(name, split, True, str(number), (speaker,), count)


def split_anew(names: Iterable[str], location: str) -> Mapping[str, str]:
    """Return dialogue → split (70, 15 and 15 %) from a fixed shuffle of the sorted names.

    Raises:
        DataError: there are too few dialogues to split.
    """
    ordered = sorted(names)
    if len(ordered) < LEAST_DIALOGUES:
        raise DataError(
            f"{location}: The release has {len(ordered)} dialogues, too few to split into "
            f"{', '.join(SPLITS)}. Use {LEAST_DIALOGUES} or more."
        )
    random.Random(SPLIT_SEED).shuffle(ordered)
    ends = [round(len(ordered) * sum(SHARES[: n + 1])) for n in range(len(SPLITS))]
    begins = [0, *ends[:-1]]
    return {
        name: split
        for split, begin, end in zip(SPLITS, begins, ends, strict=True)
        for name in ordered[begin:end]
    }
