"""The recipe of the probes' data: each turn's context with one fact about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from tasktransfer.data.cache import read_instances
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.datasets.reply_pairs import TURN
from tasktransfer.designs.probes.facts import BY_TASK, LEAST_COUNTS, reply_of
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.words import words


def dialogue_labels(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Labels by the definitions of the corpus, on the splits of its dialogues. A turn without a
    label of a probe is left out of it; a label that training has too seldom is none
    (``LEAST_COUNTS``).

    Settings: ``word_in``, context or target: where WordCont's word is.
    """
    (cache,) = ingredients.caches
    derived: dict[Split, list[Instance]] = {}
    for task in ingredients.tasks:
        probe = BY_TASK[task]
        rows = {
            split: _labelled(cache, task, split, ingredients.settings.get("word_in", "context"))
            for split in SPLITS
        }
        least = LEAST_COUNTS.get(probe.name, 1)
        counts = Counter(label for row in rows["train"] for label in row.target)
        for split in SPLITS:
            derived[task, split] = [
                replace(row, target=tuple(x for x in row.target if counts[x] >= least))
                if least > 1
                else row
                for row in rows[split]
            ]
    return derived


def _labelled(cache: object, task: str, split: str, word_in: str) -> list[Instance]:
    probe, rows = BY_TASK[task], []
    instances = read_instances(str(cache), reply_of(probe.corpus), split)
    middle = _middle_words(instances) if (probe.name, word_in) == ("WordCont", "target") else None
    for one in instances:
        labels: Mapping[str, list[str]] = json.loads(one.query["labels"])
        found = labels.get(probe.name)
        if middle is not None:
            said = (w for w in words(one.target[0].replace(TURN, " ")) if w in middle)
            found = [word for word in [next(said, None)] if word is not None] or None
        if found is None:
            continue
        if not probe.has_sets and len(found) != 1:
            raise DataError(f"{task}, instance {one.id}: {len(found)} labels {found}, expected one")
        query = {"type": one.query["type"]}
        rows.append(replace(one, task=task, query=query, target=tuple(found)))
    return rows


def _middle_words(instances: list[Instance]) -> frozenset[str]:
    """The words that WordCont asks for, as the corpus has chosen them: read off its labels."""
    labels = (json.loads(one.query["labels"]).get("WordCont", ()) for one in instances)
    return frozenset(word for named in labels for word in named)
