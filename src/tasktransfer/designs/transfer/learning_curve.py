"""Writer of the frame ``learning_curve``, which the command ``learning-curve`` computes.

The references are fitted again on samples of the dialogues. For fine-tuning, the records of the
runs that the study's key ``learning_curve`` adds are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa

from tasktransfer.core.nodes.data import FRACTIONS
from tasktransfer.core.references import TFIDF, get_training_method
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.collect import get_scored_stage
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.frames import LEARNING_CURVE
from tasktransfer.designs.transfer.runs import BASELINE, NO_MODEL, SAMPLES
from tasktransfer.designs.transfer.statistics.without_transfer import score_task_rows
from tasktransfer.errors import ConfigError
from tasktransfer.jobs.export_candidates import choose_task
from tasktransfer.jobs.learning_curve import (
    CurveRow,
    build_curve_rows,
    compute_learning_curves,
    describe_curve,
    list_training_dialogues,
    read_limited_instances,
)
from tasktransfer.results.collect import Collected, gather_records
from tasktransfer.results.frame_files import read_brought_frame
from tasktransfer.results.frames import Frame
from tasktransfer.results.store import build_frame, build_schema, write_arrow
from tasktransfer.results.study import Study

FILE = "learning_curve.parquet"


def write_learning_curve(
    study: Study, task: str | None, seeds: int
) -> tuple[pd.DataFrame, list[str]]:
    """Compute the learning curves of a task, and add them to the study's tables.

    Args:
        study: a study whose dialogues are prepared.
        task: as in ``choose_task``.
        seeds: number of samples of each size for references.

    Returns:
        The rows of the task, and one sentence per method or missing method.

    Raises:
        ConfigError: the study has no such task, or no method that learns from dialogues.
        DataError, RecordError: as ``compute_learning_curves``.
    """
    dataset, name = choose_task(study, task)
    rows = compute_learning_curves(study, dataset, name, seeds, NO_MODEL)
    trained, notes = compute_fine_tuning_curves(study, dataset, name)
    rows += trained
    if not rows:
        raise ConfigError(
            f"{study.config_file}: None of the references learns from dialogues. Add {TFIDF} "
            "to references." + "".join(f" {note}" for note in notes)
        )
    frame, path = build_frame(rows, LEARNING_CURVE), Path(study.tables, FILE)
    earlier = read_brought_frame(path, Frame("learning_curve", LEARNING_CURVE, None))
    others = earlier[(earlier["dataset"] != dataset) | (earlier["target"] != name)]
    path.parent.mkdir(parents=True, exist_ok=True)
    both = build_frame([*others.itertuples(index=False, name=None), *rows], LEARNING_CURVE)
    schema = build_schema(LEARNING_CURVE)
    write_arrow(path, pa.Table.from_pandas(both, schema=schema, preserve_index=False), None)
    return frame, [*describe_curve(rows), *notes]


def compute_fine_tuning_curves(
    study: Study, dataset: str, task: str
) -> tuple[list[CurveRow], list[str]]:
    """Compute the learning curve of each model from the records of its baselines.

    Returns:
        The rows, and one sentence per model whose curve is missing.

    Raises:
        DataError: there are too few training dialogues.
        RecordError: the dialogues are not prepared, or records are damaged.
    """
    config = get_transfer_config(study)
    wanted = [run for run in study.plan.runs if _is_curve_run(run, dataset, task)]
    if not config.learning_curve:
        note = (
            "The curve has no fine-tuning: set learning_curve: true in the config, and run the "
            "study."
        )
        return [], [note] if wanted else []
    collected = gather_records(study, wanted)
    rows: list[CurveRow] = []
    notes = []
    for model in dict.fromkeys(run.model for run in wanted):
        planned = _group_by_seed(run for run in wanted if run.model == model)
        found = _group_by_seed(run for run in collected.runs if run.model == model)
        complete = {seed: runs for seed, runs in found.items() if len(runs) == len(planned[seed])}
        if complete:
            rows += _build_curve_rows(collected, dataset, task, complete)
        if len(complete) < len(planned):
            notes.append(
                f"{model}: The curve lacks {len(planned) - len(complete)} of {len(planned)} seeds "
                "of fine-tuning, because training runs are missing. Run the study with "
                "`tasktransfer run`."
            )
    return rows, notes


def _is_curve_run(run: Run, dataset: str, task: str) -> bool:
    about = run.about
    is_trained = run.method == BASELINE or run.method in SAMPLES
    return is_trained and (about["dataset"], about["target"]) == (dataset, task)


def _group_by_seed(runs: Iterator[Run]) -> dict[int, dict[float, Run]]:
    """Map each seed to its runs by fraction of the training dialogues."""
    groups: dict[int, dict[float, Run]] = defaultdict(dict)
    for run in runs:
        groups[run.seed][SAMPLES.get(run.method, 1.0)] = run
    return {seed: runs for seed, runs in groups.items() if len(runs) > 1}


def _build_curve_rows(
    collected: Collected, dataset: str, task: str, seeds: dict[int, dict[float, Run]]
) -> Iterator[CurveRow]:
    """Yield the rows of a model's learning curve."""
    scored, sizes = [], defaultdict(list)
    for fraction in FRACTIONS:
        for seed, runs in seeds.items():
            run = runs[fraction]
            stage = get_scored_stage(run)
            rows = collected.rows(stage)
            scored.append(((f"{fraction}",), seed, score_task_rows(collected, run, rows, task)))
            sizes[fraction].append(collected.record(stage)["sizes"][task]["train"])
    study, limit = collected.study, stage.training.limit_train
    train = read_limited_instances(study, stage.data, task, "train", limit)
    names = (dataset, stage.model.name, task, get_training_method(stage.model))
    for point in build_curve_rows(scored, len(list_training_dialogues(task, train)), sizes):
        yield (*names, *point)
