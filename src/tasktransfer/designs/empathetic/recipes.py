"""Recipe that prepends labels to contexts and candidates (section 4, Prepend-k).

A fastText classifier ranks the labels of a context or candidate by its words, and the highest k are
prepended. Controls prepend the gold emotion or a random one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tasktransfer.data.cache import read_instances
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.designs.empathetic.sources.cards import LABELS
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance

Labels = Callable[[Sequence[Instance]], list[str]]
"""Instances → the words to prepend to the context of each."""


def prepend_labels(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Prepend labels to the contexts of reply tasks and, if configured, to the candidates.

    Settings:
        k: number of labels.
        task: task of the fit, or ``gold`` or ``random`` without a fit.
        candidates: true to prepend labels to replies too (retrieval).
        best_last: true for the order of the paper's code.
        as_spelled: true to keep label names unchanged, false to split them into words.

    Raises:
        DataError: there are fewer labels than ``k``.
    """
    settings, (cache,) = ingredients.settings, ingredients.caches
    derived: dict[Split, list[Instance]] = {}
    for task in ingredients.tasks:
        for split in SPLITS:
            instances = read_instances(cache, task, split)
            contexts = _choose_labels(ingredients, instances, f"{task} {split}")
            labelled = [
                replace(instance, context=f"{words} {instance.context}")
                for instance, words in zip(instances, contexts, strict=True)
            ]
            if settings.get("candidates"):
                replies = [replace(instance, context=instance.target[0]) for instance in instances]
                prefixes = _choose_labels(ingredients, replies, f"{task} {split} candidates")
                labelled = [
                    replace(
                        instance,
                        target=(f"{words} {instance.target[0]}",),
                        query={**instance.query, "prefix": words},
                    )
                    for instance, words in zip(labelled, prefixes, strict=True)
                ]
            derived[task, split] = labelled
    return derived


def _choose_labels(ingredients: Ingredients, instances: Sequence[Instance], draw: str) -> list[str]:
    settings = ingredients.settings
    k, source = settings["k"], settings["task"]
    if source == "gold":
        ranked: list[tuple[str, ...]] = [
            (instance.query.get("emotion", LABELS[0]),) for instance in instances
        ]
    elif source == "random":
        chance = random.Random(f"{settings.get('seed', 0)} {draw}")
        names = sorted(
            {instance.query["emotion"] for instance in instances if "emotion" in instance.query}
        )
        ranked = [(chance.choice(names or list(LABELS)),) for _ in instances]
    else:
        (rank,) = ingredients.rank
        ranked = rank(source, instances)
    if ranked and len(ranked[0]) < k:
        raise DataError(
            f"The number of prepended labels is {k}, but {source} has only {len(ranked[0])} "
            "labels. Reduce the number in the method's name."
        )
    spelled = (lambda label: label) if settings.get("as_spelled") else split_label
    order = slice(None, None, -1) if settings.get("best_last") else slice(None)
    return [" ".join(spelled(label) for label in labels[:k][order]) for labels in ranked]


def split_label(label: str) -> str:
    """Return the words of a label in lower case, separated by spaces.

    ``comp.sys.mac.hardware`` becomes ``sys mac hardware``, ``School Life`` becomes ``school life``.
    """
    first, *rest = label.replace("-", ".").lower().split(".")
    return " ".join(rest) if rest else first
