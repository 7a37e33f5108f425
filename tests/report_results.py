"""Tables and statistics of a study with known numbers, in memory, without records or trainings.

They are for tests of code that shows results. ``tests/unit/record_factory.py`` and
``tests/study_records.py`` write records, for tests of code that reads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.collect.results import Results, Statistics, Tables
from tasktransfer.designs.transfer.collect.rows import identity
from tasktransfer.results.metadata import Metadata

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


def make_results(asked: Asked) -> Results:
    """Build tables and statistics of a study.

    A cell's interval is its delta ± 3, and p and q follow from its size. These numbers only need to
    be recognizable.
    """
    wanted = _runs(asked)
    lost = {run: why for run in wanted if (why := asked.lost(run)) is not None}
    there = [run for run in wanted if run not in lost]
    tables = Tables(
        runs=frame("runs", [_run_row(run, asked) for run in there]),
        scores=frame("scores", []),
        deltas=frame("deltas", _deltas(there)),
        sizes=frame(
            "sizes",
            [
                (d, task, 100 + n, 20, 40)
                for d, ts in asked.tasks.items()
                for n, task in enumerate(ts)
            ],
        ),
        missing=frame("missing", [_missing_row(run, why) for run, why in lost.items()]),
        problems=frame("problems", list(asked.problems)),
        control_runs=frame("control_runs", []),
        control_missing=frame("control_missing", []),
        other_missing=frame("other_missing", []),
    )
    metadata = Metadata(
        study=asked.study,
        config_digest="c" * 64,
        synthetic=asked.synthetic,
        records=len(there),
        shorts=asked.shorts,
        order={
            "dataset": list(asked.tasks),
            "model": list(asked.models),
            "algorithm": ["baseline", *asked.algorithms],
            "task": [task for tasks in asked.tasks.values() for task in tasks],
        },
    )
    return Results(tables, _statistics(tables.deltas), metadata, None)


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


def _named(table: str, run: RunName, **values: object) -> tuple[object, ...]:
    """Build a row of a table: the run's identity and the given values; other columns are empty."""
    keys = columns.names(table)
    known = dict(zip(keys, (*identity(*run[:4]), run[4], run[5]), strict=False))
    return tuple({**dict.fromkeys(keys), **known, **values}[key] for key in keys)


def _run_row(run: RunName, asked: Asked) -> tuple[object, ...]:
    score = score_of(run)
    return _named(
        "runs",
        run,
        family=FAMILIES.get(run[1], "encoder"),
        score=score,
        dev_score=score,
        best_epoch=1,
        epochs=1,
        train_size=100,
        dev_size=20,
        test_size=40,
        digest=digest_of_run(run),
        path=path_of(run),
        has_predictions=True,
        seconds=1.0,
        commit="0123456789" * 4,
        recipe=1,
        data_revision="revision-1",
        synthetic=asked.synthetic,
        few_sample=True,
    )


def _missing_row(run: RunName, why: tuple[str, str]) -> tuple[object, ...]:
    state, reason = why
    stage = path_of(run).removesuffix("/metrics.json")
    return _named("missing", run, path=path_of(run), reason=reason, state=state, stage=stage)


def _deltas(there: Sequence[RunName]) -> list[tuple[object, ...]]:
    known = set(there)
    rows = []
    for run in there:
        dataset, model, algorithm, _, target, seed = run
        if algorithm == "baseline":
            continue
        baseline: RunName = (dataset, model, "baseline", (), target, seed)
        base = score_of(baseline) if baseline in known else None
        delta = None if base is None else score_of(run) - base
        rows.append(
            _named(
                "deltas",
                run,
                score=score_of(run),
                baseline_score=base,
                delta=delta,
                improvement=None if base is None or delta is None else 100 * delta / base,
                digest=digest_of_run(run),
                baseline_digest=digest_of_run(baseline) if base is not None else None,
            )
        )
    return rows


_CELL = ["dataset", "model", "algorithm", "source", "target"]


def _statistics(deltas: pd.DataFrame) -> Statistics:
    whole = deltas[deltas["delta"].notna()]
    cells = [_cell(here) for _, here in whole.groupby(_CELL, sort=False)]
    made = frame("cells", cells)
    groups = list(
        made[made["n_sources"] == 1].groupby(["dataset", "model", "algorithm"], sort=False)
    )
    return Statistics(
        cells=made,
        summary=frame("summary", [_summary(key, here) for key, here in groups]),
        variance=frame(
            "variance",
            [
                (*key, part, share, share)
                for key, _ in groups
                for part, share in (("source", 0.2), ("target", 0.5), ("seed", 0.3))
            ],
        ),
        asymmetry=frame(
            "asymmetry", [row for key, here in groups for row in _asymmetry(key, here)]
        ),
        agreement=frame("agreement", _agreement([key for key, _ in groups])),
        overlap=frame("overlap", _overlap(made)),
        overlap_effect=frame(
            "overlap_effect",
            [(*key, "test instances", 10, 0.1, -0.2, 0.4, 0.5) for key, _ in groups],
        ),
        control_cells=frame("control_cells", []),
        controls=frame("controls", []),
        top1=frame("top1", []),
        collapsed=frame("collapsed", []),
    )


def _cell(here: pd.DataFrame) -> tuple[object, ...]:
    first = here.iloc[0]
    delta, base = float(here["delta"].mean()), float(here["baseline_score"].mean())
    p = float(np.exp(-abs(delta) / 4))
    values = {
        "dataset": first["dataset"],
        "model": first["model"],
        "algorithm": first["algorithm"],
        "sources": list(first["sources"]),
        "source": first["source"],
        "n_sources": int(first["n_sources"]),
        "target": first["target"],
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
        "standard_error": 1.5,
        "test_error": 1.0,
        "test_degrees": 19.0,
        "degrees": 4.0,
        "low": delta - 3,
        "high": delta + 3,
        "p": p,
        "no_interval": None,
        "q": min(1.0, 2 * p) if len(here) > 1 else float("nan"),
        "significant": 2 * p <= 0.05 and len(here) > 1,
        "inputs": "i" * 64,
    }
    return tuple(values[name] for name in columns.names("cells"))


def _summary(key: tuple[str, str, str], here: pd.DataFrame) -> tuple[object, ...]:
    mean = float(here["delta"].mean())
    around = (mean, mean - 1, mean + 1)
    joint = (mean - 2, mean + 2)
    return (
        *key,
        len(here),
        2,
        *around,
        *joint,
        *around,
        0.5,
        0.4,
        0.6,
        2.0,
        1.5,
        2.5,
        len(here),
        0.1,
        0.01,
        0.02,
    )


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
