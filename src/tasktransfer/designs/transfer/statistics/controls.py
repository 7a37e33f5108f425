"""Comparison of transfer with controls: by cell, and by algorithm as the mean over its pairs.

The control's runs replace the baseline's runs, and ``cells`` computes the numbers. Its rules on
intervals, pairs and q apply unchanged. The second heatmap uses these numbers: a cell's delta minus
its shuffled source's delta is its delta over ``shuffled_source``, because both have the same
baselines.

Multitask → fine-tune trains on its target twice, so its mean gain over the baseline contains the
effect of longer training. Its mean gain over ``longer_baseline``, which trains on the target alone
for twice the budget, does not. The intervals of these means are those of the table ``summary``
(``by_dialogue``), with the control's runs in place of the baselines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.algorithms import (
    BEATS,
    CANNOT_TELL,
    CONTROLS,
    EXPLAINED,
    HURTS,
    NOT_JUDGED,
    PAIR_CONTROLS,
)
from tasktransfer.designs.transfer.collect import compute_deltas
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.statistics.by_dialogue import (
    compute_dialogue_scores,
    compute_joint_interval,
)
from tasktransfer.designs.transfer.statistics.cells import MARKED, compute_cells
from tasktransfer.results.frames import Frames, list_column_names
from tasktransfer.results.store import build_frame
from tasktransfer.stats.bootstrap import compute_q_values

EXPLAINS = 0.5
"""Fraction of a cell's gain that a control must significantly reach to explain it."""

_CELL = list_column_names(columns.CELLS)[:7]
_PLAIN = [name for name in _CELL if name != "sources"]
"""A cell's names without ``sources``: lists cannot be join keys, and ``source`` is equivalent."""


def make_control_cells(frames: Frames) -> pd.DataFrame:
    """Return the frame ``control_cells``, reusing unchanged rows of the earlier frame."""
    root, earlier = Path(frames.study.config.results), frames.earlier.get("control_cells")
    return compute_control_cells(frames["transfer_runs"], frames["control_runs"], root, earlier)


def make_controls(frames: Frames) -> pd.DataFrame:
    """Return the frame ``controls``, for all planned controls."""
    planned = {run.method for run in frames.study.plan.runs}
    names = [name for name in CONTROLS if name in planned]
    return compute_controls(frames["control_cells"], frames["cells"], names)


