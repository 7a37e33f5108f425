"""Instances with permuted answers: their texts are unchanged, but no longer predict the answers."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.tasks.card import SPLITS, Instance, find_mentions

if TYPE_CHECKING:
    from tasktransfer.data.recipes import Ingredients, Split

PERMUTED_SPLITS = ("train", "dev")
"""Splits with permuted answers: for training and for the selection of the best epoch. The test
split keeps its answers, so that the score shows whether the model learnt the task nevertheless."""

_WORD = re.compile(r"\S+")


def derive_permuted_instances(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Permute the answers of each task in train and dev, and return all splits.

    The frequency of each answer is unchanged. The answers of all tasks of the release are permuted,
    including tasks that are not in the study, so that adding a task to a study does not change its
    data.

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
            if split in PERMUTED_SPLITS:
                instances = permute_answers(instances, f"{seed} {task} {split}", listed=listed)
            derived[task, split] = instances
    return derived


def permute_answers(
    instances: Sequence[Instance], seed: str, *, listed: bool = False
) -> list[Instance]:
    """Permute the answers among instances.

    Args:
        instances: instances of one task and split.
        seed: text that seeds the permutation.
        listed: whether an instance that lists its possible answers (the entities of a scene) gets
            an answer of its own list, at the relative position of the other answer in its list.
    """
    donors = list(instances)
    random.Random(seed).shuffle(donors)  # Python hashes a text seed by SHA-512.
    replace_answer = _replace_listed_answer if listed else _replace_answer
    return [
        replace_answer(instance, donor) for instance, donor in zip(instances, donors, strict=True)
    ]


def _replace_listed_answer(instance: Instance, donor: Instance) -> Instance:
    """Replace the answer of an instance by another answer from its list of options.

    Its start is the first mention in the context, -1 if there is none.
    """
    if not (donor.starts and instance.options and donor.options):
        return _replace_answer(instance, donor)
    position = donor.options.index(donor.target[0]) / len(donor.options)
    answer = instance.options[int(position * len(instance.options))]
    start = next(iter(find_mentions(answer, instance.context)), -1)
    return replace(instance, target=(answer,), starts=(start,))


def _replace_answer(instance: Instance, donor: Instance) -> Instance:
    if not donor.starts:
        return replace(instance, target=donor.target)
    spans = [
        _transfer_span(instance.context, donor.context, start, text)
        for start, text in zip(donor.starts, donor.target, strict=True)
    ]
    return replace(
        instance, target=tuple(text for text, _ in spans), starts=tuple(start for _, start in spans)
    )


def _transfer_span(context: str, from_context: str, start: int, text: str) -> tuple[str, int]:
    """Return the words (text, start) at the position of an answer in another context.

    They have the answer's number of words and its relative position, because a model can learn
    the length and position of answers without reading. An unanswerable question stays
    unanswerable.
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
