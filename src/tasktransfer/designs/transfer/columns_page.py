"""Generator of docs/columns.md from the declared columns.

``python -m tasktransfer.designs.transfer.columns_page`` prints the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tasktransfer.designs.transfer.frames import ABOUT, FRAMES
from tasktransfer.results.common_frames import build_common_columns
from tasktransfer.results.frames import FLAG, NUMBER, TEXT, WHOLE, Columns, Frame

_HEAD = """\
# Columns of the tables

`make schemas` generates this page from `columns.py` and `frames.py` in
`src/tasktransfer/designs/transfer/`.
[analysis.md](analysis.md) defines the numbers. Each table is stored in the file
`results/<study>/tables/<table>.parquet`, whose footer contains the descriptions of the columns.
Scores range from 0 to 100, and a delta is a difference between two scores, in points.
"""


def format_columns_page() -> str:
    """Format the page of columns in Markdown, with one section per frame and one row per column."""
    from_records = [frame for frame in FRAMES if frame.make is not None and not frame.needs]
    titles = {
        "Tables of every design": build_common_columns(ABOUT),
        "Tables that `tasktransfer collect` makes from records": _list_columns(from_records),
        "Tables that `tasktransfer statistics` makes from other tables": _list_columns(
            frame for frame in FRAMES if frame.needs
        ),
        "Tables that are counted in the dialogues": _list_columns(
            frame for frame in FRAMES if frame.make is None and frame.columns
        ),
    }
    parts = [_HEAD]
    for title, tables in titles.items():
        parts += [f"\n## {title}\n", *format_sections(tables)]
    return "".join(parts)


def _list_columns(frames: Iterable[Frame]) -> dict[str, Columns]:
    return {frame.name: frame.columns for frame in frames}


def format_sections(tables: Mapping[str, Columns]) -> Iterator[str]:
    """Yield the lines of one section per table, for a design's tables."""
    for name, described in tables.items():
        yield f"\n### {name}\n\n"
        yield "| column | type | meaning |\n|---|---|---|\n"
        yield from (_format_row(*column) for column in described)


def _format_row(name: str, kind: str, meaning: str) -> str:
    escaped = meaning.replace("|", "\\|")
    return f"| `{name}` | {_describe_kind(kind)} | {escaped} |\n"


def _describe_kind(kind: str) -> str:
    if kind.startswith("list<"):
        return f"list of {_describe_kind(kind.removeprefix('list<').removesuffix('>'))}"
    return {TEXT: "text", WHOLE: "whole number", NUMBER: "number", FLAG: "true or false"}[kind]


if __name__ == "__main__":
    print(format_columns_page(), end="")
