"""Leak filter, which leaves out training dialogues that share an utterance with a rated item.

A dialogue is left out if one of its utterances has at least six words and also occurs in the
context or response of a rated item, ignoring case and punctuation. Shorter utterances are common
phrases. The report counts leaked dialogues and items for each corpus and rated set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.designs.panel.ratings import read_rated_items
from tasktransfer.designs.panel.sources.pair_instances import FITS
from tasktransfer.designs.panel.sources.texts import normalise_text, split_context
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance


def filter_leaks(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Return the instances of dialogues that share no utterance with the rated sets.

    Settings:
        tasks: tasks to filter.
        against: rated sets.
        words: minimum number of words of a shared utterance.
        drop: false to count leaks without leaving out dialogues.
        whole: tasks that are returned unfiltered.

    Raises:
        DataError: no instance of a split is left.
    """
    (cache,), settings = ingredients.caches, ingredients.settings
    rated = {name: read_rated_items(cache, name, settings) for name in settings["against"]}
    derived: dict[Split, list[Instance]] = {
        (task, split): _read_split(cache, task, split)
        for task in (*settings["tasks"], *settings.get("whole", ()))
        for split in SPLITS
    }
    leak_filter = LeakFilter(rated, int(settings["words"]))
    for task in settings["tasks"]:
        corpus = {split: derived[task, split] for split in SPLITS}
        kept, counts = leak_filter.filter_corpus(corpus)
        ingredients.report.update({f"{task} {key}": values for key, values in counts.items()})
        if not settings.get("drop", True):
            continue
        for split, instances in kept.items():
            if corpus[split] and not instances:
                raise DataError(
                    f"{task}, {split}: Every dialogue shares an utterance of {leak_filter.words} "
                    "words or more with a rated set. Provide other dialogues, or increase "
                    "data.leaks.min_words."
                )
            derived[task, split] = instances
    return derived


class LeakFilter:
    """Filter for utterances of rated items with at least ``words`` words."""

    def __init__(self, rated: Mapping[str, Sequence[Instance]], words: int) -> None:
        self.words = words
        self.by_set = {
            name: _find_long_utterances(instances, words) for name, instances in rated.items()
        }
        self.utterances = {text for texts in self.by_set.values() for text, _ in texts}

    def filter_corpus(
        self, corpus: Mapping[str, Sequence[Instance]]
    ) -> tuple[dict[str, list[Instance]], dict[str, dict[str, float]]]:
        """Filter leaked dialogues from a corpus, and count them.

        Returns:
            The instances of each split without leaked dialogues, and the counts. Counts by split
            are all dialogues and kept dialogues. Counts by rated set are dialogues and items that
            share an utterance.
        """
        kept: dict[str, list[Instance]] = {}
        counts: dict[str, dict[str, float]] = {}
        dialogues: dict[str, set[str]] = {}
        for split, instances in corpus.items():
            spoken = collect_utterances(instances)
            dialogues |= spoken
            leaks = {name for name, texts in spoken.items() if texts & self.utterances}
            # Responses that do not occur in a dialogue, such as the labeller's, may be leaks too.
            kept[split] = [
                instance
                for instance in instances
                if instance.dialogue_id not in leaks
                and normalise_text(instance.query["response"]) not in self.utterances
            ]
            counts[split] = {
                "dialogues": float(len(spoken)),
                "kept": float(len(spoken) - len(leaks)),
            }
        for name, texts in self.by_set.items():
            counts[f"against {name}"] = _count_leaks(dialogues, texts)
        return kept, counts


def collect_utterances(instances: Iterable[Instance]) -> dict[str, set[str]]:
    """Map each dialogue to its normalised utterances: contexts and fitting responses."""
    spoken: dict[str, set[str]] = {}
    for instance in instances:
        texts = spoken.setdefault(instance.dialogue_id, set())
        texts |= {normalise_text(text) for text in split_context(instance.context, instance.turns)}
        if instance.target == (FITS,):
            texts.add(normalise_text(instance.query["response"]))
    return spoken


def _read_split(cache: Path, task: str, split: str) -> list[Instance]:
    """Return the instances of a split, or an empty list if the release has none."""
    counts = read_manifest(cache).tasks
    if task not in counts:
        raise DataError(
            f"{cache}: The cache has no task {task}, because its files are missing in the release. "
            "Add the files (docs/panel.md lists them), or remove the task from the config "
            "(domains, labeller, pairs.labels)."
        )
    return read_instances(cache, task, split) if counts[task][split].samples else []


def _find_long_utterances(instances: Sequence[Instance], fewest: int) -> set[tuple[str, int]]:
    """Return each sufficiently long utterance with the index of its item."""

    def list_utterances() -> Iterator[tuple[str, int]]:
        for index, instance in enumerate(instances):
            for text in (
                *split_context(instance.context, instance.turns),
                instance.query["response"],
            ):
                yield normalise_text(text), index

    return {(text, item) for text, item in list_utterances() if len(text.split()) >= fewest}


def _count_leaks(
    dialogues: Mapping[str, set[str]], rated: set[tuple[str, int]]
) -> dict[str, float]:
    """Count the dialogues of a corpus and the items of a set that share an utterance."""
    texts = {text for text, _ in rated}
    spoken = dialogues.values()
    shared = set().union(*(utterances & texts for utterances in spoken))
    return {
        "dialogues": float(sum(bool(utterances & texts) for utterances in spoken)),
        "items": float(len({item for text, item in rated if text in shared})),
    }