def compute_control_cells(
    runs: pd.DataFrame,
    control_runs: pd.DataFrame,
    root: Path,
    previous: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Compute the table ``control_cells``, which is ``cells`` with controls instead of baselines.

    Args:
        runs: columns of ``columns.RUNS``.
        control_runs: the same columns, for runs of controls.
        root: the results folder that the paths in the tables are relative to.
        previous: an earlier result; its rows are reused as in ``cells``.

    Returns:
        Columns ``columns.CONTROL_CELLS``, for single-source cells only. ``q`` is adjusted over all
        cells of a dataset, for each control.

    Raises:
        RecordError: a predictions file has changed since it was collected.
    """
    earlier = None if previous is None else previous.drop(columns="control", errors="ignore")
    parts = [
        compute_cells(*part, root, earlier).assign(control=control)
        for control in CONTROLS
        for part in replace_baselines(control, runs, control_runs)
    ]
    if not parts:
        return build_frame([], columns.CONTROL_CELLS)
    over = pd.concat(parts, ignore_index=True)
    several = over["p"].where(over["n_seeds"] > 1)
    families = [over["dataset"], over["control"]]
    over["q"] = several.groupby(families, sort=False).transform(compute_q_values)
    over["significant"] = over["q"] <= MARKED
    return over[list_column_names(columns.CONTROL_CELLS)]


def compute_controls(
    over: pd.DataFrame, heatmap_cells: pd.DataFrame, names: Sequence[str]
) -> pd.DataFrame:
    """Compute the table ``controls``, with one row per single-source cell and control.

    Args:
        over: columns of ``columns.CONTROL_CELLS``.
        heatmap_cells: columns of ``columns.CELLS``, of the same tables.
        names: the study's controls.

    Returns:
        Columns ``columns.CONTROLS``, in the order of ``heatmap_cells``. A control without a run for
        any of a cell's seeds has a row with NaN. All rows of a cell have the same ``verdict``.
    """
    single_source = heatmap_cells[heatmap_cells["n_sources"] == 1]
    if single_source.empty or not names:
        return build_frame([], columns.CONTROLS)
    own = ["n_seeds", "baseline_score", "delta", "low", "high", "p", "q"]
    over = over[[*_PLAIN, "control", *own]].rename(columns={"baseline_score": "control_score"})
    baseline = single_source[[*_CELL, "baseline_score", "delta", "q"]].rename(
        columns={"delta": "delta_of_cell", "q": "q_of_cell"}
    )
    rows = baseline.merge(pd.DataFrame({"control": [*names]}), how="cross")
    rows = rows.merge(over, on=[*_PLAIN, "control"], how="left", validate="one_to_one")
    rows["n_seeds"] = rows["n_seeds"].fillna(0).astype("int64")
    rows["control_delta"] = rows["control_score"] - rows["baseline_score"]
    verdict_columns = rows.groupby(_PLAIN, sort=False)[
        ["delta", "high", "q", "delta_of_cell", "q_of_cell"]
    ]
    verdicts = verdict_columns.apply(_judge_rows).rename("verdict").reset_index()
    rows = rows.merge(verdicts, on=_PLAIN, how="left")
    ordered_rows = rows[list_column_names(columns.CONTROLS)]
    return build_frame(ordered_rows.itertuples(index=False, name=None), columns.CONTROLS)


def replace_baselines(
    control: str, runs: pd.DataFrame, control_runs: pd.DataFrame
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield runs and deltas after replacing baselines by a control's runs.

    A target has one baseline, so a control with one run per source yields one pair of frames per
    source.
    """
    transfers = runs[runs["n_sources"] == 1]
    replacements = control_runs[control_runs["algorithm"] == control]
    groups = (
        replacements.groupby("source", sort=False)
        if control in PAIR_CONTROLS
        else [("", replacements)]
    )
    for source, baselines in groups:
        compared = (
            transfers[transfers["source"] == source] if control in PAIR_CONTROLS else transfers
        )
        as_baselines = baselines.assign(
            algorithm=BASELINE,
            source="",
            sources=baselines["sources"].map(lambda _: []),
            n_sources=0,
        )
        both = pd.concat([as_baselines, compared], ignore_index=True)
        yield both, compute_deltas(both)


def _judge_rows(cell: pd.DataFrame) -> str:
    first = cell.iloc[0]
    return judge_cell(
        float(first["delta_of_cell"]),
        float(first["q_of_cell"]),
        [
            ControlEffect(*map(float, row))
            for row in zip(cell["delta"], cell["high"], cell["q"], strict=True)
        ],
    )


@dataclass(frozen=True, slots=True)
class ControlEffect:
    """A cell's delta over a control, the upper end of its 95 % interval, and its q.

    Values are NaN if the control has no run or no test.
    """

    delta: float
    high: float
    q: float


def judge_cell(delta: float, q: float, over: Sequence[ControlEffect]) -> str:
    """Return the verdict on whether a cell's gain comes from its source.

    Args:
        delta, q: the cell relative to the baseline; q is NaN without a test.
        over: the cell relative to each of the study's controls.

    Returns:
        ``hurts``: below the baseline with q <= 0.05. Cells above it with q <= 0.05 are ``beats all
        controls`` if they are above each control with q <= 0.05. Otherwise they are ``explained by
        a control`` if a control, which has no information from the source, gives at least half of
        the gain: the interval over it ends at half of ``delta`` or below. ``cannot tell``: all
        other cells, including those with a missing control. ``not judged``: the cell has no q,
        because it has one seed or no predictions.
    """
    if math.isnan(q):
        return NOT_JUDGED
    if q > MARKED or delta == 0:
        return CANNOT_TELL
    if delta < 0:
        return HURTS
    if all(control.delta > 0 and control.q <= MARKED for control in over):
        return BEATS
    if any(control.high <= EXPLAINS * delta for control in over):
        return EXPLAINED
    return CANNOT_TELL


# --- means over pairs ---


_GROUP = ["dataset", "model", "algorithm"]


def make_control_summary(frames: Frames) -> pd.DataFrame:
    """Return the frame ``control_summary``, mean differences from controls."""
    root = Path(frames.study.config.results)
    return summarise_controls(frames["transfer_runs"], frames["control_runs"], root)


def summarise_controls(runs: pd.DataFrame, control_runs: pd.DataFrame, root: Path) -> pd.DataFrame:
    """Compute the table ``control_summary``, one row per dataset, model, algorithm and control.

    Args:
        runs: columns of ``columns.RUNS``.
        control_runs: the same columns, for runs of controls.
        root: the results folder that the paths in the tables are relative to.

    Raises:
        RecordError: a predictions file has changed since it was collected.
    """
    parts = ((control, [*replace_baselines(control, runs, control_runs)]) for control in CONTROLS)
    rows = [row for control, part in parts for row in _summarise_control(control, part, root)]
    table = build_frame(rows, columns.CONTROL_SUMMARY)
    table["q"] = compute_q_values(table["p"])
    return table


def _summarise_control(
    control: str, parts: Sequence[tuple[pd.DataFrame, pd.DataFrame]], root: Path
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one control in ``control_summary``, without q."""
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
