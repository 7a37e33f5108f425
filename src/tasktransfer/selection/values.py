"""Selector results from records: a value for each pair, with its cost, and the regret table.

Values never use test scores. They use dev scores of transfers to other targets, dev scores of
probes, and fits on training instances. The evaluation uses test scores of the finished transfers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tasktransfer.core.nodes import Fit
from tasktransfer.core.references import LEARNED
from tasktransfer.core.specs import Family
from tasktransfer.datasets import get_task, resolve_task
from tasktransfer.errors import format_quantity
from tasktransfer.present.numbers import join_names
from tasktransfer.results.collect import Collected
from tasktransfer.results.records import get_selected_round
from tasktransfer.results.schema import Record
from tasktransfer.results.store import build_frame
from tasktransfer.selection.choose import select_dev_deltas
from tasktransfer.selection.declared import VALUES
from tasktransfer.selection.inputs import SelectorInput
from tasktransfer.selection.judging import compute_source_means
from tasktransfer.selection.matrix import Matrix, build_cube, compute_regret, join_matrices
from tasktransfer.selection.measures import KS
from tasktransfer.selection.selector import COST, TOKENS, Selector
from tasktransfer.stats.draws import Floats

NOT_THERE = "not computed yet: run snakemake"
NO_NUMBER = "the selector gave none"

Tables = Mapping[str, pd.DataFrame]
"""Collected tables of a study by name."""
Task = tuple[str, str]
"""Dataset and name of a task."""
Axes = tuple[list[str], list[str], list[int]]
Cost = tuple[float, float]
"""Seconds and tokens."""
Found = tuple[float, Cost, str | None]
"""A value (NaN if missing), its cost, and the reason why it is missing."""


@dataclass(frozen=True)
class Group:
    """Transfers of a dataset, model and algorithm.

    ``test`` and ``dev`` have the columns of ``deltas``, with test and dev scores; ``seconds`` has
    the training time by digest.
    """

    key: tuple[str, str, str]
    test: pd.DataFrame
    dev: pd.DataFrame
    seconds: Mapping[str, float]

    @property
    def axes(self) -> Axes:
        targets, sources = (list(dict.fromkeys(self.test[name])) for name in ("target", "source"))
        return targets, sources, sorted(self.test["seed"].unique().tolist())


_TARGET = ["dataset", "model", "target"]


def find_unlearned(frame: pd.DataFrame, references: pd.DataFrame | None) -> npt.NDArray[np.bool_]:
    """Return a mask of rows whose targets have baselines that do not beat all references.

    Args:
        frame: rows with the columns dataset, model and target.
        references: columns of ``frames.REFERENCES``; None if the study has no references.
    """
    if references is None:
        return np.zeros(len(frame), dtype=bool)
    unlearned = references.loc[references["state"] != LEARNED, _TARGET].drop_duplicates()
    places = pd.MultiIndex.from_frame(unlearned)
    return np.asarray(pd.MultiIndex.from_frame(frame[_TARGET]).isin(places))


def leave_out_unlearned_targets(
    deltas: pd.DataFrame, references: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the transfers without targets whose baselines do not beat all references.

    A selector cannot be judged on a target that no model has learned. Prints the targets that are
    left out.

    Args:
        deltas: columns of ``columns.DELTAS``.
        references: columns of ``frames.REFERENCES``; None if the study has no references.
    """
    is_left_out = find_unlearned(deltas, references)
    if is_left_out.any():
        targets = deltas.loc[is_left_out, _TARGET].drop_duplicates().agg("/".join, axis=1)
        print(
            f"regret: {format_quantity(len(targets), 'target')} left out, because no baseline of "
            f"these targets beats a simple reference: {', '.join(targets)}"
        )
    return deltas[~is_left_out]


