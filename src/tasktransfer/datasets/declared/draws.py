"""Dialogues that are drawn: dev and test out of train, and few samples. By name and seed alone, so
that a draw is the same on every machine and in whatever order the files have.

Dialogues that say the same are one group, which is drawn whole, and the last group of each label
stays in train (docs/decisions/0038-duplicates-are-drawn-together.md).
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tasktransfer.datasets.declared.section import FewSampleSection, SharesSection

Limits = Mapping[str, int]
"""str → a dialogue whose number is below it is drawn."""


def number_of(dialogue: str, seed: int, what: str) -> int:
    """A dialogue's number in a draw, of 63 bits."""
    digest = hashlib.sha256(f"{what}\0{seed}\0{dialogue}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") >> 1


@dataclass(frozen=True, slots=True)
class Splitting:
    """Which split a dialogue of train belongs to: a number below ``test`` is of test, below ``dev``
    of dev. 0: the split has files of its own.

    ``moved``: number → split of the dialogues that belong to another one, since they say the same
    as others or are the last with their label.
    """

    seed: int
    test: int = 0
    dev: int = 0
    moved: Mapping[str, str] = field(default_factory=dict)

    def split_of(self, dialogue: str) -> str:
        """The split of a dialogue of the training files."""
        if not self.test and not self.dev:
            return "train"
        return self.split_of_number(number_of(dialogue, self.seed, "split"))

    def split_of_number(self, number: int) -> str:
        """Return the split of a dialogue of the training files by its number."""
        if self.moved and (split := self.moved.get(str(number))):
            return split
        return "test" if number < self.test else "dev" if number < self.dev else "train"


def splitting(
    numbers: Sequence[int],
    shares: SharesSection,
    needed: tuple[str, ...],
    groups: Sequence[int] = (),
    kept: Collection[int] = (),
) -> Splitting:
    """Draw dev and test out of train.

    Args:
        numbers: of all dialogues of the training files, see ``number_of``.
        needed: splits without files, dev or test or both.
        groups: of each dialogue the lowest number in its group. Empty if each is its own group.
        kept: groups that stay in train as long as others can be drawn.
    """
    ordered = sorted(numbers)
    test = _count(len(ordered), shares.test or 0.0) if "test" in needed else 0
    dev = _count(len(ordered), shares.dev) if "dev" in needed else 0
    limits = (_below(ordered, test) if test else 0, _below(ordered, test + dev) if dev else 0)
    plain = Splitting(shares.seed, *limits)
    if not needed or not (groups or kept):
        return plain
    groups = groups or numbers
    drawn = _draw_groups(Counter(groups), {"test": test, "dev": dev}, kept)
    moved = {
        str(number): split
        for number, group in zip(numbers, groups, strict=True)
        if (split := drawn.get(group, "train")) != plain.split_of_number(number)
    }
    return Splitting(shares.seed, *limits, moved)


def _draw_groups(
    sizes: Mapping[int, int], counts: Mapping[str, int], kept: Collection[int]
) -> dict[int, str]:
    """Return group → split of the groups that are drawn.

    The groups are tried in the order of their numbers, those that are kept last. A group that is
    larger than what a split still lacks is passed over, unless the split would stay empty.
    """
    left = sorted(sizes, key=lambda group: (group in kept, group))
    drawn: dict[int, str] = {}
    for split, count in counts.items():
        if not count:
            continue
        missing, passed_over = count, list[int]()
        for group in left:
            if sizes[group] <= missing:
                drawn[group] = split
                missing -= sizes[group]
            else:
                passed_over.append(group)
        if missing == count and passed_over:
            drawn[passed_over.pop(0)] = split
        left = passed_over
    return drawn


def few(
    numbers: Mapping[str, array[int]],
    counts: array[int],
    section: FewSampleSection,
) -> dict[str, int]:
    """The few-sample draw of one task.

    Args:
        numbers: split → of its dialogues, of train and dev.
        counts: instances of the task on each dialogue of train, in the same order.

    Returns:
        str → the limit below which a dialogue's number is drawn. Of ``instances``, train has as
        many whole dialogues as fit, one at least, and dev the same share of its own.
    """
    train = sorted(zip(numbers["train"], counts, strict=True))
    if section.share is not None:
        share, kept = section.share, _count(len(train), section.share)
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
        "train": _below([number for number, _ in train], kept),
        "dev": _below(dev, _count(len(dev), share)),
    }


def _count(total: int, share: float) -> int:
    return min(total, max(1, round(share * total)))


def _below(ordered: list[int], count: int) -> int:
    """A limit that so many of sorted numbers are below."""
    return ordered[count] if count < len(ordered) else 2**63
