"""Scores of simple predictors on each task, for the table ``reference``.

The table is computed once from the prepared dialogues, whose path contains their revision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.core.references import MOST_FREQUENT, TFIDF
from tasktransfer.core.specs import Training
from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.data.samples import select_instances
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.frames import REFERENCE
from tasktransfer.evaluation.reference import BY_FREQUENCY, MODEL_FREE_REFERENCES
from tasktransfer.files import remove_partial_files, replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.results.frames import list_column_names
from tasktransfer.tasks.card import Instance, Task

DRAWS = 20
"""Number of samples of answers by frequency; the table has the mean of their scores."""


def compute_reference_rows(
    folder: Path,
    tasks: Sequence[str],
    training: Training,
    progress: Callable[[str], None] = lambda text: None,
) -> pd.DataFrame:
    """Compute the scores of simple predictors (references) on a dataset's tasks.

    Args:
        folder: the dataset's prepared instances.
        tasks: names of tasks; tasks that the release does not contain are left out.
        training: the study's training settings: the limits on instances, and the scoring rules.
        progress: function that receives a line for each row.

    Returns:
        Columns of ``frames.REFERENCE``.

    Raises:
        DataError: the folder does not contain prepared instances.
    """
    manifest = read_manifest(folder)
    rows: list[tuple[Any, ...]] = []
    known = [task for task in tasks if task in manifest.tasks]
    for name in show_progress(known, f"references of {manifest.dataset}"):
        task = get_task(manifest.dataset, name)
        train = select_instances(read_instances(folder, name, "train"), training.limit_train)
        test = select_instances(read_instances(folder, name, "test"), training.limit_test)
        for reference in _list_available_references(progress):
            scores, answer = _score_reference(
                reference, task, train, test, training.fidelity.scoring
            )
            rows.append(
                (
                    *(manifest.dataset, name, reference, np.mean(scores), np.std(scores), answer),
                    *(len(train), len(test), manifest.revision),
                    *(manifest.few_sample, manifest.synthetic),
                )
            )
            progress(f"{manifest.dataset} {name} {reference}: {np.mean(scores):.2f}")
    return pd.DataFrame(rows, columns=list_column_names(REFERENCE))


def write_reference_table(frame: pd.DataFrame, path: Path) -> None:
    """Write the table of references as Parquet, atomically."""
    remove_partial_files(path.parent, path.name)
    with replace_file(path) as part:
        frame.to_parquet(part, index=False)


def _list_available_references(progress: Callable[[str], None]) -> list[str]:
    """Return the references that can be computed with the installed packages."""
    if find_spec("sklearn") is None:
        progress(
            f"{TFIDF} is skipped, because scikit-learn is missing. Install tasktransfer[reference]."
        )
        return [name for name in MODEL_FREE_REFERENCES if name != TFIDF]
    return list(MODEL_FREE_REFERENCES)


def _score_reference(
    reference: str,
    task: Task,
    train: Sequence[Instance],
    test: Sequence[Instance],
    scoring: Scoring,
) -> tuple[list[float], str]:
    """Return a reference's scores, one per sample, and its answer if it is constant."""
    golds = [instance.target for instance in test]
    scores: list[float] = []
    distinct: set[tuple[str, ...]] = set()
    for seed in range(DRAWS if reference == BY_FREQUENCY else 1):
        predictions = MODEL_FREE_REFERENCES[reference](task, train, test, seed)
        distinct = set(predictions)
        values = metrics.evaluate_predictions(task, predictions, golds, fidelity=scoring)
        scores.append(metrics.compute_task_score(task, values))
    return scores, ", ".join(next(iter(distinct))) if reference == MOST_FREQUENT else ""
