"""Recipe of the probes' data: each turn's context with one label about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tasktransfer.data.cache import read_instances
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.datasets.personachat import find_middle_words
from tasktransfer.datasets.reply_pairs import TURN_END
from tasktransfer.designs.probes.facts import (
    BY_TASK,
    LEAST_COUNTS,
    WORD_PROBE,
    Probe,
    format_reply_task_name,
)
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.compose import split_words


def derive_dialogue_labels(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Derive the labels of each probe for all splits of a corpus.

    A turn to which a probe does not apply is left out of its data. Labels that are too rare in
    training are dropped (``LEAST_COUNTS``).

    Settings:
        word_in: context or target, the text that contains WordCont's word.

    Raises:
        DataError: all training turns of a probe have the same label.
    """
    (cache,) = ingredients.caches
    derived: dict[Split, list[Instance]] = {}
    word_in = ingredients.settings.get("word_in", "context")
    for task in ingredients.tasks:
        reply = format_reply_task_name(BY_TASK[task].corpus)
        read = {split: read_instances(cache, reply, split) for split in SPLITS}
        for split, rows in label_instances(BY_TASK[task], read, word_in).items():
            derived[task, split] = rows
        _check_distinct_labels(task, derived[task, "train"])
    return derived


def _check_distinct_labels(task: str, train: Sequence[Instance]) -> None:
    """Raise DataError if the training turns of a probe have fewer than two labels."""
    if len({instance.target for instance in train}) < 2:
        label = " and ".join(train[0].target) if train else ""
        what = f"have the label {label}" if label else "have no label"
        found = f"All {len(train)} training turns {what}" if train else "There is no training turn"
        raise DataError(
            f"{task}: {found}, but the training data of a probe must have two different labels. "
            "Remove the probe from probes.tasks, or add dialogues to the data."
        )


def label_instances(
    probe: Probe, read: Mapping[str, Sequence[Instance]], word_in: str = "context"
) -> dict[str, list[Instance]]:
    """Return the labelled turns to which a probe applies, by split.

    Args:
        probe: the probe.
        read: split → the corpus's turns with the labels of every probe; must contain train.
        word_in: context or target, the text that contains WordCont's word.
    """
    of_reply = probe.name == WORD_PROBE and word_in == "target"
    middle = _collect_middle_words(read["train"]) if of_reply else None
    rows = {split: _apply_probe(instances, probe, middle) for split, instances in read.items()}
    least = LEAST_COUNTS.get(probe.name, 1)
    if least == 1:
        return rows
    counts = Counter(label for row in rows["train"] for label in row.target)
    return {
        split: [replace(r, target=tuple(x for x in r.target if counts[x] >= least)) for r in some]
        for split, some in rows.items()
    }


def _apply_probe(
    instances: Sequence[Instance], probe: Probe, middle: frozenset[str] | None
) -> list[Instance]:
    """Return the instances with a probe's labels.

    ``middle`` are the words to find in the reply, or None to use the corpus's labels.
    """
    rows = []
    for instance in instances:
        labels: Mapping[str, list[str]] = json.loads(instance.query["labels"])
        found = labels.get(probe.name)
        if middle is not None:
            spoken = (
                w for w in split_words(instance.target[0].replace(TURN_END, " ")) if w in middle
            )
            found = [word for word in [next(spoken, None)] if word is not None] or None
        if found is None:
            continue
        if not probe.has_label_sets and len(found) != 1:
            raise DataError(
                f"{probe.task}, instance {instance.id}: The instance has the {len(found)} labels "
                f"{found}, but it must have one. Fix its annotation."
            )
        query = {"type": instance.query["type"]}
        rows.append(replace(instance, task=probe.task, query=query, target=tuple(found)))
    return rows


def _collect_middle_words(train: Sequence[Instance]) -> frozenset[str]:
    """Collect the words that WordCont predicts, which are identical for all splits.

    They are computed from the training dialogues. A dialogue's last context and reply contain the
    whole dialogue.
    """
    last = {instance.dialogue_id: instance for instance in train}
    return find_middle_words(
        turn
        for instance in last.values()
        for turn in (*instance.context.split(TURN_END), instance.target[0])
    )
