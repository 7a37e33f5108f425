"""Labels of a task by dialogue, for draws and for notes about labels."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tasktransfer.datasets.declared.spellings import list_labels, merge_spellings, normalise_label
from tasktransfer.errors import DataError
from tasktransfer.files.fields import find_nearest

_NUMBER = re.compile(r"-?[0-9]{1,300}")


@dataclass(slots=True)
class LabelCounts:
    """The labels of one task.

    Args:
        first: split of the files → label → first instance with the label.
        spellings: spelling → label that it is read as. Empty until ``merge``.
    """

    first: dict[str, dict[str, str]] = field(default_factory=dict)
    spellings: dict[str, str] = field(default_factory=dict)
    _codes: dict[str, int] = field(default_factory=dict)
    _in_train: array[int] = field(default_factory=lambda: array("i"))
    _sizes: array[int] = field(default_factory=lambda: array("i"))

    @property
    def train(self) -> Mapping[str, str]:
        """Label → first instance, in the training files."""
        return self.first.get("train", {})

    @property
    def everywhere(self) -> Mapping[str, str]:
        """Label → first instance, in the files of all splits."""
        return {label: where for by in self.first.values() for label, where in by.items()}

    def add(self, split: str, labels: Mapping[str, str]) -> None:
        """Count the labels of one dialogue, each with its first instance."""
        first = self.first.setdefault(split, {})
        for label, instance in labels.items():
            first.setdefault(label, instance)
        if split == "train":
            self._in_train.extend(self._codes.setdefault(x, len(self._codes)) for x in labels)
            self._sizes.append(len(labels))

    def merge(self, listed: Collection[str]) -> None:
        """Merge the spellings of each label."""
        self.spellings = merge_spellings(self.everywhere, listed)
        if not self.spellings:
            return
        for split, first in self.first.items():
            merged: dict[str, str] = {}
            for label, instance in first.items():
                merged.setdefault(self.spellings.get(label, label), instance)
            self.first[split] = merged

    def by_dialogue(self) -> Iterator[set[str]]:
        """Yield the labels of each dialogue of the training files."""
        names = [self.spellings.get(label, label) for label in self._codes]
        start = 0
        for size in self._sizes:
            yield {names[code] for code in self._in_train[start : start + size]}
            start += size

    # --- results ---

    def sorted(self) -> list[str]:
        """Return the sorted labels of the training files: numbers by size, others as texts."""
        numbers = all(map(_NUMBER.fullmatch, self.train))
        return sorted(self.train, key=int if numbers else str)

    def count_conflicts(self, groups: Sequence[int]) -> int:
        """Return the number of groups whose dialogues have different labels."""
        first: dict[int, set[str]] = {}
        pairs = zip(groups, self.by_dialogue(), strict=True)
        return len({group for group, labels in pairs if first.setdefault(group, labels) != labels})

    def find_last_groups(self, groups: Sequence[int]) -> set[int]:
        """Return for each label the highest group number among its dialogues."""
        last: dict[str, int] = {}
        for group, labels in zip(groups, self.by_dialogue(), strict=True):
            for label in labels:
                last[label] = max(group, last.get(label, -1))
        return set(last.values())

    def notes(self, task: str, splits: Iterable[str], few: Iterable[bool]) -> Iterator[str]:
        """Yield notes about labels with few examples.

        Args:
            task: name of the task.
            splits: drawn split of each dialogue in the training files.
            few: whether the few-sample setting reads each of these dialogues.
        """
        dialogues: Counter[str] = Counter()
        by_split = {split: set(first) for split, first in self.first.items()}
        by_split["train"], in_few = set[str](), set[str]()
        for split, is_few, labels in zip(splits, few, self.by_dialogue(), strict=True):
            dialogues.update(labels)
            by_split.setdefault(split, set()).update(labels)
            if is_few and split == "train":
                in_few |= labels
        if single := {x: self.train[x] for x, count in dialogues.items() if count == 1}:
            stays = ", which stays in train" if by_split["train"].issuperset(single) else ""
            yield f"{task}: {_count(single)} in a single training dialogue{stays}: {_list(single)}"
        places = self.everywhere
        for split in sorted(by_split.keys() - {"train"}):
            if unseen := {x: places[x] for x in sorted(by_split[split] - by_split["train"])}:
                yield f"{task}: {_count(unseen)} in {split} but not in train: {_list(unseen)}"
        if unseen := {x: places[x] for x in sorted(by_split["train"] - in_few)}:
            yield f"{task}: {_count(unseen)} in no training dialogue of few_sample: {_list(unseen)}"


def refuse_labels(
    counts: LabelCounts, listed: Sequence[str] | None, dataset: str, task: str, place: str
) -> None:
    """Raise DataError for labels that a study cannot use.

    Args:
        counts: labels of the task, with spellings merged.
        listed: all labels, if the declaration lists them.
        dataset: name of the dataset.
        task: name of the task.
        place: names of the files, for messages.
    """
    location, train = f"{dataset}/{task}", counts.train
    allowed = listed or tuple(train)
    for label, where in counts.everywhere.items():
        if label not in allowed:
            kind = "not in the list of labels" if listed else "not a label in train"
            raise DataError(
                f"{where}: The label {label!r:.60} is {kind} ({location}; the nearest is "
                f"{find_nearest(label, allowed)}). Fix it, or list all labels under "
                f"datasets.{dataset}.tasks.{task}.labels."
            )
    alike: dict[str, str] = {}
    for label in allowed:
        where = train.get(label, f"datasets.{dataset}.tasks.{task}.labels")
        plain = normalise_label(label)
        if not plain:
            raise DataError(
                f"{where}: The label {label!r:.60} of {location} has no visible character. "
                f"Fix it, or list it under datasets.{dataset}.tasks.{task}.missing_values."
            )
        other = alike.setdefault(" ".join(plain.split()).casefold(), label)
        if other != label:
            raise DataError(
                f"{where}: The label {label!r:.60} of {location} differs from {other!r:.60} "
                "only in case, spaces or invisible characters. Use one spelling."
            )
    if len(allowed) < 2:
        begins = next(iter(train.values()), place)
        raise DataError(
            f"{begins}: {location} has fewer than two labels "
            f"({', '.join(allowed) or 'none'}). Add dialogues with other labels, or remove "
            "the task."
        )


def _count(labels: Collection[str]) -> str:
    return "1 label is" if len(labels) == 1 else f"{len(labels):,} labels are"


def _list(places: Mapping[str, str]) -> str:
    return list_labels(places) + f" (the first at {next(iter(places.values()))})"
