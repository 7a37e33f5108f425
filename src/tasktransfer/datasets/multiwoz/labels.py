"""The labels of the MultiWOZ probes at each system turn, from belief states and dialogue acts.

The authors' script is not public; these definitions are ours (docs/probes.md, Parthasarathi et al.
2021, Table 1). A label of turn t reads turns up to t, except ``UtteranceLoc``, which is about the
dialogue's length; the three downstream tasks read the acts of the system's turn t itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FIFTHS = 5
NONE = "none"

State = Mapping[str, str]
"""domain-slot → value, empty ones left out."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user's turn and the system's after it.

    ``state``: after the user's turn. ``user_domains``: of the user's acts, in their order.
    ``acts``: of the system's turn, domain-act → (slot, value) pairs.
    """

    state: State
    user_domains: tuple[str, ...]
    acts: Mapping[str, Sequence[Sequence[str]]]


Labels = dict[str, tuple[str, ...]]
"""Probe → labels; a probe that a turn has no label of is absent."""


def labels_of(dialogue: str, exchanges: Sequence[Exchange]) -> list[Labels]:
    """The labels at each system turn."""
    before: State = {}
    topic, given, labelled = NONE, frozenset[str](), []
    for index, exchange in enumerate(exchanges):
        recent = {s: v for s, v in exchange.state.items() if before.get(s) != v}
        topic = _topic(recent, exchange.user_domains, topic)
        names = {_name(slot) for slot in recent}
        labels = {
            "UtteranceLoc": (str(index * FIFTHS // len(exchanges)),),
            "RecentTopic": (topic,),
            **_of_state(exchange.state),
            "RecentSlots": tuple(sorted(recent)),
            "RecentValues": tuple(sorted(set(recent.values()))),
            "NumRecentInfo": (str(len(recent)),),
            "RepeatInfo": tuple(sorted(names & given)) or (NONE,),
            "NumRepeatInfo": (str(len(names & given)),),
            "Coin": (coin(dialogue),),
        }
        labelled.append(labels | _of_acts(exchange.acts))
        before, given = exchange.state, given | names
    return labelled


def coin(dialogue: str) -> str:
    """A label that is drawn per dialogue and never said: what no model can know."""
    return ("heads", "tails")[hashlib.sha256(dialogue.encode()).digest()[0] % 2]


def _topic(recent: State, user_domains: Sequence[str], before: str) -> str:
    """Of the slots given in this turn; if none, of the user's act; if none, the one before."""
    if recent:
        return Counter(map(_domain, recent)).most_common(1)[0][0]
    return user_domains[0] if user_domains else before


def _of_state(state: State) -> Labels:
    topics = tuple(sorted({_domain(slot) for slot in state}))
    return {
        "AllTopics": topics,
        "NumAllTopics": (str(len(topics)),),
        "IsMultiTopic": (str(len(topics) > 1),),
        "AllSlots": tuple(sorted(state)),
        "AllValues": tuple(sorted(set(state.values()))),
        "NumAllInfo": (str(len(state)),),
    }


def _of_acts(acts: Mapping[str, Sequence[Sequence[str]]]) -> Labels:
    """Of the system's turn; nothing where it has no act."""
    if not acts:
        return {}
    pairs = [pair for pairs in acts.values() for pair in pairs]
    return {
        "ActionSelect": tuple(sorted(acts)),
        "EntitySlots": tuple(sorted({slot for slot, _ in pairs} - {NONE})),
        "EntityValues": tuple(sorted({value for _, value in pairs} - {NONE, "?"})),
    }


def _domain(slot: str) -> str:
    return slot.partition("-")[0]


def _name(slot: str) -> str:
    """Without the domain; a slot of a booking is called as any other."""
    return slot.partition("-")[2].removeprefix("book ")
