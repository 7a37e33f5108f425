"""The study's answer in sentences: whether transfer helps, where, and from what."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tasktransfer.designs.transfer.report.first_source import first_sources
from tasktransfer.designs.transfer.tables.names import algorithm_label, short_names
from tasktransfer.present.sentences import (
    above,
    below,
    counted_of,
    excludes_zero,
    listed,
    with_interval,
)
from tasktransfer.present.view import View

NOTHING = "Nothing can be told of transfer: the study has no pair of tasks with an interval."


def answer(view: View) -> list[str]:
    """Sentences made of ``cells`` (single sources) and ``summary``."""
    cells = view["cells"]
    first = first_sources(cells, view["runs"])
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    tested = singles[singles["q"].notna()]
    if tested.empty:
        once = " (one seed: how much trainings differ cannot be judged)" if len(singles) else ""
        return first or [f"{NOTHING[:-1]}{once}."]
    return [*first, *_cells(tested, view), *_averages(view["summary"])]


def _cells(tested: pd.DataFrame, view: View) -> Iterator[str]:
    better, worse = tested[above(tested, "delta")], tested[below(tested, "delta")]
    what = f"{len(tested)} cells (a source, target, model and algorithm)"
    if better.empty and worse.empty:
        yield f"No transfer is told apart from its baseline: none of {what} at q ≤ 0.05."
        return
    yield (
        f"{counted_of(len(better), len(tested), 'cells').capitalize()} (a source, target, model "
        f"and algorithm) are surely better than their baseline, {len(worse) or 'none'} surely "
        "worse (q ≤ 0.05)."
    )
    names = short_names(
        list(dict.fromkeys([*tested["source"], *tested["target"]])), view.metadata.shorts
    )
    for rows, word in ((better, "gain"), (worse, "loss")):
        if rows.empty:
            continue
        row = rows.iloc[int(rows["delta"].abs().argmax())]
        size = with_interval(row["delta"], row["low"], row["high"], "+.1f")
        yield (
            f"The largest sure {word} is {names[row['source']]} → {names[row['target']]} "
            f"({row['dataset']}, {row['model']}, {algorithm_label(str(row['algorithm']))}): "
            f"{size} points."
        )


def _averages(summary: pd.DataFrame) -> Iterator[str]:
    """Of the means over all pairs that surely differ from 0."""
    sure = [
        f"{algorithm_label(str(row['algorithm']))} with {row['model']} on {row['dataset']} "
        f"({with_interval(row['mean'], row['joint_low'], row['joint_high'], '+.2f')})"
        for row in summary.to_dict("records")
        if excludes_zero(row["joint_low"], row["joint_high"])
    ]
    if sure:
        yield f"Averaged over all pairs, transfer surely changes scores by {listed(sure)} points."
    elif summary["joint_low"].isna().all():
        yield (
            "Whether an algorithm changes scores averaged over all pairs cannot be told for other "
            "seeds and dialogues together: that needs every pair with the same two seeds or more. "
            "Means with intervals over seeds alone stand under How sure."
        )
    else:
        yield "Averaged over all pairs, no algorithm surely changes scores."
