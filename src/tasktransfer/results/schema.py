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
from tasktransfer.core.validation import STRICT, raise_problems
from tasktransfer.errors import describe_wrong_value
from tasktransfer.results.artefacts import Artefact, FileName

SCHEMA_VERSION: Literal[4] = 4


def _reject_nonfinite_numbers(identity: dict[str, Any]) -> dict[str, Any]:
    """Return an identity, or raise if it contains NaN or infinity."""
    raise_problems(_find_nonfinite_numbers(identity, ""))
    return identity


def _find_nonfinite_numbers(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path, describe_wrong_value(value, "a finite number")
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
    AfterValidator(_reject_nonfinite_numbers),
    Field(description="all values that affect the node's results"),
]
NodeDigest = Annotated[Digest, Field(description="SHA-256 of the canonical JSON of `identity`")]


class StageNode(TypedDict):
    """A training."""

    kind: Literal["stage"]
    digest: NodeDigest
    label: Annotated[
        Name, Field(description="readable name of the node, for example DNLI_from_CRE")
    ]
    dataset: Name
    identity: Identity
    step: Annotated[
        Name,
        Field(
            description=(
                "kind of the stage, as in its path, for example baseline, multitask or finetune"
            )
        ),
    ]
    model: Name
    family: Family
    train_tasks: Annotated[
        list[Name], Field(description="names of the training tasks, in alphabetical order")
    ]
    seed: int
    parents: Annotated[
        list[Digest],
        Field(
            description=(
                "digests of the stages from whose weights this stage starts; empty if it starts "
                "from the base model"
            )
        ),
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
    train_loss: Annotated[dict[str, float], Field(description="mean training loss of each task")]
    dev: Annotated[
        dict[str, dict[str, float]],
        Field(description="value on the dev split for each task and measure"),
    ]
    seconds: Amount
    mixing: NotRequired[
        Annotated[
            dict[str, float],
            Field(
                description=(
                    "each source's probability of being sampled for training with the target, "
                    "averaged over the round's updates; absent if the sampler learns no "
                    "probabilities"
                )
            ),
        ]
    ]


class Selected(TypedDict):
    """The best round on the dev splits of some tasks. It is tested if a single task selected it."""

    select_on: Annotated[
        list[Name],
        Field(
            description=(
                "tasks whose dev splits are used to select the round, in alphabetical order"
            )
        ),
    ]
    round: Count
    dev_score: Annotated[float, Field(description="selection score of the selected round")]
    scores: Annotated[list[float], Field(description="selection scores of all rounds, in order")]


class TrainingResult(TypedDict):
    """The rounds of a training, and the selected rounds."""

    rounds: list[Round]
    selections: Annotated[list[Selected], Field(min_length=1)]


class TaskResult(TypedDict):
    """A task's result on the evaluated split.

    For a training it is the test split, with the model of the round that the task selected.
    """

    measures: Annotated[
        dict[str, float], Field(description="value of each measure, in the measure's own unit")
    ]
    score: Annotated[
        float | None,
        Field(description="mean of the task's official measures; null if they were not requested"),
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
    gpu: Annotated[str | None, Field(description="name of the GPU; null if the CPU was used")]
    device: Literal["cpu", "cuda", "mps"]
    precision: Name
    threads: Positive


class Parameters(TypedDict):
    """Numbers of parameters of the model."""

    all: Annotated[Positive, Field(description="number of all parameters, including task heads")]
    learnable: Annotated[
        Positive, Field(description="number of parameters without fixed position embeddings")
    ]
    trained: Annotated[Positive, Field(description="number of parameters that the stage trains")]


class Cost(TypedDict):
    """Cost of a training."""

    tokens: Annotated[Count, Field(description="number of tokens in training, without padding")]
    samples: Annotated[Count, Field(description="number of instances in training, over all rounds")]
    samples_per_second: Amount
    tokens_per_second: Amount
    parameters: NotRequired[Parameters]
    peak_memory_mb: Annotated[Amount, Field(description="peak resident memory in MiB")]
    peak_gpu_memory_mb: Annotated[Amount | None, Field(description="peak GPU memory in MiB")]
    paths: NotRequired[
        Annotated[
            list[Name],
            Field(
                description=(
                    "optimized code paths that were used: packed, attention, dropout, trees, "
                    "first_tokens or workers. The entry float32_heads means that logits are not "
                    "rounded to bfloat16"
                )
            ),
        ]
    ]
    energy_joules: NotRequired[
        Annotated[
            Amount | None,
            Field(
                description=(
                    "energy in joules that the device used during the training, divided by the "
                    "number of training slots of the GPU. Only the process that finished the "
                    "training is measured. The value is null if the device does not "
                    "report energy, and absent in old records"
                )
            ),
        ]
    ]


class Provenance(TypedDict):
    """Provenance of the numbers. Equal nodes differ only in it and in the rounds' times."""

    tasktransfer: Annotated[
        Name, Field(description="version of tasktransfer that wrote the record")
    ]
    recipe: Annotated[
        Positive, Field(description="version of the algorithm that computes this kind of node")
    ]
    versions: Annotated[
        dict[str, str],
        Field(description="installed version of each package, with python, torch and transformers"),
    ]
    commit: Annotated[
        str | None,
        Field(description="git commit of the code; null if the code was not in a git checkout"),
    ]
    dirty: Annotated[
        bool | None,
        Field(description=("true if the code had uncommitted changes; null if unknown")),
    ]
    config_digest: str
    study: str
    made_by: NotRequired[
        Annotated[
            Name,
            Field(description=("name of the lab or person that a shared pack lists as the author")),
        ]
    ]
    rules: NotRequired[
        Annotated[
            Literal["challenge", "free"],
            Field(description="rules of the training (config key `rules`); absent in old records"),
        ]
    ]
    substitutes: NotRequired[
        Annotated[
            dict[str, str],
            Field(description="unavailable inputs or omitted rules, each with its substitute"),
        ]
    ]
    cuts: NotRequired[
        Annotated[
            dict[str, int],
            Field(
                description=(
                    "limits that were in force, by config key; absent if no limit was in force"
                )
            ),
        ]
    ]
    host: NotRequired[
        Annotated[
            Host,
            Field(
                description=(
                    "host on which the job ran; absent if it is unknown, in old records, and in "
                    "records of fits"
                )
            ),
        ]
    ]
    started: Annotated[
        str,
        Field(
            pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$",
            description="time in UTC, in ISO 8601 format",
        ),
    ]
    seconds: Annotated[
        dict[str, Amount],
        Field(description="wall time of each phase in seconds; `total` is their sum"),
    ]
    notes: list[str]
    training: NotRequired[
        Annotated[Cost, Field(description="cost of the training run; absent from other records")]
    ]


@with_config(STRICT)
class Record(TypedDict):
    """Record of one node (schema 4). Measures are in their own units (``metrics.MEASURES``)."""

    schema: Literal[4]
    node: Annotated[StageNode | OtherNode, Field(discriminator="kind")]
    synthetic: Annotated[
        bool, Field(description="true if the dialogues are generated; false if they are real")
    ]
    data_revision: Name
    few_sample: bool
    sizes: Annotated[
        dict[str, Sizes], Field(description="number of instances per split of each task")
    ]
    training: NotRequired[Annotated[TrainingResult, Field(description="present only for a stage")]]
    results: Annotated[
        dict[str, TaskResult],
        Field(description="result of each evaluated task; empty if no task is evaluated"),
    ]
    report: NotRequired[
        Annotated[
            dict[str, dict[str, float]],
            Field(
                description=(
                    "counts and values reported by the job. A job of derived data reports the "
                    "counts of its recipe by name. A prompted model reports numbers of prompts, "
                    "of answers that match no choice, of tokens and of requests. A source "
                    "selector reports its value for each target and source"
                )
            ),
        ]
    ]
    rows: Annotated[
        RowsFile | None,
        Field(description="file with one row per instance; null if no task is evaluated"),
    ]
    artefacts: NotRequired[
        Annotated[
            dict[FileName, Artefact],
            Field(
                description=(
                    "files that other nodes read, with size and SHA-256; absent if no node reads "
                    "a file, and in old records"
                )
            ),
        ]
    ]
    provenance: Provenance


@cache
def get_record_validator() -> TypeAdapter[Record]:
    """Return the validator of records, built on first use."""
    return TypeAdapter(Record)


# --- old keys -------------------------------------------------------------------------------------

OLD_KEYS = (
    ("report", "asked", "prompting"),
    ("report.prompting", "written_tokens", "generated_tokens"),
    ("report.*", "asked", "requested"),
    ("provenance", "stand_ins", "substitutes"),
)
"""Section (``*`` for each entry), old and new key. Identities and digests keep the old keys."""


def rename_old_keys(record: dict[str, Any]) -> None:
    """Rename the old keys of a parsed record in place, outside its identity."""
    for path, old, new in OLD_KEYS:
        first, _, second = path.partition(".")
        section = record.get(first)
        inner = section if isinstance(section, dict) else {}
        entries = [*inner.values()] if second == "*" else [inner.get(second)]
        for counts in entries if second else [inner]:
            if isinstance(counts, dict) and old in counts:
                counts.setdefault(new, counts.pop(old))


# --- probes ---------------------------------------------------------------------------------------

SHUFFLED, PRIOR, MLP = "shuffled", "prior", "mlp"
"""Suffixes of the task names in rows of other classifiers: ``<task>+<suffix>``."""

PROJECTION = "projection.npz"
"""Training representations projected on their first two principal components."""
