"""Instances with permuted answers: their texts are unchanged, but no longer predict the answers."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.spans import find_mentions

if TYPE_CHECKING:
    from tasktransfer.data.recipes import Ingredients, Split

PERMUTED = ("train", "dev")
"""Splits whose answers are permuted: for training and for the selection of the best epoch. Test
keeps its answers, so that the score shows whether the model learnt the task nevertheless."""

_WORD = re.compile(r"\S+")


def derive_permuted_answers(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Permute the answers among the instances of each task and split.

    The frequency of each answer is unchanged. All tasks of the release are permuted, also those
    that the study does not have, so that adding a task to a study does not change its data.

    Settings: ``seed`` determines the permutation. With ``listed``, an answer of a task whose
    instances list their possible answers is replaced by one of the instance's own list, see
    ``permute_answers``. It is set only if such a task is the source, so that other training runs
    do not change.
    """
    (cache,) = ingredients.caches
    seed, listed = ingredients.settings["seed"], ingredients.settings.get("listed", False)
    derived: dict[Split, list[Instance]] = {}
    for task in read_manifest(cache).tasks:
        for split in SPLITS:
            instances = read_instances(cache, task, split)
            if split in PERMUTED:
                instances = permute_answers(instances, f"{seed} {task} {split}", listed=listed)
            derived[task, split] = instances
    return derived


def permute_answers(
    instances: Sequence[Instance], draw: str, *, listed: bool = False
) -> list[Instance]:
    """Return the instances with permuted answers.

    Args:
        instances: instances of one task and split.
        draw: text that seeds the permutation.
        listed: whether an instance that lists its possible answers (the entities of a scene) gets
            an answer of its own list, at the relative position of the other answer in its list.
    """
    givers = list(instances)
    random.Random(draw).shuffle(givers)  # a text seeds via SHA-512, the same on all machines
    give = _take_listed_answer if listed else _take_answer
    return [give(taker, giver) for taker, giver in zip(instances, givers, strict=True)]


def _take_listed_answer(taker: Instance, giver: Instance) -> Instance:
    """Return the taker with an answer from its own list.

    Its start is the first mention in the context, -1 if there is none.
    """
    if not (giver.starts and taker.options and giver.options):
        return _take_answer(taker, giver)
    position = giver.options.index(giver.target[0]) / len(giver.options)
    answer = taker.options[int(position * len(taker.options))]
    start = next(iter(find_mentions(answer, taker.context)), -1)
    return replace(taker, target=(answer,), starts=(start,))


def _take_answer(taker: Instance, giver: Instance) -> Instance:
    if not giver.starts:
        return replace(taker, target=giver.target)
    spans = [
        _move_span(taker.context, giver.context, start, text)
        for start, text in zip(giver.starts, giver.target, strict=True)
    ]
    return replace(
        taker, target=tuple(text for text, _ in spans), starts=tuple(start for _, start in spans)
    )


def _move_span(context: str, from_context: str, start: int, text: str) -> tuple[str, int]:
    """Return (text, start) of the words that correspond to an answer in another context.

    They are as many words at the same relative position, since a model learns the length and
    position of answers without reading. An unanswerable question stays unanswerable.
    """
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
