"""How fast a model is trained: computed from the operations that it needs and what the machine
reaches, and set right by what the study's own records took.

Seconds a token trained on, a token evaluated on, an update, and those that a training takes
besides.
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
from tasktransfer.results.costs import PHASES, cost_in
from tasktransfer.results.study import Study

Basis = Literal[
    "measured", "measured with another model", "calibrated", "by name", "reference values"
]

PROCESS_SECONDS: dict[Device, float] = {"cpu": 1.0, "cuda": 5.0}
"""Before the record's clock starts: on a CPU the command, and a process forked from the workflow's
host; as a batch system's job Python with torch and transformers."""

LOAD_SECONDS: dict[Device, float] = {"cpu": 0.2, "cuda": 1.0}
LOAD_A_PARAMETER = 8e-9
"""Reading data and weights, and (CUDA) making the device ready."""

PRODUCTS_SHARE = 0.8
"""Of a square product's rate that a layer's own products reach on a CPU."""
PASSES_SECONDS = 50e-9
"""On a CPU, for a token, layer and unit of the hidden size: what is no product (softmax,
normalisation, dropout, copies), forward and backward, side by side on all cores. On three machines
MiniLM took 50 to 90 ns (docs/development/performance.md); a thread alone takes half."""

WORD_SECONDS = 25e-9
"""On a CPU, for each word that a token of an answer is weighed against, forward and backward; as a
built writer of 8,000 words took it."""

BACKWARD = 2.0
"""What the way back takes of products and passes, compared with the way there."""
BACKWARD_OF_PARTS = 1.0
"""The same where a few parts move: no gradient of the other weights."""
IN_BATCH = 4 / 3
"""A dual encoder encodes its batch twice, once without a way back."""

GPU_SHARE: dict[Family, float] = {
    "encoder": 0.73,
    "decoder": 0.39,
    "encoder_decoder": 0.14,
    "dual_encoder": 0.3,
}
"""The share of a matrix product's speed that a training reaches beside what each update costs.
Encoders as an H200 trained BERT-base on short and on long dialogues, the rest modelled:
docs/development/performance.md says how."""

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
"""What an update costs whatever its size: launching operations, batching, clipping; on a CPU
besides for each layer, as the tiny models take it. On a GPU as that H200 trained BERT-base: 46
microseconds for each of the counted launches, of which other families have others."""

ADAM_SECONDS: dict[Device, float] = {"cpu": 3e-9, "cuda": 2e-11}
"""What an update costs a parameter: gradient norm, two moments, the weight."""

DECODING = 3.0
"""Answers are written token by token: what an evaluated token costs a text-to-text model,
compared with reading it."""

SAMPLES = 5
"""Records that are read for each dataset, model and selecting task."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds: ``train``, ``read`` (no way back, no answer) and ``evaluate`` a token, ``update`` an
    update, ``start`` a training.

    ``evaluate_on``: by dataset and selecting tasks, where measured: answers differ in length.
    """

    train: float
    read: float
    evaluate: float
    update: float
    start: float
    basis: Basis
    evaluate_on: Mapping[tuple[str, tuple[str, ...]], float] = field(default_factory=dict)

    def evaluation(self, dataset: str, select_on: tuple[str, ...]) -> float:
        """Seconds a token evaluated on these tasks."""
        return self.evaluate_on.get((dataset, select_on), self.evaluate)

    def training(self, stage: Stage, tokens: int, updates: int) -> float:
        """Seconds of the updates of a training."""
        part = (1 + BACKWARD_OF_PARTS) / (1 + BACKWARD) if stage.trains else 1.0
        return tokens * self.train * part + updates * self.update


@dataclass(frozen=True, slots=True)
class Sample:
    """What one record says of the speed of its training. Memory in MiB."""

    stage: Stage
    device: str
    train: float
    evaluation: float
    rest: float
    memory: float


def read_samples(study: Study) -> list[Sample]:
    """What some finished trainings of every dataset, model and selecting task took."""
    taken: dict[tuple[str, str, tuple[str, ...]], int] = defaultdict(int)
    samples = []
    for stage in study.plan.stages:
        group = (stage.dataset, stage.model.name, stage.measured_on)
        if taken[group] < SAMPLES and (sample := _sample(stage, study.record(stage))):
            taken[group] += 1
            samples.append(sample)
    return samples


def _sample(stage: Stage, record: str) -> Sample | None:
    """None where there is no record, or none that tells; others complain of damaged ones."""
    try:
        cost = cost_in(Path(record))
    except FileNotFoundError:
        return None
    if cost is None:
        return None
    train, dev, test, rest = (cost.seconds[name] for name in PHASES)
    return Sample(stage, cost.device, train, dev + test, rest, cost.memory)


@dataclass(frozen=True, slots=True)
class Work:
    """What a training took, and the seconds that are computed for its updates and evaluations."""

    sample: Sample
    train: float
    evaluation: float


def set_right(speed: Speed, done: Iterable[Work]) -> Speed | None:
    """A computed speed times what trainings of this model took of what was computed for them: the
    median over them, of evaluations for each of their tasks; None without any that trained."""
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


def computed(size: ModelSize, family: Family, rates: Rates, precision: Precision) -> Speed:
    """The speed from the operations that a model needs, 2 a parameter and token forward, and the
    rate of a matrix product; on a CPU with what is no product besides. The way back takes less
    where an adapter moves in place of the weights."""
    device = rates.device
    products = 2 * size.working(family) / rates.flops[precision]
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
        train=(1 + size.backward) * forward * twice,
        read=forward,
        evaluate=forward * (DECODING if generates else 1.0),
        update=update + size.trained * ADAM_SECONDS[device],
        start=PROCESS_SECONDS[device] + load,
        basis=basis,
    )
