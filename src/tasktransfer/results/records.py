"""The record of a stage: what one training leaves behind as ``metrics.json``.

A record describes its stage and knows no run: the plan says which runs end with a stage. It is
schema 2; records of schema 1, which named one run, are checked as ever and read as schema 2. The
TypedDicts below are the one description of a record. The checks of ``read_record`` and
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

from tasktransfer.core.digests import digest_of
from tasktransfer.core.specs import Family
from tasktransfer.core.validation import STRICT, refuse, wrong_type
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, replacing
from tasktransfer.results.artefacts import Artefact, FileName
from tasktransfer.results.record_v1 import upgraded

SCHEMA_VERSION: Literal[2] = 2

REMEDY = "run its study again with snakemake, which sets it aside and trains its stage once more"
"""What is done about a damaged record or its predictions (see ``damage``)."""

_SAID_TWICE = ("dataset", "train_tasks", "select_on", "seed")


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


class StageIdentity(TypedDict):
    """The training that wrote this record."""

    digest: Annotated[Digest, Field(description="SHA-256 of the canonical JSON of `identity`")]
    kind: Name
    label: Annotated[Name, Field(description="readable name, for example DNLI_from_CRE")]
    dataset: Name
    model: Name
    family: Family
    train_tasks: Annotated[list[Name], Field(description="tasks trained on, sorted")]
    select_on: Annotated[
        list[Name], Field(description="tasks whose dev split selects the best round, sorted")
    ]
    seed: int
    parents: Annotated[
        list[Digest],
        Field(description="digests of the stages that it starts from; empty: the base model"),
    ]
    identity: Annotated[
        dict[str, JsonValue],
        AfterValidator(_refuse_not_finite),
        Field(description="everything that changes the stage's numbers"),
    ]


class Sizes(TypedDict):
    """Instances of a task per split, as trained and scored."""

    train: Count
    dev: Count
    test: Count


class Round(TypedDict):
    """One round of the training, an epoch or so many updates. Round 0 is the untrained model."""

    round: Count
    train_loss: Annotated[dict[str, float], Field(description="task: mean training loss")]
    dev: Annotated[
        dict[str, dict[str, float]], Field(description="task: measure: value on the dev split")
    ]
    selection_score: Annotated[float, Field(description="what the best round is chosen by")]
    seconds: Amount


class TaskResult(TypedDict):
    """A task's result on its test split, with the best round's model."""

    metrics: Annotated[dict[str, float], Field(description="measure: value")]
    score: Annotated[float, Field(description="mean of the measures that the task is scored by")]
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


class Parameters(TypedDict):
    """How large the model is."""

    all: Annotated[Positive, Field(description="the heads of its tasks too")]
    learnable: Annotated[Positive, Field(description="without those that are fixed (positions)")]
    trained: Annotated[Positive, Field(description="those that the stage trains")]


class Provenance(TypedDict):
    """How the numbers came about. Equal stages differ in this and in the rounds' times alone."""

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
    stand_ins: NotRequired[
        Annotated[
            dict[str, str],
            Field(description="input that could not be had, or rule left out: what is instead"),
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
    samples: Annotated[Count, Field(description="instances trained on, over all rounds")]
    samples_per_second: Amount
    tokens_per_second: Amount
    parameters: NotRequired[Parameters]
    peak_memory_mb: Annotated[Amount, Field(description="peak resident memory, MiB")]
    peak_gpu_memory_mb: Annotated[Amount | None, Field(description="peak GPU memory, MiB")]
    paths: NotRequired[
        Annotated[
            list[Name],
            Field(
                description="how it was computed: packed, attention, dropout, trees, "
                "first_tokens, workers; float32_heads: logits are not rounded to bfloat16"
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
    """What one stage leaves (schema 2). Measures are in their own units (``metrics.MEASURES``)."""

    schema: Literal[2]
    stage: StageIdentity
    synthetic: Annotated[
        bool, Field(description="trained on the tiny world, not on real dialogues")
    ]
    few_sample: bool
    data_revision: Name
    sizes: Annotated[dict[str, Sizes], Field(description="task: instances per split")]
    rounds: list[Round]
    best_round: Count
    dev_score: Annotated[float, Field(description="selection score of the best round")]
    test: Annotated[
        dict[str, TaskResult], Field(description="task: result; empty where none is tested")
    ]
    predictions: Annotated[PredictionsFile | None, Field(description="null: no task is tested")]
    artefacts: NotRequired[
        Annotated[
            dict[FileName, Artefact],
            Field(description="kept weights: file: size and SHA-256; absent: none kept, or old"),
        ]
    ]
    provenance: Provenance


@cache
def _record() -> TypeAdapter[Record]:
    """Made when the first record is read: many commands that import this read none."""
    return TypeAdapter(Record)


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
    if not isinstance(value, dict):
        raise RecordError(f"{path}: a record is a JSON object, found {type(value).__name__}")
    schema = value.get("schema")
    if schema == 1 and not isinstance(schema, bool):
        try:
            value = upgraded(value)
        except RecordError as error:
            raise RecordError(f"{path}: {error}") from None
    elif schema != SCHEMA_VERSION or isinstance(schema, bool):
        raise RecordError(
            f"{path}: schema: found {schema!r}, this version reads schema 1 and {SCHEMA_VERSION}"
        )
    _validate(path, value)
    return cast(Record, value)


def comparable(record: Record) -> dict[str, Any]:
    """The part of a record that two equal runs share to the last bit.

    Leaves out provenance, the seconds of each round, and the files that are kept: one run may keep
    its weights, another not.
    """
    left_out = ("provenance", "artefacts")
    kept: dict[str, Any] = {key: value for key, value in record.items() if key not in left_out}
    kept["rounds"] = [
        {key: value for key, value in one.items() if key != "seconds"} for one in record["rounds"]
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
    try:
        problem = wrong_type(_record(), value) or _contradiction(cast(Record, value))
    except RecursionError:  # of what is not looked into otherwise, the stage's identity
        problem = "it is nested too deeply"
    if problem:
        raise RecordError(f"{path}: {problem}")


def _contradiction(record: Record) -> str | None:
    """Where two parts of a record of the right types disagree, or None."""
    return (
        _rounds_disagree(record)
        or _out_of_range(record)
        or _stage_disagrees(record)
        or _identity_disagrees(record)
        or _predictions_disagree(record)
    )


def _rounds_disagree(record: Record) -> str | None:
    rounds, best = record["rounds"], record["best_round"]
    numbers = [one["round"] for one in rounds]
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return f"rounds: must be numbered one after the other, found {numbers}"
    if numbers[0] > 1:
        return f"rounds: must begin with 1, or with 0, the untrained model, found {numbers[0]}"
    if best not in numbers:
        return f"best_round: {best}, but the rounds are {numbers[0]} to {numbers[-1]}"
    selected = rounds[best - numbers[0]]["selection_score"]
    if selected != record["dev_score"]:
        return f"dev_score: {record['dev_score']}, but the best round's is {selected}"
    return None


def best_round(record: Record) -> Round:
    """The round whose model was tested and kept."""
    return record["rounds"][record["best_round"] - record["rounds"][0]["round"]]


def _out_of_range(record: Record) -> str | None:
    from tasktransfer.metrics.measures import out_of_range  # noqa: PLC0415  # numpy, for no start

    for number, one in enumerate(record["rounds"]):
        for task, measures in one["dev"].items():
            if problem := out_of_range(measures):
                return f"rounds[{number}].dev.{task}: {problem}"
    for task, result in record["test"].items():
        if problem := out_of_range(result["metrics"]):
            return f"test.{task}.metrics: {problem}"
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
    stage, identity = record["stage"], record["stage"]["identity"]
    said: dict[str, Any] = {f"stage.{key}": stage[key] for key in _SAID_TWICE}  # type: ignore[literal-required]
    said["data_revision"] = record["data_revision"]
    said["few_sample"] = record["few_sample"]
    said["provenance.recipe"] = record["provenance"]["recipe"]
    for key, value in said.items():
        name = key.rpartition(".")[2]
        if name in identity and identity[name] != value:
            return f"{key}: {value!r}, but stage.identity.{name} is {identity[name]!r}"
    model = identity.get("model")
    family = model.get("family", stage["family"]) if isinstance(model, dict) else stage["family"]
    if family != stage["family"]:
        return f"stage.family: {stage['family']!r}, but stage.identity.model has {family!r}"
    parent = identity.get("parent")
    if parent is not None and stage["parents"] != [parent]:
        return f"stage.parents: {stage['parents']}, but stage.identity.parent is {parent!r}"
    return None


def _predictions_disagree(record: Record) -> str | None:
    predictions, tested = record["predictions"], record["test"]
    if predictions is None:
        return None
    instances = sum(result["instances"] for result in tested.values())
    if predictions["rows"] != instances:
        return f"predictions.rows: {predictions['rows']}, but test has {instances} instances"
    unsized = [task for task in tested if task not in record["sizes"]]
    return f"sizes: no sizes of {', '.join(unsized)}, which test names" if unsized else None


if __name__ == "__main__":
    print(json.dumps(record_schema(), indent=2))
