"""Mean differences of each algorithm from each control: the table ``control_summary``.

Multitask → fine-tune trains on its target twice, so its mean gain over the baseline contains the
effect of longer training. Its mean gain over ``longer_baseline``, which trains on the target alone
for twice the budget, does not. The intervals are those of the table ``summary``
(``statistics.joint``), with the control's runs in place of the baselines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from tasktransfer.designs.transfer.collect.columns import CONTROL_SUMMARY, frame
from tasktransfer.designs.transfer.collect.results import Tables, read_tables
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.statistics.by_dialogue import by_dialogue
from tasktransfer.designs.transfer.statistics.controls import replace_baselines
from tasktransfer.designs.transfer.statistics.joint import joint_confidence
from tasktransfer.results.store import write_frame
from tasktransfer.results.study import Study
from tasktransfer.stats.false_discovery import compute_q_values

_GROUP = ["dataset", "model", "algorithm"]


def write_control_summary(study: Study) -> None:
    """Write ``tables/control_summary.parquet``."""
    tables, metadata = read_tables(Path(study.tables))
    rows = summarise_controls(tables, Path(study.config.results))
    file = Path(study.tables, "control_summary.parquet")
    write_frame(file, rows, CONTROL_SUMMARY, metadata)
    print(f"{file}: {len(rows):,} rows")


def summarise_controls(tables: Tables, root: Path) -> pd.DataFrame:
    """Compute the columns of ``CONTROL_SUMMARY``.

    Args:
        tables: the collected tables.
        root: the results folder that the paths in the tables are relative to.

    Raises:
        RecordError: a predictions file is not the one that was collected; names it.
    """
    rows = [row for control in CONTROLS for row in _summarise_control(control, tables, root)]
    table = frame("control_summary", rows)
    table["q"] = compute_q_values(table["p"])
    return table


def _summarise_control(control: str, tables: Tables, root: Path) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a control without q."""
    parts = [*replace_baselines(control, tables)]
    deltas = pd.concat([frame("deltas", []), *(part.deltas for part in parts)], ignore_index=True)
    deltas = deltas[deltas["delta"].notna()]
    if deltas.empty:
        return
    runs = pd.concat([part.runs for part in parts], ignore_index=True)
    dialogues = by_dialogue(replace(tables, runs=runs), root)
    for key, group in deltas.groupby(_GROUP, sort=False):
        pairs = group.groupby(["source", "target"]).ngroups
        found = joint_confidence(group, dialogues)
        mean = float(group.groupby(["source", "target"])["delta"].mean().mean())
        seeds = int(group["seed"].nunique())
        yield (*key, control, pairs, seeds, mean, found.low, found.high, found.p, None)
