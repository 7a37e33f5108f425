"""Items of rating sheets: replies to rate, pairs of replies to compare, and attention checks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypedDict

from tasktransfer.designs.empathetic.replies import AnsweredContext

Kind = Literal["ratings", "pairs"]
KINDS: tuple[Kind, ...] = ("ratings", "pairs")
SCALES = {
    "empathy": "Did the reply show understanding of the feelings of the person talking about "
    "their experience?",
    "relevance": "Did the reply seem appropriate to the conversation? Was it on-topic?",
    "fluency": "Could you understand the reply? Did the language seem accurate?",
}
"""Scale → its question. The wording follows Rashkin et al. (2019), in the singular."""
POINTS = {"1": "not at all", "2": "", "3": "somewhat", "4": "", "5": "very much"}
CHOICE = {"choice": "Which reply is better in this conversation?"}
OPTIONS = {
    "first": "Reply A",
    "second": "Reply B",
    "equal": "Both are equally good",
    "neither": "Neither is good",
}
CHECKS = 4
"""Number of attention checks of a sheet. Random choices pass all of them 4 in 1,000 times (pairs),
or 4 in a billion times (ratings)."""


class Meaning(TypedDict, total=False):
    """Meaning of an item of a sheet: an entry of the key, which a rater does not see.

    ``models`` (ratings) or ``first`` and ``second`` (pairs): models that wrote the replies.
    ``instance``: ID of the context. ``check``: question → answer of an attention check, which has
    no other key.
    """

    models: list[str]
    first: str
    second: str
    instance: str
    check: dict[str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a sheet.

    Attributes:
        id: random ID, which tells the rater nothing.
        utterances: utterances of the context.
        replies: one reply to rate, or two to compare.
        meaning: entry of the key: models and instance, or the answers of an attention check.
    """

    id: str
    utterances: tuple[str, ...]
    replies: tuple[str, ...]
    meaning: Meaning


def list_questions(kind: Kind) -> tuple[dict[str, str], dict[str, str]]:
    """Return the questions of a sheet and their possible answers, as mappings from name to text."""
    return (SCALES, POINTS) if kind == "ratings" else (CHOICE, OPTIONS)


def make_items(
    contexts: Sequence[AnsweredContext], kind: Kind, chance: random.Random
) -> Iterator[Item]:
    """Yield the items of each context, in random order within the context.

    Identical replies of several models are one item to rate, and are not compared.
    """
    for context in contexts:
        models: dict[str, list[str]] = {}
        for model, reply in context.replies.items():
            models.setdefault(reply, []).append(model)
        groups: list[tuple[tuple[str, ...], Meaning]]
        if kind == "ratings":
            groups = [((reply,), {"models": names}) for reply, names in models.items()]
        else:
            groups = [_make_pair(context, pair, chance) for pair in _list_pairs(context)]
        chance.shuffle(groups)
        for replies, meaning in groups:
            meaning["instance"] = context.instance
            yield Item(_make_id(chance), context.utterances, replies, meaning)


def _list_pairs(context: AnsweredContext) -> list[tuple[str, str]]:
    pairs = combinations(context.replies, 2)
    return [(a, b) for a, b in pairs if context.replies[a] != context.replies[b]]


def _make_pair(
    context: AnsweredContext, pair: tuple[str, str], chance: random.Random
) -> tuple[tuple[str, ...], Meaning]:
    first, second = chance.sample(pair, 2)
    replies = context.replies[first], context.replies[second]
    return replies, {"first": first, "second": second}


def make_checks(
    contexts: Sequence[AnsweredContext], kind: Kind, chance: random.Random
) -> Iterator[Item]:
    """Yield attention checks, in which a reply tells the rater which answers to give."""
    for _ in range(CHECKS):
        context = chance.choice(contexts)
        if kind == "ratings":
            answers = {scale: chance.choice([*POINTS]) for scale in SCALES}
            listed = ", ".join(f"{scale} {answer}" for scale, answer in answers.items())
            replies: tuple[str, ...] = (f"This is an attention check. Please answer: {listed}.",)
        else:
            answer = chance.choice(("first", "second"))
            answers = {"choice": answer}
            real = chance.choice([*context.replies.values()])
            check = f'This is an attention check. Please choose "{OPTIONS[answer]}".'
            replies = (real, check) if chance.random() < 0.5 else (check, real)
        yield Item(_make_id(chance), context.utterances, replies, {"check": answers})


def assign_items(
    items: Sequence[Item],
    checks: Sequence[Sequence[Item]],
    overlap: int,
    chance: random.Random,
) -> list[list[Item]]:
    """Distribute the items to sheets, in random order within each sheet.

    Args:
        items: items to distribute, so that sheets differ by at most one item.
        checks: attention checks of each sheet.
        overlap: number of sheets that have the same item.
        chance: random numbers.
    """
    count = len(checks)
    sheets = [[*own] for own in checks]
    turns = [n % count for n in range(len(items))]
    chance.shuffle(turns)  # otherwise each sheet may have the same models of all contexts
    for turn, item in zip(turns, items, strict=True):
        for n in range(overlap):
            sheets[(turn + n) % count].append(item)
    for sheet in sheets:
        chance.shuffle(sheet)
    return sheets


def _make_id(chance: random.Random) -> str:
    return f"{chance.getrandbits(48):012x}"
