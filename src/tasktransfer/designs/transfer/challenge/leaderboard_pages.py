"""A leaderboard as Markdown, CSV and a self-contained HTML page."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tasktransfer.designs.transfer.challenge.golds import SYNTHETIC
from tasktransfer.designs.transfer.challenge.leaderboard import (
    ALPHA,
    Board,
    Entry,
    Interval,
    Leaderboard,
)
from tasktransfer.files import replacing

SAME = "not distinguishable from the entry above"

_HEAD = (
    "rank",
    "entry",
    "submission score",
    "95 % interval",
    "score delta",
    "95 % interval",
    "baseline score",
    "transfer score",
    "q to the entry above",
    "note",
)
_NUMBERS = frozenset({0, 2, 3, 4, 5, 6, 7, 8})
_INVALID_HEAD = ("archive", "errors", "first error")

_STYLE = """
body { margin: 0 auto; padding: 1rem; max-width: 82rem; color: #1a1a1a; background: #fff;
  font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
caption { text-align: left; padding: 0.4rem 0; }
th, td { padding: 0.3rem 0.7rem; border-bottom: 1px solid #c9c9c9; text-align: left; }
thead th { border-bottom: 2px solid #555; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.synthetic { padding: 0.6rem; border: 2px solid #8a5a00; background: #fff3d6; }
"""


def write_leaderboard(found: Leaderboard, folder: Path) -> list[Path]:
    """Write all pages and tables to ``folder``, each atomically; gives their paths.

    ``leaderboard.md`` and ``leaderboard.html`` for reading; ``leaderboard.csv``, ``pairs.csv`` and
    ``invalid.csv`` with every digit.
    """
    texts = {
        "leaderboard.md": as_markdown(found),
        "leaderboard.html": as_html(found),
        "leaderboard.csv": _csv(_entry_rows(found)),
        "pairs.csv": _csv(_pair_rows(found)),
        "invalid.csv": _csv(_invalid_rows(found)),
    }
    for name, text in texts.items():
        with replacing(folder / name) as part:
            part.write_text(text, encoding="utf-8", newline="")
    return [folder / name for name in texts]


# --- for reading ---------------------------------------------------------------------------------


def as_markdown(found: Leaderboard) -> str:
    """The boards and the invalid archives as Markdown tables."""
    parts: list[str] = []
    for board in found.boards:
        parts += [f"# {board.dataset}", ""]
        parts += [f"**{SYNTHETIC}**", ""] if board.synthetic else []
        parts += [_caption(board, found.fidelity), ""]
        rows = [_cells(entry) for entry in board.entries]
        parts += [*_markdown_table(_HEAD, rows, _NUMBERS), ""]
    if found.invalid:
        parts += ["# Invalid archives", "", "Not scored and in no table above.", ""]
        rows = [_invalid_cells(item.name, item.errors, item.error) for item in found.invalid]
        parts += [*_markdown_table(_INVALID_HEAD, rows, {1}), ""]
    return "\n".join(parts)


def as_html(found: Leaderboard) -> str:
    """The same as one HTML page that loads nothing."""
    parts: list[str] = []
    for board in found.boards:
        parts.append(f"<h2>{html.escape(board.dataset)}</h2>")
        parts += [f'<p class="synthetic">{SYNTHETIC}</p>'] if board.synthetic else []
        rows = [_cells(entry) for entry in board.entries]
        parts.append(_html_table(_caption(board, found.fidelity), _HEAD, rows, _NUMBERS))
    if found.invalid:
        rows = [_invalid_cells(item.name, item.errors, item.error) for item in found.invalid]
        caption = "Not scored and in no table above."
        parts += ["<h2>Invalid archives</h2>", _html_table(caption, _INVALID_HEAD, rows, {1})]
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<link rel="icon" href="data:,">\n<title>Leaderboard</title>\n<style>{_STYLE}</style>\n'
        "</head>\n<body>\n<h1>Leaderboard</h1>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def _caption(board: Board, fidelity: str) -> str:
    return (
        f"{len(board.entries)} entries, {len(board.tasks)} tasks, release {board.data_revision}, "
        f"fidelity {fidelity}. Ranked by submission score, SD + 0.1 BS. Intervals and tests come "
        "from a bootstrap over test instances, the same draws for every entry; q is the p of the "
        f"difference adjusted for all pairs (Benjamini-Hochberg), {SAME} at {ALPHA:.2f} or more."
    )


def _cells(entry: Entry) -> tuple[str, ...]:
    scores = entry.scores
    notes = [] if entry.told_from_above or entry.q_above is None else [SAME]
    if entry.warnings:
        notes.append(f"{entry.warnings} warning{'s' * (entry.warnings != 1)}")
    return (
        str(entry.rank),
        entry.name,
        f"{scores.submission:.2f}",
        _shown(entry.intervals["submission_score"]),
        f"{scores.delta:+.2f}",
        _shown(entry.intervals["score_delta"]),
        f"{scores.baseline:.2f}",
        f"{scores.transfer:.2f}",
        "" if entry.q_above is None else _shown_p(entry.q_above),
        "; ".join(notes),
    )


def _invalid_cells(name: str, errors: int, error: str) -> tuple[str, ...]:
    return name, f"{errors:,}", error


def _shown(interval: Interval) -> str:
    return f"{interval.low:.2f} to {interval.high:.2f}"


def _shown_p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int]
) -> list[str]:
    right = set(numbers)
    rule = ["---:" if place in right else "---" for place in range(len(head))]
    lines = [head, rule, *([_escaped(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _escaped(text: str) -> str:
    """Text that Markdown shows as it stands, even where an archive's name is full of its marks."""
    return re.sub(r"([\\`*_\[\]<>|&#~])", r"\\\1", text)


def _html_table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int]
) -> str:
    right = set(numbers)

    def cells(tag: str, texts: Sequence[str]) -> str:
        kinds = ['class="number"' if place in right else "" for place in range(len(texts))]
        return "".join(
            f"<{tag} {kind}>{html.escape(text)}</{tag}>".replace(" >", ">", 1)
            for kind, text in zip(kinds, texts, strict=True)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption>{html.escape(caption)}</caption>\n'
        f"<thead><tr>{cells('th', head)}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


# --- with every digit ----------------------------------------------------------------------------

Row = dict[str, str | int | float | None]


def _entry_rows(found: Leaderboard) -> tuple[list[str], list[Row]]:
    names = ["submission_score", "score_delta", "baseline_score", "transfer_score"]
    tasks = [f"delta_{task}" for board in found.boards for task in board.tasks]
    columns = ["dataset", "rank", "entry"]
    columns += [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    columns += ["q_above", "told_from_above", "warnings", "synthetic", *tasks]
    rows: list[Row] = []
    for board in found.boards:
        for entry in board.entries:
            row: Row = {"dataset": board.dataset, "rank": entry.rank, "entry": entry.name}
            for name, value in entry.scores.as_json().items():
                interval = entry.intervals[name]
                row |= {name: value, f"{name}_low": interval.low, f"{name}_high": interval.high}
            row |= {"q_above": entry.q_above, "warnings": entry.warnings}
            row["told_from_above"] = int(entry.told_from_above)
            row["synthetic"] = int(board.synthetic)
            row |= {f"delta_{task}": value for task, value in entry.task_deltas.items()}
            rows.append(row)
    return columns, rows


def _pair_rows(found: Leaderboard) -> tuple[list[str], list[Row]]:
    columns = ["dataset", "first", "second", "difference", "low", "high", "p", "q"]
    rows: list[Row] = [
        {
            "dataset": board.dataset,
            "first": pair.first,
            "second": pair.second,
            "difference": pair.difference,
            "low": pair.interval.low,
            "high": pair.interval.high,
            "p": pair.p,
            "q": pair.q,
        }
        for board in found.boards
        for pair in board.pairs
    ]
    return columns, rows


def _invalid_rows(found: Leaderboard) -> tuple[list[str], list[Row]]:
    rows: list[Row] = [
        {"entry": item.name, "dataset": item.dataset, "errors": item.errors, "error": item.error}
        for item in found.invalid
    ]
    return ["entry", "dataset", "errors", "error"], rows


def _csv(table: tuple[list[str], list[Row]]) -> str:
    columns, rows = table
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
