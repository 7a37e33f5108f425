"""Run records to data frames: runs, scores, deltas, sizes, missing, problems.

Every row comes from a record that passed all checks. A damaged record is named and left out; runs
that were planned and left nothing are listed; records that must not be compared are refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tasktransfer.analysis import columns
from tasktransfer.errors import RecordError
from tasktransfer.records import Record, RunIdentity, read_record

BASELINE = "baseline"
NO_RECORD = "no record"
DAMAGED = "damaged record, see problems"
NO_BASELINE = "its baseline is missing"

RunKey = tuple[str, str, str, str, str, int]
"""dataset, model, algorithm, source (joined), target, seed: the values of ``columns.KEYS``."""


@dataclass(frozen=True)
class Tables:
    """What a study's records say. The columns of each frame are in ``columns.TABLES``."""

    runs: pd.DataFrame
    scores: pd.DataFrame
    deltas: pd.DataFrame
    sizes: pd.DataFrame
    missing: pd.DataFrame
    problems: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Expected:
    """A planned run and where its record belongs, relative to the results folder."""

    dataset: str
    model: str
    algorithm: str
    sources: tuple[str, ...]
    target: str
    seed: int
    record: str

    @property
    def key(self) -> RunKey:
        source = "+".join(self.sources)
        return (self.dataset, self.model, self.algorithm, source, self.target, self.seed)


@dataclass(frozen=True, slots=True)
class _Loaded:
    path: str
    record: Record
    run: RunIdentity


def collect_runs(
    paths: Iterable[Path], *, root: Path, expected: Sequence[Expected] = ()
) -> tuple[Tables, list[Record]]:
    """Read records into frames.

    Args:
        paths: the record files, in the order that the tables shall keep.
        root: the results folder; paths in the tables are relative to it.
        expected: the planned runs. Those without a usable record are listed in ``missing``; a
            record found at a planned path that holds another run is a problem. Without a plan the
            full square of what was found is expected: every baseline and ordered pair of the
            tasks, models, algorithms and seeds of a dataset.

    Returns:
        The frames, and the records behind ``runs``, in the same order.

    Raises:
        RecordError: records of synthetic and real data, or of several data revisions, recipes,
            sample settings or task sizes in one dataset, came together; names two of the files.
    """
    planned = {plan.record: plan.key for plan in expected}
    loaded, problems = _load(paths, root, planned)
    loaded = _without_duplicates(loaded, problems)
    _refuse_mixtures(loaded)
    runs = _runs(loaded)
    deltas = _deltas(runs)
    wanted = list(expected) or _full_square(runs)
    tables = Tables(
        runs=runs,
        scores=_scores(loaded),
        deltas=deltas,
        sizes=_sizes(loaded),
        missing=_missing(wanted, runs, deltas, {path for path, _ in problems}),
        problems=_frame("problems", problems),
    )
    return tables, [item.record for item in loaded]


def _load(
    paths: Iterable[Path], root: Path, planned: dict[str, RunKey]
) -> tuple[list[_Loaded], list[tuple[str, str]]]:
    """The usable records that end a run, and (path, error) of the others."""
    loaded: list[_Loaded] = []
    problems: list[tuple[str, str]] = []
    for path in paths:
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        try:
            record = read_record(path)
        except RecordError as error:
            problems.append((name, str(error)))
            continue
        run = record["run"]
        if name in planned and (run is None or run_key(run) != planned[name]):
            held = "a stage that no run ends with" if run is None else _spell(run_key(run))
            problems.append((name, f"{path}: holds {held}, planned {_spell(planned[name])}"))
        elif run is not None:
            loaded.append(_Loaded(name, record, run))
    return loaded, problems


def _without_duplicates(loaded: list[_Loaded], problems: list[tuple[str, str]]) -> list[_Loaded]:
    """Leave out runs that several records claim: none of them can be told to be the right one."""
    claims: dict[RunKey, list[str]] = defaultdict(list)
    for item in loaded:
        claims[run_key(item.run)].append(item.path)
    for key, paths in claims.items():
        if len(paths) > 1:
            problems += [
                (path, f"{path}: {_spell(key)} is also claimed by {', '.join(others)}")
                for path in paths
                if (others := [other for other in paths if other != path])
            ]
    return [item for item in loaded if len(claims[run_key(item.run)]) == 1]


def _refuse_mixtures(loaded: list[_Loaded]) -> None:
    """Numbers that do not belong together never meet in one table."""
    first: dict[tuple[str, ...], tuple[Any, str]] = {}
    for item in loaded:
        record, dataset = item.record, item.run["dataset"]
        target = item.run["target"]
        for aspect, value in (
            (("synthetic",), record["synthetic"]),
            (("data_revision", dataset), record["data_revision"]),
            (("few_sample", dataset), record["few_sample"]),
            (("provenance.recipe", dataset), record["provenance"]["recipe"]),
            ((f"sizes.{target}", dataset, item.run["family"]), record["sizes"][target]),
        ):
            known, path = first.setdefault(aspect, (value, item.path))
            if known != value:
                raise RecordError(
                    f"records that cannot be compared: {' of '.join(aspect)} is {known!r} in "
                    f"{path} and {value!r} in {item.path}; keep them in separate results folders, "
                    "or collect with the plan of one study"
                )


def run_key(run: RunIdentity) -> RunKey:
    """The run's values of ``columns.KEYS``."""
    source = "+".join(run["sources"])
    return (run["dataset"], run["model"], run["algorithm"], source, run["target"], run["seed"])


def _spell(key: RunKey) -> str:
    dataset, model, algorithm, source, target, seed = key
    origin = f"{source} -> " if source else ""
    return f"{dataset} {model} {algorithm} {origin}{target} seed {seed}"


