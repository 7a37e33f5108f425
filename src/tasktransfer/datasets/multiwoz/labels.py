"""Labels of the MultiWOZ probes at each system turn, from belief states and dialogue acts.

The authors' script is not public, so these definitions are this project's (docs/probes.md,
Parthasarathi et al. 2021, Table 1). A label of turn t depends on turns up to t, except
``UtteranceLoc``, which depends on the dialogue's length. The three downstream tasks use the acts of
system turn t itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DIALOGUE_PARTS = 5
NONE = "none"

State = Mapping[str, str]
"""domain-slot → value, without empty slots."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user turn and the system turn after it.

    Args:
        state: belief state after the user turn.
        user_domains: domains of the user's acts, in their order.
        acts: domain-act → (slot, value) pairs of the system turn.
    """

    state: State
    user_domains: tuple[str, ...]
    acts: Mapping[str, Sequence[Sequence[str]]]


Labels = dict[str, tuple[str, ...]]
"""Probe → labels, without probes that have no label at a turn."""


def build_turn_labels(dialogue: str, exchanges: Sequence[Exchange]) -> list[Labels]:
    """Return the labels of all probes at each system turn."""
    before: State = {}
    topic, earlier_names, labelled = NONE, frozenset[str](), []
    for index, exchange in enumerate(exchanges):
        recent = {s: v for s, v in exchange.state.items() if before.get(s) != v}
        topic = _find_topic(recent, exchange.user_domains, topic)
        names = {_get_slot_name(slot) for slot in recent}
        labels = {
            "UtteranceLoc": (str(index * DIALOGUE_PARTS // len(exchanges)),),
            "RecentTopic": (topic,),
            **_build_state_labels(exchange.state),
            "RecentSlots": tuple(sorted(recent)),
            "RecentValues": tuple(sorted(set(recent.values()))),
            "NumRecentInfo": (str(len(recent)),),
            "RepeatInfo": tuple(sorted(names & earlier_names)) or (NONE,),
            "NumRepeatInfo": (str(len(names & earlier_names)),),
            "Coin": (sample_coin(dialogue),),
        }
        labelled.append(labels | _build_act_labels(exchange.acts))
        before, earlier_names = exchange.state, earlier_names | names
    return labelled


def sample_coin(dialogue: str) -> str:
    """Sample a random label for a dialogue, which cannot be predicted from text."""
    return ("heads", "tails")[hashlib.sha256(dialogue.encode()).digest()[0] % 2]


def _find_topic(recent: State, user_domains: Sequence[str], before: str) -> str:
    """Return the topic of the turn's slots, of the user's acts, or of the last turn."""
    if recent:
        return Counter(map(_get_domain, recent)).most_common(1)[0][0]
    return user_domains[0] if user_domains else before


def _build_state_labels(state: State) -> Labels:
    topics = tuple(sorted({_get_domain(slot) for slot in state}))
    return {
        "AllTopics": topics,
        "NumAllTopics": (str(len(topics)),),
        "IsMultiTopic": (str(len(topics) > 1),),
        "AllSlots": tuple(sorted(state)),
        "AllValues": tuple(sorted(set(state.values()))),
        "NumAllInfo": (str(len(state)),),
    }


def _build_act_labels(acts: Mapping[str, Sequence[Sequence[str]]]) -> Labels:
    """Return the labels from the system's acts, or {} without acts."""
    if not acts:
        return {}
    pairs = [pair for pairs in acts.values() for pair in pairs]
    return {
        "ActionSelect": tuple(sorted(acts)),
        "EntitySlots": tuple(sorted({slot for slot, _ in pairs} - {NONE})),
        "EntityValues": tuple(sorted({value for _, value in pairs} - {NONE, "?"})),
    }


def _get_domain(slot: str) -> str:
    return slot.partition("-")[0]


def _get_slot_name(slot: str) -> str:
    """Return the name of a slot, without its domain and the prefix of bookings."""
    return slot.partition("-")[2].removeprefix("book ")
