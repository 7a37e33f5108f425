"""The leak filter: no training dialogue shares a longer utterance with what people rated.

A dialogue is left out whole if one of its utterances, case and punctuation aside, is an utterance
of a rated item's context or its response, and has six words or more: shorter ones are common
phrases. The report counts both sides for each corpus and rated set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.designs.panel.sources.dataset import FITS
from tasktransfer.designs.panel.sources.texts import parted, plain
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance


def without_leaks(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """The instances whose dialogues share nothing with the rated sets.

    Settings: ``tasks``: those that are filtered; ``against``: the rated sets; ``words``: the least
    that an utterance has to be a leak; ``drop``: false counts and drops nothing; ``whole``: tasks
    that are handed on as they are.

    Raises:
        DataError: nothing of a split is left.
    """
    (cache,), settings = ingredients.caches, ingredients.settings
    fewest = int(settings["words"])
    rated = {
        name: _long(read_instances(cache, name, "test"), fewest) for name in settings["against"]
    }
    every = {text for said in rated.values() for text, _ in said}
    derived: dict[Split, list[Instance]] = {
        (task, split): _if_any(cache, task, split)
        for task in settings.get("whole", ())
        for split in SPLITS
    }
    for task in settings["tasks"]:
        dialogues: dict[str, set[str]] = {}
        for split in SPLITS:
            instances = _if_any(cache, task, split)
            said = utterances(instances)
            dialogues |= said
            leaks = {name for name, texts in said.items() if texts & every}
            kept = [
                one
                for one in instances
                if one.dialogue_id not in leaks and plain(one.query["response"]) not in every
            ]
            derived[task, split] = kept if settings.get("drop", True) else instances
            count = {"dialogues": len(said), "kept": len(said) - len(leaks)}
            ingredients.report[f"{task} {split}"] = {k: float(v) for k, v in count.items()}
            if instances and not derived[task, split]:
                raise DataError(
                    f"{task}, {split}: every dialogue shares an utterance of {fewest} words or "
                    "more with a rated set: give other dialogues, or set data.leaks.words higher"
                )
        for name, texts in rated.items():
            ingredients.report[f"{task} against {name}"] = _both_sides(dialogues, texts)
    return derived


def utterances(instances: Iterable[Instance]) -> dict[str, set[str]]:
    """Dialogue → all that is said in it, as it is compared; of responses the fitting ones."""
    said: dict[str, set[str]] = {}
    for one in instances:
        texts = said.setdefault(one.dialogue_id, set())
        texts |= {plain(text) for text in parted(one.context, one.turns)}
        if one.target == (FITS,):
            texts.add(plain(one.query["response"]))
    return said


def _if_any(cache: Path, task: str, split: str) -> list[Instance]:
    """The instances of a split; none where the release has none."""
    counts = read_manifest(cache).tasks
    if task not in counts:
        raise DataError(
            f"{cache}: has no {task}: the release lacks its files (docs/panel.md lists them); put "
            "them there, or leave it out (domains, labeller, pairs.labels)"
        )
    return read_instances(cache, task, split) if counts[task][split].samples else []


def _long(instances: Sequence[Instance], fewest: int) -> set[tuple[str, int]]:
    """(utterance, number of the item) of all that is long enough."""

    def said() -> Iterator[tuple[str, int]]:
        for place, one in enumerate(instances):
            for text in (*parted(one.context, one.turns), one.query["response"]):
                yield plain(text), place

    return {(text, place) for text, place in said() if len(text.split()) >= fewest}


def _both_sides(dialogues: Mapping[str, set[str]], rated: set[tuple[str, int]]) -> dict[str, float]:
    """How many dialogues of a corpus and how many items of a set share something."""
    texts = {text for text, _ in rated}
    shared = set().union(*(said & texts for said in dialogues.values())) if dialogues else set()
    return {
        "dialogues": float(sum(bool(said & texts) for said in dialogues.values())),
        "items": float(len({place for text, place in rated if text in shared})),
    }
