"""Instances with each other's answers: the text stays, what it is asked to teach is taken away."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.spans import mentions_of

if TYPE_CHECKING:
    from tasktransfer.data.recipes import Ingredients, Split

PERMUTED = ("train", "dev")
"""The splits whose answers are permuted: what trains, and what selects the best epoch. Test keeps
its answers, so that the score of the training says whether it learnt the task after all."""

_WORD = re.compile(r"\S+")


def permuted_answers(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Give every instance of a task and split the answer of another one, drawn without replacement:
    how frequent each answer is stays what it was.

    All tasks of the release are permuted, whichever the study has, so that a task that is added to
    a study leaves its data as they are.

    Settings: ``seed``; another one gives another permutation. ``listed``: an answer of a task
    whose instances list their answers is one of the taker's list, see ``permuted``. It is set
    where such a task is the source, so that the trainings of all others stay what they are.
    """
    (cache,) = ingredients.caches
    seed, listed = ingredients.settings["seed"], ingredients.settings.get("listed", False)
    derived: dict[Split, list[Instance]] = {}
    for task in read_manifest(cache).tasks:
        for split in SPLITS:
            instances = read_instances(cache, task, split)
            if split in PERMUTED:
                instances = permuted(instances, f"{seed} {task} {split}", listed=listed)
            derived[task, split] = instances
    return derived


def permuted(instances: Sequence[Instance], draw: str, *, listed: bool = False) -> list[Instance]:
    """The instances with each other's answers.

    Args:
        draw: names the permutation.
        listed: where an instance lists what may be its answer (the entities of a scene), it gets
            the one that stands as far down its list as the other's answer in the other's.
    """
    givers = list(instances)
    random.Random(draw).shuffle(givers)  # a text seeds through SHA-512: the same everywhere
    give = _with_listed_answer if listed else _with_answer_of
    return [give(taker, giver) for taker, giver in zip(instances, givers, strict=True)]


def _with_listed_answer(taker: Instance, giver: Instance) -> Instance:
    """An answer out of the taker's list; where it stands in the context is where it is first said,
    -1 where nobody says it."""
    if not (giver.starts and taker.options and giver.options):
        return _with_answer_of(taker, giver)
    position = giver.options.index(giver.target[0]) / len(giver.options)
    answer = taker.options[int(position * len(taker.options))]
    start = next(iter(mentions_of(answer, taker.context)), -1)
    return replace(taker, target=(answer,), starts=(start,))


def _with_answer_of(taker: Instance, giver: Instance) -> Instance:
    if not giver.starts:
        return replace(taker, target=giver.target)
    spans = [
        _moved_span(taker.context, giver.context, start, text)
        for start, text in zip(giver.starts, giver.target, strict=True)
    ]
    return replace(
        taker, target=tuple(text for text, _ in spans), starts=tuple(start for _, start in spans)
    )


def _moved_span(context: str, from_context: str, start: int, text: str) -> tuple[str, int]:
    """An answer out of another context as words of this one: as many, as far from the beginning in
    proportion. How long answers are and where they lie is learnt without reading, and stays. An
    unanswerable one stays unanswerable."""
    words = list(_WORD.finditer(context))
    if start < 0 or not words:
        return text, -1
    length = max(1, len(text.split()))
    others = list(_WORD.finditer(from_context))
    before = sum(word.end() <= start for word in others)
    position = before / max(1, len(others) - length)
    length = min(length, len(words))
    first = min(round(position * (len(words) - length)), len(words) - length)
    begin, end = words[first].start(), words[first + length - 1].end()
    return context[begin:end], begin
