"""Selectors of a transfer study: their frames, and the values that choose sources.

The methods are in ``selection``. This module is part of the design because it reads its config,
its frames and its race.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.config import TransferConfig, get_transfer_config
from tasktransfer.designs.transfer.statistics.deltas import read_study_race
from tasktransfer.errors import RecordError
from tasktransfer.results.collect import Collected
from tasktransfer.results.frames import Frames
from tasktransfer.selection.methods import SELECTORS
from tasktransfer.selection.nodes import is_selection_run
from tasktransfer.selection.values import (
    NOT_THERE,
    compute_study_regret,
    compute_values,
    leave_out_unlearned_targets,
)


def make_selectors(frames: Frames) -> pd.DataFrame:
    """Return the frame ``selectors``, with a selector's value for each pair and seed."""
    runs = [run for run in frames.study.plan.runs if is_selection_run(run)]
    collected = frames.gather_records(runs) if runs else None
    config, common = get_transfer_config(frames.study), _select_common_seeds(frames)
    return compute_study_values(config, common, collected)


def make_regret(frames: Frames) -> pd.DataFrame:
    """Return the frame ``regret``, for targets whose baselines have learned."""
    common = _select_common_seeds(frames)
    learned = leave_out_unlearned_targets(common["deltas"], frames.get("references"))
    return compute_study_regret(common.replace({"deltas": learned}), frames["selectors"])


def _select_common_seeds(frames: Frames) -> Frames:
    """Return the frames with only the seeds of a race that every pair has."""
    race, deltas = read_study_race(frames.study), frames["deltas"]
    if race is None:
        return frames
    return frames.replace({"deltas": deltas[deltas["seed"].isin(race.seeds[0])]})


def compute_chooser_values(runs: Iterable[Run], frames: Frames) -> pd.DataFrame:
    """Compute the values of the selector in ``multi_source.choose_by``.

    Args:
        runs: runs of the plan before the selection.
        frames: frames of the single-source transfers.

    Raises:
        RecordError: a value has not been computed yet.
    """
    config = get_transfer_config(frames.study)
    chooser = config.model_copy(update={"selectors": (config.multi_source.choose_by,)})
    own = [run for run in runs if is_selection_run(run) and run.variant in chooser.selectors]
    values = compute_study_values(chooser, frames, frames.gather_records(own) if own else None)
    absent = values[values["reason"] == NOT_THERE]
    if len(absent):
        first = absent.iloc[0]
        raise RecordError(
            f"The table lacks {len(absent)} values of the selector {first['selector']}, for "
            f"example for {first['dataset']}, model {first['model']}, {first['source']} -> "
            f"{first['target']}, seed {first['seed']}. Run snakemake to compute the values, "
            "because sources must not be selected from an incomplete table."
        )
    return values


def compute_study_values(
    config: TransferConfig,
    frames: Mapping[str, pd.DataFrame],
    collected: Collected | None = None,
) -> pd.DataFrame:
    """Compute the values of the configured selectors (frame of ``selection.values``)."""
    selectors = [SELECTORS[name] for name in config.selectors]
    families = {model.name: model.family for model in config.models}
    return compute_values(selectors, families, frames, collected)
