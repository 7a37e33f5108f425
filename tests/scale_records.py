"""Records of the paper's size, to measure how the analysis scales.

This is the paper's study with artificial results: 255 baselines, 5,940 single-source transfers, 180
multi-source runs and their 60 source trainings. Each has 1,000 predictions and consistent scores,
at the paths of a real plan. Nothing was trained, so write them only to a temporary folder.

    python tests/scale_records.py FOLDER [FACTOR [INSTANCES]]

``FACTOR`` 10 means 50 seeds instead of the paper's 5.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from constructed_records import make_provenance, selected
from tasktransfer import metrics
from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import Stage
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec
from tasktransfer.datasets import get_task
from tasktransfer.designs import load_config
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.designs.transfer.study_plan import plan_study
from tasktransfer.metrics import CodedAnswers
from tasktransfer.results.records import build_node_record
from tasktransfer.results.revisions import Revisions
from tasktransfer.results.rows import COLUMNS, SCHEMA_VERSION
from tasktransfer.results.schema import Provenance, Round, RowsFile, Sizes, TaskResult
from tasktransfer.results.state import ROWS
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Task

PAPER = Path(__file__).resolve().parents[1] / "workflow/presets/paper.yaml"
INSTANCES = 1000
PROCESSES = 2
EPOCHS = 30
WORDS = ("the", "dog", "ran", "home", "because", "it", "was", "late", "and", "nobody", "called")
Codes = npt.NDArray[np.int64]


def write_scale_study(
    folder: Path, factor: int = 1, instances: int = INSTANCES, models: int = 3
) -> Study:
    """Write the records of the paper's study with ``5 * factor`` seeds, and return the study.

    ``models``: number of the three models to keep, for smaller studies.
    """
    study = paper_study(folder, factor, models)
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("fork")) as pool:
        shares = [(folder, factor, models, instances, share) for share in range(PROCESSES)]
        list(pool.map(_write_share, *zip(*shares, strict=True)))
    return study


def _write_share(folder: Path, factor: int, models: int, instances: int, share: int) -> None:
    study = paper_study(folder, factor, models)
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in select_transfer_runs(study.plan):
        runs[run.stages[-1].digest].append(run)
    for stage in study.plan.stages[share::PROCESSES]:
        write_stage(study, stage, runs[stage.digest], instances)


@cache
def paper_study(folder: Path, factor: int = 1, models: int = 3) -> Study:
    """Open the paper's preset with results in a folder and artificial revisions of its inputs."""
    whole = load_config(PAPER, {"seeds": 5 * factor})
    assert isinstance(whole, TransferConfig)
    changed = {"models": whole.models[:models], "results": str(folder)}
    wanted = whole.model_copy(update=changed)
    revisions = Revisions(
        {dataset.name: "constructed" for dataset in wanted.datasets},
        {m.name: ModelSpec(m.name, m.family, m.name, m.max_length) for m in wanted.models},
    )
    return Study(wanted, str(PAPER), {}, revisions, (), plan_study)


def write_stage(
    study: Study, stage: Stage, runs: Iterable[Run], instances: int = INSTANCES, take: str = ""
) -> Path:
    """Write a stage's record and predictions, and return the record's path.

    Another ``take`` gives other results of the same runs. The package's writers are not used,
    because their fsync takes longer than everything else.
    """
    of_stage = Path(study.get_node_folder(stage))
    of_stage.mkdir(parents=True, exist_ok=True)
    test: dict[str, TaskResult] = {}
    tables: list[pa.Table] = []
    for run in runs:
        test_set = _test_set(run.about["dataset"], run.about["target"], instances)
        predicted = _predict(test_set, run, take)
        values = metrics.evaluate_predictions(test_set.task, predicted, test_set.golds)
        score = metrics.compute_task_score(test_set.task, values)
        test[run.about["target"]] = {"measures": values, "score": score, "instances": instances}
        tables.append(_predictions(test_set, predicted))
    predictions = _write_predictions(of_stage, stage, tables) if tables else None
    scores = _dev_scores(stage)
    record = build_node_record(
        stage,
        training={
            "rounds": _rounds(stage, scores),
            "selections": [*map(selected(scores), stage.selections)],
        },
        results=test,
        sizes={task: _sizes(stage.dataset, task, instances) for task in stage.tasks},
        synthetic=False,
        rows=predictions,
        provenance=cast(Provenance, _provenance(study, stage)),
    )
    path = of_stage / "metrics.json"
    path.write_text(json.dumps(record))
    return path


