"""Caveats that apply to every number of a study: short badges, and notes that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tasktransfer.results.store import Metadata

SUBSTITUTE = "substitute: "
"""Prefix of a study's facts that name a substitute for an input of the paper."""
MARK = "mark: "
"""Prefix of facts that a design shows next to every title; the rest of the name is the badge."""
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class Mark:
    """A badge that is shown next to titles, and a sentence that explains it."""

    badge: str
    note: str


def list_marks(metadata: Metadata) -> list[Mark]:
    """Return the marks of a study, such as synthetic data or limits.

    They are for synthetic dialogues, subsampled data, substitutes for inputs of the paper, and the
    design's own facts.
    """
    marks = []
    if metadata.synthetic:
        but = f" The dialogues of {' and '.join(metadata.real)} are real." if metadata.real else ""
        text = "SYNTHETIC (tiny world): generated dialogues, not real ones."
        marks.append(Mark("SYNTHETIC", text + but))
    if metadata.cuts:
        marks.append(Mark("SUBSAMPLED", f"SUBSAMPLED: {describe_limits(metadata.cuts)}."))
    replaced = list_substitutes(metadata)
    if replaced:
        named = "; ".join(f"{text} (instead of {name})" for name, text in replaced.items())
        text = f"Substitutes for inputs of the paper: {named}."
        marks.append(Mark(f"{len(replaced)} SUBSTITUTE{'S' * (len(replaced) > 1)}", text))
    of_design = (fact for fact in metadata.facts.items() if fact[0].startswith(MARK))
    named_so = ((name.removeprefix(MARK), text) for name, text in of_design)
    return [*marks, *(Mark(badge, f"{badge}: {text}.") for badge, text in named_so)]


def describe_limits(cuts: str) -> str:
    """Describe limits such as ``limit_train 500, limit_test 1200`` in words.

    A key with a section, such as ``prompted.limit_test 200``, is for prompted models, for training
    or for response selection. Unknown keys appear unchanged.
    """
    splits: dict[str, list[str]] = {of: [] for of in _SPLITS_OF.values()}
    others: list[str] = []
    for part in cuts.split(", "):
        key, _, limit = part.partition(" ")
        section, _, name = key.rpartition(".")
        if name in _SPLITS and section in _SPLITS_OF:
            splits[_SPLITS_OF[section]].append(f"{int(limit):,} {_SPLITS[name]}")
        else:
            others.append(f"{int(limit):,} {_OTHERS[name]}" if name in _OTHERS else part)
    listed = [of.format(_join(named)) for of, named in splits.items() if named]
    listed += [_join(others)] if others else []
    return f"at most {'; '.join(listed)}" if listed else ""


_SPLITS = {"limit_train": "training", "limit_dev": "dev", "limit_test": "test"}
_PER_TASK = "{} instances per task"
_SPLITS_OF = {
    "": _PER_TASK,
    "training": _PER_TASK,
    "prompted": "{} instances for prompted models",
    "settings": "{} responses to select",
}
"""Section of a limit → its words."""
_OTHERS = {
    "limit": "test instances",
    "limit_generated": "generated replies",
    "limit_pool": "candidates per dataset",
}


def _join(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def list_substitutes(metadata: Metadata) -> dict[str, str]:
    """Map each replaced input of the paper to its substitute."""
    facts = metadata.facts.items()
    return {key.removeprefix(SUBSTITUTE): text for key, text in facts if key.startswith(SUBSTITUTE)}


def format_badges(marks: Sequence[Mark]) -> str:
    """Format the badges in one line, each with its note's number.

    For example ``SYNTHETIC¹ · SUBSAMPLED²``.
    """
    numbered = (f"{mark.badge}{str(n).translate(_RAISED)}" for n, mark in enumerate(marks, 1))
    return " · ".join(numbered)


def format_notes(marks: Sequence[Mark], more: Sequence[str] = ()) -> list[str]:
    """Format the numbered notes of badges, followed by further notes."""
    texts = [mark.note for mark in marks]
    return [f"{n} {text}" for n, text in enumerate([*texts, *more], 1)]


def describe_setting_differences(metadata: Metadata) -> str:
    """Describe how the study's setting differs from the paper's, or return ""."""
    parts = [f"subsampled data ({describe_limits(metadata.cuts)})"] if metadata.cuts else []
    replaced = [*list_substitutes(metadata)]
    return "; ".join([*parts, *([f"substitutes for {', '.join(replaced)}"] if replaced else [])])
