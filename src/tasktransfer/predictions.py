"""The predictions of a run: one Parquet file beside its record.

One row per test instance and task. An instance is named by its position in the test split, since
the release's ids may repeat; the id is kept for reading.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.errors import RecordError
from tasktransfer.records import PredictionsFile, replacing

SCHEMA_VERSION = 1
FILE_NAME = "predictions.parquet"

COLUMNS = pa.schema(
    [
        pa.field("index", pa.int32(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("instance_id", pa.string(), nullable=False),
        pa.field("prediction", pa.list_(pa.string()), nullable=False),
        pa.field("gold", pa.list_(pa.string()), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one test instance.

    ``index`` is the position in the task's test split, from 0; ``prediction`` and ``gold`` hold
    one answer, several labels or traits, or every right answer of a question; ``score`` is the
    instance's own score, 0-100.
    """

    index: int
    task: str
    instance_id: str
    prediction: tuple[str, ...]
    gold: tuple[str, ...]
    score: float


def write_predictions(
    path: Path, rows: Iterable[Prediction], *, digest: str, dataset: str, target: str
) -> PredictionsFile:
    """Write the predictions of a run atomically.

    Args:
        path: where to, usually ``predictions.parquet`` beside the record.
        rows: in the order of the test split.
        digest: digest of the stage that predicts; it stands in the footer, with the other two.

    Returns:
        File name, number of rows and SHA-256, as the record holds them.

    Raises:
        RecordError: an index appears twice or is skipped, or a score is not within 0-100.
    """
    kept = list(rows)
    _check_rows(path, [row.task for row in kept], [row.index for row in kept])
    for row in kept:
        if not (math.isfinite(row.score) and 0 <= row.score <= 100.000001):
            raise RecordError(
                f"{path}: {row.task} instance {row.instance_id}: score {row.score}, "
                "expected between 0 and 100"
            )
    columns = {
        "index": [row.index for row in kept],
        "task": [row.task for row in kept],
        "instance_id": [row.instance_id for row in kept],
        "prediction": [list(row.prediction) for row in kept],
        "gold": [list(row.gold) for row in kept],
        "score": [row.score for row in kept],
    }
    footer = {"schema": str(SCHEMA_VERSION), "stage": digest, "dataset": dataset, "target": target}
    table = pa.table(columns, schema=COLUMNS.with_metadata(footer))
    with replacing(path) as part:
        pq.write_table(table, part, compression="zstd")
        sha256 = _sha256(part)
    return {"file": path.name, "rows": len(kept), "sha256": sha256}


def read_predictions(path: Path, expected: PredictionsFile | None = None) -> pa.Table:
    """Read the predictions of a run, columns as in ``COLUMNS``, footer in ``schema.metadata``.

    Args:
        path: the Parquet file.
        expected: what the record says of the file; its rows and SHA-256 are checked then.

    Raises:
        RecordError: the file is absent or damaged, of another schema, lacks instances, or is not
            the one that the record was written with.
    """
    try:
        table = pq.read_table(path)
        if expected is not None and _sha256(path) != expected["sha256"]:
            raise RecordError(f"{path}: its SHA-256 is not the one in the record beside it")
    except (OSError, pa.ArrowException) as error:
        raise RecordError(f"{path}: cannot be read as Parquet: {error}") from error
    footer = table.schema.metadata or {}
    if footer.get(b"schema") != str(SCHEMA_VERSION).encode() or table.schema != COLUMNS:
        raise RecordError(
            f"{path}: not predictions of schema {SCHEMA_VERSION}: footer schema "
            f"{footer.get(b'schema')!r}, columns {', '.join(table.schema.names)}"
        )
    if expected is not None and table.num_rows != expected["rows"]:
        raise RecordError(f"{path}: {table.num_rows} rows, the record says {expected['rows']}")
    _check_rows(path, table["task"].to_pylist(), table["index"].to_pylist())
    return table


def _check_rows(path: Path, tasks: list[str], indices: list[int]) -> None:
    """Each task's rows are the positions 0, 1, 2, ... in order: none twice, none left out."""
    following: dict[str, int] = {}
    for task, index in zip(tasks, indices, strict=True):
        if index != following.get(task, 0):
            raise RecordError(
                f"{path}: {task}: expected instance {following.get(task, 0)} of the test split, "
                f"found {index}; rows are missing, repeated or out of order"
            )
        following[task] = index + 1


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
