"""Schema 4 of a record, the ``metrics.json`` that every node of a plan writes.

All kinds of nodes share it: trainings (stages), fits, evaluations and derived data. Pydantic builds
both the checks in ``records`` and the JSON schema (``python -m tasktransfer.results.records``) from
these TypedDicts, so they cannot diverge.
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
    """Refuse NaN and infinity anywhere in an identity, since its digest could not be computed."""
    refuse(_find_nonfinite_numbers(identity, ""))
    return identity


def _find_nonfinite_numbers(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path, f"found {value}, expected a finite number"
    parts = value.items() if isinstance(value, dict) else ()
    for key, item in parts:
        yield from _find_nonfinite_numbers(item, f"{path}.{key}")
    for index, item in enumerate(value if isinstance(value, list) else ()):
        yield from _find_nonfinite_numbers(item, f"{path}[{index}]")


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
        Field(description="digests of the stages that it starts from; empty for the base model"),
    ]


class OtherNode(TypedDict):
    """Derived data, a fit or an evaluation."""

    kind: Literal["data", "fit", "evaluation"]
    digest: NodeDigest
    label: Name
    dataset: Name
    identity: Identity


Sizes = dict[str, Count]
"""Instances of a task per split, as read; a training has all three splits."""


class Round(TypedDict):
    """One round of training: an epoch or a number of updates. Round 0 is the untrained model."""

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
                description="source: mean probability, over the round's updates, of being trained "
                "on with the target; absent if the sampler learns no probabilities"
            ),
        ]
    ]


class Selected(TypedDict):
    """The best round on the dev splits of some tasks. It is tested if a single task selected it."""

    select_on: Annotated[
        list[Name], Field(description="tasks whose dev splits select the round, sorted")
    ]
    round: Count
    dev_score: Annotated[float, Field(description="selection score of that round")]
    scores: Annotated[list[float], Field(description="selection score of every round, in order")]


class TrainingResult(TypedDict):
    """The rounds of a training, and the selected rounds."""

    rounds: list[Round]
    selections: Annotated[list[Selected], Field(min_length=1)]


class TaskResult(TypedDict):
    """A task's result on the evaluated split.

    For a training it is the test split, with the model of the round that the task selected.
    """

    measures: Annotated[dict[str, float], Field(description="measure: value, in its own unit")]
    score: Annotated[
        float | None,
        Field(description="mean of the task's official measures; null if not requested"),
    ]
    instances: Count


class RowsFile(TypedDict):
    """The rows beside the record (``rows``)."""

    file: Name
    rows: Count
    sha256: Digest


class Host(TypedDict):
    """The machine that computed the node."""

    platform: str
    cpu: str
    cores: Positive
    gpu: Annotated[str | None, Field(description="name of the GPU; null if none was used")]
    device: Literal["cpu", "cuda", "mps"]
    precision: Name
    threads: Positive


class Parameters(TypedDict):
    """Numbers of parameters of the model."""

    all: Annotated[Positive, Field(description="all parameters, including task heads")]
    learnable: Annotated[Positive, Field(description="without fixed parameters (positions)")]
    trained: Annotated[Positive, Field(description="parameters that the stage trains")]


class Cost(TypedDict):
    """Cost of a training."""

    tokens: Annotated[Count, Field(description="tokens trained on, without padding")]
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
                description="optimized code paths in use: packed, attention, dropout, trees, "
                "first_tokens, workers; float32_heads: logits are not rounded to bfloat16"
            ),
        ]
    ]
    energy_joules: NotRequired[
        Annotated[
            Amount | None,
            Field(
                description="this training's share of the device's energy, in the process that "
                "finished it; null if the device does not report it; absent in old records"
            ),
        ]
    ]


class Provenance(TypedDict):
    """Provenance of the numbers. Equal nodes differ only in it and in the rounds' times."""

    tasktransfer: Annotated[Name, Field(description="version of this package")]
    recipe: Annotated[
        Positive, Field(description="version of the code that computes this kind of node")
    ]
    versions: Annotated[
        dict[str, str], Field(description="package: version, with python, torch, transformers")
    ]
    commit: Annotated[
        str | None, Field(description="git commit of the code; null if not in a checkout")
    ]
    dirty: Annotated[
        bool | None, Field(description="whether there were uncommitted changes; null if unknown")
    ]
    config_digest: str
    study: str
    made_by: NotRequired[Annotated[Name, Field(description="lab or person named in a shared pack")]]
    rules: NotRequired[
        Annotated[
            Literal["challenge", "free"],
            Field(description="rules of the training (config key `rules`); absent in old records"),
        ]
    ]
    stand_ins: NotRequired[
        Annotated[
            dict[str, str],
            Field(description="unavailable input or omitted rule: its substitute"),
        ]
    ]
    cuts: NotRequired[
        Annotated[
            dict[str, int], Field(description="config key: limit in force; absent if none is")
        ]
    ]
    host: NotRequired[
        Annotated[Host, Field(description="absent if unknown, in old records and fits")]
    ]
    started: Annotated[
        str,
        Field(
            pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$",
            description="ISO 8601, UTC",
        ),
    ]
    seconds: Annotated[
        dict[str, Amount], Field(description="phase: wall time in seconds; `total`: all phases")
    ]
    notes: list[str]
    training: NotRequired[Annotated[Cost, Field(description="cost, for a training")]]


@with_config(STRICT)
class Record(TypedDict):
    """Record of one node (schema 4). Measures are in their own units (``metrics.MEASURES``)."""

    schema: Literal[4]
    node: Annotated[StageNode | OtherNode, Field(discriminator="kind")]
    synthetic: Annotated[
        bool, Field(description="whether the dialogues are generated, not real ones")
    ]
    data_revision: Name
    few_sample: bool
    sizes: Annotated[dict[str, Sizes], Field(description="task: instances per split")]
    training: NotRequired[Annotated[TrainingResult, Field(description="only for a stage")]]
    results: Annotated[
        dict[str, TaskResult], Field(description="task: result; empty if none is evaluated")
    ]
    report: NotRequired[
        Annotated[
            dict[str, dict[str, float]],
            Field(
                description="for derived data: counts from its recipe, by name; for a prompted "
                "model: prompts, answers that are not a choice, tokens, requests; for a source "
                "selector: target: source: value"
            ),
        ]
    ]
    rows: Annotated[RowsFile | None, Field(description="null if no task is evaluated")]
    artefacts: NotRequired[
        Annotated[
            dict[FileName, Artefact],
            Field(
                description="files that other nodes read: size and SHA-256; absent if there are "
                "none, and in old records"
            ),
        ]
    ]
    provenance: Provenance


@cache
def record_type() -> TypeAdapter[Record]:
    """Build the validator when the first record is read, since many commands read none."""
    return TypeAdapter(Record)


# --- probes ---------------------------------------------------------------------------------------

SHUFFLED, PRIOR, MLP = "shuffled", "prior", "mlp"
"""Suffixes of the task names in rows of other classifiers: ``<task>+<suffix>``."""

PROJECTION = "projection.npz"
"""Training representations projected on their first two principal components."""
