"""Records of stages that were never trained, from the trainer's builder, and edits of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tasktransfer.core.identity import RECIPE_VERSION
from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Selection
from tasktransfer.results.records import build_node_record
from tasktransfer.results.schema import (
    Cost,
    Provenance,
    Record,
    Round,
    RowsFile,
    Selected,
    TaskResult,
)

Size = tuple[int, int, int]


def constructed_record(
    stage: Stage,
    scores: Sequence[float] = (50.0,),
    *,
    test: Mapping[str, TaskResult] | None = None,
    size: Size = (100, 10, 4),
    synthetic: bool = False,
    rows: RowsFile | None = None,
    **provenance: Any,
) -> Record:
    """Build the record of a stage.

    Args:
        stage: any stage.
        scores: dev score of each round; the first of the best rounds is selected.
        test: tested task → result.
        size: instances of every task in training, dev and test split.
        rows: rows file beside the record.
        provenance: changes of ``make_provenance``'s result.
    """
    train, dev, tested = size
    rounds = [constructed_round(stage, n, score) for n, score in enumerate(scores, 1)]
    return build_node_record(
        stage,
        training={"rounds": rounds, "selections": [*map(selected(scores), stage.selections)]},
        results=test or {},
        sizes={task: {"train": train, "dev": dev, "test": tested} for task in stage.tasks},
        synthetic=synthetic,
        rows=rows,
        provenance=cast(Provenance, make_provenance(**{"recipe": stage.recipe} | provenance)),
    )


def selected(scores: Sequence[float]) -> Callable[[Selection], Selected]:
    """Return a function that selects the first of the best rounds with these scores."""
    return lambda selection: {
        "select_on": list(selection.tasks),
        "round": 1 + scores.index(max(scores)),
        "dev_score": max(scores),
        "scores": list(scores),
    }


def constructed_round(
    stage: Stage, number: int, score: float, measures: Sequence[str] = ("accuracy",)
) -> Round:
    """Build a round in which every measure of every selecting task has the same value."""
    return {
        "round": number,
        "train_loss": dict.fromkeys(stage.train_tasks, 1.0 / number),
        "dev": {task: dict.fromkeys(measures, score) for task in stage.measured_on},
        "seconds": 0.75,
    }


def result(score: float, instances: int = 4) -> TaskResult:
    """Build the result of a task that is scored by accuracy."""
    return {"measures": {"accuracy": score}, "score": score, "instances": instances}


def make_provenance(**changes: Any) -> dict[str, Any]:
    """Build plausible provenance of a training. ``changes`` replace its keys or its cost's."""
    provenance: dict[str, Any] = {
        "tasktransfer": "0.1.0",
        "recipe": RECIPE_VERSION,
        "versions": {"python": "3.11.2", "torch": "2.13.0"},
        "commit": "0" * 40,
        "dirty": False,
        "config_digest": "c" * 64,
        "study": "constructed",
        "host": {
            "platform": "Linux",
            "cpu": "test",
            "cores": 2,
            "gpu": None,
            "device": "cpu",
            "precision": "float32",
            "threads": 1,
        },
        "started": "2024-01-02T03:04:05Z",
        "seconds": {"train": 1.5, "test": 0.5},
        "notes": [],
    }
    cost: dict[str, Any] = {
        "tokens": 1000,
        "samples": 200,
        "samples_per_second": 133.3,
        "tokens_per_second": 666.7,
        "peak_memory_mb": 300.0,
        "peak_gpu_memory_mb": None,
    }
    cost |= {key: changes.pop(key) for key in Cost.__annotations__ if key in changes}
    return provenance | {"training": cost} | changes


# --- changes --------------------------------------------------------------------------------------


def put(record: Any, key: str, value: Any) -> Any:
    """Return a copy with the value at a dotted key; the value ``...`` removes the key."""
    changed = copy.deepcopy(record)
    *path, last = [int(part) if part.isdigit() else part for part in key.split(".")]
    place = changed
    for part in path:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return changed


def edit(file: Path, **changes: Any) -> None:
    """Change a record's file; ``node__seed`` is the key ``node.seed``."""
    record = json.loads(file.read_text())
    for key, value in changes.items():
        record = put(record, key.replace("__", "."), value)
    file.write_text(json.dumps(record))