# --- test sets and predictions --------------------------------------------------------------------


@dataclass(frozen=True)
class TestSet:
    """Ids and gold answers of a task, and possible answers of runs.

    ``choices``, shape (rows, n, k): positions in ``texts``. Row 0 has the gold answers, the other
    rows wrong or partly correct ones. Multi-label answers of different lengths are padded with -1.
    """

    __test__ = False  # tells pytest that this is not a test class

    task: Task
    ids: pa.Array
    dialogues: pa.Array
    texts: tuple[str, ...]
    golds: CodedAnswers
    choices: Codes


@cache
def _test_set(dataset: str, target: str, instances: int) -> TestSet:
    task = get_task(dataset, target)
    chance = _chance(dataset, target)
    if task.kind == "span":
        texts, golds, choices = _spans(task, chance, instances)
    elif task.kind == "multi_label":
        texts, golds, choices = _label_sets(task, chance, instances)
    else:
        texts, golds, choices = _labels(task, chance, instances)
    ids = pa.array([f"{target}-{n // 7}_t{n % 7}" for n in range(instances)])
    dialogues = pa.array([f"{target}-{n // 7}" for n in range(instances)])
    return TestSet(task, ids, dialogues, texts, golds, choices)


def _labels(
    task: Task, chance: np.random.Generator, n: int
) -> tuple[tuple[str, ...], CodedAnswers, Codes]:
    """Sample labels with frequencies proportional to 1/k; 2 % of wrong answers are not labels."""
    answers = len(task.outputs) or 1
    shares = 1 / np.arange(1, len(task.labels) + 1)
    golds = chance.choice(len(task.labels), (n, answers), p=shares / shares.sum())
    wrong = chance.choice(
        len(task.labels) + 1, (7, n, answers), p=[*(0.98 * shares / shares.sum()), 0.02]
    )
    texts = (*task.labels, "no label")
    starts = np.arange(n + 1) * answers
    return texts, CodedAnswers(texts, golds.ravel(), starts), np.concatenate([golds[None], wrong])


def _label_sets(
    task: Task, chance: np.random.Generator, n: int
) -> tuple[tuple[str, ...], CodedAnswers, Codes]:
    first = chance.integers(0, len(task.labels), n)
    second = np.where(chance.random(n) < 0.2, (first + 1) % len(task.labels), -1)
    golds = np.stack([first, second], axis=1)
    wrong = np.stack(
        [
            chance.integers(0, len(task.labels), (7, n)),
            np.where(chance.random((7, n)) < 0.3, first, -1),
        ],
        axis=2,
    )
    kept = golds.ravel()[golds.ravel() >= 0]
    starts = np.concatenate([[0], np.cumsum((golds >= 0).sum(axis=1))])
    return (
        task.labels,
        CodedAnswers(task.labels, kept, starts),
        np.concatenate([golds[None], wrong]),
    )


def _spans(
    task: Task, chance: np.random.Generator, n: int
) -> tuple[tuple[str, ...], CodedAnswers, Codes]:
    """Sample answers of three to eight words.

    Partly correct answers miss the first or the last word. Three quarters of the causal spans are
    unanswerable, and some questions have two gold answers.
    """
    right = [" ".join(chance.choice(WORDS, chance.integers(3, 9))) + f" {i % 97}" for i in range(n)]
    if any(spec.unanswerable_phrases for spec in task.metrics):
        right = [text if i % 4 == 0 else "Impossible answer" for i, text in enumerate(right)]
    shorter = [text.split(" ", 1)[1] for text in right]
    other = [text.rsplit(" ", 1)[0] for text in right]
    texts = (*right, *shorter, *other)
    places = np.arange(n)
    choices = np.stack(
        [places, places + n, places + 2 * n, *(chance.permutation(n) for _ in range(5))]
    )
    several = (
        np.where(places % 5 == 0, 2, 1) if task.name == "question_answering" else np.ones(n, int)
    )
    starts = np.concatenate([[0], np.cumsum(several)])
    golds = np.repeat(places, several)
    golds[1:][np.diff(golds) == 0] += n
    return texts, CodedAnswers(texts, golds, starts), choices[:, :, None]