def describe_left_out_targets(frames: Tables) -> list[str]:
    """Return a note with the number of targets that the frame ``regret`` leaves out, if any.

    Args:
        frames: the frames ``deltas`` and, if the study has references, ``references``.
    """
    deltas = frames["deltas"]
    single = deltas.loc[deltas["n_sources"] == 1, _TARGET].drop_duplicates()
    left_out = single[find_unlearned(single, frames.get("references"))]
    if left_out.empty:
        return []
    counts = left_out.groupby("model", sort=False).size()
    has_models = single["model"].nunique() > 1
    parts = [
        format_quantity(int(count), "target") + (f" with {model}" if has_models else "")
        for model, count in counts.items()
    ]
    listed = join_names(parts, len(parts))
    return [f"Targets whose baselines have not learned are left out ({listed})."]


def compute_values(
    selectors: Sequence[Selector],
    families: Mapping[str, Family],
    tables: Tables,
    collected: Collected | None = None,
) -> pd.DataFrame:
    """Compute the columns ``VALUES``: a value of each selector for each transfer.

    Args:
        families: families of the studied models by name.
        tables: the frames ``deltas``, ``transfer_runs`` and ``sizes``.
        collected: records of the selectors' nodes; None if no node was planned.
    """
    computed = dict(_collect_computed_values(collected)) if collected is not None else {}
    counted = tables["sizes"]
    names = zip(counted["dataset"], counted["task"], strict=True)
    sizes = dict(zip(names, counted["train"].tolist(), strict=True))
    rows: list[tuple[Any, ...]] = []
    seen: set[tuple[str, ...]] = set()
    for group, selector in product(group_transfers(tables), selectors):
        dataset, model, algorithm = group.key
        read = algorithm if "transfers" in selector.reads else ""
        key = (dataset, model, read, selector.name)
        if key in seen:  # from another algorithm with the same pairs
            continue
        seen.add(key)
        for source, target, seed in _list_pairs(group):
            kinds = [get_task(dataset, task).kind for task in (source, target)]
            found: Found = (np.nan, (np.nan, np.nan), NOT_THERE)
            if lacks := selector.explain_absence(kinds[0], kinds[1], families[model]):
                found = (np.nan, (np.nan, np.nan), lacks)
            elif selector.reads and "transfers" not in selector.reads:
                named = (dataset, model, selector.name, source, target, seed)
                found = computed.get(named, found)
            else:
                found = _compute_table_value(selector, group, sizes, source, target, seed)
            value, cost, reason = found
            reason = None if np.isfinite(value) else reason
            rows.append((*key, source, target, seed, value, reason, *cost))
    return build_frame(rows, VALUES)


def group_transfers(tables: Tables) -> Iterator[Group]:
    """Yield the single-source transfers by dataset, model and algorithm."""
    single = tables["deltas"][tables["deltas"]["n_sources"] == 1]
    runs = tables["transfer_runs"]
    dev = select_dev_deltas(single, runs)
    seconds = dict(zip(runs["digest"], runs["seconds"], strict=True))
    for names, test in single.groupby(["dataset", "model", "algorithm"], sort=False):
        dataset, model, algorithm = map(str, names)
        yield Group((dataset, model, algorithm), test, dev.loc[test.index], seconds)


def compute_study_regret(tables: Tables, values: pd.DataFrame) -> pd.DataFrame:
    """Compute ``selection.declared.REGRET`` for each dataset and for all datasets together."""
    matrices = [_build_matrix(group, values) for group in group_transfers(tables)]
    together: dict[tuple[str, str], list[Matrix]] = {}
    for matrix in matrices:
        together.setdefault(matrix.key[1:], []).append(matrix)
    matrices += [join_matrices(several) for several in together.values() if len(several) > 1]
    return compute_regret(matrices, KS)


