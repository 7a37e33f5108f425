"""A leaderboard as Markdown, CSV and a self-contained HTML page."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypedDict

import pandas as pd
from tabulate import tabulate

from tasktransfer.designs.challenge.golds import SYNTHETIC
from tasktransfer.designs.challenge.leaderboard import (
    ALPHA,
    Board,
    Entry,
    InvalidArchive,
    Leaderboard,
    Pair,
)
from tasktransfer.files import replace_file
from tasktransfer.present import numbers
from tasktransfer.present.html import create_environment
from tasktransfer.present.printed import to_csv

NO_DIFFERENCE = "not significantly different from the entry above"
NO_INTERVAL = "no interval, because all test instances of a task are from one dialogue"

_SCORES = ("submission_score", "score_delta", "baseline_score", "transfer_score")
_ENTRY_COLUMNS = [
    *("dataset", "rank", "entry"),
    *(f"{score}{end}" for score in _SCORES for end in ("", "_low", "_high")),
    *("q_above", "differs_from_above", "warnings", "synthetic"),
]
"""Columns of ``leaderboard.csv``, without those of the tasks, which differ between datasets."""


_LEFT = ("entry", "note", "archive", "first error")
"""Columns of text; the others are aligned to the right."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A table (rows of text by column) with title and caption; ``mark`` is a line above it."""

    title: str
    mark: str
    caption: str
    rows: list[dict[str, str]]

    @property
    def align(self) -> dict[str, str]:
        """Alignment of each column, ``left`` or ``right``."""
        return {column: "left" if column in _LEFT else "right" for column in self.rows[0]}


def write_leaderboard(leaderboard: Leaderboard, folder: Path) -> list[Path]:
    """Write all pages and tables to ``folder``, each atomically, and return their paths.

    ``leaderboard.md`` and ``leaderboard.html`` are for reading. ``leaderboard.csv``, ``pairs.csv``
    and ``invalid.csv`` have full precision.
    """
    rows = as_json(leaderboard)
    texts = {
        "leaderboard.md": as_markdown(leaderboard),
        "leaderboard.html": as_html(leaderboard),
        "leaderboard.csv": _format_csv(rows["entries"], _ENTRY_COLUMNS),
        "pairs.csv": _format_csv(rows["pairs"], _list_fields(Pair)),
        "invalid.csv": _format_csv(rows["invalid"], _list_fields(InvalidArchive)),
    }
    for name, text in texts.items():
        with replace_file(folder / name) as part:
            part.write_text(text, encoding="utf-8", newline="")
    return [folder / name for name in texts]


# --- pages ---------------------------------------------------------------------------------------


TableRow = dict[str, str | float | None]
"""Row of a table by column; numbers have full precision."""


class LeaderboardJson(TypedDict):
    """Rows of ``leaderboard.csv``, ``pairs.csv`` and ``invalid.csv``."""

    fidelity: str
    entries: list[TableRow]
    pairs: list[TableRow]
    invalid: list[TableRow]


def as_json(leaderboard: Leaderboard) -> LeaderboardJson:
    """Return the rows of the leaderboard's tables."""
    boards = leaderboard.boards
    return {
        "fidelity": leaderboard.fidelity,
        "entries": [_build_entry_row(entry) for board in boards for entry in board.entries],
        "pairs": [asdict(pair) for board in boards for pair in board.pairs],
        "invalid": [asdict(item) for item in leaderboard.invalid],
    }


def as_markdown(leaderboard: Leaderboard) -> str:
    """Return the boards and the invalid archives as Markdown tables."""
    parts: list[str] = []
    for section in _build_sections(leaderboard):
        mark = [f"**{section.mark}**", ""] if section.mark else []
        table = tabulate(
            [[_escape_markdown(cell) for cell in row.values()] for row in section.rows],
            list(section.align),
            tablefmt="pipe",
            disable_numparse=True,
            colalign=list(section.align.values()),
        )
        parts += [f"# {section.title}", "", *mark, section.caption, "", table, ""]
    return "\n".join(parts)


