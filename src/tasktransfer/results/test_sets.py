"""Comparison of test sets: runs are paired by position, so they need identical test sets.

A test set is identified by a digest of its instance ids and gold answers, in order. Answers that
quote dialogues are digested as codes, because records from a pack contain only codes.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tasktransfer.metrics import CodedAnswers
from tasktransfer.metrics.word_codes import WordCodes, quotes_dialogues
from tasktransfer.results.rows import encode_answers
from tasktransfer.tasks.card import Task

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TestSet:
    """Digest and gold answers of a test set, and the columns that they come from."""

    __test__ = False  # tells pytest that this is not a test class

    digest: str
    golds: CodedAnswers
    ids: pa.ChunkedArray
    column: pa.ChunkedArray


class TestSets:
    """Cache of test sets. Hundreds of runs share each, and comparing is faster than digesting."""

    __test__ = False

    def __init__(self) -> None:
        self.last: dict[str, TestSet] = {}

    def read_test_set(self, rows: pa.Table, task: Task) -> TestSet:
        """Return the test set of one task's rows (columns as in ``rows.COLUMNS``)."""
        ids, golds = rows["instance_id"], rows["gold"]
        test_set = self.last.get(task.name)
        if test_set is None or not (test_set.ids.equals(ids) and test_set.column.equals(golds)):
            test_set = TestSet(_compute_digest(ids, golds, task), encode_answers(golds), ids, golds)
            self.last[task.name] = test_set
        return test_set


def _compute_digest(ids: pa.ChunkedArray, golds: pa.ChunkedArray, task: Task) -> str:
    if quotes_dialogues(task):
        codes = WordCodes(task)
        in_codes = [[codes.encode_text(text) for text in several] for several in golds.to_pylist()]
        golds = pa.chunked_array([pa.array(in_codes, golds.type)])
    lines = [*ids.to_pylist(), "", *pc.binary_join(golds, "\x1f").to_pylist()]
    return hashlib.sha256("\x1e".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def find_deviating_test_sets(tested: Iterable[tuple[Name, Hashable, str]]) -> dict[Name, str]:
    """Return a message for each run whose test set differs from the others in its group.

    Args:
        tested: (name of the run, group in which it is compared, digest of its test set).

    Returns:
        The runs that do not use the test set of the group's majority, each with a message. If no
        test set has a majority, the correct one is unknown, and all runs are returned.
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
            name: f"The run was tested on other instances or gold answers ({digest[:12]}) than "
            f"{len(members) - counts[digest]} of the other {len(members) - 1} runs on this target "
            f"({usual[:12] or 'which differ too'}). Delete its record and run snakemake again."
            for name, digest in members
            if digest != usual
        }
    return wrong
