"""The tables of the paper, for notebooks as frames and for people as files.

From a notebook::

    from tasktransfer.designs.transfer.tables.paper_tables import table2
    from tasktransfer.designs.transfer.collect.results import read_results

    table2(read_results("results/demo/tables"))

Tables 4 and 5 of the paper are prompts: the cards of ``tasktransfer.tasks`` hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.collect.results import Results
from tasktransfer.designs.transfer.outputs import PAPER_TABLES, PRINTED, PUBLISHED_CHECK
from tasktransfer.designs.transfer.tables import multi_source_tables as multi
from tasktransfer.designs.transfer.tables import table1 as first
from tasktransfer.designs.transfer.tables import table2 as second
from tasktransfer.designs.transfer.tables.correspondence import (
    PUBLISHED,
    Correspondence,
    correspondence,
)
from tasktransfer.designs.transfer.tables.multi_source_tables import table3, table6
from tasktransfer.designs.transfer.tables.table1 import table1
from tasktransfer.designs.transfer.tables.table2 import table2
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.printed import Layout, plain_layout, write_table

__all__ = ["printed_tables", "table1", "table2", "table3", "table6", "write_all_tables"]


@dataclass(frozen=True, slots=True)
class _Table:
    """How a table is made and printed, and what is said where the study has none of it."""

    make: Callable[[Results], pd.DataFrame | None]
    caption: Callable[[pd.DataFrame, Metadata, Correspondence], str]
    layout: Callable[[pd.DataFrame, Metadata], Layout]
    columns: Mapping[str, str]
    nothing: str


_SPECIFICATIONS = (
    _Table(table1, first.caption, first.layout, first.COLUMNS, "has no task yet"),
    _Table(table2, second.caption, second.layout, second.COLUMNS, "has no single-source transfer"),
    _Table(table3, multi.caption3, multi.layout3, multi.COLUMNS3, "has no run of several sources"),
    _Table(table6, multi.caption6, multi.layout6, multi.COLUMNS6, "has no run of several sources"),
)
_TABLES = dict(zip(PAPER_TABLES, _SPECIFICATIONS, strict=True))


@dataclass(frozen=True, slots=True)
class Printed:
    """A table as people see it: what all of its files and the report are made of. ``columns``: the
    meaning of each; ``metadata`` None: it is of the paper alone."""

    name: str
    title: str
    caption: str
    frame: pd.DataFrame
    layout: Layout
    columns: Mapping[str, str]
    metadata: Metadata | None


def printed_tables(results: Results) -> list[Printed]:
    """Tables 1, 2, 3 and 6, and the check of the published Table 2, in the order of ``PRINTED``."""
    return [*(_printed(name, table, results) for name, table in _TABLES.items()), _check()]


def write_all_tables(results: Results, out: Path) -> list[Path]:
    """Write Tables 1, 2, 3 and 6, and the check of the published Table 2, into ``out``.

    All of ``PRINTED`` are written, whatever the study has: a table without rows says so.

    Returns:
        The files written: ``<name>.parquet``, ``.csv``, ``.md`` and ``.tex`` of each.
    """
    return [
        path
        for table in printed_tables(results)
        for path in write_table(
            out,
            table.name,
            table.frame,
            table.metadata,
            table.caption,
            title=table.title,
            layout=table.layout,
            described=table.columns,
        )
    ]


def _printed(name: str, table: _Table, results: Results) -> Printed:
    metadata, frame = results.metadata, table.make(results)
    if frame is None:
        ours = [column for column in table.columns if not column.startswith(PUBLISHED)]
        frame = pd.DataFrame(columns=ours)
        caption = f"{metadata.mark}Study {metadata.study} {table.nothing}."
    else:
        caption = table.caption(frame, metadata, correspondence(results))
    layout = table.layout(frame, metadata)
    columns = {**table.columns, **(second.ASKED_COLUMNS if table.make is table2 else {})}
    return Printed(name, PRINTED[name], caption, frame, layout, columns, metadata)


def _check() -> Printed:
    """``published.consistency``: of the paper alone, so it is the same beside every study."""
    caption = (
        "Check of the paper's own Table 2, nothing of this study: score minus delta is the mean "
        "baseline, so it is the same for the three algorithms and for both aggregates, within "
        f"{published.ROUNDING} points of rounding."
    )
    frame, name = published.consistency(), PUBLISHED_CHECK
    return Printed(
        name, PRINTED[name], caption, frame, plain_layout(frame), published.CONSISTENCY, None
    )
