"""The run record: what one stage leaves behind as ``metrics.json``.

The TypedDicts below are the one description of a record. The checks of ``read_record`` and
``write_record`` and the JSON schema (``python -m tasktransfer.results.records``) are both made from
them by pydantic, so that none of the three can drift from the others. Reading thousands of records
needs neither torch nor pandas.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import AfterValidator, Field, JsonValue, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic reads that of typing from Python 3.12 on

from tasktransfer import json_text
from tasktransfer.core.digests import digest_of
from tasktransfer.core.stage import Family, StageKind
from tasktransfer.errors import RecordError
from tasktransfer.files import replacing
from tasktransfer.validation import STRICT, refuse, wrong_type

SCHEMA_VERSION = 1

REMEDY = "run its study again with snakemake, which sets it aside and trains its stage once more"
"""What is done about a damaged record or its predictions (see ``damage``)."""

_SAID_TWICE = ("dataset", "train_tasks", "select_on", "parent", "seed")


def _refuse_not_finite(identity: dict[str, Any]) -> dict[str, Any]:
    """Numbers anywhere in it, of which a digest is taken."""
    refuse(_not_finite(identity, ""))
    return identity


def _not_finite(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path, f"found {value}, expected a finite number"
    parts = value.items() if isinstance(value, dict) else ()
    for key, item in parts:
        yield from _not_finite(item, f"{path}.{key}")
    for index, item in enumerate(value if isinstance(value, list) else ()):
        yield from _not_finite(item, f"{path}[{index}]")


Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0)]
# A weighted mean of ones may come out a rounding error above one; that must not lose a training.
Percent = Annotated[float, Field(ge=0, le=100.000001)]


class StageIdentity(TypedDict):
    """The training that wrote this record."""

    digest: Annotated[Digest, Field(description="SHA-256 of the canonical JSON of `identity`")]
    kind: StageKind
    label: Annotated[Name, Field(description="readable name, for example DNLI_from_CRE")]
    dataset: Name
    model: Name
    family: Family
    train_tasks: Annotated[list[Name], Field(description="tasks trained on, sorted")]
    select_on: Annotated[
        list[Name], Field(description="tasks whose dev score selects the best epoch, sorted")
    ]
    seed: int
    parent: Annotated[
        Digest | None,
        Field(description="digest of the stage that it starts from; null: base model"),
    ]
    identity: Annotated[
        dict[str, JsonValue],
        AfterValidator(_refuse_not_finite),
        Field(description="everything that changes the stage's numbers"),
    ]


@with_config(STRICT)
class RunIdentity(TypedDict):
    """The run that ends with this stage."""

    dataset: Name
    model: Name
    family: Family
    algorithm: Name
    sources: Annotated[list[Name], Field(description="source tasks, sorted; empty for a baseline")]
    target: Name
    seed: int


class Sizes(TypedDict):
    """Instances of a task per split, as trained and scored."""

    train: Count
    dev: Count
    test: Count


class Epoch(TypedDict):
    """One pass over the training set."""

    epoch: Annotated[Positive, Field(description="from 1")]
    train_loss: Annotated[dict[str, float], Field(description="task: mean training loss")]
    dev: Annotated[
        dict[str, dict[str, Percent]], Field(description="task: metric: value on dev, 0-100")
    ]
    selection_score: Annotated[
        Percent, Field(description="what the best epoch is chosen by, 0-100")
    ]
    seconds: Amount


class TaskResult(TypedDict):
    """A task's result on its test split, with the best epoch's model."""

    metrics: Annotated[dict[str, Percent], Field(description="metric: value, 0-100")]
    score: Annotated[Percent, Field(description="mean of the task's scored metrics, 0-100")]
    instances: Count


class PredictionsFile(TypedDict):
    """The predictions beside the record."""

    file: Name
    rows: Count
    sha256: Digest


class Host(TypedDict):
    """The machine that trained."""

    platform: str
    cpu: str
    cores: Positive
    gpu: Annotated[str | None, Field(description="name of the GPU; null: none used")]
    device: Literal["cpu", "cuda", "mps"]
    precision: Name
    threads: Positive


class Provenance(TypedDict):
    """How the numbers came about. The only part, with epoch times, that equal runs differ in."""

    tasktransfer: Annotated[Name, Field(description="version of this package")]
    recipe: Annotated[Positive, Field(description="version of what training computes")]
    versions: Annotated[
        dict[str, str], Field(description="package: version, with python, torch, transformers")
    ]
    commit: Annotated[
        str | None, Field(description="git commit of the code; null: not in a checkout")
    ]
    dirty: Annotated[bool | None, Field(description="uncommitted changes; null: unknown")]
    config_digest: str
    study: str
    rules: NotRequired[
        Annotated[
            Literal["challenge", "free"],
            Field(description="rules it was trained under (config key `rules`); absent: old"),
        ]
    ]
    host: Host
    started: Annotated[
        str,
        Field(
            pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$",
            description="ISO 8601, UTC",
        ),
    ]
    seconds: Annotated[
        dict[str, Amount], Field(description="phase: wall time, seconds; `total`: all")
    ]
    tokens: Annotated[Count, Field(description="tokens trained on, padding left out")]
    samples: Annotated[Count, Field(description="instances trained on, over all epochs")]
    samples_per_second: Amount
    tokens_per_second: Amount
    peak_memory_mb: Annotated[Amount, Field(description="peak resident memory, MiB")]
    peak_gpu_memory_mb: Annotated[Amount | None, Field(description="peak GPU memory, MiB")]
    paths: NotRequired[
        Annotated[
            list[Name],
            Field(
                description="fast paths that were on: packed, attention, dropout, trees, workers"
            ),
        ]
    ]
    energy_joules: NotRequired[
        Annotated[
            Amount | None,
            Field(
                description="energy of the device (this training's share) in the process that "
                "finished it; null: the device does not report it; absent: before it was asked"
            ),
        ]
    ]
    notes: list[str]


@with_config(STRICT)
class Record(TypedDict):
    """What one stage leaves (schema 1). Scores are 0-100."""

    schema: Literal[1]
    stage: StageIdentity
    run: Annotated[RunIdentity | None, Field(description="null: a stage that no run ends with")]
    synthetic: Annotated[
        bool, Field(description="trained on the tiny world, not on real dialogues")
    ]
    few_sample: bool
    data_revision: Name
    sizes: Annotated[dict[str, Sizes], Field(description="task: instances per split")]
    epochs: list[Epoch]
    best_epoch: Positive
    test: Annotated[
        dict[str, TaskResult], Field(description="task: result; empty where run is null")
    ]
    score: Annotated[
        Percent | None, Field(description="the target's test score; null where run is null")
    ]
    dev_score: Annotated[Percent, Field(description="selection score of the best epoch")]
    predictions: PredictionsFile | None
    provenance: Provenance


@cache
def _record() -> TypeAdapter[Record]:
    """Made when the first record is read: many commands that import this read none."""
    return TypeAdapter(Record)


@cache
def _run() -> TypeAdapter[RunIdentity]:
    return TypeAdapter(RunIdentity)


def run_problem(value: Any) -> str | None:
    """What of a JSON value is no run's identity, or None."""
    return wrong_type(_run(), value)


