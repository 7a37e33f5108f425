"""Top-1 without selection bias: the source is chosen on dev or on held-out test data.

The paper's top-1 takes, per target, the source with the best mean on the same test scores that it
reports. Two alternatives avoid this (``stats.chosen``):

``top1_dev``      the source is chosen by dev scores, over all seeds. Dev and test scores of one
                  run are correlated, so a small bias remains
``top1_heldout``  the source is chosen by the test scores of the other seeds on one half of the
                  dialogues, and evaluated with this seed on the other half; the mean over seeds
                  and halves. Without an effect its expectation is 0, because choice and
                  evaluation share neither seeds nor dialogues
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.statistics.by_dialogue import (
    DialogueScores,
    make_dialogue_scores,
)
from tasktransfer.designs.transfer.statistics.deltas import (
    build_cube,
    group_by_dataset,
    select_fresh_deltas,
    select_single_source,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.metadata import Order
from tasktransfer.results.store import build_frame
from tasktransfer.selection.choose import select_dev_deltas
from tasktransfer.stats.chosen import (
    Target,
    compute_heldout_deltas,
    compute_mean_over_seeds,
    select_best_source,
    simulate_half_width,
)
from tasktransfer.stats.draws import Floats, create_generator


def make_top1(frames: Frames) -> pd.DataFrame:
    """Return the frame ``top1``, the deltas of the best source of each target."""
    deltas, runs = frames.compute_once(select_fresh_deltas), frames["transfer_runs"]
    return compute_top1(
        deltas, runs, frames.compute_once(make_dialogue_scores), frames.metadata.order
    )


def compute_top1(
    deltas: pd.DataFrame,
    runs: pd.DataFrame,
    dialogues: Mapping[tuple[str, str], DialogueScores],
    order: Order | None = None,
) -> pd.DataFrame:
    """Compute the table ``top1`` with one row per dataset, model and algorithm.

    Args:
        deltas: columns of ``columns.DELTAS``; multi-source runs are ignored.
        runs: columns of ``columns.RUNS``, which have the dev scores.
        dialogues: result of ``compute_dialogue_scores``; a group with a target that is missing
            from it has no held-out values.
        order: order of the rows (``Metadata.order``).

    Returns:
        Columns of ``columns.TOP1``. Pairs without all seeds of the group are not candidates;
        ``n_pairs`` counts the candidates.
    """
    if select_single_source(deltas).empty:
        return build_frame([], columns.TOP1)
    on_dev = select_dev_deltas(deltas, runs)
    dev_groups = {
        (dataset, *key): rows
        for dataset, _, groups in group_by_dataset(on_dev, order)
        for key, rows in groups.items()
    }
    rows: list[tuple[Any, ...]] = []
    for dataset, tasks, groups in group_by_dataset(deltas, order):
        for (model, algorithm), group in groups.items():
            seeds = sorted(group["seed"].unique())
            key = (dataset, model, algorithm)
            test, dev = (build_cube(one, tasks, seeds) for one in (group, dev_groups[key]))
            whole = np.asarray(~np.isnan(test).any(axis=2, keepdims=True), np.bool_)
            targets = whole.any(axis=(0, 2))
            test, dev = (np.where(whole, values, np.nan)[:, targets] for values in (test, dev))
            names = [tasks[index] for index in np.flatnonzero(targets)]
            of_halves = _build_targets(group, whole[:, targets, 0], tasks, names, seeds, dialogues)
            rows.append(
                (*key, *_compute_top1_columns(test, dev), *_average_heldout(of_halves, key))
            )
    return build_frame(rows, columns.TOP1)


def _compute_top1_columns(test: Floats, dev: Floats) -> tuple[Any, ...]:
    """Return the columns ``n_targets`` to ``top1_dev_high`` for (sources, targets, seeds)."""
    _, targets, seeds = test.shape
    pairs = int((~np.isnan(test[:, :, 0])).sum())
    if targets == 0:
        return 0, 0, seeds, *[np.nan] * 4
    best = np.nanmax(test.mean(axis=2), axis=0).clip(min=0).mean()
    return (
        targets,
        pairs,
        seeds,
        float(best),
        *compute_mean_over_seeds(select_best_source(dev.mean(axis=2), test)),
    )


def _build_targets(
    group: pd.DataFrame,
    whole: npt.NDArray[np.bool_],
    sources: Sequence[str],
    targets: Sequence[str],
    seeds: Sequence[int],
    dialogues: Mapping[tuple[str, str], DialogueScores],
) -> list[Target] | None:
    """Return each target's deltas on halves of the test set and by dialogue.

    Return None if any run has no predictions. ``whole`` is a mask of the candidate pairs, of shape
    (sources, targets).
    """
    runs = {
        (source, target, seed): ((model, run), (model, baseline))
        for source, target, seed, model, run, baseline in group[
            ["source", "target", "seed", "model", "digest", "baseline_digest"]
        ].itertuples(index=False, name=None)
    }
    result = []
    for column, target in enumerate(targets):
        tested = dialogues.get((str(group["dataset"].iloc[0]), target))
        candidates = [name for name, kept in zip(sources, whole[:, column], strict=True) if kept]
        pairs = [[runs[source, target, seed] for seed in seeds] for source in candidates]
        if tested is None or any(
            name not in tested.halves for row in pairs for both in row for name in both
        ):
            return None
        halves, pulls = (
            np.array([[of[run] - of[baseline] for run, baseline in row] for row in pairs])
            for of in (tested.halves, tested.pulls)
        )
        result.append(Target(np.moveaxis(halves, (0, 1), (2, 3)), tested.firsts, pulls))
    return result


def _average_heldout(
    targets: list[Target] | None, key: tuple[str, str, str]
) -> tuple[float, float, float]:
    """Average the held-out deltas over targets, with an interval."""
    if not targets or targets[0].halves.shape[-1] < 2:
        return np.nan, np.nan, np.nan
    mean = float(np.mean([compute_heldout_deltas(target.halves).mean() for target in targets]))
    half = simulate_half_width(targets, create_generator("top1", *key))
    if half == 0:  # the baseline is also chosen in every study of pure noise
        half = np.nan
    return mean, mean - half, mean + half
