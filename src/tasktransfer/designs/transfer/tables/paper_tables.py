"""The paper's tables, as data frames for notebooks and as files for readers.

The table of test dialogues that datasets share is here too.

From a notebook::

    from tasktransfer.designs.transfer.tables.paper_tables import compute_table2
    from tasktransfer.designs import get_design, open_study
    from tasktransfer.designs.commands import read_frames

    study = open_study("workflow/presets/demo.yaml")
    compute_table2(read_frames(study, get_design(study.config).analysis(study)))

Tables 4 and 5 of the paper contain prompts, which are on the cards of ``tasktransfer.tasks``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.datasets import PACKAGE_DATASETS, resolve_task
from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.leaks import read_shared_dialogues
from tasktransfer.designs.transfer.published import (
    NOT_COMPARED,
    Correspondence,
    find_correspondence,
)
from tasktransfer.designs.transfer.runs import BASELINE, is_prompted, is_transfer
from tasktransfer.designs.transfer.tables import multi_source_tables as multi
from tasktransfer.designs.transfer.tables import table1 as first
from tasktransfer.designs.transfer.tables import table2 as second
from tasktransfer.designs.transfer.tables.multi_source_tables import compute_table3, compute_table6
from tasktransfer.designs.transfer.tables.table1 import compute_table1
from tasktransfer.designs.transfer.tables.table2 import compute_table2
from tasktransfer.present.printed import Layout, build_plain_layout
from tasktransfer.results.frames import Frames
from tasktransfer.results.metadata import Metadata

__all__ = ["compute_table1", "compute_table2", "compute_table3", "compute_table6"]


@dataclass(frozen=True, slots=True)
class _Table:
    """Functions that compute, annotate and lay out a table, and the meanings of its columns."""

    compute: Callable[[Frames], pd.DataFrame | None]
    notes: Callable[[pd.DataFrame, Metadata, Correspondence], Sequence[str]]
    layout: Callable[[pd.DataFrame, Metadata], Layout]
    columns: Mapping[str, str]


_TABLES = {
    "table1": _Table(compute_table1, first.describe_table, first.lay_out_table, first.COLUMNS),
    "table2": _Table(compute_table2, second.describe_table, second.lay_out_table, second.COLUMNS),
    "table3": _Table(compute_table3, multi.describe_table3, multi.lay_out_table3, multi.COLUMNS3),
    "table6": _Table(compute_table6, multi.describe_table6, multi.lay_out_table6, multi.COLUMNS6),
    "published_check": _Table(
        lambda frames: published.check_consistency(),
        lambda frame, metadata, comparable: (),
        lambda frame, metadata: build_plain_layout(frame),
        published.CONSISTENCY,
    ),
}


def compute_table(name: str, frames: Frames) -> pd.DataFrame | None:
    """Compute the rows of a paper table, or return None if there are no rows."""
    return _TABLES[name].compute(frames)


def lay_out_table(name: str, frames: Frames, frame: pd.DataFrame) -> Layout:
    """Return the printed layout of a paper table."""
    return _TABLES[name].layout(frame, frames.metadata)


def describe_table(name: str, frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return a paper table's notes on incomplete rows, comparability and terms."""
    comparable = find_correspondence(frames)
    notes = [note for note in _TABLES[name].notes(frame, frames.metadata, comparable) if note]
    names = {dataset.name for dataset in PACKAGE_DATASETS}
    if "dataset" in frame and names.isdisjoint(frame["dataset"]):
        return [note for note in notes if not note.startswith(NOT_COMPARED)]
    return notes


def describe_columns(name: str) -> Mapping[str, str]:
    """Return the meanings of a paper table's columns."""
    return {**_TABLES[name].columns, **(second.ASKED_COLUMNS if name == "table2" else {})}


def is_source_run(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a row of a paper table is computed from a run.

    Table 1 uses the task's own runs. Table 2 uses all runs of an algorithm and the baselines.
    Tables 3 and 6 use the runs on the several sources together and on each source alone.
    """
    about = run.about
    if about.get("dataset") != row["dataset"]:
        return False
    if is_prompted(run):
        algorithm = f"{second.ASKED}, {about['shots']} shots"
        return (run.model, algorithm) == (row.get("model"), row.get("algorithm"))
    if not is_transfer(run):
        return False
    if "task" in row:
        return bool(about["target"] == row["task"])
    if run.model != row["model"] or run.method not in (row["algorithm"], BASELINE):
        return False
    if "source" not in row:
        return len(about["sources"]) <= 1
    sources = str(row["source"]).split("+")
    alone = len(about["sources"]) <= 1 and {*about["sources"]} <= {*sources}
    return bool(about["target"] == row["target"] and (alone or [*about["sources"]] == sources))


# --- shared test dialogues ---


def list_shared_dialogues(frames: Frames) -> pd.DataFrame:
    """Return one row per cross-dataset pair whose shared dialogues were counted."""
    return pd.DataFrame(
        {
            "dataset": dataset,
            "target": target,
            "source": f"{owner}/{source}",
            "shared": shared.count,
            "of": shared.of,
            "example": " is ".join(shared.example or ()),
        }
        for (owner, source, dataset, target), shared in read_shared_dialogues(frames.study).items()
    )


def describe_allowed_leaks(frames: Frames, frame: pd.DataFrame) -> Sequence[str]:
    """Return a note on the leaks that the config allows, if there are any."""
    allowed = get_transfer_config(frames.study).allow_leaks
    return [f"The study allows these leaks: {', '.join(allowed)}."] if allowed else []


def is_shared_source_run(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run trains on a row's source and is tested on its target."""
    about = run.about
    if (about.get("dataset"), about.get("target")) != (row["dataset"], row["target"]):
        return False
    own = resolve_task(row["dataset"], row["source"])
    return own in [resolve_task(row["dataset"], source) for source in about["sources"]]
