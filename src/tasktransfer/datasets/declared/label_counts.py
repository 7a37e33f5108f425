"""Labels of a task by dialogue, for the sampling of splits and for notes about labels."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tasktransfer.datasets.declared.spellings import format_labels, merge_spellings, normalise_label
from tasktransfer.errors import DataError
from tasktransfer.files.fields import find_nearest

MAX_SHOWN_LABELS = 5
"""Number of absent labels that a note lists."""
_NUMBER = re.compile(r"-?[0-9]{1,300}")


@dataclass(slots=True)
class LabelCounts:
    """The labels of one task.

    Args:
        first: split of the files → label → place of the first instance.
        spellings: spelling → label that replaces it. Empty until
            ``merge_label_spellings`` is called.
    """

    first: dict[str, dict[str, str]] = field(default_factory=dict)
    spellings: dict[str, str] = field(default_factory=dict)
    _codes: dict[str, int] = field(default_factory=dict)
    _in_train: array[int] = field(default_factory=lambda: array("i"))
    _sizes: array[int] = field(default_factory=lambda: array("i"))

    @property
    def train(self) -> Mapping[str, str]:
        """Place of the first training instance of each label."""
        return self.first.get("train", {})

    @property
    def first_in_any_split(self) -> Mapping[str, str]:
        """Place of the first instance of each label in any split."""
        return {label: where for by in self.first.values() for label, where in by.items()}

    def add(self, split: str, labels: Mapping[str, str]) -> None:
        """Add the labels of a dialogue, each with the place of its first instance."""
        first = self.first.setdefault(split, {})
        for label, place in labels.items():
            first.setdefault(label, place)
        if split == "train":
            self._in_train.extend(self._codes.setdefault(x, len(self._codes)) for x in labels)
            self._sizes.append(len(labels))

    def merge_label_spellings(self, listed: Collection[str]) -> None:
        """Merge the spellings of each label, preferring those in ``listed`` (the declaration)."""
        self.spellings = merge_spellings(self.first_in_any_split, listed)
        if not self.spellings:
            return
        for split, first in self.first.items():
            merged: dict[str, str] = {}
            for label, place in first.items():
                merged.setdefault(self.spellings.get(label, label), place)
            self.first[split] = merged

    def iterate_dialogue_labels(self) -> Iterator[set[str]]:
        """Yield the labels of each training dialogue."""
        names = [self.spellings.get(label, label) for label in self._codes]
        start = 0
        for size in self._sizes:
            yield {names[code] for code in self._in_train[start : start + size]}
            start += size

    # --- results ---

    def list_sorted_labels(self) -> list[str]:
        """Return the training labels, sorted as numbers if possible, otherwise as texts."""
        numbers = all(map(_NUMBER.fullmatch, self.train))
        return sorted(self.train, key=int if numbers else str)

    def count_conflicts(self, groups: Sequence[int]) -> int:
        """Return the number of groups of dialogues with conflicting labels."""
        first: dict[int, set[str]] = {}
        pairs = zip(groups, self.iterate_dialogue_labels(), strict=True)
        return len({group for group, labels in pairs if first.setdefault(group, labels) != labels})

    def find_last_groups(self, groups: Sequence[int]) -> set[int]:
        """Return the highest group numbers of all labels as a set."""
        last: dict[str, int] = {}
        for group, labels in zip(groups, self.iterate_dialogue_labels(), strict=True):
            for label in labels:
                last[label] = max(group, last.get(label, -1))
        return set(last.values())

    def list_notes(
        self, task: str, splits: Iterable[str], few: Iterable[bool], *, all_in_macro: bool = False
    ) -> Iterator[str]:
        """Yield notes on labels with few examples.

        Args:
            task: name of the task.
            splits: sampled split of each dialogue in the training files.
            few: whether each of these dialogues is in the few-sample setting.
            all_in_macro: whether macro-F1 also includes the labels that do not occur.
        """
        dialogues, trained = Counter[str](), Counter[str]()
        by_split = {split: set(first) for split, first in self.first.items()}
        by_split["train"], in_few = set[str](), set[str]()
        for split, is_few, labels in zip(splits, few, self.iterate_dialogue_labels(), strict=True):
            dialogues.update(labels)
            by_split.setdefault(split, set()).update(labels)
            if split == "train":
                trained.update(labels)
            if is_few and split == "train":
                in_few |= labels
        if single := {x: self.train[x] for x, count in dialogues.items() if count == 1}:
            stays = ", which stays in train" if by_split["train"].issuperset(single) else ""
            places = _format_places(single)
            yield f"{task}: {_format_count(single)} in a single training dialogue{stays}: {places}"
        first = self.first_in_any_split
        ordered = sorted(trained.items(), key=lambda item: (-item[1], item[0]))
        for split in sorted(by_split.keys() - {"train"}):
            if unseen := {x: first[x] for x in sorted(by_split[split] - by_split["train"])}:
                places = _format_places(unseen)
                yield f"{task}: {_format_count(unseen)} in {split} but not in train: {places}"
            if absent := {x: n for x, n in ordered if x not in by_split[split]}:
                it, its = ("it", "its") if len(absent) == 1 else ("them", "their")
                effect = f"{split} scores say nothing about {it}"
                if all_in_macro:
                    effect = f"{its} F1 in {split} is 0, which lowers macro-F1"
                yield _describe_absent_labels(task, split, absent, len(trained), effect)
        if unseen := {x: first[x] for x in sorted(by_split["train"] - in_few)}:
            places = _format_places(unseen)
            yield f"{task}: {_format_count(unseen)} in no training dialogue of few_sample: {places}"


def _describe_absent_labels(
    task: str, split: str, absent: Mapping[str, int], labels: int, effect: str
) -> str:
    """Return a note on training labels that do not occur in a split.

    Args:
        task: name of the task.
        split: dev or test.
        absent: label → number of training dialogues with it, most frequent first.
        labels: number of labels in train.
        effect: effect on the scores.
    """
    shown = ", ".join(f"{x:.40} ({n:,})" for x, n in list(absent.items())[:MAX_SHOWN_LABELS])
    more = ", ..." if len(absent) > MAX_SHOWN_LABELS else ""
    verb = "occurs" if len(absent) == 1 else "occur"
    return (
        f"{task}: {len(absent):,} of {labels:,} labels never {verb} in {split}, so {effect}: "
        f"{shown}{more} (training dialogues with the label in brackets)"
    )


def check_labels(
    counts: LabelCounts, listed: Sequence[str] | None, dataset: str, task: str, place: str
) -> None:
    """Raise DataError if a task's labels are unusable for a study.

    Args:
        counts: labels of the task, with spellings merged.
        listed: all labels, if the declaration lists them.
        dataset: name of the dataset.
        task: name of the task.
        place: names of the files, which messages name.
    """
    location, train = f"{dataset}/{task}", counts.train
    allowed = listed or tuple(train)
    for label, where in counts.first_in_any_split.items():
        if label not in allowed:
            kind = "it is not in the list of labels" if listed else "it is not a label in train"
            raise DataError(
                f"{where}: The task {location} has no label {label!r:.60}, because {kind}. The "
                f"most similar label is {find_nearest(label, allowed)}. Correct the label, or "
                f"list all labels under datasets.{dataset}.tasks.{task}.labels."
            )
    alike: dict[str, str] = {}
    for label in allowed:
        where = train.get(label, f"datasets.{dataset}.tasks.{task}.labels")
        plain = normalise_label(label)
        if not plain:
            raise DataError(
                f"{where}: The label {label!r:.60} of the task {location} has no visible "
                "character. Correct the label, or list it under "
                f"datasets.{dataset}.tasks.{task}.missing_values."
            )
        other = alike.setdefault(" ".join(plain.split()).casefold(), label)
        if other != label:
            raise DataError(
                f"{where}: The labels {label!r:.60} and {other!r:.60} of the task {location} "
                "differ only in case, spaces or invisible characters. Use one spelling."
            )
    if len(allowed) < 2:
        begins = next(iter(train.values()), place)
        raise DataError(
            f"{begins}: The task {location} has fewer than two labels "
            f"({', '.join(allowed) or 'none'}). Add dialogues with other labels, or remove the "
            "task."
        )


def _format_count(labels: Collection[str]) -> str:
    return "1 label is" if len(labels) == 1 else f"{len(labels):,} labels are"


def _format_places(places: Mapping[str, str]) -> str:
    return format_labels(places) + f" (the first at {next(iter(places.values()))})"
