"""The recipe of the probes' data: each turn's context with one fact about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tasktransfer.data.cache import read_instances
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.datasets.personachat import middle_words
from tasktransfer.datasets.reply_pairs import TURN
from tasktransfer.designs.probes.facts import BY_TASK, LEAST_COUNTS, WORD_PROBE, Probe, reply_of
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.words import words


def dialogue_labels(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Labels by the definitions of the corpus, on the splits of its dialogues. A turn without a
    label of a probe is left out of it; a label that training has too seldom is none
    (``LEAST_COUNTS``).

    Settings: ``word_in``, context or target: where WordCont's word is.

    Raises:
        DataError: all training turns of a probe have one label.
    """
    (cache,) = ingredients.caches
    derived: dict[Split, list[Instance]] = {}
    word_in = ingredients.settings.get("word_in", "context")
    for task in ingredients.tasks:
        reply = reply_of(BY_TASK[task].corpus)
        read = {split: read_instances(cache, reply, split) for split in SPLITS}
        for split, rows in with_labels(BY_TASK[task], read, word_in).items():
            derived[task, split] = rows
        _refuse_one_label(task, derived[task, "train"])
    return derived


def _refuse_one_label(task: str, train: Sequence[Instance]) -> None:
    """Refuse a probe with nothing to tell apart, before the encoders that it asks are trained."""
    if len({instance.target for instance in train}) < 2:
        only = f"have {' and '.join(train[0].target) or 'no label'}" if train else "are absent"
        raise DataError(
            f"{task}: all {len(train)} training turns {only}, and a probe needs two labels. Leave "
            "it out of probes.tasks, or give more dialogues"
        )


def with_labels(
    probe: Probe, read: Mapping[str, Sequence[Instance]], word_in: str = "context"
) -> dict[str, list[Instance]]:
    """Split → the turns that a probe asks of, with their labels. ``read``: split → the corpus's
    turns with the labels of every probe; the training split among them."""
    of_reply = probe.name == WORD_PROBE and word_in == "target"
    middle = _words_asked_for(read["train"]) if of_reply else None
    rows = {split: _labelled(instances, probe, middle) for split, instances in read.items()}
    least = LEAST_COUNTS.get(probe.name, 1)
    if least == 1:
        return rows
    counts = Counter(label for row in rows["train"] for label in row.target)
    return {
        split: [replace(r, target=tuple(x for x in r.target if counts[x] >= least)) for r in some]
        for split, some in rows.items()
    }


def _labelled(
    instances: Sequence[Instance], probe: Probe, middle: frozenset[str] | None
) -> list[Instance]:
    """Instances with a probe's labels. ``middle``: the words that are looked for in the reply."""
    rows = []
    for instance in instances:
        labels: Mapping[str, list[str]] = json.loads(instance.query["labels"])
        found = labels.get(probe.name)
        if middle is not None:
            spoken = (w for w in words(instance.target[0].replace(TURN, " ")) if w in middle)
            found = [word for word in [next(spoken, None)] if word is not None] or None
        if found is None:
            continue
        if not probe.has_sets and len(found) != 1:
            raise DataError(
                f"{probe.task}, instance {instance.id}: {len(found)} labels {found}, expected one"
            )
        query = {"type": instance.query["type"]}
        rows.append(replace(instance, task=probe.task, query=query, target=tuple(found)))
    return rows


def _words_asked_for(train: Sequence[Instance]) -> frozenset[str]:
    """The words of WordCont, the same for every split: of the training dialogues, as the corpus
    has them. A dialogue's last context and its reply are all of it."""
    last = {instance.dialogue_id: instance for instance in train}
    return middle_words(
        turn
        for instance in last.values()
        for turn in (*instance.context.split(TURN), instance.target[0])
    )
