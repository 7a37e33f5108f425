"""The probes, with their corpora and groups."""

from __future__ import annotations

from dataclasses import dataclass

from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.datasets.personachat import PERSONACHAT

CORPORA = (MULTIWOZ, PERSONACHAT)
RECIPE = "dialogue_labels"
"""Recipe that derives the probes' data (module ``labels``)."""

CONTROL = "Coin"
"""Control probe: a label sampled per dialogue and never mentioned, so no encoder can know it."""

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
"""Probes with a set of labels per turn; all others have one label per turn."""

WORD_PROBE = "WordCont"
"""Probe for a word of the context or of the reply (``probes.wordcont_text``)."""

GROUPS = {
    "semantic": ("UtteranceLoc", WORD_PROBE),
    "downstream": ("ActionSelect", "EntitySlots", "EntityValues"),
}
"""Table 1's groups; every other probe is in the group ``information``."""

LEAST_COUNTS = {"EntityValues": 2}
"""Minimum number of times that a label occurs in training; rarer labels are dropped."""

PUBLISHED_NAMES = {"IsMultiTopic": "IsMultiTask"}
"""Probe → its name in Tables 5 and 9, if that differs."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe on a corpus; ``task`` is the name of its task card."""

    name: str
    corpus: str
    task: str

    @property
    def group(self) -> str:
        """The probe's group in Table 1, or ``control``."""
        named = (group for group, names in GROUPS.items() if self.name in names)
        return next(named, "control" if self.name == CONTROL else "information")

    @property
    def has_label_sets(self) -> bool:
        """True if the probe predicts a set of labels per turn instead of exactly one."""
        return self.name in SETS

    @property
    def published_name(self) -> str:
        """The probe's name in the paper's tables."""
        return PUBLISHED_NAMES.get(self.name, self.name)


def _list_probes() -> tuple[Probe, ...]:
    return tuple(
        Probe(card.short, corpus.name, card.name)
        for corpus in CORPORA
        for card in corpus.cards
        if card.kind == "open_labels"
    )


EVERY = _list_probes()
"""The 16 + 3 probes, and the control."""

BY_TASK = {probe.task: probe for probe in EVERY}
NAMES = tuple(dict.fromkeys(probe.name for probe in EVERY))


def format_reply_task_name(corpus: str) -> str:
    """Return the name of the task that predicts the next utterance in a corpus."""
    return f"{corpus}_reply"
