"""Frames of a study with known numbers, in memory, without records or trainings.

They are for tests of code that shows results. ``tests/unit/record_factory.py`` and
``tests/study_records.py`` write records, for tests of code that reads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.collect import (
    build_source_key,
    make_deltas,
    make_missing_runs,
    make_sizes,
)
from tasktransfer.results.frames import Frames, list_column_names
from tasktransfer.results.store import Metadata, build_frame
from transfer_frames import COLUMNS, construct_frames

ALGORITHMS = ("pretrain_finetune", "multitask", "multitask_finetune")
FAMILIES = {"bert": "encoder", "gpt2": "decoder", "t5": "encoder_decoder"}

RunName = tuple[str, str, str, tuple[str, ...], str, int]
"""Dataset, model, algorithm, sources, target and seed of a run."""


@dataclass(frozen=True)
class Asked:
    """Content of the study.

    ``lost``: run without a result → (state, reason). ``several``: (dataset, sources, target) of
    multi-source runs.
    """

    tasks: dict[str, Sequence[str]]
    models: Sequence[str] = ("bert", "gpt2", "t5")
    algorithms: Sequence[str] = ALGORITHMS
    seeds: Sequence[int] = (0, 1)
    several: Sequence[tuple[str, tuple[str, ...], str]] = ()
    lost: Callable[[RunName], tuple[str, str] | None] = lambda run: None
    synthetic: bool = False
    study: str = "constructed"
    shorts: dict[str, str] = field(default_factory=dict)
    problems: Sequence[tuple[str, str]] = ()


def score_of(run: RunName) -> float:
    """Return a score between 20 and 90 that depends only on the run's name."""
    number = int(hashlib.sha256(repr(run).encode()).hexdigest()[:8], 16)
    return round(20 + 70 * number / 0xFFFFFFFF, 4)


def make_results(asked: Asked) -> Frames:
    """Build the frames of a study.

    A cell's interval is its delta ± 3, and p and q follow from its size. These numbers only need to
    be recognizable.
    """
    runs = _runs(asked)
    lost = {run: why for run in runs if (why := asked.lost(run)) is not None}
    finished = [_make_run_row(run, asked) for run in runs if run not in lost]
    metadata = Metadata(
        study=asked.study,
        config_digest="c" * 64,
        synthetic=asked.synthetic,
        records=len(finished),
        shorts=asked.shorts,
        order={
            "dataset": list(asked.tasks),
            "model": list(asked.models),
            "algorithm": ["baseline", *asked.algorithms],
            "task": [task for tasks in asked.tasks.values() for task in tasks],
        },
    )
    rows = {
        "transfer_runs": finished,
        "missing": [_make_missing_row(run, *why) for run, why in lost.items()],
        "problems": asked.problems,
    }
    frames = construct_frames({name: _build(name, rows[name]) for name in rows}, metadata)
    frames = frames.replace({"deltas": make_deltas(frames), "sizes": make_sizes(frames)})
    missing = _build("missing_runs", make_missing_runs(frames))
    return frames.replace({"missing_runs": missing, **_make_statistics(frames["deltas"])})


