"""How fast a model is trained: from the records' measurements, a calibration, or reference values.

All three give the same numbers: seconds a token trained on, a token evaluated on, an update, and
the seconds that a training takes besides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Literal

from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Family
from tasktransfer.files import json_text
from tasktransfer.operate.forecast.model_size import ModelSize
from tasktransfer.results.costs import PHASES, cost_in
from tasktransfer.results.study import Study

Device = Literal["cpu", "cuda"]
Basis = Literal["measured", "measured with another model", "calibrated", "reference values"]

PROCESS_SECONDS = 5.0
"""Starting Python and importing torch and transformers: before the record's clock starts."""

LOAD_SECONDS = {"cpu": 4.0, "cuda": 15.0}
"""Reading the data, loading the model, and (CUDA) making the device ready."""

REFERENCE_FLOPS = {"cpu": 60e9, "cuda": 150e12}
"""Operations a second of a large matrix product: one core of a server's CPU in float32, and a GPU
of the A100's generation in bfloat16. For where nothing is measured; documented, not known."""

CPU_SHARE = 0.4
GPU_SHARE: dict[Family, float] = {
    "encoder": 0.45,
    "decoder": 0.39,
    "encoder_decoder": 0.14,
    "dual_encoder": 0.3,
}
"""The share of a matrix product's speed that a whole training reaches. On a GPU modelled, not
measured: docs/performance.md says how."""

CPU_UPDATE_SECONDS = 0.004
GPU_UPDATE_SECONDS: dict[Family, float] = {
    "encoder": 0.007,
    "decoder": 0.008,
    "encoder_decoder": 0.029,
    "dual_encoder": 0.02,
}
"""What an update costs whatever its size: launching operations, batching, clipping. On a GPU
modelled: the counted launches of a base model, 10 microseconds each."""

ADAM_SECONDS = {"cpu": 3e-9, "cuda": 2e-11}
"""What an update costs a parameter: gradient norm, two moments, the weight."""

DECODING = 3.0
"""Answers are written token by token: what an evaluated token costs a text-to-text model,
compared with reading it."""

SAMPLES = 5
"""Records that are read for each dataset, model and selecting task."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds: ``train`` and ``evaluate`` a token, ``update`` an update, ``start`` a training.

    ``evaluate_on``: by dataset and selecting tasks, where measured: answers differ in length.
    """

    train: float
    evaluate: float
    update: float
    start: float
    basis: Basis
    evaluate_on: Mapping[tuple[str, tuple[str, ...]], float] = field(default_factory=dict)

    def evaluation(self, dataset: str, select_on: tuple[str, ...]) -> float:
        """Seconds a token evaluated on these tasks."""
        return self.evaluate_on.get((dataset, select_on), self.evaluate)


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


def measured(samples: Iterable[tuple[Sample, int, int]]) -> Speed | None:
    """The median speed of some trainings of one model, each with the tokens that it was trained
    and evaluated on; None without any that trained."""
    rows = [row for row in samples if row[0].train > 0 and row[1]]
    if not rows:
        return None
    per_task: dict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(list)
    for sample, _, tokens in rows:
        if tokens:
            key = (sample.stage.dataset, sample.stage.measured_on)
            per_task[key].append(sample.evaluation / tokens)
    return Speed(
        train=median(sample.train / tokens for sample, tokens, _ in rows),
        evaluate=median(chain.from_iterable(per_task.values())) if per_task else 0.0,
        update=0.0,
        start=median(sample.rest for sample, _, _ in rows) + PROCESS_SECONDS,
        basis="measured",
        evaluate_on={key: median(values) for key, values in per_task.items()},
    )


def scaled(speed: Speed, ratio: float) -> Speed:
    """The speed of a model that is ``ratio`` times as large."""
    return replace(
        speed,
        train=speed.train * ratio,
        evaluate=speed.evaluate * ratio,
        basis="measured with another model",
        evaluate_on={key: value * ratio for key, value in speed.evaluate_on.items()},
    )


def computed(size: ModelSize, family: Family, device: Device, flops: float | None) -> Speed:
    """The speed from the operations that a model needs: 2 a parameter and token forward, three
    times that with the way back, and less where an adapter moves in place of its weights.

    Args:
        flops: operations a second of a matrix product, as calibrated; None: the reference value.
    """
    on_gpu = device == "cuda"
    share = GPU_SHARE[family] if on_gpu else CPU_SHARE
    an_update = GPU_UPDATE_SECONDS[family] if on_gpu else CPU_UPDATE_SECONDS
    rate = (flops or REFERENCE_FLOPS[device]) * share
    forward = 2 * size.working(family) / rate
    return Speed(
        train=(1 + size.backward) * forward,
        evaluate=forward * (1.0 if family == "encoder" else DECODING),
        update=an_update + size.trained * ADAM_SECONDS[device],
        start=PROCESS_SECONDS + LOAD_SECONDS[device],
        basis="calibrated" if flops else "reference values",
    )


# --- calibration --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a machine's matrix product reaches. ``where``: host and device, as a person reads it."""

    device: Device
    flops: float
    host: str
    where: str


def calibration_file(study: Study) -> Path:
    """Where a study remembers what machines were measured to reach."""
    return Path(study.config.results) / "data" / "calibration.json"


def read_calibrations(study: Study) -> list[Calibration]:
    """What machines were measured to reach, one entry a host and device."""
    try:
        entries = json_text.loads(calibration_file(study).read_bytes())
        return [each for entry in entries if (each := Calibration(**entry)).flops > 0]
    except (OSError, ValueError, TypeError):
        return []
