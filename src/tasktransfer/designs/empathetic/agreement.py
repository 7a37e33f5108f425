"""Agreement of the raters in a user's files of ratings and choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from tasktransfer.designs.empathetic.human import ANSWERS, CHOICES, RATINGS, SCALES
from tasktransfer.files.data_files import read_csv_rows
from tasktransfer.stats.rater_agreement import Level, estimate_agreement

POINTS = ("1", "2", "3", "4", "5")
SWAPPED = {"first": "second", "second": "first"}
COLUMNS = ("question", "alpha", "low", "high", "items", "instances", "raters")
Judged = tuple[str, str, str, str]
"""Rated item (models and instance), instance, rater and answer."""


def build_agreement_table(ratings: Path | None, choices: Path | None) -> pd.DataFrame:
    """Return Krippendorff's alpha of each scale (ordinal) and of choices (nominal).

    Intervals come from a bootstrap over instances.

    Args:
        ratings: valid ratings file; None if there is none.
        choices: valid choices file; None if there is none.

    Raises:
        DataError: the package krippendorff is not installed.
    """
    rows = []
    if ratings is not None:
        read = list(read_csv_rows(ratings, RATINGS))
        for number, scale in enumerate(SCALES, 3):
            judged = [(f"{r[0]}\t{r[1]}", r[1], r[2], r[number]) for _, r in read]
            rows.append(_make_row(scale, judged, POINTS, "ordinal"))
    if choices is not None:
        rows.append(_make_row("choice", list(list_choices(choices)), ANSWERS, "nominal"))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def list_choices(file: Path) -> Iterator[Judged]:
    """Yield the choices of a file, with the models of each pair in alphabetical order."""
    for _, (first, second, instance, rater, choice) in read_csv_rows(file, CHOICES):
        item = "\t".join((*sorted((first, second)), instance))
        yield item, instance, rater, SWAPPED.get(choice, choice) if first > second else choice


def _make_row(
    question: str, judged: list[Judged], answers: tuple[str, ...], level: Level
) -> tuple[str | float, ...]:
    items = {item: instance for item, instance, _, _ in judged}
    counted = Counter((item, answer) for item, _, _, answer in judged)
    counts = np.array([[counted[item, answer] for answer in answers] for item in items])
    found = estimate_agreement(counts, [*items.values()], level, question)
    raters = len({rater for _, _, rater, _ in judged})
    return (
        *(question, found.alpha, found.low, found.high),
        *(found.items, found.clusters, raters),
    )