def _runs(loaded: list[_Loaded]) -> pd.DataFrame:
    rows = [_run_row(item.path, item.record, item.run) for item in loaded]
    return _frame("runs", rows)


def _run_row(path: str, record: Record, run: RunIdentity) -> tuple[Any, ...]:
    stage, provenance = record["stage"], record["provenance"]
    size = record["sizes"][run["target"]]
    return (
        *_identity(run["dataset"], run["model"], run["algorithm"], run["sources"]),
        run["target"],
        run["seed"],
        run["family"],
        record["score"],
        record["dev_score"],
        record["best_epoch"],
        len(record["epochs"]),
        size["train"],
        size["dev"],
        size["test"],
        stage["digest"],
        stage["parent"],
        path,
        record["predictions"] is not None,
        _total(provenance["seconds"]),
        provenance["tokens"],
        provenance["samples_per_second"],
        provenance["peak_memory_mb"],
        provenance["peak_gpu_memory_mb"],
        provenance["commit"],
        provenance["recipe"],
        record["data_revision"],
        record["synthetic"],
        record["few_sample"],
    )


def _total(seconds: dict[str, float]) -> float:
    """The trainer's own total where it gives one: it holds what lies between the phases too."""
    return seconds["total"] if "total" in seconds else sum(seconds.values())


def _identity(dataset: str, model: str, algorithm: str, sources: Iterable[str]) -> tuple[Any, ...]:
    listed = list(sources)
    return dataset, model, algorithm, listed, "+".join(listed), len(listed)


def _scores(loaded: list[_Loaded]) -> pd.DataFrame:
    rows: list[tuple[Any, ...]] = []
    for item in loaded:
        key, record = run_key(item.run), item.record
        for task, result in record["test"].items():
            rows += [(*key, "test", task, name, value) for name, value in result["metrics"].items()]
            rows.append((*key, "test", task, "score", result["score"]))
        best = record["epochs"][record["best_epoch"] - 1]
        for task, metrics in best["dev"].items():
            rows += [(*key, "dev", task, name, value) for name, value in metrics.items()]
        rows.append((*key, "dev", item.run["target"], "score", record["dev_score"]))
    return _frame("scores", rows)


def _sizes(loaded: list[_Loaded]) -> pd.DataFrame:
    """Sizes of every task that is a target of some run."""
    sizes = {
        (item.run["dataset"], item.run["target"]): item.record["sizes"][item.run["target"]]
        for item in loaded
    }
    rows = [(*key, size["train"], size["dev"], size["test"]) for key, size in sizes.items()]
    return _frame("sizes", rows)


def _deltas(runs: pd.DataFrame) -> pd.DataFrame:
    """Each transfer run beside the baseline of its dataset, model, target and seed."""
    on = ["dataset", "model", "target", "seed"]
    baselines = runs.loc[runs["algorithm"] == BASELINE, [*on, "score", "digest"]].rename(
        columns={"score": "baseline_score", "digest": "baseline_digest"}
    )
    transfers = runs[runs["algorithm"] != BASELINE]
    deltas = transfers.merge(baselines, on=on, how="left", validate="many_to_one")
    deltas["delta"] = deltas["score"] - deltas["baseline_score"]
    above_zero = deltas["baseline_score"].where(deltas["baseline_score"] > 0, np.nan)
    deltas["improvement"] = 100 * deltas["delta"] / above_zero
    return deltas[columns.names("deltas")]


def _missing(
    wanted: Sequence[Expected], runs: pd.DataFrame, deltas: pd.DataFrame, damaged: set[str]
) -> pd.DataFrame:
    """Expected runs without a usable record, then transfer runs without a baseline."""
    present = set(runs[list(columns.KEYS)].itertuples(index=False, name=None))
    rows: list[tuple[Any, ...]] = [
        (
            *_identity(plan.dataset, plan.model, plan.algorithm, plan.sources),
            plan.target,
            plan.seed,
            plan.record or None,
            DAMAGED if plan.record in damaged else NO_RECORD,
        )
        for plan in wanted
        if plan.key not in present
    ]
    paths = dict(zip(runs["digest"], runs["path"], strict=True))
    orphans = deltas[deltas["baseline_score"].isna()]
    keys = columns.names("missing")[:8]
    rows += [
        (*row[:8], paths[row[8]], NO_BASELINE)
        for row in orphans[[*keys, "digest"]].itertuples(index=False, name=None)
    ]
    return _frame("missing", rows)


def _full_square(runs: pd.DataFrame) -> list[Expected]:
    """Every baseline and ordered pair of what a dataset's records name."""
    wanted: list[Expected] = []
    for dataset, found in runs.groupby("dataset", sort=False):
        single = found[found["n_sources"] == 1]
        tasks = list(dict.fromkeys([*found["target"], *single["source"]]))
        algorithms = [name for name in single["algorithm"].unique() if name != BASELINE]
        pairs = [(s, t) for s in tasks for t in tasks if s != t]
        for model in found["model"].unique():
            for seed in found["seed"].unique():
                wanted += [
                    Expected(str(dataset), model, BASELINE, (), task, int(seed), "")
                    for task in tasks
                ]
                wanted += [
                    Expected(str(dataset), model, algorithm, (s,), t, int(seed), "")
                    for algorithm in algorithms
                    for s, t in pairs
                ]
    return wanted


def _frame(table: str, rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Rows to a frame with the table's types, also when there are none."""
    schema = columns.arrow_schema(table)
    values = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(v, field.type) for v, field in zip(values, schema, strict=True)]
    return columns.to_frame(pa.Table.from_arrays(arrays, schema=schema))
