"""Training speed of a model, computed from its operations and the machine's speed.

The study's own records correct the computed speed. It consists of seconds per training token, per
evaluated token, per update, and per training.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Literal

from tasktransfer.config.model_sizes import ModelSize
from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Family
from tasktransfer.operate.forecast.rates import Device, Precision, Rates
from tasktransfer.results.costs import PHASES, read_cost
from tasktransfer.results.study import Study

Basis = Literal[
    "measured", "measured with another model", "timed", "calibrated", "by name", "reference values"
]

PROCESS_SECONDS: dict[Device, float] = {"cpu": 1.0, "cuda": 5.0}
"""Seconds before the record's clock starts.

On a CPU they cover the command and a process forked from the workflow's host. As a batch job they
cover importing torch and transformers.
"""

LOAD_SECONDS: dict[Device, float] = {"cpu": 0.2, "cuda": 1.0}
LOAD_A_PARAMETER = 8e-9
"""Seconds for reading data and weights, and (CUDA) initializing the device."""

PRODUCTS_SHARE = 0.8
"""Fraction of a square product's rate that a layer's own products reach on a CPU."""
PASSES_SECONDS = 50e-9
"""CPU seconds per token, layer and hidden unit for operations other than matrix products.

These are softmax, normalization, dropout and copies, forward and backward, with all cores busy.
MiniLM took 50 to 90 ns on three machines (docs/development/performance.md). A
single thread takes half.
"""

WORD_SECONDS = 25e-9
"""CPU seconds per answer token and vocabulary word, forward and backward.

Measured with a built generator with 8,000 words.
"""

BACKWARD = 2.0
"""Cost of the backward pass relative to the forward pass."""
BACKWARD_OF_PARTS = 1.0
"""Cost of the backward pass if only a few parts are trained, without other weight gradients."""
IN_BATCH = 4 / 3
"""Factor for dual encoders, which encode each batch twice, once without a backward pass."""

GPU_SHARE: dict[Family, float] = {
    "encoder": 0.73,
    "decoder": 0.39,
    "encoder_decoder": 0.14,
    "dual_encoder": 0.3,
}
"""Fraction of the matrix product's speed that a training reaches, without the cost per update.

Encoders were measured with BERT-base on an H200, on short and on long dialogues. The other values
are modelled as described in docs/development/performance.md.
"""

CPU_LAYER_SECONDS: dict[Family, float] = {
    "encoder": 0.0030,
    "decoder": 0.0038,
    "encoder_decoder": 0.0045,
    "dual_encoder": 0.0045,
}
CPU_UPDATE_SECONDS = 0.001
GPU_UPDATE_SECONDS: dict[Family, float] = {
    "encoder": 0.032,
    "decoder": 0.037,
    "encoder_decoder": 0.13,
    "dual_encoder": 0.09,
}
"""Seconds per update of any size: launching operations, batching, clipping.

On a CPU there is also a cost per layer, measured with the tiny models. GPU values are from
BERT-base on that H200: 46 microseconds per launch, with the launches counted for each family.
"""

ADAM_SECONDS: dict[Device, float] = {"cpu": 3e-9, "cuda": 2e-11}
"""Seconds per update and parameter: gradient norm, two moments, the weight."""

DECODING = 3.0
"""Cost of an evaluated token for a text-to-text model relative to reading it.

Answers are generated token by token.
"""

SAMPLES = 5
"""Largest number of records read for each dataset, model and selecting task."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of a model in seconds.

    ``train``, ``read`` (forward pass without an answer), ``evaluate``: seconds per token.
    ``update``: seconds per update. ``start``: seconds per training. ``evaluate_on``: measured
    seconds per evaluated token, by dataset and selecting tasks, since answers differ in length.
    """

    train: float
    read: float
    evaluate: float
    update: float
    start: float
    basis: Basis
    evaluate_on: Mapping[tuple[str, tuple[str, ...]], float] = field(default_factory=dict)

    def get_evaluation_speed(self, dataset: str, select_on: tuple[str, ...]) -> float:
        """Return the seconds per evaluated token for given tasks."""
        return self.evaluate_on.get((dataset, select_on), self.evaluate)

    def estimate_training_seconds(self, stage: Stage, tokens: int, updates: int) -> float:
        """Estimate the seconds of all updates of a training."""
        part = (1 + BACKWARD_OF_PARTS) / (1 + BACKWARD) if stage.trains else 1.0
        return tokens * self.train * part + updates * self.update


@dataclass(frozen=True, slots=True)
class TimedUpdates:
    """Measured updates: their number, the tokens that they read, and their total seconds."""

    updates: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Measured seconds of one training, from its record. Memory is in MiB."""

    stage: Stage
    device: str
    train: float
    evaluation: float
    rest: float
    memory: float


