"""Table 1 of the paper: the tasks and their samples."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from tasktransfer.datasets import find_task
from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.published import (
    Correspondence,
    add_published_values,
    explain_no_comparison,
    find_correspondence,
    has_published_values,
    list_difference_notes,
)
from tasktransfer.designs.transfer.tables.names import fit_short_names, get_short_names
from tasktransfer.present.numbers import DASH, format_count
from tasktransfer.present.printed import Entry, Layout, group_blocks
from tasktransfer.results.frames import Frames
from tasktransfer.results.metadata import Metadata, sort_rows

SPLITS = ("train", "dev", "test")
COLUMNS = {
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
        One row per dataset and task of the study, columns as in ``COLUMNS``; None without tasks.
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


def describe_table(
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


def lay_out_table(frame: pd.DataFrame, metadata: Metadata) -> Layout:
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
