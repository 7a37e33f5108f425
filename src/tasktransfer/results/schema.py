"""The schema of a record: what every node of a plan leaves as ``metrics.json`` (schema 4).

One for all kinds: a training (stage), a fit, an evaluation, derived data. The TypedDicts are the
one description: the checks of ``records`` and the JSON schema (``python -m
tasktransfer.results.records``) are both made from them by pydantic, so that none can drift.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Field, JsonValue, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic reads that of typing from Python 3.12 on

from tasktransfer.core.specs import Family
from tasktransfer.core.validation import STRICT, refuse
from tasktransfer.results.artefacts import Artefact, FileName

SCHEMA_VERSION: Literal[4] = 4


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
Identity = Annotated[
    dict[str, JsonValue],
    AfterValidator(_refuse_not_finite),
    Field(description="everything that changes the node's numbers"),
]
NodeDigest = Annotated[Digest, Field(description="SHA-256 of the canonical JSON of `identity`")]


class StageNode(TypedDict):
    """A training."""

    kind: Literal["stage"]
    digest: NodeDigest
    label: Annotated[Name, Field(description="readable name, for example DNLI_from_CRE")]
    dataset: Name
    identity: Identity
    step: Annotated[Name, Field(description="which step of a method: the kind of stage in paths")]
    model: Name
    family: Family
    train_tasks: Annotated[list[Name], Field(description="tasks trained on, sorted")]
    seed: int
    parents: Annotated[
        list[Digest],
        Field(description="digests of the stages that it starts from; empty: the base model"),
    ]


class OtherNode(TypedDict):
    """Derived data, a fit or an evaluation."""

    kind: Literal["data", "fit", "evaluation"]
    digest: NodeDigest
    label: Name
    dataset: Name
    identity: Identity


Sizes = dict[str, Count]
"""Instances of a task per split, as read; a training has all three."""


class Round(TypedDict):
    """One round of the training, an epoch or so many updates. Round 0 is the untrained model."""

    round: Count
    train_loss: Annotated[dict[str, float], Field(description="task: mean training loss")]
    dev: Annotated[
        dict[str, dict[str, float]], Field(description="task: measure: value on the dev split")
    ]
    seconds: Amount
    mixing: NotRequired[
        Annotated[
            dict[str, float],
            Field(
                description="source: mean probability, over the round's updates, to be trained on "
                "beside the target; absent: the sampler learns none"
            ),
        ]
    ]


class Selected(TypedDict):
    """The best round by the dev splits of some tasks; each is left, and tested where it was chosen
    by one task alone."""

    select_on: Annotated[list[Name], Field(description="tasks whose dev splits choose, sorted")]
    round: Count
    dev_score: Annotated[float, Field(description="what it was chosen by, at that round")]
    scores: Annotated[list[float], Field(description="the same of every round, in their order")]


class TrainingResult(TypedDict):
    """The course of a training, and the rounds that were chosen."""

    rounds: list[Round]
    selections: Annotated[list[Selected], Field(min_length=1)]


class TaskResult(TypedDict):
    """A task's result on the split that was judged: of a training the test split, with the model
    of the round that the task has chosen."""

    measures: Annotated[dict[str, float], Field(description="measure: value, in its own unit")]
    score: Annotated[
        float | None,
        Field(description="mean of the measures that the task is scored by; null: not asked for"),
    ]
    instances: Count


class RowsFile(TypedDict):
    """The rows beside the record (``rows``)."""

    file: Name
    rows: Count
    sha256: Digest


class Host(TypedDict):
    """The machine that computed."""

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


class Cost(TypedDict):
    """What a training took."""

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


class Provenance(TypedDict):
    """How the numbers came about. Equal nodes differ in this and in the rounds' times alone."""

    tasktransfer: Annotated[Name, Field(description="version of this package")]
    recipe: Annotated[Positive, Field(description="version of what computes this kind of node")]
    versions: Annotated[
        dict[str, str], Field(description="package: version, with python, torch, transformers")
    ]
    commit: Annotated[
        str | None, Field(description="git commit of the code; null: not in a checkout")
    ]
    dirty: Annotated[bool | None, Field(description="uncommitted changes; null: unknown")]
    config_digest: str
    study: str
    made_by: NotRequired[
        Annotated[Name, Field(description="lab or person, as a shared pack names it")]
    ]
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
    cuts: NotRequired[
        Annotated[dict[str, int], Field(description="key: limit in force; absent: nothing is cut")]
    ]
    host: NotRequired[
        Annotated[Host, Field(description="absent: not known, of an old record or a fit")]
    ]
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
    notes: list[str]
    training: NotRequired[Annotated[Cost, Field(description="of a training")]]


@with_config(STRICT)
class Record(TypedDict):
    """What one node leaves (schema 4). Measures are in their own units (``metrics.MEASURES``)."""

    schema: Literal[4]
    node: Annotated[StageNode | OtherNode, Field(discriminator="kind")]
    synthetic: Annotated[bool, Field(description="of the tiny world, not of real dialogues")]
    data_revision: Name
    few_sample: bool
    sizes: Annotated[dict[str, Sizes], Field(description="task: instances per split")]
    training: NotRequired[Annotated[TrainingResult, Field(description="of a stage alone")]]
    results: Annotated[
        dict[str, TaskResult], Field(description="task: result; empty where none is judged")
    ]
    report: NotRequired[
        Annotated[
            dict[str, dict[str, float]],
            Field(
                description="of derived data: what its recipe did, as counts by name; of a model "
                "that is asked: questions, answers that are no choice, tokens, requests; of a "
                "selector of sources: target: source: value"
            ),
        ]
    ]
    rows: Annotated[RowsFile | None, Field(description="null: no task is judged")]
    artefacts: NotRequired[
        Annotated[
            dict[FileName, Artefact],
            Field(description="what others read: file: size and SHA-256; absent: none, or old"),
        ]
    ]
    provenance: Provenance


@cache
def record_type() -> TypeAdapter[Record]:
    """Made when the first record is read: many commands that import this read none."""
    return TypeAdapter(Record)
