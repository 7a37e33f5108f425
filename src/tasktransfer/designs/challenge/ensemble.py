"""Ensembles: combination of several seeds' answers to one instance.

Predictions are answers, not probabilities, so both ways count votes. Ties go to the answer of the
seed with the best dev score: ``values`` come in that order.

=============  ==================================  ==============================================
prediction     majority                            mean
=============  ==================================  ==============================================
integer        the label that most seeds gave      the same: of votes per label the mean is
                                                   highest for the label with most votes
list of 0/1    the list that most seeds gave       the mean of each entry, 1 above one half; at
                                                   one half as the best seed has it; where that
                                                   leaves no label at all, the majority's list
string         the answer that most seeds gave,    the answer that agrees most with all seeds':
               compared as the metrics do          the highest mean of the task's score for one
               (case, punctuation, articles and    instance (token F1 or exact match), with each
               white space do not count)           answer in turn as the gold answer
=============  ==================================  ==============================================

-1, no valid answer, is outvoted by any label. Each trait is a separate answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Literal

from tasktransfer.designs.challenge.format import NO_ANSWER, Value
from tasktransfer.metrics import normalise_answer, score_instances
from tasktransfer.tasks.card import Task

Ensemble = Literal["majority", "mean"]


def combine_answers(task: Task, values: Sequence[Value], how: Ensemble) -> Value:
    """Combine the answers of all seeds, ordered by dev score (best first), into one answer."""
    if how == "mean":
        texts = [value for value in values if isinstance(value, str)]
        if texts:
            return _choose_consensus_text(task, texts)
        lists = [value for value in values if isinstance(value, tuple)]
        if lists:
            return _combine_lists(lists) or _select_majority(values)
    return _select_majority(values)


def _select_majority(values: Sequence[Value]) -> Value:
    valid = [value for value in values if value != NO_ANSWER] or values
    votes = Counter(map(_normalise_value, valid))
    # max returns the first of equal answers, which is the best seed's.
    return max(valid, key=lambda value: votes[_normalise_value(value)])


def _normalise_value(value: Value) -> Hashable:
    return normalise_answer(value) if isinstance(value, str) else value


def _combine_lists(lists: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return a list with a 1 for each entry that is 1 in more than half of the lists, or None.

    None means that the list would contain no 1.

    An entry that exactly half of the lists have is as in the first list.
    """
    half = len(lists) / 2
    sums = [sum(column) for column in zip(*lists, strict=True)]
    entries = tuple(
        best if total == half else int(total > half)
        for best, total in zip(lists[0], sums, strict=True)
    )
    return entries if any(entries) else None


def _choose_consensus_text(task: Task, texts: Sequence[str]) -> str:
    golds = [(text,) for text in texts]
    return max(texts, key=lambda text: sum(score_instances(task, [(text,)] * len(golds), golds)))
