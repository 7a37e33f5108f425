"""The paper's tables, as data frames for notebooks and as files for readers.

Table 1 has the tasks and their samples. The table of test dialogues that datasets share is here
too.

From a notebook::

    from tasktransfer.designs.transfer.tables.paper_tables import compute_table2
    from tasktransfer.designs import get_design, open_study
    from tasktransfer.designs.commands import read_frames

    study = open_study("workflow/presets/demo.yaml")
    compute_table2(read_frames(study, get_design(study.config).analysis(study)))

Tables 4 and 5 of the paper contain prompts, which are on the cards of ``tasktransfer.tasks``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.datasets import PACKAGE_DATASETS, find_task, resolve_task
from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.leaks import read_shared_dialogues
from tasktransfer.designs.transfer.published import (
    NOT_COMPARED,
    Correspondence,
    add_published_values,
    explain_no_comparison,
    find_correspondence,
    has_published_values,
    list_difference_notes,
)
from tasktransfer.designs.transfer.runs import (
    BASELINE,
    fit_short_names,
    get_short_names,
    is_prompted,
    is_transfer,
)
from tasktransfer.designs.transfer.tables import multi_source_tables as multi
from tasktransfer.designs.transfer.tables import table2 as second
from tasktransfer.designs.transfer.tables.multi_source_tables import compute_table3, compute_table6
from tasktransfer.designs.transfer.tables.table2 import compute_table2
from tasktransfer.present.numbers import DASH, format_count
from tasktransfer.present.printed import Entry, Layout, build_plain_layout, group_blocks
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata, sort_rows

SPLITS = ("train", "dev", "test")
COLUMNS1 = {
    "dataset": "dataset",
    "task": "task",
    "short": "its short name",
    "task_type": "kind of task; null if the task has no card",
    "metrics": "metrics whose mean is the task's score, joined by ;",
    "train": "training instances in this study; NaN if no run of the task is finished",
    "dev": "dev instances in this study",
    "test": "test instances in this study",
    "published_train": "the paper's few-sample training samples",
    "published_dev": "the paper's few-sample dev samples",
    "published_test": "the paper's test samples",
    "published_original_samples": "samples of the original dataset, according to the paper",
    "published_task_type": "kind of task, in the paper's terms",
    "published_metrics": "metrics, in the paper's terms, joined by ;",
    "difference_train": "train - published_train",
    "difference_dev": "dev - published_dev",
    "difference_test": "test - published_test",
    **{f"differs_{split}": "reason why a published value is not compared" for split in SPLITS},
}
"""Meanings of the columns; ``published_`` and ``difference_`` exist if a row is comparable."""

_KINDS = {
    "utterance_classification": "utterance classification",
    "dialogue_classification": "dialogue classification",
    "multi_label": "multi-label classification",
    "multi_output": "multi-output classification",
    "multiple_choice": "multiple choice",
    "span": "span extraction",
    "reply": "reply",
    "open_labels": "open labels",
    "rating": "rating",
}
_HEAD = ("Dataset", "Task", "Short", "Type", "Metrics", "", "Original", "Train", "Dev", "Test")


def compute_table1(frames: Frames) -> pd.DataFrame | None:
    """Compute tasks and samples, next to the paper's values in its few-sample setting.

    Returns:
        One row per dataset and task of the study, columns as in ``COLUMNS1``; None without tasks.
    """
    sizes = _add_absent_tasks(frames)
    if sizes.empty:
        return None
    named = zip(sizes["dataset"], sizes["task"], strict=True)
    cards = [find_task(dataset, task) for dataset, task in named]
    short = fit_short_names(dict.fromkeys(sizes["task"]), get_short_names(frames.metadata))
    frame = pd.DataFrame(
        {
            "dataset": sizes["dataset"],
            "task": sizes["task"],
            "short": sizes["task"].map(short),
            "task_type": [card and _KINDS[card.kind] for card in cards],
            "metrics": [
                card and ";".join(map(_format_metric, card.paper_metrics)) for card in cards
            ],
            **{split: sizes[split].astype("float64") for split in SPLITS},
        }
    )
    return add_published_values(
        frame,
        published.read_table1(),
        SPLITS,
        ["dataset", "task"],
        find_correspondence(frames),
        also=["original_samples", "task_type", "metrics"],
    )


def _add_absent_tasks(frames: Frames) -> pd.DataFrame:
    """Return the sizes of tasks, including planned tasks without a record, in the study's order."""
    planned = frames["missing_runs"][["dataset", "target"]].rename(columns={"target": "task"})
    tasks = pd.concat([frames["sizes"], planned], ignore_index=True)
    tasks = tasks.drop_duplicates(["dataset", "task"])
    return sort_rows(tasks, {"dataset": "dataset", "task": "task"}, frames.metadata.order)


