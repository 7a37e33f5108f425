"""Mean differences of each algorithm from each control, for the table ``control_summary``.

Multitask → fine-tune trains on its target twice, so its mean gain over the baseline contains the
effect of longer training. Its mean gain over ``longer_baseline``, which trains on the target alone
for twice the budget, does not. The intervals are those of the table ``summary``
(``statistics.joint``), with the control's runs in place of the baselines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.statistics.by_dialogue import compute_dialogue_scores
from tasktransfer.designs.transfer.statistics.controls import replace_baselines
from tasktransfer.designs.transfer.statistics.joint import compute_joint_interval
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import build_frame
from tasktransfer.stats.false_discovery import compute_q_values

_GROUP = ["dataset", "model", "algorithm"]


def make_control_summary(frames: Frames) -> pd.DataFrame:
    """Return the frame ``control_summary``."""
    root = Path(frames.study.config.results)
    return summarise_controls(frames["transfer_runs"], frames["control_runs"], root)


def summarise_controls(runs: pd.DataFrame, control_runs: pd.DataFrame, root: Path) -> pd.DataFrame:
    """Compute the columns of ``CONTROL_SUMMARY``.

    Args:
        runs: columns of ``columns.RUNS``.
        control_runs: the same columns, for runs of controls.
        root: the results folder that the paths in the tables are relative to.

    Raises:
        RecordError: a predictions file is not the one that was collected; names it.
    """
    parts = ((control, [*replace_baselines(control, runs, control_runs)]) for control in CONTROLS)
    rows = [row for control, part in parts for row in _summarise_control(control, part, root)]
    table = build_frame(rows, columns.CONTROL_SUMMARY)
    table["q"] = compute_q_values(table["p"])
    return table


def _summarise_control(
    control: str, parts: Sequence[tuple[pd.DataFrame, pd.DataFrame]], root: Path
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a control without q; ``parts`` has its runs and deltas."""
    empty = build_frame([], columns.DELTAS)
    deltas = pd.concat([empty, *(deltas for _, deltas in parts)], ignore_index=True)
    deltas = deltas[deltas["delta"].notna()]
    if deltas.empty:
        return
    dialogues = compute_dialogue_scores(
        pd.concat([runs for runs, _ in parts], ignore_index=True), root
    )
    for key, group in deltas.groupby(_GROUP, sort=False):
        pairs = group.groupby(["source", "target"]).ngroups
        found = compute_joint_interval(group, dialogues)
        mean = float(group.groupby(["source", "target"])["delta"].mean().mean())
        seeds = int(group["seed"].nunique())
        yield (*key, control, pairs, seeds, mean, found.low, found.high, found.p, None)
