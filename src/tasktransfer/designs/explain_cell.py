"""Explanation of a cell of a printed table: its numbers, published values, and source runs.

tasktransfer explain table3 Persona_USR panel --config ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.core.validation import describe_unknown
from tasktransfer.designs.explain_runs import facts_of_run, run_lines
from tasktransfer.errors import ConfigError
from tasktransfer.operate.explain_text import format_pairs, format_section
from tasktransfer.present.declared import Crossed, Presentation, Table
from tasktransfer.present.html import to_records
from tasktransfer.present.marks import format_notes, list_marks
from tasktransfer.present.numbers import INCOMPLETE, OTHERWISE, is_missing
from tasktransfer.present.published_columns import DIFFERS, PUBLISHED
from tasktransfer.present.tables import Left, Printed, build_printed
from tasktransfer.present.view import View
from tasktransfer.results.study import Study

Facts = dict[str, Any]
SHOWN = 12
MARKS = f"{INCOMPLETE}{OTHERWISE}* "
"""Characters after a printed name that are not part of it."""
MOST_RUNS = 24
"""Maximum number of runs that are listed for a cell; an average over a matrix has thousands."""


def table_named(shown: Presentation, word: str) -> Table | None:
    """Return the printed table of that name; None if there is none."""
    return next((t for t in shown.tables if t.name.casefold() == word.casefold()), None)


def explain_cell(
    study: Study, shown: Presentation, view: View, table: Table, words: Sequence[str]
) -> Facts:
    """Return the rows of a table that match all words, with their source runs.

    Args:
        study: the study.
        shown: the design's declarations.
        view: the study's frames.
        table: the table.
        words: values of the table's keys, or their printed form, in any order.

    Raises:
        ConfigError: the study does not have the table, or the table does not have the row. The
            message lists the names of existing rows.
    """
    made = build_printed(shown, table, view)
    if isinstance(made, Left):
        raise ConfigError(f"{study.config_file}: {made.why}")
    every = list(zip(to_records(made.frame), _list_printed_names(table, made), strict=True))
    rows = [row for row, shown_as in every if _has_names(table, row, shown_as, words)]
    if not rows:
        names = list(_list_names(table, made.frame))
        known = {name.casefold() for name in names}.union(
            name.casefold() for _, shown_as in every for name in shown_as
        )
        wrong = next((word for word in words if word.casefold() not in known), "")
        what = f"name in {table.name}"
        raise ConfigError(
            f"{study.config_file}: {describe_unknown(what, wrong, tuple(names), None)}"
            if wrong
            else f"{study.config_file}: {table.name} has no row with all of {' '.join(words)}; "
            f"name its rows by {', '.join(table.keys)}"
        )
    return {
        "table": made.name,
        "title": made.title,
        "words": list(words),
        "marks": format_notes(list_marks(view.metadata)) if made.metadata else [],
        "cells": [_describe_cell(study, table, made, row) for row in rows],
    }


def _list_names(table: Table, frame: pd.DataFrame) -> Iterator[str]:
    for key in table.keys:
        yield from dict.fromkeys(str(value) for value in frame[key] if not is_missing(value))


def _list_printed_names(table: Table, made: Printed) -> list[set[str]]:
    """Return the printed names of each row of the frame, without marks."""
    shape = table.shape
    if isinstance(shape, Crossed):
        lines = [
            [*(column.show(row) for column in shape.rows), shape.heads(str(row[shape.across]))]
            for row in to_records(made.frame)
        ]
    else:
        entries = [entry for block in made.layout.blocks for entry in block]
        lines = [list(entry[0][: made.layout.numbers]) for entry in entries]
    return [{_remove_marks(text) for cell in line for text in cell.split("\n")} for line in lines]


def _remove_marks(text: str) -> str:
    """Remove marks and parentheses: ``panel†`` becomes ``panel``, and ``(PoE)`` becomes ``PoE``."""
    text = text.rstrip(MARKS)
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _has_names(
    table: Table, row: Mapping[str, Any], shown_as: set[str], words: Sequence[str]
) -> bool:
    """Return whether every word is a name of the row, or a part of names joined by +."""
    values = [str(row[key]) for key in table.keys if not is_missing(row[key])]
    names = [name.casefold() for name in (*values, *shown_as)]
    parts = {part for name in names for part in (name, *name.split("+"))}
    return {word.casefold() for word in words} <= parts


def _describe_cell(study: Study, table: Table, made: Printed, row: Mapping[str, Any]) -> Facts:
    runs = (
        [] if table.cited else [r for r in study.plan.runs if _is_source_run(table, row, r, study)]
    )
    shown = runs[:MOST_RUNS]
    return {
        "names": {key: row[key] for key in table.keys if not is_missing(row[key])},
        "numbers": {
            str(key): None if is_missing(value) else _to_python(value)
            for key, value in row.items()
            if key not in table.keys and not str(key).startswith((PUBLISHED, DIFFERS))
        },
        "published": {
            str(key): _to_python(value)
            for key, value in row.items()
            if str(key).startswith((PUBLISHED, DIFFERS)) and not is_missing(value) and value != ""
        },
        "planned_runs": len(runs),
        "runs": [facts_of_run(study, run) for run in shown],
    }


def _to_python(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def names_of(run: Run) -> dict[str, str]:
    """Return a run's names: method, model, seed and the values of ``about``, joined by +."""
    about = {
        key: "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for key, value in run.about.items()
        if value is not None
    }
    return {"method": run.method, "model": run.model, "seed": str(run.seed), **about}


def _is_source_run(table: Table, row: Mapping[str, Any], run: Run, study: Study) -> bool:
    if table.runs is not None:
        return table.runs(row, run)
    names = names_of(run)
    shared = [key for key in table.keys if key in names and not is_missing(row[key])]
    return bool(shared) and all(names[key] == str(row[key]) for key in shared)


def _align_numbers(numbers: Mapping[str, Any]) -> list[str]:
    width = max((len(key) for key in numbers), default=0)
    return [f"{key:<{width}}  {'none' if v is None else v}" for key, v in numbers.items()]


def as_text(facts: Facts) -> str:
    """Format the facts as text, with one section per cell."""
    lines = [f"{facts['title']} ({facts['table']}): {' '.join(facts['words'])}", ""]
    for note in facts["marks"]:
        lines.append(note)
    for cell in facts["cells"]:
        named = ", ".join(f"{key} {value}" for key, value in cell["names"].items())
        shown = _align_numbers({**cell["numbers"], **cell["published"]})
        more = cell["planned_runs"] - len(cell["runs"])
        shown += format_pairs(
            [("runs", f"{cell['planned_runs']}" + (f", {more} not listed" if more else ""))]
        )
        lines += format_section(named or "the table", shown)
        for run in cell["runs"]:
            lines += run_lines(run)
    return "\n".join(lines).rstrip() + "\n"