def _format_metric(key: str) -> str:
    """Format a metric in the paper's spelling, such as micro-F1."""
    if key.endswith("token_f1"):
        return "token-F1"
    if key.endswith("_f1"):
        return f"{key.split('_', 1)[0]}-F1"
    return key.replace("_", " ")


def describe_table1(
    frame: pd.DataFrame, metadata: Metadata, comparable: Correspondence
) -> list[str]:
    """Return notes on the published values, or on the reason why there are none."""
    if not has_published_values(frame):
        return [explain_no_comparison(frame, comparable)]
    return [
        "Published values are the sizes of the few-sample train and dev splits and of the test "
        "split (paper, Table 1). The column “Original” is the size of the original dataset.",
        *list_difference_notes(frame, comparable),
    ]


def lay_out_table1(frame: pd.DataFrame, metadata: Metadata) -> Layout:
    """Lay out one line per task, followed by the paper's values and their differences."""
    entries = [(str(row["dataset"]), _build_entry(row)) for row in frame.to_dict("records")]
    whole = Layout(_HEAD, 6, group_blocks(entries))
    return (
        whole
        if has_published_values(frame)
        else whole.drop_columns(_HEAD.index(""), _HEAD.index("Original"))
    )


def _build_entry(row: Mapping[Hashable, Any]) -> Entry:
    first = (
        str(row["dataset"]),
        str(row["task"]),
        str(row["short"]),
        row["task_type"] if isinstance(row["task_type"], str) else DASH,
        _format_metrics(row["metrics"]),
    )
    ours = (*first, "ours", "", *(format_count(row[split]) for split in SPLITS))
    if pd.isna(row.get("published_test")):
        return (ours,)
    paper = (
        *("", "", ""),
        row["published_task_type"],
        _format_metrics(row["published_metrics"]),
        "published",
        format_count(row["published_original_samples"]),
        *(format_count(row[f"published_{split}"]) for split in SPLITS),
    )
    if f"difference_{SPLITS[0]}" not in row:
        return ours, paper
    off = (format_count(row[f"difference_{split}"], signed=True) for split in SPLITS)
    return ours, paper, (*("",) * 5, "difference", "", *off)


def _format_metrics(metrics: object) -> str:
    # pandas replaces None by NaN if other rows have text.
    return metrics.replace(";", ", ") if isinstance(metrics, str) else DASH


__all__ = ["compute_table1", "compute_table2", "compute_table3", "compute_table6"]


@dataclass(frozen=True, slots=True)
class _Table:
    """Functions that compute, annotate and lay out a table, and the meanings of its columns."""

    compute: Callable[[Frames], pd.DataFrame | None]
    notes: Callable[[pd.DataFrame, Metadata, Correspondence], Sequence[str]]
    layout: Callable[[pd.DataFrame, Metadata], Layout]
    columns: Mapping[str, str]


_TABLES = {
    "table1": _Table(compute_table1, describe_table1, lay_out_table1, COLUMNS1),
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
