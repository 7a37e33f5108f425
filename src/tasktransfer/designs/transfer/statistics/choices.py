"""Choices of targets and sources from results, and the top-1 without selection bias.

The baseline check compares baselines with references on the dev split. The methods of selectors
are in ``selection``; their frames are here because they read the design's config and race.

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

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tasktransfer.core.nodes import Stage
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.choices import CheckedTarget, TargetName
from tasktransfer.designs.transfer.config import TransferConfig, get_transfer_config
from tasktransfer.designs.transfer.runs import BASELINE, NO_MODEL, is_check
from tasktransfer.designs.transfer.statistics.by_dialogue import (
    DialogueScores,
    make_dialogue_scores,
)
from tasktransfer.designs.transfer.statistics.deltas import (
    build_cube,
    group_by_dataset,
    read_study_race,
    select_fresh_deltas,
    select_single_source,
)
from tasktransfer.errors import RecordError
from tasktransfer.results.collect import Collected
from tasktransfer.results.frames import Frames
from tasktransfer.results.records import get_selected_round
from tasktransfer.results.store import Order, build_frame
from tasktransfer.selection.choose import select_dev_deltas
from tasktransfer.selection.methods import SELECTORS
from tasktransfer.selection.nodes import is_selection_run
from tasktransfer.selection.values import (
    NOT_THERE,
    compute_study_regret,
    compute_values,
    leave_out_unlearned_targets,
)
from tasktransfer.stats.chosen import (
    Target,
    compute_heldout_deltas,
    compute_mean_over_seeds,
    select_best_source,
    simulate_half_width,
)
from tasktransfer.stats.draws import Floats, create_generator

# --- learned targets ---


def compare_baselines_with_references(
    collected: Collected, targets: Mapping[str, Sequence[str]]
) -> list[CheckedTarget]:
    """Compare the baselines of targets with the references on the dev split.

    Args:
        collected: records of the baselines and the references.
        targets: dataset → targets.

    Raises:
        RecordError: a record does not have a dev score.
    """
    baselines: dict[TargetName, dict[str, float]] = {}
    references: dict[TargetName, dict[str, float]] = {}
    for run in collected.runs:
        dataset, model, target = run.about["dataset"], run.model, run.about["target"]
        if is_check(run):
            results = collected.record(run.judged[0])["results"]
            for task, result in results.items():
                by_name = references.setdefault((dataset, model, task), {})
                if result["score"] is not None:
                    by_name[run.about["reference"]] = result["score"]
        elif run.method == BASELINE and target in targets.get(dataset, ()):
            (stage,) = run.judged
            assert isinstance(stage, Stage)
            score = get_selected_round(collected.record(stage), stage.selection.tasks).dev_score
            baselines.setdefault((dataset, model, target), {})[stage.digest] = score
    return [
        _compare_with_references(
            key,
            scores,
            {**references.get((key[0], NO_MODEL, key[2]), {}), **references.get(key, {})},
        )
        for key, scores in baselines.items()
    ]


def _compare_with_references(
    key: TargetName, scores: Mapping[str, float], references: Mapping[str, float]
) -> CheckedTarget:
    mean = sum(scores.values()) / len(scores)
    best = max(references, key=references.__getitem__, default=None)
    highest = None if best is None else references[best]
    dataset, model, target = key
    return {
        "dataset": dataset,
        "model": model,
        "target": target,
        "dev_score": mean,
        "reference": best,
        "reference_dev_score": highest,
        "learned": highest is None or mean > highest,
        "baselines": [*scores],
    }


# --- selectors ---


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


# --- top-1 ---


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