def _build_matrix(group: Group, values: pd.DataFrame) -> Matrix:
    dataset, model, algorithm = group.key
    own = values[(values["dataset"] == dataset) & (values["model"] == model)]
    own = own[own["algorithm"].isin(["", algorithm]) & own["target"].isin(group.axes[0])]
    selectors = {str(n): one for n, one in own.groupby("selector", sort=False) if n != "random"}
    found = {name: build_cube(one, "value", group.axes) for name, one in selectors.items()}
    targets = max(1, len(group.axes[0]) * len(group.axes[2]))
    seconds = {name: float(one["seconds"].sum()) / targets for name, one in selectors.items()}
    scores = build_cube(group.test, "score", group.axes)
    if "source_mean" not in found:
        found["source_mean"] = compute_source_means(build_cube(group.dev, "delta", group.axes))
        seconds["source_mean"] = np.nan
    return Matrix(group.key, scores, found, None, seconds)


# --- values ---------------------------------------------------------------------------------------


def _list_pairs(group: Group) -> list[tuple[str, str, int]]:
    rows = group.test[["source", "target", "seed"]]
    return list(rows.itertuples(index=False, name=None))


def _compute_table_value(
    selector: Selector,
    group: Group,
    sizes: Mapping[Task, int],
    source: str,
    target: str,
    seed: int,
) -> Found:
    """Return a selector's value of a pair and seed, if it needs no node."""
    tasks = (source, target)
    kinds = {task: str(get_task(group.key[0], task).kind) for task in tasks}
    counts = {task: sizes.get(resolve_task(group.key[0], task), 0) for task in tasks}
    transfers: dict[str, Floats] = {}
    seconds = 0.0
    if "transfers" in selector.reads:
        rows = group.dev[(group.dev["source"] == source) & (group.dev["seed"] == seed)]
        rows = rows[(rows["target"] != target) & rows["delta"].notna()]
        transfers[source] = rows["delta"].to_numpy(float)
        seconds = float(sum(group.seconds[digest] for digest in rows["digest"]))
    assert selector.values is not None
    inputs = SelectorInput(target, (source,), kinds, counts, transfers=transfers)
    value = selector.values(inputs)[source]
    return (np.nan if value is None else value), (seconds, 0.0), NO_NUMBER


Key = tuple[str, str, str, str, str, int]


def _collect_computed_values(collected: Collected) -> Iterator[tuple[Key, Found]]:
    """Yield the values in the records of selectors' nodes."""
    pairs = _count_pairs(collected)
    for run in collected.runs:
        key = (run.about["dataset"], run.model, run.variant)
        if isinstance(run.outcome, Fit):
            fit = run.outcome
            record, cost = collected.record(fit), _compute_pair_cost(collected, fit, pairs)
            for target, sources in fit.settings["sources"].items():
                values = record.get("report", {}).get(target, {})
                for source in sources:
                    value = values.get(source, np.nan)
                    yield (*key, source, target, run.seed), (value, cost, NO_NUMBER)
        else:
            (stage,) = run.outcome.stages
            record = collected.record(stage)
            value = get_selected_round(record, stage.selection.tasks).dev_score
            (source,) = run.about["sources"]
            yield (*key, source, run.about["target"], run.seed), (value, _read_cost(record), None)


def _count_pairs(collected: Collected) -> dict[str, int]:
    """Count pairs with values by the digest of a selector's node."""
    return {
        run.outcome.digest: sum(len(of) for of in run.outcome.settings["sources"].values())
        for run in collected.runs
        if isinstance(run.outcome, Fit)
    }


def _compute_pair_cost(collected: Collected, fit: Fit, pairs: Mapping[str, int]) -> Cost:
    """Return the cost per pair of a fit and its inputs."""
    costs = [_read_cost(collected.record(one)) for one in (fit, *fit.reads) if isinstance(one, Fit)]
    seconds, tokens = (sum(column) for column in zip(*costs, strict=True))
    return seconds / pairs[fit.digest], tokens / pairs[fit.digest]


def _read_cost(record: Record) -> Cost:
    provenance = record["provenance"]
    seconds = provenance["seconds"]
    total = seconds["total"] if "total" in seconds else sum(seconds.values())
    if "training" in provenance:
        return total, float(provenance["training"]["tokens"])
    return total, record.get("report", {}).get(COST, {}).get(TOKENS, 0.0)