def as_html(leaderboard: Leaderboard) -> str:
    """Return the leaderboard as a self-contained HTML page."""
    template = create_environment(Path(__file__).parent).get_template("leaderboard.html.j2")
    return template.render(sections=_build_sections(leaderboard))


def _build_sections(leaderboard: Leaderboard) -> list[_Section]:
    sections = [_build_board_section(board, leaderboard.fidelity) for board in leaderboard.boards]
    if leaderboard.invalid:
        sections.append(
            _Section(
                title="Invalid archives",
                mark="",
                caption="These archives were not scored and are not in the tables above.",
                rows=[
                    {
                        "archive": i.entry,
                        "errors": numbers.format_count(i.errors),
                        "first error": i.error,
                    }
                    for i in leaderboard.invalid
                ],
            )
        )
    return sections


def _build_board_section(board: Board, fidelity: str) -> _Section:
    any_entry = board.entries[0]
    caption = (
        f"{len(board.entries)} entries, {len(any_entry.task_deltas)} tasks, release "
        f"{any_entry.data_revision}, fidelity {fidelity}. Ranked by submission score, SD + 0.1 BS. "
        "Intervals and tests come from a bootstrap over whole dialogues, with the same resamples "
        "for every entry. q is the p-value of a difference, adjusted for all pairs of entries "
        f"(Benjamini-Hochberg). If q is {ALPHA:.2f} or more, the note says: {NO_DIFFERENCE}."
    )
    return _Section(
        title=board.dataset,
        mark=SYNTHETIC if any_entry.synthetic else "",
        caption=caption,
        rows=[_format_cells(entry) for entry in board.entries],
    )


def _format_cells(entry: Entry) -> dict[str, str]:
    scores = entry.scores
    notes = [] if entry.differs_from_above or entry.q_above is None else [NO_DIFFERENCE]
    if math.isnan(entry.compute_interval("submission_score")[0]):
        notes.append(NO_INTERVAL)
    if entry.warnings:
        notes.append(f"{entry.warnings} warning{'s' * (entry.warnings != 1)}")
    return {
        "rank": str(entry.rank),
        "entry": entry.name,
        "submission score": numbers.format_score(scores.submission),
        "95 % interval": numbers.format_interval(
            *entry.compute_interval("submission_score"), ".2f"
        ),
        "score delta": numbers.format_delta(scores.delta),
        "95 % interval of the delta": numbers.format_interval(
            *entry.compute_interval("score_delta"), ".2f"
        ),
        "baseline score": numbers.format_score(scores.baseline),
        "transfer score": numbers.format_score(scores.transfer),
        "q to the entry above": ""
        if entry.q_above is None
        else numbers.format_p_value(entry.q_above),
        "note": "; ".join(notes),
    }


def _escape_markdown(text: str) -> str:
    """Escape text for Markdown, because names of archives may contain Markdown syntax."""
    return re.sub(r"([\\`*_\[\]<>|&#~])", r"\\\1", text)


# --- tables with full precision ------------------------------------------------------------------


def _build_entry_row(entry: Entry) -> TableRow:
    values = entry.scores.as_json()
    row: TableRow = {"dataset": entry.dataset, "rank": entry.rank, "entry": entry.name}
    for name in _SCORES:
        low, high = entry.compute_interval(name)
        row |= {name: values[name], f"{name}_low": low, f"{name}_high": high}
    row |= {"q_above": entry.q_above, "differs_from_above": int(entry.differs_from_above)}
    row |= {"warnings": entry.warnings, "synthetic": int(entry.synthetic)}
    return row | {f"delta_{task}": delta for task, delta in entry.task_deltas.items()}


def _list_fields(row_type: type) -> list[str]:
    return [column.name for column in fields(row_type)]


def _format_csv(rows: list[TableRow], columns: list[str]) -> str:
    """Format rows as CSV. ``columns`` is the header of a table without rows."""
    return to_csv(pd.DataFrame(rows, columns=None if rows else columns))
