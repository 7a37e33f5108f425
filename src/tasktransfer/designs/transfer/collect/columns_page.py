"""Generator of docs/columns.md from ``columns``; ``python -m`` this module prints the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from tasktransfer.designs.transfer import outputs
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.results.store import Columns

_HEAD = """\
# Columns of the tables

Generated from `src/tasktransfer/designs/transfer/collect/columns.py` by `make schemas`;
[analysis.md](analysis.md) defines the numbers. A table is a file
`results/<study>/tables/<table>.parquet`, and its footer has the same descriptions. Scores are
0-100; a delta is a difference of scores, in points.
"""

_TITLES = {
    "Tables that `tasktransfer collect` reads from the records": columns.TABLES,
    "Tables that `tasktransfer statistics` computes from them": columns.STATISTICS,
    "Additional table for prompted models": {outputs.PROMPTED[0]: columns.PROMPTED},
    "Additional table for references": {outputs.REFERENCES[0]: columns.REFERENCES},
    "Additional table for controls": {outputs.CONTROL_SUMMARY[0]: columns.CONTROL_SUMMARY},
}


def columns_page() -> str:
    """Return the whole page: one section per table, one row per column."""
    parts = [_HEAD]
    for title, tables in _TITLES.items():
        parts += [f"\n## {title}\n", *sections(tables)]
    return "".join(parts)


def sections(tables: Mapping[str, Columns]) -> Iterator[str]:
    """Yield one section per table, for any design."""
    for name, described in tables.items():
        yield f"\n### {name}\n\n"
        yield "| column | type | meaning |\n|---|---|---|\n"
        yield from (_format_row(*column) for column in described)


def _format_row(name: str, kind: pa.DataType, meaning: str) -> str:
    escaped = meaning.replace("|", "\\|")
    return f"| `{name}` | {_describe_kind(kind)} | {escaped} |\n"


def _describe_kind(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list of {_describe_kind(kind.value_type)}"
    words = {"string": "text", "int64": "whole number", "double": "number", "bool": "true or false"}
    return words[str(kind)]


if __name__ == "__main__":
    print(columns_page(), end="")
