"""The probes: which corpus has them, how they are grouped, and which have sets of labels."""

from __future__ import annotations

from dataclasses import dataclass

from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.datasets.personachat import PERSONACHAT

CORPORA = (MULTIWOZ, PERSONACHAT)
RECIPE = "dialogue_labels"
"""What derives the probes' data (``labels``)."""

CONTROL = "Coin"
"""Drawn per dialogue and never said: what no encoder can know."""

SETS = frozenset(
    {
        "AllTopics",
        "RecentSlots",
        "RecentValues",
        "AllSlots",
        "AllValues",
        "RepeatInfo",
        "ActionSelect",
        "EntitySlots",
        "EntityValues",
        "PersonalInfo",
    }
)
"""Probes with a set of labels a turn; the others have one."""

WORD_PROBE = "WordCont"
"""Asks for a word of the context, or of the reply (``probes.word_in``)."""

GROUPS = {
    "semantic": ("UtteranceLoc", WORD_PROBE),
    "downstream": ("ActionSelect", "EntitySlots", "EntityValues"),
}
"""Table 1's groups; every other probe is about information."""

LEAST_COUNTS = {"EntityValues": 2}
"""How often a label is seen in training to be one."""

PUBLISHED_NAMES = {"IsMultiTopic": "IsMultiTask"}
"""What Tables 5 and 9 call a probe."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe on a corpus. ``task``: its card."""

    name: str
    corpus: str
    task: str

    @property
    def group(self) -> str:
        named = (group for group, names in GROUPS.items() if self.name in names)
        return next(named, "control" if self.name == CONTROL else "information")

    @property
    def has_sets(self) -> bool:
        return self.name in SETS

    @property
    def published_name(self) -> str:
        return PUBLISHED_NAMES.get(self.name, self.name)


def _probes() -> tuple[Probe, ...]:
    return tuple(
        Probe(card.short, corpus.name, card.name)
        for corpus in CORPORA
        for card in corpus.cards
        if card.kind == "open_labels"
    )


EVERY = _probes()
"""The 16 + 3 probes, and the control."""

BY_TASK = {probe.task: probe for probe in EVERY}
NAMES = tuple(dict.fromkeys(probe.name for probe in EVERY))


def reply_of(corpus: str) -> str:
    """The task of a corpus's next utterance."""
    return f"{corpus}_reply"
