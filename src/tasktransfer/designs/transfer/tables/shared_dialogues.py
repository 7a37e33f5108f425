"""Counts of a target's test dialogues among the training dialogues of other datasets' sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.datasets import resolve_task
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.leaks import read_shared_dialogues
from tasktransfer.results.frames import Frames


def list_shared_dialogues(frames: Frames) -> pd.DataFrame:
    """Return one row per pair of tasks from two datasets whose shared dialogues were counted."""
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


def is_source_run(row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a run trains on the source of a row and is tested on its target."""
    about = run.about
    if (about.get("dataset"), about.get("target")) != (row["dataset"], row["target"]):
        return False
    own = resolve_task(row["dataset"], row["source"])
    return own in [resolve_task(row["dataset"], source) for source in about["sources"]]
