"""A leaderboard as Markdown, CSV and a self-contained HTML page."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

from tasktransfer.designs.transfer.challenge.golds import SYNTHETIC
from tasktransfer.designs.transfer.challenge.leaderboard import (
    ALPHA,
    Board,
    Entry,
    Invalid,
    Leaderboard,
    Pair,
)
from tasktransfer.files import replacing
from tasktransfer.tables import numbers
from tasktransfer.tables.html import environment

SAME = "not distinguishable from the entry above"
NO_INTERVAL = "no interval: the test instances of a task are all of one dialogue"

_SCORES = ("submission_score", "score_delta", "baseline_score", "transfer_score")


@dataclass(frozen=True, slots=True)
class _Section:
    """A table with its title and caption. ``mark`` stands above it, if it is not empty; ``align``
    is the alignment of each column."""

    title: str
    mark: str
    caption: str
    head: tuple[str, ...]
    align: tuple[str, ...]
    rows: list[tuple[str, ...]]


def write_leaderboard(leaderboard: Leaderboard, folder: Path) -> list[Path]:
    """Write all pages and tables to ``folder``, each atomically; gives their paths.

    ``leaderboard.md`` and ``leaderboard.html`` for reading; ``leaderboard.csv``, ``pairs.csv`` and
    ``invalid.csv`` with every digit.
    """
    boards = leaderboard.boards
    tasks = [f"delta_{task}" for board in boards for task in board.entries[0].task_deltas]
    intervals = [f"{score}{end}" for score in _SCORES for end in ("", "_low", "_high")]
    columns = ["dataset", "rank", "entry", *intervals, "q_above", "told_from_above", "warnings"]
    texts = {
        "leaderboard.md": as_markdown(leaderboard),
        "leaderboard.html": as_html(leaderboard),
        "leaderboard.csv": _csv(
            [*columns, "synthetic", *tasks],
            (_entry_row(entry) for board in boards for entry in board.entries),
        ),
        "pairs.csv": _csv(
            Pair.__dataclass_fields__, (asdict(pair) for board in boards for pair in board.pairs)
        ),
        "invalid.csv": _csv(
            Invalid.__dataclass_fields__, (asdict(item) for item in leaderboard.invalid)
        ),
    }
    for name, text in texts.items():
        with replacing(folder / name) as part:
            part.write_text(text, encoding="utf-8", newline="")
    return [folder / name for name in texts]


# --- for reading ---------------------------------------------------------------------------------


def as_markdown(leaderboard: Leaderboard) -> str:
    """The boards and the invalid archives as Markdown tables."""
    parts: list[str] = []
    for section in _sections(leaderboard):
        mark = [f"**{section.mark}**", ""] if section.mark else []
        table = tabulate(
            [[_escaped(cell) for cell in row] for row in section.rows],
            section.head,
            tablefmt="pipe",
            disable_numparse=True,
            colalign=section.align,
        )
        parts += [f"# {section.title}", "", *mark, section.caption, "", table, ""]
    return "\n".join(parts)


def as_html(leaderboard: Leaderboard) -> str:
    """The same as one HTML page that loads nothing."""
    template = environment(Path(__file__).parent).get_template("leaderboard.html.j2")
    return template.render(sections=_sections(leaderboard))


def _sections(leaderboard: Leaderboard) -> list[_Section]:
    sections = [_board_section(board, leaderboard.fidelity) for board in leaderboard.boards]
    if leaderboard.invalid:
        sections.append(
            _Section(
                title="Invalid archives",
                mark="",
                caption="Not scored and in no table above.",
                head=("archive", "errors", "first error"),
                align=("left", "right", "left"),
                rows=[(i.entry, numbers.count(i.errors), i.error) for i in leaderboard.invalid],
            )
        )
    return sections


def _board_section(board: Board, fidelity: str) -> _Section:
    any_entry = board.entries[0]
    caption = (
        f"{len(board.entries)} entries, {len(any_entry.task_deltas)} tasks, release "
        f"{any_entry.data_revision}, fidelity {fidelity}. Ranked by submission score, SD + 0.1 BS. "
        "Intervals and tests come from a bootstrap over whole dialogues, the same draws for every "
        "entry; q is the p of the difference adjusted for all pairs (Benjamini-Hochberg), "
        f"{SAME} at {ALPHA:.2f} or more."
    )
    columns = {
        "rank": "right",
        "entry": "left",
        "submission score": "right",
        "95 % interval": "right",
        "score delta": "right",
        "95 % interval of the delta": "right",
        "baseline score": "right",
        "transfer score": "right",
        "q to the entry above": "right",
        "note": "left",
    }
    return _Section(
        title=board.dataset,
        mark=SYNTHETIC if any_entry.synthetic else "",
        caption=caption,
        head=tuple(columns),
        align=tuple(columns.values()),
        rows=[_cells(entry) for entry in board.entries],
    )


def _cells(entry: Entry) -> tuple[str, ...]:
    scores = entry.scores
    notes = [] if entry.told_from_above or entry.q_above is None else [SAME]
    if math.isnan(entry.interval("submission_score")[0]):
        notes.append(NO_INTERVAL)
    if entry.warnings:
        notes.append(f"{entry.warnings} warning{'s' * (entry.warnings != 1)}")
    return (
        str(entry.rank),
        entry.name,
        numbers.score(scores.submission),
        numbers.interval(*entry.interval("submission_score"), ".2f"),
        numbers.delta(scores.delta),
        numbers.interval(*entry.interval("score_delta"), ".2f"),
        numbers.score(scores.baseline),
        numbers.score(scores.transfer),
        "" if entry.q_above is None else numbers.p_value(entry.q_above),
        "; ".join(notes),
    )


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is, even where an archive's name is full of its marks."""
    return re.sub(r"([\\`*_\[\]<>|&#~])", r"\\\1", text)


# --- with every digit ----------------------------------------------------------------------------


def _entry_row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": entry.dataset, "rank": entry.rank, "entry": entry.name}
    for name, value in entry.scores.as_json().items():
        low, high = entry.interval(name)
        row |= {name: value, f"{name}_low": low, f"{name}_high": high}
    row |= {"q_above": entry.q_above, "told_from_above": int(entry.told_from_above)}
    row |= {"warnings": entry.warnings, "synthetic": int(entry.synthetic)}
    return row | {f"delta_{task}": delta for task, delta in entry.task_deltas.items()}


def _csv(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
