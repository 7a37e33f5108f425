"""What a reader must know of every number of a study: short badges, and the notes that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tasktransfer.tables.metadata import Metadata

STAND_IN = "stand-in: "
"""What the names of a study's facts that are stand-ins begin with."""
MARK = "mark: "
"""What the names of facts begin with that a design wants beside every title: the rest is the
badge."""
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class Mark:
    """``badge``: what is seen beside a title; ``note``: what it means, a sentence."""

    badge: str
    note: str


def marks_of(metadata: Metadata) -> list[Mark]:
    """The marks of a study: generated dialogues, data left away, inputs of the paper replaced, and
    those of its design."""
    marks = []
    if metadata.synthetic:
        but = f" Those of {' and '.join(metadata.real)} are real." if metadata.real else ""
        text = "SYNTHETIC (tiny world): dialogues of the built-in tiny world, not real ones."
        marks.append(Mark("SYNTHETIC", text + but))
    if metadata.cuts:
        marks.append(Mark("CUT DATA", f"PART OF THE DATA: {metadata.cuts}."))
    replaced = stand_ins_of(metadata)
    if replaced:
        named = "; ".join(f"{name}: {text}" for name, text in replaced.items())
        marks.append(Mark(f"STAND-INS {len(replaced)}", f"Stand-ins: {named}."))
    of_design = (fact for fact in metadata.facts.items() if fact[0].startswith(MARK))
    named_so = ((name.removeprefix(MARK), text) for name, text in of_design)
    return [*marks, *(Mark(badge, f"{badge}: {text}.") for badge, text in named_so)]


def stand_ins_of(metadata: Metadata) -> dict[str, str]:
    """What is replaced → by what."""
    facts = metadata.facts.items()
    return {key.removeprefix(STAND_IN): text for key, text in facts if key.startswith(STAND_IN)}


def badges(marks: Sequence[Mark]) -> str:
    """The badges in one line, each with the number of its note: ``SYNTHETIC¹ · CUT DATA²``."""
    numbered = (f"{mark.badge}{str(n).translate(_RAISED)}" for n, mark in enumerate(marks, 1))
    return " · ".join(numbered)


def notes(marks: Sequence[Mark], more: Sequence[str] = ()) -> list[str]:
    """The notes of badges, numbered as these are, and further ones behind them."""
    texts = [mark.note for mark in marks]
    return [f"{n} {text}" for n, text in enumerate([*texts, *more], 1)]


def setting(metadata: Metadata) -> str:
    """Why a published value is of another setting: what is cut or replaced; empty if nothing is."""
    parts = [f"a part of the data ({metadata.cuts})"] if metadata.cuts else []
    replaced = [*stand_ins_of(metadata)]
    return "; ".join([*parts, *([f"stand-ins for {', '.join(replaced)}"] if replaced else [])])
