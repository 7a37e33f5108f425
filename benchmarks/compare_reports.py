"""Find the differences of two HTML reports: tables by row, embedded data, and other text.

Scripts, styles and pictures are left out. Versions, dates and commits are replaced, because they
tell when and by which code a report was built.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

SHOWN = 5
"""Number of examples printed per kind of difference."""
BLOCKS = frozenset({"p", "li", "dt", "dd", "tr", "td", "th", "div", "section", "header", "pre"})
BLOCKS |= {"h1", "h2", "h3", "h4", "h5", "h6", "caption", "figcaption", "summary"}
"""Elements that begin a new line of text."""
HEADINGS = frozenset({"h1", "h2", "h3", "h4"})
PROVENANCE = (
    (
        re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?"),
        "DATE",
    ),
    (re.compile(r"\b\d+\.\d+\.\d+(?:[.+\-]?[a-z]+[\w.]*)?\b"), "VERSION"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"), "COMMIT"),
)


class Report(NamedTuple):
    """The visible content of a report.

    tables: name → rows, each a line of cells; lines: other text; data: embedded JSON by name.
    """

    tables: dict[str, list[str]]
    lines: list[str]
    data: dict[str, Any]


def compare_reports(before: Path, after: Path, tolerance: float = 0.0) -> list[str]:
    """Return the differences of tables, embedded data and other lines of two reports."""
    old, new = (read_report(file) for file in (before, after))
    return [
        *_compare_tables(old.tables, new.tables),
        *_compare_data(old.data, new.data, tolerance),
        *compare_lines("text", old.lines, new.lines),
    ]


def read_report(file: Path) -> Report:
    """Read the visible content of an HTML file."""
    parser = _Reader()
    parser.feed(file.read_text(encoding="utf-8"))
    parser.close()
    parser.end_line()
    return Report(parser.tables, parser.lines, parser.data)


class _Reader(HTMLParser):
    """Collect tables, lines of text and embedded JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[str]] = {}
        self.lines: list[str] = []
        self.data: dict[str, Any] = {}
        self._words: list[str] = []
        self._rows: list[str] | None = None
        self._heading = ""
        self._script: str | None = None
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag in ("script", "style"):
            self._hidden = True
            is_data = tag == "script" and named.get("type") == "application/json"
            self._script = (named.get("id") or "data") if is_data else None
        elif tag == "table":
            self.end_line()
            self._rows = self.tables.setdefault(self._name_table(named.get("id")), [])
        elif tag in ("td", "th") and self._rows is not None:
            self._words.append(" | ")
        elif tag in BLOCKS:
            self.end_line()

    def _name_table(self, name: str | None) -> str:
        base = name or self._heading or "table"
        numbers = (base if n == 1 else f"{base} ({n})" for n in range(1, len(self.tables) + 2))
        return next(name for name in numbers if name not in self.tables)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._hidden, self._script = False, None
        elif tag in HEADINGS:
            self._heading = _clean("".join(self._words))
            self.end_line()
        elif tag == "table":
            self.end_line()
            self._rows = None
        elif tag in BLOCKS and not (tag in ("td", "th") and self._rows is not None):
            self.end_line()

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.data[self._script] = json.loads(data)
        elif not self._hidden:
            self._words.append(data)

    def end_line(self) -> None:
        """Add the words so far as a row of the open table, or as a line of text."""
        line = _clean("".join(self._words)).strip()
        self._words = []
        if line:
            (self.lines if self._rows is None else self._rows).append(line)


def _clean(text: str) -> str:
    text = " ".join(text.split())
    for pattern, replacement in PROVENANCE:
        text = pattern.sub(replacement, text)
    return text


def _compare_tables(before: dict[str, list[str]], after: dict[str, list[str]]) -> list[str]:
    """Compare tables by name. A table that was only renamed counts as unchanged."""
    unnamed = {name: rows for name, rows in after.items() if name not in before}
    lines = []
    for name, rows in before.items():
        if name in after:
            lines += compare_lines(f"table {name}", rows, after[name])
        elif (equal := next((n for n, r in unnamed.items() if r == rows), None)) is not None:
            del unnamed[equal]
        else:
            lines.append(f"table {name}: only before, {len(rows)} rows")
    return lines + [f"table {name}: only after, {len(rows)} rows" for name, rows in unnamed.items()]


def compare_lines(what: str, before: list[str], after: list[str]) -> list[str]:
    """Return the number of different lines in two texts, and the first of them."""
    if before == after:
        return []
    if Counter(before) == Counter(after):
        return [f"{what}: the same {len(before)} lines in another order"]
    changes = [
        line for line in difflib.unified_diff(before, after, n=0, lineterm="") if line[:2] != "@@"
    ][2:]
    shown = [f"  {line[:1]} {line[1:201]}" for line in changes[: 2 * SHOWN]]
    return [f"{what}: {len(changes)} lines differ (- before, + after)", *shown]


def _compare_data(before: dict[str, Any], after: dict[str, Any], tolerance: float) -> list[str]:
    lines = [f"data {name}: only before" for name in before.keys() - after.keys()]
    lines += [f"data {name}: only after" for name in after.keys() - before.keys()]
    for name in before.keys() & after.keys():
        old, new = (dict(_list_values(data[name])) for data in (before, after))
        keys = [
            key for key in {**old, **new} if not _is_equal(old.get(key), new.get(key), tolerance)
        ]
        if keys:
            shown = "; ".join(f"{k}: {old.get(k)!r} -> {new.get(k)!r}"[:150] for k in keys[:SHOWN])
            lines.append(f"data {name}: {len(keys)} values differ: {shown}")
    return lines


def _list_values(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _list_values(item, f"{place}/{key}")
    else:
        yield place, _clean(value) if isinstance(value, str) else value


def _is_equal(before: Any, after: Any, tolerance: float) -> bool:
    if isinstance(before, float) and isinstance(after, float):
        return abs(before - after) <= tolerance * max(1.0, abs(before), abs(after))
    return bool(before == after)