def _predict(test_set: TestSet, run: Run, take: str) -> CodedAnswers:
    """Predict correctly if an instance is easier than the run's quality, else another answer.

    The quality depends on model, target, transfer and seed.
    """
    n = len(test_set.ids)
    names = (run.about["dataset"], run.model, run.about["target"])
    level = _chance(*names).uniform(0.3, 0.7)
    if run.about["sources"]:
        level += 0.03 * _chance(*names, run.method, *run.about["sources"]).standard_normal()
    seed = _chance(*names, run.method, *run.about["sources"], str(run.seed) + take)
    level += 0.01 * seed.standard_normal()
    difficulty = _chance(run.about["dataset"], run.about["target"], "difficulty").random(n)
    right = difficulty + 0.3 * (seed.random(n) - 0.5) < level
    row = np.where(right, 0, seed.integers(1, len(test_set.choices), n))
    picked = test_set.choices[row, np.arange(n)]
    starts = np.concatenate([[0], np.cumsum((picked >= 0).sum(axis=1))])
    return CodedAnswers(test_set.texts, picked[picked >= 0], starts)


@cache
def _chance_seed(names: tuple[str, ...]) -> int:
    return int(compute_digest(list(names))[:16], 16)


def _chance(*names: str) -> np.random.Generator:
    """Return a random generator per name, so that results do not depend on the order of calls."""
    return np.random.default_rng(_chance_seed(names))


# --- files ----------------------------------------------------------------------------------------


def _write_predictions(folder: Path, stage: Stage, tables: list[pa.Table]) -> RowsFile:
    footer = {"schema": str(SCHEMA_VERSION), "node": stage.digest, "dataset": stage.dataset}
    stream = io.BytesIO()
    rows = pa.concat_tables(tables).replace_schema_metadata(footer)
    pq.write_table(rows, stream, compression="zstd")
    (folder / ROWS).write_bytes(content := stream.getvalue())
    return {"file": ROWS, "rows": len(rows), "sha256": hashlib.sha256(content).hexdigest()}


def _predictions(test_set: TestSet, predicted: CodedAnswers) -> pa.Table:
    n = len(test_set.ids)
    score = metrics.score_instances(test_set.task, predicted, test_set.golds)
    columns = {
        "index": pa.array(np.arange(n, dtype=np.int32)),
        "task": pa.array([test_set.task.name]).take(pa.array(np.zeros(n, np.int32))),
        "instance_id": test_set.ids,
        "cluster": test_set.dialogues,
        "prediction": _lists(predicted),
        "gold": _lists(test_set.golds),
        "score": pa.array(score),
    }
    every = [columns.get(one.name, pa.nulls(n, one.type)) for one in COLUMNS]
    return pa.Table.from_arrays(every, schema=COLUMNS)


def _lists(answers: CodedAnswers) -> pa.ListArray:
    values = pa.array(answers.texts).take(pa.array(answers.codes))
    return pa.ListArray.from_arrays(pa.array(answers.starts.astype(np.int32)), values)


def _sizes(dataset: str, task: str, instances: int) -> Sizes:
    train = int(_chance(dataset, task, "size").integers(50, 7000))
    return {"train": train, "dev": train // 6, "test": instances}


def _dev_scores(stage: Stage) -> list[float]:
    chance = np.random.default_rng(int(stage.digest[:16], 16))
    return list((40 + 20 * chance.random(EPOCHS)).round(6).tolist())


def _rounds(stage: Stage, values: list[float]) -> list[Round]:
    return [
        {
            "round": number,
            "train_loss": dict.fromkeys(stage.train_tasks, 2.0 / number),
            "dev": {
                task: {spec.key: value for spec in get_task(stage.dataset, task).metrics}
                for task in stage.measured_on
            },
            "seconds": 2.5,
        }
        for number, value in enumerate(values, 1)
    ]


@cache
def _config_digest(folder: str, factor: int) -> str:
    """Return the config's digest, cached because it takes longer than the rest of a record."""
    return paper_study(Path(folder), factor).config.digest


def _provenance(study: Study, stage: Stage) -> dict[str, Any]:
    return make_provenance(
        recipe=stage.recipe,
        config_digest=_config_digest(study.config.results, len(study.config.seeds) // 5),
        seconds={"read": 0.1, "load": 2.0, "train": 75.0, "test": 4.0, "total": 81.5},
        tokens=3_000_000,
        samples=60_000,
        samples_per_second=800.0,
        tokens_per_second=40_000.0,
        peak_memory_mb=2500.0,
        peak_gpu_memory_mb=9000.0,
    )


if __name__ == "__main__":
    where, *numbers = sys.argv[1:]
    print(f"{len(write_scale_study(Path(where), *map(int, numbers)).plan.runs):,} runs")
