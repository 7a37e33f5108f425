"""What runs were tested on: instances are paired by position, so that it has to be the same.

A test set is named by a digest of its instance ids and right answers, in order. Answers that quote
dialogues count in codes: records out of a pack, which has no other, stand beside one's own.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tasktransfer.metrics import Coded
from tasktransfer.metrics.word_codes import WordCodes, quotes_dialogues
from tasktransfer.results.rows import answers
from tasktransfer.tasks.card import Task

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TestSet:
    """The digest and the right answers of a test set, and the columns that they come from."""

    __test__ = False  # no test, whatever pytest makes of the name

    digest: str
    golds: Coded
    ids: pa.ChunkedArray
    column: pa.ChunkedArray


class TestSets:
    """Test sets as they are met. Hundreds of runs share each: comparing is much faster than
    digesting and counting anew."""

    __test__ = False

    def __init__(self) -> None:
        self.last: dict[str, TestSet] = {}

    def of(self, rows: pa.Table, task: Task) -> TestSet:
        """The test set of rows (columns as in ``rows.COLUMNS``) of one task."""
        ids, golds = rows["instance_id"], rows["gold"]
        test_set = self.last.get(task.name)
        if test_set is None or not (test_set.ids.equals(ids) and test_set.column.equals(golds)):
            test_set = TestSet(_digest(ids, golds, task), answers(golds), ids, golds)
            self.last[task.name] = test_set
        return test_set


def _digest(ids: pa.ChunkedArray, golds: pa.ChunkedArray, task: Task) -> str:
    if quotes_dialogues(task):
        codes = WordCodes(task)
        in_codes = [[codes.of(text) for text in several] for several in golds.to_pylist()]
        golds = pa.chunked_array([pa.array(in_codes, golds.type)])
    lines = [*ids.to_pylist(), "", *pc.binary_join(golds, "\x1f").to_pylist()]
    return hashlib.sha256("\x1e".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def deviating_test_sets(tested: Iterable[tuple[Name, Hashable, str]]) -> dict[Name, str]:
    """Which runs were tested on something else than the others.

    Args:
        tested: (name of the run, what it is compared within, digest of its test set).

    Returns:
        The runs that do not have the test set of more than half of theirs, each with what is
        wrong. Where no test set has more than half, it is unknown which is right, and all runs are
        returned.
    """
    groups: dict[Hashable, list[tuple[Name, str]]] = defaultdict(list)
    for name, group, digest in tested:
        groups[group].append((name, digest))
    wrong: dict[Name, str] = {}
    for members in groups.values():
        counts = Counter(digest for _, digest in members)
        usual, count = counts.most_common(1)[0]
        usual = usual if 2 * count > len(members) else ""
        wrong |= {
            name: f"was tested on other instances or right answers ({digest[:12]}) than "
            f"{len(members) - counts[digest]} of the other {len(members) - 1} runs on this target "
            f"({usual[:12] or 'which differ too'}); delete it and start snakemake again"
            for name, digest in members
            if digest != usual
        }
    return wrong