def write_record(path: Path, record: Record) -> None:
    """Write a record atomically: whoever reads ``path`` finds all of it or nothing.

    Raises:
        RecordError: a key is missing, unknown, of the wrong type, NaN or infinite, or the record
            contradicts itself; nothing is written then.
    """
    _validate(path, record)
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with replacing(path) as part, part.open("w", encoding="utf-8") as stream:
        stream.write(text)


def read_record(path: Path) -> Record:
    """Read a record and check all of it.

    Raises:
        RecordError: the file is absent, is no JSON (truncated), is of another schema version, has
            a missing, unknown, mistyped, NaN or infinite value, or contradicts itself. The message
            names file, key and value.
    """
    try:
        return parse_record(path, json_text.read_bytes(path))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{path}: no record ({error}); it is damaged: {REMEDY}") from error
    except RecordError as error:
        raise RecordError(f"{error}; it is damaged: {REMEDY}") from error


def parse_record(path: Path, content: bytes) -> Record:
    """A record from the bytes of its file, all of it checked.

    Raises:
        RecordError: as ``read_record``, the remedy left out.
    """
    try:
        value = json_text.loads(content)
    except ValueError as error:
        raise RecordError(f"{path}: not valid JSON ({error})") from error
    _validate(path, value)
    return cast(Record, value)


def comparable(record: Record) -> dict[str, Any]:
    """The part of a record that two equal runs share to the last bit.

    Leaves out provenance and the seconds of each epoch.
    """
    kept: dict[str, Any] = {key: value for key, value in record.items() if key != "provenance"}
    kept["epochs"] = [
        {key: value for key, value in epoch.items() if key != "seconds"}
        for epoch in record["epochs"]
    ]
    return kept


