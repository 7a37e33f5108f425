"""The record of derived data, a fit or an evaluation, and the rows beside it.

``metrics.json`` says what was made, its measures by task, and what made it; ``rows.parquet`` has a
row an instance, with the cluster (a dialogue, a context) that is resampled whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, cast

from pydantic import Field, JsonValue, TypeAdapter, with_config
from typing_extensions import TypedDict

from tasktransfer.core.digests import digest_of
from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Stage
from tasktransfer.core.validation import STRICT, wrong_type
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, replacing
from tasktransfer.results.artefacts import Artefact, FileName
from tasktransfer.results.probe_rows import PROJECTION
from tasktransfer.results.records import (
    SCHEMA_VERSION,
    Amount,
    Count,
    Digest,
    Host,
    Name,
    PredictionsFile,
)
from tasktransfer.results.state import RECORD
from tasktransfer.tasks.card import SPLITS

if TYPE_CHECKING:  # imported where it is used: each start asks whether nodes are finished
    import pyarrow as pa

ROWS = "rows.parquet"

NOUNS: dict[type[Node], str] = {
    Data: "data",
    Stage: "stage",
    Fit: "fit",
    Evaluation: "evaluation",
}
"""What a kind of node is called in records, commands and JSON."""


@dataclass(frozen=True, slots=True)
class Row:
    """One instance of an evaluation, or of derived data.

    ``cluster`` is what it shares with others: its dialogue or context. ``prediction`` and ``gold``
    are answers as text, ``predicted_value`` and ``gold_value`` numbers such as ratings; what there
    is none of is empty or None. ``score``: how right it is, 0-100; None where that means nothing.
    """

    task: str
    instance_id: str
    cluster: str
    prediction: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    predicted_value: float | None = None
    gold_value: float | None = None
    score: float | None = None


def _schema() -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415

    return pa.schema(
        [
            pa.field("task", pa.string(), nullable=False),
            pa.field("instance_id", pa.string(), nullable=False),
            pa.field("cluster", pa.string(), nullable=False),
            pa.field("prediction", pa.list_(pa.string()), nullable=False),
            pa.field("gold", pa.list_(pa.string()), nullable=False),
            pa.field("predicted_value", pa.float64()),
            pa.field("gold_value", pa.float64()),
            pa.field("score", pa.float64()),
        ]
    )


class NodeIdentity(TypedDict):
    """What was made."""

    kind: Literal["data", "fit", "evaluation"]
    digest: Digest
    label: Name
    dataset: Name
    identity: dict[str, JsonValue]


class NodeProvenance(TypedDict):
    """How the numbers came about."""

    tasktransfer: Name
    versions: dict[str, str]
    commit: str | None
    dirty: bool | None
    config_digest: str
    study: str
    stand_ins: NotRequired[dict[str, str]]
    host: NotRequired[Host]
    started: str
    seconds: Amount
    notes: list[str]


@with_config(STRICT)
class NodeRecord(TypedDict):
    """What derived data, a fit or an evaluation leaves (schema 2)."""

    schema: Literal[2]
    node: NodeIdentity
    synthetic: bool
    instances: dict[str, Count]
    measures: Annotated[
        dict[str, dict[str, float]], Field(description="task: measure: value, in its own unit")
    ]
    rows: PredictionsFile | None
    artefacts: NotRequired[dict[FileName, Artefact]]
    provenance: NodeProvenance


@cache
def _adapter() -> TypeAdapter[NodeRecord]:
    return TypeAdapter(NodeRecord)


def node_identity(node: Data | Fit | Evaluation) -> NodeIdentity:
    """What a record says of its node."""
    return {
        "kind": cast(Any, NOUNS[type(node)]),
        "digest": node.digest,
        "label": node.label,
        "dataset": node.name if isinstance(node, Data) else node.data.name,
        "identity": node.identity,
    }


def write_rows(folder: Path, rows: Sequence[Row], digest: str) -> PredictionsFile:
    """Write a row an instance atomically; gives file, rows and SHA-256 as the record has them."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    schema = _schema()
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for row in rows:
        for name, value in asdict(row).items():
            columns[name].append(list(value) if isinstance(value, tuple) else value)
    footer = {"schema": str(SCHEMA_VERSION), "node": digest}
    with replacing(folder / ROWS) as part:
        pq.write_table(pa.table(columns, schema=schema.with_metadata(footer)), part)
        sha256 = hashlib.sha256(part.read_bytes()).hexdigest()
    return {"file": ROWS, "rows": len(rows), "sha256": sha256}


def read_rows(folder: Path) -> pa.Table:
    """The rows of a node whose record was checked.

    Raises:
        RecordError: there are none that can be read.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        return pq.read_table(folder / ROWS)
    except (OSError, pa.ArrowException) as error:
        raise RecordError(f"{folder / ROWS}: cannot be read: {error}") from error


def write_node_record(folder: Path, record: NodeRecord) -> None:
    """Write a record atomically, all of it checked first.

    Raises:
        RecordError: as ``read_node_record``; nothing is written then.
    """
    _check(folder / RECORD, record)
    with replacing(folder / RECORD) as part:
        part.write_text(json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_node_record(folder: Path) -> NodeRecord:
    """Read a record and check all of it.

    Raises:
        RecordError: it is absent, no JSON, of another schema, has a missing, unknown, mistyped or
            infinite value, or a measure that is out of its range; names file, key and value.
    """
    file = folder / RECORD
    try:
        value = json_text.loads(json_text.read_bytes(file))
    except OSError as error:
        raise RecordError(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{file}: not valid JSON ({error})") from error
    _check(file, value)
    return cast(NodeRecord, value)


def parts_of(record: NodeRecord) -> list[str]:
    """What a node leaves beside its record and rows: a fit its classifiers, a folder for each task;
    derived data a cache of instances."""
    return _parts(record["node"], record["instances"])


def what_is_left(node: NodeIdentity, instances: Iterable[str]) -> list[str]:
    """The same of a node that was just made, with what may be there besides. ``instances``: the
    tasks that it counts."""
    return [*_parts(node, instances), *([PROJECTION] if node["kind"] == "fit" else [])]


def _parts(node: NodeIdentity, instances: Iterable[str]) -> list[str]:
    if node["kind"] == "fit":
        return [str(task) for task in cast(list[Any], node["identity"]["tasks"])]
    if node["kind"] == "data":
        splits = (f"{task}-{split}.arrow" for task in instances for split in SPLITS)
        return [*splits, "dialogues.arrow", "manifest.json"]
    return []


def _check(file: Path, value: Any) -> None:
    from tasktransfer.metrics.measures import out_of_range  # noqa: PLC0415  # numpy, for no start

    if problem := wrong_type(_adapter(), value):
        raise RecordError(f"{file}: {problem}")
    node = value["node"]
    if digest_of(node["identity"]) != node["digest"]:
        raise RecordError(f"{file}: node.digest: {node['digest']} is not that of node.identity")
    for task, measures in value["measures"].items():
        if outside := out_of_range(measures):
            raise RecordError(f"{file}: measures.{task}: {outside}")
