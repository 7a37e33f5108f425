"""The project's English: floors that only rise, and phrases whose counts only fall."""

from __future__ import annotations

import language

IMPERATIVE_FLOOR, VERB_FIRST_FLOOR, QUESTION_CEILING = 0.46, 0.28, 0.10
"""Measured shares of function docstrings and names. After an improvement, put in the new value.
The aims are 0.90, 0.60 and 0."""

CEILINGS: dict[str, tuple[str, int]] = {}
"""Phrase → pattern and how often it occurs at most. Lower a number when an occurrence goes."""


def test_docstrings_begin_with_a_verb() -> None:
    assert language.imperative_share() >= IMPERATIVE_FLOOR
    assert language.question_share() <= QUESTION_CEILING


def test_names_of_functions_begin_with_a_verb() -> None:
    assert language.verb_first_share() >= VERB_FIRST_FLOOR


def test_phrases_of_the_former_dialect_become_fewer() -> None:
    counts = language.count_phrases({name: pattern for name, (pattern, _) in CEILINGS.items()})
    risen = {name: count for name, count in counts.items() if count > CEILINGS[name][1]}
    assert not risen, "say it in the field's words; see CONTRIBUTING, How we write"