def _build(name: str, rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    return build_frame(rows, COLUMNS[name])


def _runs(asked: Asked) -> list[RunName]:
    runs: list[RunName] = []
    for dataset, tasks in asked.tasks.items():
        sets = [((source,), target) for source in tasks for target in tasks if source != target]
        sets += [(sources, target) for where, sources, target in asked.several if where == dataset]
        for model in asked.models:
            for seed in asked.seeds:
                runs += [(dataset, model, "baseline", (), task, seed) for task in tasks]
                runs += [
                    (dataset, model, algorithm, sources, target, seed)
                    for algorithm in asked.algorithms
                    for sources, target in sets
                ]
    return runs


def digest_of_run(run: RunName) -> str:
    return hashlib.sha256(repr(run).encode()).hexdigest()


def path_of(run: RunName) -> str:
    dataset, model, algorithm, sources, target, seed = run
    label = f"{target}_from_{'+'.join(sources)}" if sources else target
    folder = f"stages/{algorithm}/{dataset}/{model}/{label}"
    return f"{folder}/seed{seed}-{digest_of_run(run)[:12]}/metrics.json"


def _fill_row(table: str, values: Mapping[str, object]) -> tuple[object, ...]:
    """Return a row of a table; columns without a value are empty."""
    return tuple(values.get(name) for name in list_column_names(COLUMNS[table]))


def _make_run_row(run: RunName, asked: Asked) -> tuple[object, ...]:
    score = score_of(run)
    values = {
        "family": FAMILIES.get(run[1], "encoder"),
        "score": score,
        "dev_score": score,
        "best_epoch": 1,
        "epochs": 1,
        "train_size": 100 + list(asked.tasks[run[0]]).index(run[4]),
        "dev_size": 20,
        "test_size": 40,
        "digest": digest_of_run(run),
        "path": path_of(run),
        "has_predictions": True,
        "seconds": 1.0,
        "commit": "0123456789" * 4,
        "recipe": 1,
        "data_revision": "revision-1",
        "synthetic": asked.synthetic,
        "few_sample": True,
    }
    names = list_column_names(columns.RUNS)
    known = dict(zip(names, (*build_source_key(*run[:4]), *run[4:]), strict=False))
    return _fill_row("transfer_runs", known | values)


def _make_missing_row(run: RunName, state: str, reason: str) -> tuple[object, ...]:
    dataset, model, method, sources, target, seed = run
    values = {
        "method": method,
        "model": model,
        "seed": seed,
        "dataset": dataset,
        "sources": "+".join(sources),
        "target": target,
        "path": path_of(run),
        "state": state,
        "reason": reason,
        "node": path_of(run).removesuffix("/metrics.json"),
    }
    return _fill_row("missing", values)


_CELL = ["dataset", "model", "algorithm", "source", "target"]


def _make_statistics(deltas: pd.DataFrame) -> dict[str, pd.DataFrame]:
    whole = deltas[deltas["delta"].notna()]
    cells = _build("cells", [_cell(here) for _, here in whole.groupby(_CELL, sort=False)])
    singles = cells[cells["n_sources"] == 1]
    groups = list(singles.groupby(["dataset", "model", "algorithm"], sort=False))
    keys = [key for key, _ in groups]
    shares = {"source": 0.2, "target": 0.5, "seed": 0.3}
    rows: dict[str, list[tuple[object, ...]]] = {
        "summary": [_summary(key, here) for key, here in groups],
        "variance": [(*key, part, share, share) for key in keys for part, share in shares.items()],
        "asymmetry": [row for key, here in groups for row in _asymmetry(key, here)],
        "agreement": _agreement(keys),
        "overlap": _overlap(cells),
        "overlap_effect": [(*key, "test instances", 10, 0.1, -0.2, 0.4, 0.5) for key in keys],
    }
    return {"cells": cells, **{name: _build(name, rows[name]) for name in rows}}


def _cell(here: pd.DataFrame) -> tuple[object, ...]:
    first = here.iloc[0]
    delta, base = float(here["delta"].mean()), float(here["baseline_score"].mean())
    p = float(np.exp(-abs(delta) / 4))
    errors = {"standard_error": 1.5, "test_error": 1.0, "test_degrees": 19.0, "degrees": 4.0}
    values = {
        **first[_CELL],
        **errors,
        "sources": list(first["sources"]),
        "n_sources": int(first["n_sources"]),
        "n_seeds": len(here),
        "seeds": sorted(int(seed) for seed in here["seed"]),
        "n_baselines": len(here),
        "score": float(here["score"].mean()),
        "baseline_score": base,
        "delta": delta,
        "improvement": 100 * delta / base,
        "instances": 40,
        "dialogues": 20,
        "resampled_by": "dialogue",
        "low": delta - 3,
        "high": delta + 3,
        "p": p,
        "q": min(1.0, 2 * p) if len(here) > 1 else float("nan"),
        "significant": 2 * p <= 0.05 and len(here) > 1,
        "inputs": "i" * 64,
    }
    return _fill_row("cells", values)


def _summary(key: tuple[str, str, str], here: pd.DataFrame) -> tuple[object, ...]:
    mean = float(here["delta"].mean())
    around = (mean, mean - 1, mean + 1)
    positive_and_rank = (0.5, 0.4, 0.6, 2.0, 1.5, 2.5)
    rest = (*positive_and_rank, len(here), 0.1, 0.01, 0.02)
    return (*key, len(here), 2, *around, mean - 2, mean + 2, *around, *rest)


def _asymmetry(key: tuple[str, str, str], here: pd.DataFrame) -> list[tuple[object, ...]]:
    delta = {(row.source, row.target): row.delta for row in here.itertuples()}
    return [
        (*key, a, b, there, back, there - back, 2, there - back - 1, there - back + 1, 0.04, 0.2)
        for (a, b), there in delta.items()
        if a < b and (back := delta.get((b, a))) is not None
    ]


def _agreement(keys: Sequence[tuple[str, str, str]]) -> list[tuple[object, ...]]:
    return [
        (dataset, "model", algorithm, model, other, 90, 0.25, 0.1, 0.4, 0.03, 0.2, 0.6)
        for dataset, model, algorithm in keys
        for other_dataset, other, held in keys
        if (other_dataset, held) == (dataset, algorithm) and model < other
    ]


def _overlap(cells: pd.DataFrame) -> list[tuple[object, ...]]:
    pairs = cells[cells["n_sources"] == 1].drop_duplicates(["dataset", "source", "target"])
    return [
        (row.dataset, row.source, row.target, "test instances", 10, 40, 0.25)
        for row in pairs.itertuples()
    ]
