"""Selector results from records: a value for each pair, with its cost, and the regret table.

Values never use test scores. They use dev scores of transfers to other targets, dev scores of
probes, and fits on training instances. The evaluation uses test scores of the finished transfers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from tasktransfer.core.nodes import Fit
from tasktransfer.core.references import LEARNED
from tasktransfer.core.runs import Run
from tasktransfer.core.selectors import COST, TOKENS, Selector
from tasktransfer.datasets import get_task, resolve_task
from tasktransfer.designs.transfer.collect.results import Tables, read_references, read_tables
from tasktransfer.designs.transfer.config import TransferConfig, transfer_config
from tasktransfer.designs.transfer.pairs import Task
from tasktransfer.designs.transfer.racing import read_race
from tasktransfer.designs.transfer.selectors.matrix import Matrix, build_cube, compute_regret
from tasktransfer.designs.transfer.selectors.nodes import is_selector
from tasktransfer.designs.transfer.selectors.registry import SELECTORS
from tasktransfer.designs.transfer.statistics.select_sources import dev_deltas
from tasktransfer.errors import RecordError
from tasktransfer.fits.asked import Asked
from tasktransfer.present.regret import COLUMNS as REGRET
from tasktransfer.results.collect import Collected, gather
from tasktransfer.results.records import get_selected_round
from tasktransfer.results.schema import Record
from tasktransfer.results.store import Columns, build_frame, write_frame
from tasktransfer.results.study import Study
from tasktransfer.stats.resampling import Floats
from tasktransfer.stats.selector_judgement import compute_source_means
from tasktransfer.stats.selectors import KS

NOT_THERE = "not computed yet: run snakemake"
NO_NUMBER = "the selector gave none"
TOGETHER = "all"
"""Value of ``dataset`` in rows over all datasets together."""

VALUES: Columns = (
    ("dataset", pa.string(), "dataset"),
    ("model", pa.string(), "model, by its name in the study"),
    ("algorithm", pa.string(), "algorithm whose transfers were read; empty: none"),
    ("selector", pa.string(), "name of the selector"),
    ("source", pa.string(), "source task"),
    ("target", pa.string(), "target task"),
    ("seed", pa.int64(), "seed of the baselines, probes or transfers that were read"),
    ("value", pa.float64(), "value in the selector's unit, higher is better; NaN: missing"),
    ("reason", pa.string(), "why the value is missing; null if it is not"),
    ("seconds", pa.float64(), "cost in seconds; costs common to several pairs are divided"),
    ("tokens", pa.float64(), "cost in model tokens; costs common to several pairs are divided"),
)

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


def write_selection(study: Study) -> None:
    """Write ``tables/selectors.parquet`` and ``tables/regret.parquet`` from the records."""
    tables, metadata = read_tables(Path(study.tables))
    config = transfer_config(study)
    if config.racing is not None:  # the seeds that every pair has
        first = read_race(config.racing, config.seeds, config.results).seeds[0]
        tables = replace(tables, deltas=tables.deltas[tables.deltas["seed"].isin(first)])
    runs = [run for run in study.plan.runs if is_selector(run)]
    collected = gather(study, runs) if runs else None
    values = compute_values(config, tables, collected)
    learned = replace(tables, deltas=leave_out_unlearned(tables.deltas, read_references(study)))
    regret = compute_study_regret(learned, values)
    for name, frame, columns in (("selectors", values, VALUES), ("regret", regret, REGRET)):
        write_frame(Path(study.tables, f"{name}.parquet"), frame, columns, metadata)


_TARGET = ["dataset", "model", "target"]


def find_unlearned(frame: pd.DataFrame, references: pd.DataFrame | None) -> npt.NDArray[np.bool_]:
    """Return which rows are about targets whose baselines do not beat all references.

    Args:
        frame: rows with the columns dataset, model and target.
        references: columns of ``columns.REFERENCES``; None if the study has no references.
    """
    if references is None:
        return np.zeros(len(frame), dtype=bool)
    unlearned = references.loc[references["state"] != LEARNED, _TARGET].drop_duplicates()
    places = pd.MultiIndex.from_frame(unlearned)
    return np.asarray(pd.MultiIndex.from_frame(frame[_TARGET]).isin(places))


def leave_out_unlearned(deltas: pd.DataFrame, references: pd.DataFrame | None) -> pd.DataFrame:
    """Return the transfers to targets whose baselines beat all references.

    A selector cannot be judged on a target that no model has learned. Prints the targets that are
    left out.

    Args:
        deltas: columns of ``columns.DELTAS``.
        references: columns of ``columns.REFERENCES``; None if the study has no references.
    """
    is_left_out = find_unlearned(deltas, references)
    if is_left_out.any():
        targets = deltas.loc[is_left_out, _TARGET].drop_duplicates().agg("/".join, axis=1)
        print(
            f"regret: {len(targets)} target(s) left out, because their baselines do not beat a "
            f"simple reference: {', '.join(targets)}"
        )
    return deltas[~is_left_out]


def values_to_choose_by(study: Study, runs: Iterable[Run], tables: Tables) -> pd.DataFrame:
    """Return the values of the selector that ``multi_source.choose_by`` names.

    Args:
        runs: runs of the plan before the selection.
        tables: tables of the single-source transfers.

    Raises:
        RecordError: a value has not been computed yet.
    """
    config = transfer_config(study)
    chooser = config.model_copy(update={"selectors": (config.multi_source.choose_by,)})
    own = [run for run in runs if is_selector(run) and run.variant in chooser.selectors]
    values = compute_values(chooser, tables, gather(study, own) if own else None)
    absent = values[values["reason"] == NOT_THERE]
    if len(absent):
        first = absent.iloc[0]
        raise RecordError(
            f"{len(absent)} values of {first['selector']} are missing, the first: "
            f"{first['dataset']} {first['model']} {first['source']} -> {first['target']} seed "
            f"{first['seed']}; run them, because an incomplete table must not select sources"
        )
    return values


def compute_values(
    config: TransferConfig, tables: Tables, collected: Collected | None = None
) -> pd.DataFrame:
    """Compute the columns of ``VALUES``."""
    selectors = [SELECTORS[name] for name in config.selectors]
    computed = dict(_collect_computed_values(collected)) if collected is not None else {}
    families = {model.name: model.family for model in config.models}
    names = zip(tables.sizes["dataset"], tables.sizes["task"], strict=True)
    sizes = dict(zip(names, tables.sizes["train"].tolist(), strict=True))
    rows: list[tuple[Any, ...]] = []
    told: set[tuple[str, ...]] = set()
    for group, selector in product(group_transfers(tables), selectors):
        dataset, model, algorithm = group.key
        read = algorithm if "transfers" in selector.reads else ""
        key = (dataset, model, read, selector.name)
        if key in told:  # from another algorithm with the same pairs
            continue
        told.add(key)
        for source, target, seed in _list_pairs(group):
            kinds = [get_task(dataset, task).kind for task in (source, target)]
            found: Found = (np.nan, (np.nan, np.nan), NOT_THERE)
            if lacks := selector.explain_absence(kinds[0], kinds[1], families[model]):
                found = (np.nan, (np.nan, np.nan), lacks)
            elif selector.reads and "transfers" not in selector.reads:
                named = (dataset, model, selector.name, source, target, seed)
                found = computed.get(named, found)
            else:
                found = _from_tables(selector, group, sizes, source, target, seed)
            value, cost, reason = found
            reason = None if np.isfinite(value) else reason
            rows.append((*key, source, target, seed, value, reason, *cost))
    return build_frame(rows, VALUES)


def group_transfers(tables: Tables) -> Iterator[Group]:
    """Yield the single-source transfers, by dataset, model and algorithm."""
    single = tables.deltas[tables.deltas["n_sources"] == 1]
    dev = dev_deltas(single, tables.runs)
    seconds = dict(zip(tables.runs["digest"], tables.runs["seconds"], strict=True))
    for names, test in single.groupby(["dataset", "model", "algorithm"], sort=False):
        dataset, model, algorithm = map(str, names)
        yield Group((dataset, model, algorithm), test, dev.loc[test.index], seconds)


def compute_study_regret(tables: Tables, values: pd.DataFrame) -> pd.DataFrame:
    """Compute ``present.regret.COLUMNS`` for each dataset, and for all of them together."""
    matrices = [_build_matrix(group, values) for group in group_transfers(tables)]
    together: dict[tuple[str, str], list[Matrix]] = {}
    for matrix in matrices:
        together.setdefault(matrix.key[1:], []).append(matrix)
    matrices += [_join_matrices(several) for several in together.values() if len(several) > 1]
    return compute_regret(matrices, KS)


def _build_matrix(group: Group, values: pd.DataFrame) -> Matrix:
    dataset, model, algorithm = group.key
    own = values[(values["dataset"] == dataset) & (values["model"] == model)]
    own = own[own["algorithm"].isin(["", algorithm])]
    selectors = {str(n): one for n, one in own.groupby("selector", sort=False) if n != "random"}
    found = {name: build_cube(one, "value", group.axes) for name, one in selectors.items()}
    targets = max(1, len(group.axes[0]) * len(group.axes[2]))
    seconds = {name: float(one["seconds"].sum()) / targets for name, one in selectors.items()}
    scores = build_cube(group.test, "score", group.axes)
    if "source_mean" not in found:
        found["source_mean"] = compute_source_means(build_cube(group.dev, "delta", group.axes))
        seconds["source_mean"] = np.nan
    return Matrix(group.key, scores, found, None, seconds)


def _join_matrices(several: Sequence[Matrix]) -> Matrix:
    """Join matrices: targets are stacked, and sources are separate because each has one dataset."""
    seeds = min(one.scores.shape[2] for one in several)
    names = [n for n in several[0].values if all(n in one.values for one in several)]

    def blocks(cubes: Sequence[Floats]) -> Floats:
        rows, columns = (sum(block.shape[axis] for block in cubes) for axis in (0, 1))
        whole = np.full((rows, columns, seeds), np.nan)
        row = column = 0
        for block in cubes:
            whole[row : row + block.shape[0], column : column + block.shape[1]] = block[..., :seeds]
            row, column = row + block.shape[0], column + block.shape[1]
        return whole

    targets = [one.scores.shape[0] for one in several]
    seconds = {
        name: float(np.average([(one.seconds or {})[name] for one in several], weights=targets))
        for name in names
    }
    return Matrix(
        (TOGETHER, *several[0].key[1:]),
        blocks([one.scores for one in several]),
        {name: blocks([one.values[name] for one in several]) for name in names},
        None,
        seconds,
    )


# --- values ---------------------------------------------------------------------------------------


def _list_pairs(group: Group) -> list[tuple[str, str, int]]:
    rows = group.test[["source", "target", "seed"]]
    return list(rows.itertuples(index=False, name=None))


def _from_tables(
    selector: Selector,
    group: Group,
    sizes: Mapping[Task, int],
    source: str,
    target: str,
    seed: int,
) -> Found:
    """Yield the values of a selector that needs no node, for one seed."""
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
    asked = Asked(target, (source,), kinds, counts, transfers=transfers)
    value = selector.values(asked)[source]
    return (np.nan if value is None else value), (seconds, 0.0), NO_NUMBER


Key = tuple[str, str, str, str, str, int]


def _collect_computed_values(collected: Collected) -> Iterator[tuple[Key, Found]]:
    """Yield the values that nodes have computed."""
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
    """Return, by digest of a selector's node, the number of pairs with values."""
    return {
        run.outcome.digest: sum(len(of) for of in run.outcome.settings["sources"].values())
        for run in collected.runs
        if isinstance(run.outcome, Fit)
    }


def _compute_pair_cost(collected: Collected, fit: Fit, pairs: Mapping[str, int]) -> Cost:
    """Return the cost of one pair: its fraction of the fit and of the fit's inputs."""
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
