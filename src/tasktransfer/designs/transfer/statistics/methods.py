"""Comparison of all methods on each target: the frame ``methods``, from the records.

All methods of a target are compared in pairs, on the same test instances and seeds. q is adjusted
over all of a target's pairs, because the best method is not known before the comparison. The
recommended method is the simplest one (``core.references``) that is not significantly worse than
any other method (docs/decisions/0042). A transfer is not recommended if the baselines of its target
have collapsed: they may only have been trained for too short a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from tasktransfer.core.nodes import Fit, Stage
from tasktransfer.core.references import (
    FROZEN,
    METHODS,
    NEAREST,
    PROMPTED,
    STRENGTH,
    TRANSFER,
    get_training_method,
)
from tasktransfer.core.runs import Run, add_ancestors
from tasktransfer.designs.transfer.collect import get_scored_stage
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.frames import METHODS as METHOD_COLUMNS
from tasktransfer.designs.transfer.runs import BASELINE, NO_MODEL, is_reference, is_transfer
from tasktransfer.designs.transfer.statistics.cells import MARKED
from tasktransfer.designs.transfer.statistics.without_transfer import (
    score_baselines,
    score_prompted_models,
    score_references,
    score_task_rows,
)
from tasktransfer.results.collect import Collected
from tasktransfer.results.costs import compute_seconds
from tasktransfer.results.frames import Frames
from tasktransfer.results.records import get_selected_round
from tasktransfer.results.schema import Record
from tasktransfer.results.store import build_frame
from tasktransfer.stats.bootstrap import (
    Confidence,
    compute_confidences,
    compute_mean_confidence,
    compute_q_values,
)
from tasktransfer.stats.cells import Cell, gather_cells, get_shared_units, is_testable

Target = tuple[str, str]
"""Dataset and task."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a method, mean over seeds, or None if the records do not have it."""

    train_size: int
    seconds: float
    milliseconds: float | None = None
    parameters: int | None = None
    trained_parameters: int | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A method with its scores on a target.

    Attributes:
        model: None if the method has none.
        variant: None if the method has none.
        is_excluded: True for a transfer to a target whose baselines have collapsed.
    """

    target: Target
    name: str
    model: str | None
    variant: str | None
    cell: Cell
    cost: Cost
    is_excluded: bool = False

    @property
    def score(self) -> float:
        """Mean score over seeds."""
        return float(self.cell.trainings.scores.mean())


@dataclass(frozen=True, slots=True)
class Comparison:
    """Difference of two methods, first minus second; q is NaN without a test."""

    delta: float
    low: float
    high: float
    q: float

    def reverse(self) -> Comparison:
        """Return the reverse difference, the second method minus the first."""
        return Comparison(-self.delta, -self.high, -self.low, self.q)


def make_methods(frames: Frames) -> pd.DataFrame:
    """Return the frame ``methods``, for targets with two or more methods."""
    listed: dict[Target, list[Method]] = {}
    for method in (
        *_list_references(frames),
        *_list_baselines(frames),
        *_list_transfers(frames),
        *_list_prompted(frames),
    ):
        listed.setdefault(method.target, []).append(method)
    rows = [
        row
        for methods in listed.values()
        if len(methods) > 1
        for row in build_method_rows(sort_methods(methods))
    ]
    return build_frame(rows, METHOD_COLUMNS)


def sort_methods(methods: Iterable[Method]) -> list[Method]:
    """Return methods from the simplest to the most complex. Ties keep their order."""
    order = list(METHODS)
    return sorted(methods, key=lambda method: order.index(method.name))


# --- comparison -----------------------------------------------------------------------------------


def build_method_rows(methods: Sequence[Method]) -> Iterator[tuple[object, ...]]:
    """Yield one row per method of a target. ``methods`` must be sorted by ``sort_methods``."""
    pairs = compare_pairs([method.cell for method in methods])
    best = max(range(len(methods)), key=lambda index: methods[index].score)
    chosen = choose_recommended(methods, pairs)
    for index, method in enumerate(methods):
        cell, cost = method.cell, method.cost
        sure = compute_mean_confidence(cell.trainings, cell.units)
        beside = None if chosen is None else pairs.get((index, chosen))
        yield (
            *(*method.target, method.name, method.model, method.variant),
            *(len(cell.trainings.seeds), method.score, sure.low, sure.high),
            index == best,
            pairs[index, best].q if index != best else np.nan,
            index == chosen,
            *((beside.delta, beside.low, beside.high, beside.q) if beside else [np.nan] * 4),
            *(cost.train_size, cost.seconds, cost.milliseconds),
            *(cost.parameters, cost.trained_parameters),
        )


def compare_pairs(cells: Sequence[Cell]) -> dict[tuple[int, int], Comparison]:
    """Return the difference of each ordered pair of methods, with q adjusted over all pairs.

    A pair without shared test instances has neither interval nor q. A pair with a single seed of a
    trained method has no q, because the variation between trainings is unknown.
    """
    places = list(combinations(range(len(cells)), 2))
    estimates = [cells[a].subtract(cells[b]) for a, b in places]
    confidences, p_values = [], []
    for (a, b), estimate, sure in zip(
        places, estimates, compute_confidences(estimates), strict=True
    ):
        is_paired = get_shared_units(cells[a].units, cells[b].units) is not None
        is_tested = is_paired and is_testable(range(estimate.seeds), cells[a], cells[b])
        confidences.append(sure if is_paired else Confidence(np.nan, np.nan, np.nan, np.nan))
        p_values.append(sure.p if is_tested else np.nan)
    found: dict[tuple[int, int], Comparison] = {}
    for (a, b), estimate, sure, q in zip(
        places, estimates, confidences, compute_q_values(p_values), strict=True
    ):
        found[a, b] = Comparison(estimate.delta, sure.low, sure.high, float(q))
        found[b, a] = found[a, b].reverse()
    return found


def choose_recommended(
    methods: Sequence[Method], pairs: Mapping[tuple[int, int], Comparison]
) -> int | None:
    """Return the index of the recommended method, or None if the best method is not tested.

    Excluded methods are ignored. The difference from the best method alone is not enough: if the
    best method varies between seeds, nothing is significantly worse than it, although other methods
    may differ significantly. Of several models with the same method, the one with the higher score
    is recommended.
    """
    allowed = [index for index, method in enumerate(methods) if not method.is_excluded]
    best = max(allowed, key=lambda index: methods[index].score)
    others = [index for index in allowed if index != best]
    if all(np.isnan(pairs[index, best].q) for index in others):
        return None
    worse = {a for (a, b), pair in pairs.items() if b in allowed and _is_worse(pair)}
    order = list(METHODS)
    candidates = [best, *(i for i in others if i not in worse and not np.isnan(pairs[i, best].q))]
    return min(
        candidates, key=lambda index: (order.index(methods[index].name), -methods[index].score)
    )


def _is_worse(pair: Comparison) -> bool:
    return pair.delta < 0 and pair.q <= MARKED


# --- methods --------------------------------------------------------------------------------------


def _list_references(frames: Frames) -> Iterator[Method]:
    """Yield the references of each target, once per model if they read embeddings."""
    collected = frames.collected
    seconds = _compute_fit_seconds(collected)
    fits: dict[tuple[str, str, str], list[Fit]] = {}
    for run in filter(is_reference, collected.runs):
        assert isinstance(run.outcome, Fit)
        key = (run.about["dataset"], run.model, run.about["reference"])
        fits.setdefault(key, []).append(run.outcome)
    for ((dataset, model, task), name), cell in frames.compute_once(score_references).items():
        of_seeds = fits[dataset, model, name]
        sizes = collected.record(of_seeds[0])["sizes"]
        total = sum(sum(of_task.values()) for of_task in sizes.values())
        mean = float(np.mean([seconds[fit.digest] for fit in of_seeds]))
        spent = mean * sum(sizes[task].values()) / max(1, total)
        known = None if model == NO_MODEL else model
        cost = Cost(sizes[task].get("train", 0), spent)
        yield Method((dataset, task), name, known, None, cell, cost)


def _compute_fit_seconds(collected: Collected) -> dict[str, float]:
    """Map each reference's digest to the wall time of its job in seconds.

    References with the same frozen embeddings share a cache, so only the first one computes them.
    All of them get the time of the slowest.
    """
    fits = [run.outcome for run in collected.runs if is_reference(run)]
    groups: dict[str, float] = {}
    names = {}
    for fit in fits:
        assert isinstance(fit, Fit)
        embedded = {key: value for key, value in fit.settings.items() if key != STRENGTH}
        is_embedded = fit.learner in (FROZEN, NEAREST)
        names[fit.digest] = f"{fit.data.digest} {embedded}" if is_embedded else fit.digest
        spent = compute_seconds(collected.record(fit))
        groups[names[fit.digest]] = max(spent, groups.get(names[fit.digest], 0.0))
    return {digest: groups[name] for digest, name in names.items()}


def _list_baselines(frames: Frames) -> Iterator[Method]:
    """Yield the baselines of all targets, with full fine-tuning or an adapter."""
    collected = frames.collected
    runs: dict[tuple[str, str, str], list[Run]] = {}
    for run in collected.runs:
        if run.method == BASELINE:
            about = run.about
            runs.setdefault((about["dataset"], run.model, about["target"]), []).append(run)
    for (dataset, model, task), baseline in frames.compute_once(score_baselines).items():
        of_target = runs[dataset, model, task]
        name = get_training_method(get_scored_stage(of_target[0]).model)
        cost = _compute_training_cost(collected, of_target)
        yield Method((dataset, task), name, model, None, baseline.cell, cost)


def _list_transfers(frames: Frames) -> Iterator[Method]:
    """Yield the transfer with the best mean dev score for each target and model.

    Only transfers from one source take part, because test scores may have chosen the sources of
    runs with several (``multi_source``). Transfers with fewer seeds than others are left out.
    """
    collected, baselines = frames.collected, frames.compute_once(score_baselines)
    groups: dict[tuple[str, str, str], dict[str, list[Run]]] = {}
    for run in collected.runs:
        if not is_transfer(run) or run.method == BASELINE or len(run.about["sources"]) != 1:
            continue
        key = (run.about["dataset"], run.about["target"], run.model)
        variant = f"{run.method}:{run.about['sources'][0]}"
        groups.setdefault(key, {}).setdefault(variant, []).append(run)
    for (dataset, task, model), variants in groups.items():
        most = max(len(runs) for runs in variants.values())
        whole = {name: runs for name, runs in variants.items() if len(runs) == most}
        variant = max(whole, key=lambda name: _compute_dev_score(collected, whole[name]))
        runs = whole[variant]
        rows = [(run, collected.rows(get_scored_stage(run))) for run in runs]
        if not all(len(table) for _, table in rows):
            continue
        scored = [
            ((), run.seed, score_task_rows(collected, run, table, task)) for run, table in rows
        ]
        cell, cost = gather_cells(scored)[()], _compute_training_cost(collected, runs)
        baseline = baselines.get((dataset, model, task))
        is_excluded = baseline is not None and baseline.has_collapsed
        yield Method((dataset, task), TRANSFER, model, variant, cell, cost, is_excluded)


def _compute_dev_score(collected: Collected, runs: Sequence[Run]) -> float:
    """Return the mean dev score of runs at their selected rounds."""
    stages = [get_scored_stage(run) for run in runs]
    records = [(collected.record(stage), stage.selection.tasks) for stage in stages]
    return float(np.mean([get_selected_round(*chosen).dev_score for chosen in records]))


def _list_prompted(frames: Frames) -> Iterator[Method]:
    """Yield the prompted models that are scored by the same rules as the other methods."""
    config = get_transfer_config(frames.collected.study)
    if not config.prompted:
        return
    for (dataset, model, shots, task), scored in frames.compute_once(score_prompted_models).items():
        if config.get_training_hyperparameters(dataset).fidelity.scoring != "default":
            continue
        cost = Cost(0, 0.0, 1000 * scored.seconds / max(1, scored.instances))
        yield Method((dataset, task), PROMPTED, model, f"{shots} shots", scored.cell, cost)


# --- cost -----------------------------------------------------------------------------------------


def _compute_training_cost(collected: Collected, runs: Sequence[Run]) -> Cost:
    """Return the cost of training runs, including all stages on which they depend.

    The seconds are NaN if an earlier stage of a run has no record.
    """
    last = [collected.record(get_scored_stage(run)) for run in runs]
    spent = []
    for run in runs:
        stages = [n for n in add_ancestors((get_scored_stage(run),)) if isinstance(n, Stage)]
        recorded = [collected.record(stage) for stage in stages if collected.has_record(stage)]
        whole = len(recorded) == len(stages)
        spent.append(sum(map(_compute_training_seconds, recorded)) if whole else float("nan"))
    parameters = last[0]["provenance"]["training"].get("parameters")
    tested = [_compute_milliseconds(record) for record in last]
    return Cost(
        last[0]["sizes"][runs[0].about["target"]]["train"],
        float(np.mean(spent)),
        None if None in tested else float(np.mean(np.array(tested, np.float64))),
        parameters["all"] if parameters else None,
        parameters["trained"] if parameters else None,
    )


def _compute_training_seconds(record: Record) -> float:
    """Return the wall time of a training's phases, without the test phase."""
    seconds = record["provenance"]["seconds"]
    return sum(value for phase, value in seconds.items() if phase not in ("total", "test"))


def _compute_milliseconds(record: Record) -> float | None:
    """Return the milliseconds of the test phase per instance, or None if they are unknown."""
    seconds = record["provenance"]["seconds"].get("test")
    instances = sum(result["instances"] for result in record["results"].values())
    return None if seconds is None or not instances else 1000 * seconds / instances
