"""Counts of a target's test dialogues among the training dialogues of other datasets' sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.datasets import resolve_task
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.leaks import counted
from tasktransfer.results.frames import Frames


def make(frames: Frames) -> pd.DataFrame:
    """Return one row per counted pair of tasks from two datasets."""
    return pd.DataFrame(
        {
            "dataset": dataset,
            "target": target,
            "source": f"{home}/{source}",
            "shared": shared.count,
            "of": shared.of,
            "example": " is ".join(shared.example or ()),
        }
        for (home, source, dataset, target), shared in counted(frames.study).items()
    )


def make_notes(frames: Frames, frame: pd.DataFrame) -> Sequence[str]:
    """Return a note on the leaks that the config allows."""
    allowed = get_transfer_config(frames.study).allow_leaks
    return [f"Allowed by the study: {', '.join(allowed)}."] if allowed else []


def is_behind(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run trains on the source of a row and is tested on its target."""
    about = run.about
    if (about.get("dataset"), about.get("target")) != (row["dataset"], row["target"]):
        return False
    own = resolve_task(row["dataset"], row["source"])
    return own in [resolve_task(row["dataset"], source) for source in about["sources"]]