def record_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a record. What it cannot say (sums, digests, best epoch
    and score agreeing with the rest) only ``read_record`` checks."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_record().json_schema(),
        "title": "tasktransfer run record",
    }


def _validate(path: Path, value: Any) -> None:
    """Types first, then agreement between the parts."""
    if not isinstance(value, dict):
        raise RecordError(f"{path}: a record is a JSON object, found {type(value).__name__}")
    if value.get("schema") != SCHEMA_VERSION or isinstance(value.get("schema"), bool):
        raise RecordError(
            f"{path}: schema: found {value.get('schema')!r}, this version reads schema "
            f"{SCHEMA_VERSION}"
        )
    try:
        problem = wrong_type(_record(), value) or _contradiction(cast(Record, value))
    except RecursionError:  # of what is not looked into otherwise, the stage's identity
        problem = "it is nested too deeply"
    if problem:
        raise RecordError(f"{path}: {problem}")


def _contradiction(record: Record) -> str | None:
    """Where two parts of a record of the right types disagree, or None."""
    return (
        _epochs_disagree(record)
        or _stage_disagrees(record)
        or _identity_disagrees(record)
        or _run_disagrees(record, record["run"])
    )


def _epochs_disagree(record: Record) -> str | None:
    epochs, best = record["epochs"], record["best_epoch"]
    numbers = [epoch["epoch"] for epoch in epochs]
    if numbers != list(range(1, len(epochs) + 1)):
        return f"epochs: must be numbered 1, 2, ..., found {numbers}"
    if best > len(epochs):
        return f"best_epoch: {best}, but there are {len(epochs)} epochs"
    selected = epochs[best - 1]["selection_score"]
    if selected != record["dev_score"]:
        return (
            f"dev_score: {record['dev_score']}, but epochs[{best - 1}].selection_score is "
            f"{selected}"
        )
    return None


def _stage_disagrees(record: Record) -> str | None:
    stage = record["stage"]
    digest = digest_of(stage["identity"])
    if digest != stage["digest"]:
        return f"stage.digest: {stage['digest']}, but stage.identity has digest {digest}"
    unsized = [task for task in stage["train_tasks"] if task not in record["sizes"]]
    if unsized:
        return f"sizes: no sizes of {', '.join(unsized)}, which stage.train_tasks names"
    return None


def _identity_disagrees(record: Record) -> str | None:
    """Where a record says something else than the identity that its digest is taken of."""
    stage, named = record["stage"], record["stage"]["identity"]
    said: dict[str, Any] = {f"stage.{key}": stage[key] for key in _SAID_TWICE}  # type: ignore[literal-required]
    said["data_revision"] = record["data_revision"]
    said["few_sample"] = record["few_sample"]
    said["provenance.recipe"] = record["provenance"]["recipe"]
    for key, value in said.items():
        name = key.rpartition(".")[2]
        if name in named and named[name] != value:
            return f"{key}: {value!r}, but stage.identity.{name} is {named[name]!r}"
    return None


def _run_disagrees(record: Record, run: RunIdentity | None) -> str | None:
    if run is None:
        if record["score"] is not None or record["test"] or record["predictions"]:
            return "run: null, but the record has a score, a test result or predictions"
        return None
    stage = record["stage"]
    for key in ("dataset", "model", "family", "seed"):
        if run[key] != stage[key]:
            return f"run.{key}: {run[key]!r}, but stage.{key} is {stage[key]!r}"
    target = run["target"]
    if (run["algorithm"] == "baseline") != (not run["sources"]):
        return f"run.sources: {run['sources']} do not fit run.algorithm {run['algorithm']!r}"
    if target in run["sources"]:
        return f"run.sources: {target} cannot be a source of itself"
    if target not in record["test"]:
        return f"test: no result of the target {target}"
    if target not in record["sizes"]:
        return f"sizes: no sizes of the target {target}"
    result = record["test"][target]["score"]
    if record["score"] != result:
        return f"score: {record['score']}, but test.{target}.score is {result}"
    predictions = record["predictions"]
    instances = sum(test["instances"] for test in record["test"].values())
    if predictions is not None and predictions["rows"] != instances:
        return f"predictions.rows: {predictions['rows']}, but test has {instances} instances"
    return None


if __name__ == "__main__":
    print(json.dumps(record_schema(), indent=2))