def read_samples(study: Study) -> list[Sample]:
    """Read the measured costs of finished training stages.

    At most ``SAMPLES`` stages are read for each dataset, model and set of tasks whose dev scores
    select the epoch.
    """
    taken: dict[tuple[str, str, tuple[str, ...]], int] = defaultdict(int)
    samples = []
    for stage in study.plan.stages:
        group = (stage.dataset, stage.model.name, stage.measured_on)
        if taken[group] < SAMPLES and (sample := _read_sample(stage, study.get_record_path(stage))):
            taken[group] += 1
            samples.append(sample)
    return samples


def _read_sample(stage: Stage, record: str) -> Sample | None:
    """Read the cost of a training from its record, or return None if it is not recorded."""
    try:
        cost = read_cost(Path(record))
    except FileNotFoundError:
        return None
    if cost is None:
        return None
    train, dev, test, rest = (cost.seconds[name] for name in PHASES)
    return Sample(stage, cost.device, train, dev + test, rest, cost.memory)


@dataclass(frozen=True, slots=True)
class Work:
    """Measured cost of a training, and the computed seconds of its updates and evaluations."""

    sample: Sample
    train: float
    evaluation: float


def correct_speed(speed: Speed, done: Iterable[Work]) -> Speed | None:
    """Correct a computed speed by the ratio of measured to computed seconds.

    The ratio is the median over the model's trainings. For evaluations, there is one ratio per
    task. Return None if there are no measured trainings.
    """
    rows = [work for work in done if work.sample.train > 0 and work.train > 0]
    if not rows:
        return None
    of_tasks: dict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(list)
    for work in rows:
        if work.evaluation > 0:
            key = (work.sample.stage.dataset, work.sample.stage.measured_on)
            of_tasks[key].append(work.sample.evaluation / work.evaluation)
    train = median(work.sample.train / work.train for work in rows)
    evaluation = median(chain.from_iterable(of_tasks.values())) if of_tasks else train
    device: Device = "cuda" if rows[0].sample.device == "cuda" else "cpu"
    return replace(
        speed,
        train=speed.train * train,
        update=speed.update * train,
        read=speed.read * evaluation,
        evaluate=speed.evaluate * evaluation,
        start=median(work.sample.rest for work in rows) + PROCESS_SECONDS[device],
        basis="measured",
        evaluate_on={key: speed.evaluate * median(v) for key, v in of_tasks.items()},
    )


def scale_speed(speed: Speed, timed: TimedUpdates) -> Speed:
    """Scale a computed speed so that it agrees with timed updates of the model."""
    computed = timed.tokens * speed.train + timed.updates * speed.update
    ratio = timed.seconds / computed
    return replace(
        speed,
        train=speed.train * ratio,
        read=speed.read * ratio,
        evaluate=speed.evaluate * ratio,
        update=speed.update * ratio,
        basis="timed",
    )


def compute_speed(size: ModelSize, family: Family, rates: Rates, precision: Precision) -> Speed:
    """Compute a model's speed from its operations and the speed of matrix products.

    A forward pass takes 2 operations per parameter and token. On a CPU, operations other than
    matrix products are added. The backward pass is cheaper if only an adapter is trained.
    """
    device = rates.device
    products = 2 * size.count_multiplied_parameters(family) / rates.flops[precision]
    if device == "cuda":
        forward = products / GPU_SHARE[family]
        update = GPU_UPDATE_SECONDS[family]
    else:
        passes = PASSES_SECONDS * size.layers * size.hidden
        passes = (passes + WORD_SECONDS * size.written * size.vocabulary) / (1 + BACKWARD)
        forward = products / PRODUCTS_SHARE + passes
        update = CPU_UPDATE_SECONDS + CPU_LAYER_SECONDS[family] * size.layers
    twice = IN_BATCH if family == "dual_encoder" else 1.0
    generates = family in ("decoder", "encoder_decoder")
    load = LOAD_SECONDS[device] + LOAD_A_PARAMETER * size.parameters
    basis: Basis = "calibrated" if rates.basis == "measured" else rates.basis
    return Speed(
        train=(1 + size.backward_cost) * forward * twice,
        read=forward,
        evaluate=forward * (DECODING if generates else 1.0),
        update=update + size.trained * ADAM_SECONDS[device],
        start=PROCESS_SECONDS[device] + load,
        basis=basis,
    )
