"""What every design's ``collect`` writes: its own tables, and beside them runs, holes, problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tasktransfer.results.collect import Collected, tables_of
from tasktransfer.results.study import Study
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.store import Columns, frame_of, read_frame, write_frame

Rows = Iterable[Sequence[Any]]


def common_columns(about: Sequence[str]) -> dict[str, Columns]:
    """The columns of ``tables.COMMON``; ``about``: what the design's runs are about."""
    run: Columns = (
        ("method", pa.string(), "what is judged"),
        ("model", pa.string(), "model, as the study names it"),
        ("seed", pa.int64(), "random seed"),
        *((key, pa.string(), f"{key} of the run; null: has none") for key in about),
    )
    return {
        "runs": (
            *run,
            ("records", pa.list_(pa.string()), "its records, relative to the results folder"),
            ("hours", pa.float64(), "wall time of all that it uses, as far as records are there"),
        ),
        "missing": (
            *run,
            ("path", pa.string(), "where its record is expected, relative to the results folder"),
            ("state", pa.string(), "waiting, running, failed, interrupted or damaged"),
            ("reason", pa.string(), "why it has no number, in one line"),
            ("node", pa.string(), "folder of the first of its nodes that is not done"),
            ("error", pa.string(), "last line of the error, or what is damaged; null: none"),
            ("remedy", pa.string(), "what to do"),
        ),
        "problems": (
            ("path", pa.string(), "the record, relative to the results folder"),
            ("error", pa.string(), "why it was left out"),
        ),
    }


def metadata_of(
    collected: Collected,
    *,
    order: Mapping[str, Sequence[str]] | None = None,
    facts: Mapping[str, str] | None = None,
    stand_ins: Mapping[str, str] | None = None,
    cuts: str = "",
    shorts: Mapping[str, str] | None = None,
) -> Metadata:
    """What every table says of the study.

    Args:
        collected: generated dialogues and cuts are taken from its records.
        order: kind of name → names in the study's order.
        facts: what else captions say.
        stand_ins: what stands in for what; None: as the records say.
        cuts: limits in force that no record's own identity says.
        shorts: task → short name.
    """
    config, synthetic = collected.study.config, collected.synthetic
    named = collected.stand_ins if stand_ins is None else stand_ins
    generated = any(synthetic.values())
    return Metadata(
        config.study,
        config.digest,
        generated,
        len(collected.records),
        shorts=shorts or {},
        order=order or {},
        real=sorted(name for name, said in synthetic.items() if not said) if generated else [],
        facts={**{f"stand-in: {name}": text for name, text in named.items()}, **(facts or {})},
        cuts=", ".join(filter(None, (collected.cuts, cuts))),
    )


def earlier_rows(study: Study, name: str, columns: Columns) -> list[tuple[Any, ...]]:
    """The rows of a table that is made of dialogues, where these are no longer there.

    Raises:
        RecordError: it is not there either.
    """
    file = Path(study.tables, f"{name}.parquet")
    frame, _ = read_frame(file, columns, "give the dialogues, or a pack that has the table")
    return list(frame.itertuples(index=False, name=None))


def write_collected(
    collected: Collected,
    tables: Mapping[str, Rows | pd.DataFrame],
    columns: Mapping[str, Columns],
    metadata: Metadata,
    about: Sequence[str],
) -> None:
    """Write a design's tables and the common ones, each atomically, and say what is missing.

    Args:
        tables: name → rows, or a frame of them.
        columns: name → columns, of the design's tables.
        about: keys of ``Run.about`` that name a run.
    """
    folder = Path(collected.study.tables)
    folder.mkdir(parents=True, exist_ok=True)
    every = {**common_columns(about), **columns}
    for name, rows in {**tables_of(collected, about), **tables}.items():
        frame = rows if isinstance(rows, pd.DataFrame) else frame_of(rows, every[name])
        write_frame(folder / f"{name}.parquet", frame, every[name], metadata)
    collected.tell()
