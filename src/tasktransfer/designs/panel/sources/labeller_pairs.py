"""The pairs that the labeller is trained on."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tasktransfer.datasets.dailydialog.utterances import RELEVANT, read_contexts
from tasktransfer.designs.panel.sources.cards import LABELLER, TINY, format_shared_task_name
from tasktransfer.designs.panel.sources.corpora import Files
from tasktransfer.designs.panel.sources.pair_instances import (
    FITS,
    FITS_NOT,
    make_instance,
    read_pair,
)
from tasktransfer.files.data_files import read_json_lines
from tasktransfer.tasks.card import SPLITS, Instance

PLUS = tuple(f"dailydialog_pp/{name}.jsonl" for name in ("data_positives", "dev", "test"))
OWN_LABELS = tuple(f"labeller/{split}.jsonl" for split in SPLITS)


def read_plus_pairs(files: Files, notes: list[str]) -> Iterator[tuple[str, Instance]]:
    """Yield the pairs of DailyDialog++.

    Its training split has only positive responses. An equal number of negative ones is added: half
    are responses to other contexts, half are the context's own responses with shuffled words.
    """
    places = {split: files[name] for split, name in zip(SPLITS, PLUS, strict=True)}
    read, shared = read_contexts(places)
    notes += shared
    train = read["train"]
    chance = random.Random("labeller")
    for number, context in enumerate(train):
        for index, text in enumerate(context.responses[RELEVANT]):
            name = f"{context.group}#{index}"
            yield (
                "train",
                make_instance(
                    LABELLER, name, context.group, context.utterances, text.strip(), FITS
                ),
            )
            other = train[(number + chance.randrange(1, len(train))) % len(train)]
            wrong = chance.choice(other.responses[RELEVANT]).strip()
            if index % 2:
                wrong = _shuffle_words(text.strip(), chance)
            name = f"{name}-"
            yield (
                "train",
                make_instance(LABELLER, name, context.group, context.utterances, wrong, FITS_NOT),
            )
    for split in ("dev", "test"):
        for context in read[split]:
            for kind, texts in context.responses.items():
                target = FITS if kind == RELEVANT else FITS_NOT
                for index, text in enumerate(texts):
                    if text.strip():
                        name, response = f"{context.group}#{kind[0]}{index}", text.strip()
                        yield (
                            split,
                            make_instance(
                                LABELLER, name, context.group, context.utterances, response, target
                            ),
                        )


def _shuffle_words(text: str, chance: random.Random) -> str:
    words = text.split()
    chance.shuffle(words)
    return " ".join(words)


def read_own_labels(files: Files, notes: list[str]) -> Iterator[tuple[str, Instance]]:
    """Yield the pairs of a user's file for each split, with their labels."""
    task = format_shared_task_name(LABELLER, TINY)
    for split, name in zip(SPLITS, OWN_LABELS, strict=True):
        for line, row, location in read_json_lines(files[name]):
            context, response = read_pair(row, location)
            target, group = str(row.get("label")), f"labels-{split}-{line}"
            if target not in (FITS, FITS_NOT):
                raise location.at("label").error(
                    f"the value {target!r:.60} is not a label", "write 0 or 1"
                )
            yield split, make_instance(task, group, group, context, response, target)
