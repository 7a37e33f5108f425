"""Random sampling of dialogues: dev and test splits from train, and few-sample subsets.

The samples depend only on the names of dialogues and the seed. They are identical on all machines
and for all orders of the files. Dialogues with the same text form a group, which stays together.
The last group of each label stays in train
(docs/decisions/0038-duplicates-are-drawn-together.md).
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tasktransfer.datasets.declared.section import FewSampleSection, SharesSection

Limits = Mapping[str, int]
"""Split → limit. Dialogues with numbers below it are sampled."""


def compute_sampling_number(dialogue: str, seed: int, what: str) -> int:
    """Return a dialogue's 63-bit pseudo-random number, which determines its split.

    ``what`` distinguishes the samplings with the same seed.
    """
    digest = hashlib.sha256(f"{what}\0{seed}\0{dialogue}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") >> 1


@dataclass(frozen=True, slots=True)
class SplitAssignment:
    """Assignment of the dialogues in the training files to splits.

    Args:
        seed: seed of the sampling.
        test: limit of test. Dialogues with numbers below it belong to test. 0 if test has its own
            files.
        dev: limit of dev, for the dialogues that are not in test. 0 if dev has its own
            files.
        moved: number → split of the dialogues that the limits would assign to another split. These
            are duplicates, or the last dialogues with a label.
    """

    seed: int
    test: int = 0
    dev: int = 0
    moved: Mapping[str, str] = field(default_factory=dict)

    def get_split(self, dialogue: str) -> str:
        """Return the split to which a dialogue of the training files is assigned."""
        if not self.test and not self.dev:
            return "train"
        return self.get_split_by_number(compute_sampling_number(dialogue, self.seed, "split"))

    def get_split_by_number(self, number: int) -> str:
        """Return the split to which a dialogue's number assigns it."""
        if self.moved and (split := self.moved.get(str(number))):
            return split
        return "test" if number < self.test else "dev" if number < self.dev else "train"


def sample_splits(
    numbers: Sequence[int],
    shares: SharesSection,
    needed: tuple[str, ...],
    groups: Sequence[int] = (),
    kept: Collection[int] = (),
) -> SplitAssignment:
    """Assign training dialogues to train, dev and test at random.

    Args:
        numbers: numbers of all dialogues in the training files (``compute_sampling_number``).
        shares: fractions of the splits, and the seed.
        needed: splits without files: dev, test or both.
        groups: group number of each dialogue, the lowest number in its group. Empty if each
            dialogue is its own group.
        kept: groups that stay in train if there are enough other groups.
    """
    ordered = sorted(numbers)
    test = _count_fraction(len(ordered), shares.test or 0.0) if "test" in needed else 0
    dev = _count_fraction(len(ordered), shares.dev) if "dev" in needed else 0
    limits = (
        _find_limit(ordered, test) if test else 0,
        _find_limit(ordered, test + dev) if dev else 0,
    )
    plain = SplitAssignment(shares.seed, *limits)
    if not needed or not (groups or kept):
        return plain
    groups = groups or numbers
    sampled = _sample_groups(Counter(groups), {"test": test, "dev": dev}, kept)
    moved = {
        str(number): split
        for number, group in zip(numbers, groups, strict=True)
        if (split := sampled.get(group, "train")) != plain.get_split_by_number(number)
    }
    return SplitAssignment(shares.seed, *limits, moved)


def _sample_groups(
    sizes: Mapping[int, int], counts: Mapping[str, int], kept: Collection[int]
) -> dict[int, str]:
    """Map the groups that are sampled for dev and test to their split.

    The groups are tried in the order of their numbers, those in ``kept`` last. A group that is
    larger than the rest of a split is skipped, unless the split would stay empty.
    """
    left = sorted(sizes, key=lambda group: (group in kept, group))
    sampled: dict[int, str] = {}
    for split, count in counts.items():
        if not count:
            continue
        missing, skipped = count, list[int]()
        for group in left:
            if sizes[group] <= missing:
                sampled[group] = split
                missing -= sizes[group]
            else:
                skipped.append(group)
        if missing == count and skipped:
            sampled[skipped.pop(0)] = split
        left = skipped
    return sampled


def compute_few_sample_limits(
    numbers: Mapping[str, array[int]],
    counts: array[int],
    section: FewSampleSection,
) -> dict[str, int]:
    """Return the few-sample limits of one task, by split.

    Args:
        numbers: split → numbers of its dialogues, for train and dev.
        counts: number of the task's instances per training dialogue, in the same order.
        section: size of the sample.

    Returns:
        Split → limit. Dialogues with numbers below it are sampled. With ``instances``, train gets
        as many whole dialogues as fit, at least one, and dev gets the same fraction of its
        dialogues.
    """
    train = sorted(zip(numbers["train"], counts, strict=True))
    if section.share is not None:
        share, kept = section.share, _count_fraction(len(train), section.share)
    else:
        kept, held = 0, 0
        for _, count in train:
            held += count
            if kept and held > (section.instances or 0):
                break
            kept += 1
        share = kept / max(len(train), 1)
    dev = sorted(numbers["dev"])
    return {
        "train": _find_limit([number for number, _ in train], kept),
        "dev": _find_limit(dev, _count_fraction(len(dev), share)),
    }


def _count_fraction(total: int, share: float) -> int:
    return min(total, max(1, round(share * total)))


def _find_limit(ordered: list[int], count: int) -> int:
    """Return the number below which exactly ``count`` of the sorted numbers lie."""
    return ordered[count] if count < len(ordered) else 2**63


@dataclass(slots=True)
class SplitDialogues:
    """Dialogues of a split.

    Args:
        tasks: names of the tasks.
        few: numbers of the dialogues for few-sample sampling.
        counts: task → number of instances per dialogue.
    """

    tasks: tuple[str, ...]
    few: array[int] = field(default_factory=lambda: array("q"))
    counts: dict[str, array[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = {task: array("l") for task in self.tasks}

    def add(self, few_number: int, counts: list[int]) -> None:
        """Add a dialogue with its number and its numbers of instances by task."""
        self.few.append(few_number)
        for task, count in zip(self.tasks, counts, strict=True):
            self.counts[task].append(count)

    def count_instances_below(self, task: str, limit: int) -> int:
        """Count a task's instances on dialogues whose numbers are below a limit."""
        both = zip(self.few, self.counts[task], strict=True)
        return sum(count for number, count in both if number < limit)


def count_few_dialogues(
    dialogues: SplitDialogues, split: str, draws: Mapping[str, Mapping[str, int]]
) -> int:
    """Count the dialogues in the few-sample subset of at least one task."""
    limits = [limit[split] for limit in draws.values() if split in limit]
    return sum(number < max(limits) for number in dialogues.few) if limits else len(dialogues.few)
