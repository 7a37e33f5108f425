"""A finished study of three tasks with constructed records, for tests of cells."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from study_records import write_records
from tasktransfer.core.nodes import SHORT, Stage
from tasktransfer.core.runs import Run
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.designs.transfer.statistics import cells as module
from tasktransfer.results.collect import gather_records as collected
from tasktransfer.results.frames import Frames
from tasktransfer.results.schema import RowsFile
from tasktransfer.results.study import Study
from transfer_frames import compute_frames

TASKS = ["emotion_recognition", "dialogue_nli", "topic_classification"]
KEYS: dict[str, Any] = {
    "study": "constructed",
    "datasets": {"DailyDialog": {"tasks": TASKS}},
    "models": [
        {"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"},
        {"name": "tiny-gpt", "family": "decoder", "checkpoint": "tiny"},
    ],
    "algorithms": ["pretrain_finetune", "multitask"],
    "seeds": 3,
    "multi_source": {
        "mode": "named",
        "named": [{"dataset": "DailyDialog", "target": TASKS[2], "sources": TASKS[:2]}],
        "algorithms": ["multitask"],
    },
}
RESULTS = Path("results")


def finished_study() -> Study:
    """Write a finished study into the working directory, in which emotions help a lot."""
    Path("study.yaml").write_text(yaml.safe_dump(KEYS))
    study = open_study("study.yaml")
    write_records(study, quality)
    return study


def quality(run: Run) -> float:
    return 1.0 if run.about["sources"] == (TASKS[0],) else 0.3


def gather(study: Study) -> Frames:
    return compute_frames(collected(study))


def find_cells(study: Study, previous: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the collected records, with unchanged rows of an earlier result."""
    frames = gather(study)
    runs, deltas = frames["transfer_runs"], frames["deltas"]
    return module.add_baseline_states(
        module.compute_cells(runs, deltas, RESULTS, previous), frames.get("references")
    )


def a_run(study: Study, algorithm: str = "multitask", source: str = TASKS[0]) -> Run:
    return next(
        run
        for run in select_transfer_runs(study.plan)
        if (run.method, run.about["sources"], run.about["target"], run.seed)
        == (algorithm, (source,) if source else (), TASKS[1] if source else TASKS[2], 1)
    )


def of_plan(study: Study, run: Run) -> Stage:
    """Return a run's last training with all of its selections, as in the plan."""
    stage = study.get_node(run.stages[-1].digest[:SHORT])
    assert isinstance(stage, Stage)
    return stage


def record_of(study: Study, run: Run) -> Path:
    return Path(study.get_record_path(run.stages[-1]))


def select_rows(frame: pd.DataFrame, **keys: Any) -> pd.DataFrame:
    return frame[(frame[list(keys)] == pd.Series(keys)).all(axis=1)]


def one(frame: pd.DataFrame, **keys: Any) -> Any:
    rows = select_rows(frame, **keys)
    assert len(rows) == 1, rows
    return rows.iloc[0]


A_CELL = {"model": "tiny-bert", "algorithm": "multitask", "source": TASKS[0], "target": TASKS[1]}


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a growing list of the folders whose predictions cells are computed from."""
    read_from: list[str] = []
    read = module.TallyReader.read

    def counted(self: module.TallyReader, path: Path, expected: RowsFile) -> Any:
        read_from.append(path.parent.as_posix())
        return read(self, path, expected)

    monkeypatch.setattr(module.TallyReader, "read", counted)
    return read_from


def replace_column(path: Path, name: str, values: list[Any], task: str | None = None) -> None:
    """Replace values in a record's predictions, and update the SHA-256.

    ``task``: only in the rows of this task, for a training that is tested on several.
    """
    file = path.with_name("rows.parquet")
    table = pq.read_table(file)
    if task is not None:
        new = iter(values)
        pairs = zip(table["task"].to_pylist(), table[name].to_pylist(), strict=True)
        values = [next(new) if of == task else old for of, old in pairs]
    place = table.schema.get_field_index(name)
    field = table.schema.field(name)
    pq.write_table(table.set_column(place, field, pa.array(values, field.type)), file)
    record = json.loads(path.read_text())
    record["rows"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    path.write_text(json.dumps(record))
