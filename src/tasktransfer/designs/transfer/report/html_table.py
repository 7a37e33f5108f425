"""Frames to tables that a template can show: every cell a text, every column a kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

DASH = "–"

Row = Mapping[str, Any]
Show = Callable[[Row], str]
Kind = Literal["word", "number", "long"]


@dataclass(frozen=True, slots=True)
class Head:
    """A column's name. Numbers stand to the right, long texts (paths, errors) break anywhere."""

    label: str
    kind: Kind = "word"


@dataclass(frozen=True, slots=True)
class Column:
    """``show`` makes the text of a row's cell. ``counts``: how much is behind a row (seeds, pairs),
    which is known where the row's values are not."""

    head: Head
    show: Show
    counts: bool = False


@dataclass(frozen=True)
class HtmlTable:
    """``caption`` and ``note`` are plain text. ``blocks`` are rows of texts that belong together;
    ``grouped`` sets them apart by rules, in place of rows. The first ``keys`` cells of a row name
    it. ``folded`` tables are closed until a reader opens them. ``untold``: what stands in place
    of a table whose every value is missing; empty where it has one."""

    name: str
    title: str
    caption: str
    heads: Sequence[Head]
    blocks: Sequence[Sequence[Sequence[str]]]
    keys: int = 1
    folded: bool = False
    grouped: bool = False
    note: str = ""
    untold: str = ""

    @property
    def count(self) -> int:
        """Number of rows."""
        return sum(len(block) for block in self.blocks)


def build(
    name: str,
    title: str,
    caption: str,
    frame: pd.DataFrame,
    columns: Sequence[Column],
    *,
    keys: int = 1,
    folded: bool = False,
    note: str = "",
    needs: str = "",
) -> HtmlTable:
    """Every row of a frame as texts.

    Args:
        keys: how many of the first columns name a row.
        needs: what a study must have for this table to have a value: a table of dashes says so
            instead. A column of dashes is left out, and the note names it.
    """
    rows = [[column.show(row) for column in columns] for row in records(frame)]
    told = [n for n in range(len(columns)) if any(row[n] != DASH for row in rows)]
    values = [n for n in told if n >= keys and not columns[n].counts]
    untold = untold_text(needs) if rows and not values else ""
    kept = [n for n in range(len(columns)) if n < keys or n in told or not rows]
    lost = dict.fromkeys(columns[n].head.label for n in range(len(columns)) if n not in kept)
    if lost:
        note = f"{note} Left out, as it has no value in this study: {', '.join(lost)}.".strip()
    return HtmlTable(
        name,
        title,
        caption,
        [columns[n].head for n in kept],
        [[[row[n] for n in kept] for row in rows]],
        keys,
        folded,
        note=note,
        untold=untold,
    )


def untold_text(needs: str) -> str:
    """The sentence in place of a table without a single value."""
    why = f"it takes {needs}" if needs else "every value is missing"
    return f"Cannot be told from this study: {why}."


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame's rows as mappings from column to value."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


# --- kinds of columns ---


def text(key: str, label: str, spell: Callable[[str], str] = str) -> Column:
    """A column of words; a dash where there are none."""
    return Column(Head(label), lambda row: DASH if _absent(row[key]) else spell(str(row[key])))


def long_text(key: str, label: str) -> Column:
    """A column of paths or messages."""
    return Column(Head(label, "long"), text(key, label).show)


def number(key: str, label: str, form: str) -> Column:
    """A column of numbers in a format of ``format()``; whole ones are counts."""
    counts = form.endswith("d")
    return Column(Head(label, "number"), lambda row: spelled(row[key], form), counts)


def interval(low: str, high: str, label: str, form: str) -> Column:
    """Two columns of a frame as one: ``low to high``."""

    def show(row: Row) -> str:
        if _absent(row[low]) or _absent(row[high]):
            return DASH
        return f"{spelled(row[low], form)} to {spelled(row[high], form)}"

    return Column(Head(label, "number"), show)


def probability(key: str, label: str) -> Column:
    """A column of p values."""
    return Column(Head(label, "number"), lambda row: p_value(row[key]))


def spelled(value: Any, form: str) -> str:
    """A number with a true minus sign and no negative zero; a dash for NaN."""
    if _absent(value):
        return DASH
    shown = format(int(value) if form.endswith("d") else float(value), form)
    if not shown.strip("+-0.,%"):
        shown = shown.replace("-", "+" if "+" in form else "")
    return shown.replace("-", "−")


def p_value(value: Any) -> str:
    """Three decimals, and no p of 0."""
    if _absent(value):
        return DASH
    return "< 0.001" if value < 0.0005 else f"{value:.3f}"


def _absent(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
