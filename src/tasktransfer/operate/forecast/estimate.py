"""What a training will take: seconds, memory, disk.

Two users: ``tasktransfer plan`` adds it up, and the Snakefile asks a batch system for runtime and
memory with it, for thousands of jobs; so everything is computed once for trainings that differ in
their seed alone. Time of a training = start + tokens trained on x speed + updates x cost of an
update + tokens evaluated x speed, the speed from ``speed``, the tokens from ``sizes``.
"""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Family
from tasktransfer.operate.forecast.model_size import ModelSize, model_size
from tasktransfer.operate.forecast.sizes import Sizes, Volume
from tasktransfer.operate.forecast.speed import (
    Calibration,
    Device,
    Sample,
    Speed,
    Tokens,
    computed,
    measured,
    read_calibration,
    read_samples,
    scaled,
)
from tasktransfer.results.study import Study
from tasktransfer.training.device import device_pool

MICRO_BATCH = {"cpu": 1024, "cuda": 16384}
"""Tokens of a micro-batch, as ``training.run`` sets them (which imports torch); on a CPU, of one in
float32. In bfloat16 they are twice as many and half as large."""

MEGABYTE = 2**20
PROCESS_MB = {"cpu": 600, "cuda": 3500}
"""Python, torch and transformers, and on a GPU's host CUDA's libraries."""

CONTEXT_MB = 600
"""What CUDA takes of a GPU before anything is computed."""

MARGIN = {"measured": 2.0}
OTHER_MARGIN = 4.0
"""What is asked of a batch system is so many times the estimate: another node may be slower, and
what is not measured may be wrong by as much."""

LEAST_MINUTES = 20
LEAST_MB = {"cpu": 1500, "cuda": 6000}

RECORD_BYTES, EPOCH_BYTES, PREDICTIONS_BYTES, PREDICTION_BYTES = 3000, 700, 3000, 25
"""Of a record, an epoch in it and in the log, a file of predictions, a prediction; as the demo and
a study on real data have left them."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one training takes. ``samples`` and ``tokens`` as a record counts them, over all epochs;
    ``evaluated``: units predicted, on dev after every epoch and on test once; ``results``: bytes
    of record, log and predictions."""

    samples: int
    tokens: int
    evaluated: int
    evaluated_tokens: int
    updates: int
    seconds: float
    checkpoint: int
    results: int


class Estimates:
    """What the trainings of a study will take.

    Args:
        study: inputs may be absent; sizes are then those that the paper gives.
        device: what it is trained on; None: what most of its records were trained on, else what
            this machine has.
        calibration: of this machine; None: the remembered one, if there is one.
    """

    def __init__(
        self, study: Study, device: Device | None = None, calibration: Calibration | None = None
    ) -> None:
        self.study = study
        self.sizes = Sizes(study)
        self._asked = device
        self._calibration = calibration
        self._models: dict[str, ModelSize] = {}
        self._speeds: dict[str, Speed] = {}
        self._costs: dict[tuple[Any, ...], Cost] = {}
        self._memory: dict[tuple[str, int], int] = {}

    # --- what it stands on ---

    @cached_property
    def samples(self) -> list[Sample]:
        """What some of the study's finished trainings took."""
        return [] if self.study.unknown else read_samples(self.study)

    @cached_property
    def device(self) -> Device:
        """What the study is trained on."""
        if self._asked:
            return self._asked
        seen = Counter(sample.device for sample in self.samples).most_common(1)
        if seen:
            return "cuda" if seen[0][0] == "cuda" else "cpu"
        return "cuda" if device_pool() else "cpu"

    @cached_property
    def calibration(self) -> Calibration | None:
        """What this machine was measured to reach."""
        given = self._calibration
        if given is not None:
            return given if given.device == self.device else None
        return read_calibration(self.study, self.device, platform.node())

    def model(self, name: str) -> ModelSize:
        """The size of a model of the study."""
        if name not in self._models:
            self._models[name] = model_size(self.study, name)
        return self._models[name]

    def speed(self, name: str) -> Speed:
        """The speed of a model: its own measurements first, then those of the family's nearest in
        size, then the calibration, then reference values."""
        if name not in self._speeds:
            self._speeds[name] = self._measured(name) or self._like_another(name) or computed(
                self.model(name),
                self._family(name),
                self.device,
                self.calibration.flops if self.calibration else None,
            )  # fmt: skip
        return self._speeds[name]

    def _family(self, name: str) -> Family:
        return self.study.revisions.models[name].family

    def _measured(self, name: str) -> Speed | None:
        return measured(
            (sample, self._tokens(sample.stage))
            for sample in self.samples
            if sample.stage.model.name == name and sample.device == self.device
        )

    def _like_another(self, name: str) -> Speed | None:
        mine = self.model(name).parameters
        others = [m.name for m in self.study.config.models if m.family == self._family(name)]
        others.sort(key=lambda other: abs(math.log(self.model(other).parameters / mine)))
        for other in others:
            speed = self._measured(other)
            if speed is not None:
                return scaled(speed, mine / self.model(other).parameters)
        return None

    # --- a training ---

    def of(self, stage: Stage) -> Cost:
        """What one training takes."""
        key = (stage.dataset, stage.model.name, stage.train_tasks, stage.select_on, stage.training)
        if key not in self._costs:
            self._costs[key] = self._cost(stage)
        return self._costs[key]

    def _cost(self, stage: Stage) -> Cost:
        model, training = stage.model.name, stage.training
        train = [self.sizes.of(stage, task, "train") for task in stage.train_tasks]
        evaluated = list(self._evaluations(stage))
        tokens, speed = self._tokens(stage), self.speed(model)
        updates = training.epochs * sum(math.ceil(v.units / training.batch_size) for v in train)
        seconds = (
            speed.start
            + tokens.train * speed.train
            + updates * speed.update
            + tokens.evaluated * speed.evaluation(stage.dataset, stage.select_on)
        )
        predicted = sum(self.sizes.of(stage, task, "test").instances for task in stage.tested)
        return Cost(
            samples=training.epochs * sum(v.units for v in train),
            tokens=tokens.train,
            evaluated=sum(volume.units * times for volume, times in evaluated),
            evaluated_tokens=tokens.evaluated,
            updates=updates,
            seconds=seconds,
            checkpoint=4 * self.model(model).parameters,
            results=RECORD_BYTES
            + EPOCH_BYTES * training.epochs
            + PREDICTIONS_BYTES
            + PREDICTION_BYTES * predicted,
        )

    def _evaluations(self, stage: Stage) -> Iterator[tuple[Volume, int]]:
        """(volume, how often it is predicted)."""
        for task in stage.select_on:
            yield self.sizes.of(stage, task, "dev"), stage.training.epochs
        for task in stage.tested:
            yield self.sizes.of(stage, task, "test"), 1

    def _tokens(self, stage: Stage) -> Tokens:
        train = sum(self.sizes.of(stage, task, "train").tokens for task in stage.train_tasks)
        return Tokens(
            stage.training.epochs * train,
            sum(volume.tokens * times for volume, times in self._evaluations(stage)),
        )

    # --- what a batch system is asked for ---

    def runtime_minutes(self, stage: Stage, attempt: int = 1) -> int:
        """Minutes to ask for: generous, at least ``LEAST_MINUTES``, doubled at every attempt."""
        margin = MARGIN.get(self.speed(stage.model.name).basis, OTHER_MARGIN)
        minutes = math.ceil(margin * self.of(stage).seconds / 60)
        return int(max(LEAST_MINUTES, minutes) * 2 ** (max(attempt, 1) - 1))

    def memory_mb(self, stage: Stage, attempt: int = 1) -> int:
        """The host's memory to ask for, MiB: generous, doubled at every attempt."""
        key = (stage.model.name, max(attempt, 1))
        if key not in self._memory:
            seen = [
                sample.memory
                for sample in self.samples
                if sample.stage.model.name == stage.model.name and sample.device == self.device
            ]
            needed = max(seen) * 1.5 if seen else self._host_mb(stage) * 1.5
            rounded = math.ceil(max(needed, LEAST_MB[self.device]) / 500) * 500
            self._memory[key] = int(rounded * 2 ** (key[1] - 1))
        return self._memory[key]

    def gpu_memory_mb(self, stage: Stage) -> int:
        """The GPU's memory that a training needs, MiB; 0 on a CPU. Where there is less, the trainer
        makes its micro-batches smaller."""
        if self.device == "cpu":
            return 0
        seen = [
            sample.gpu_memory
            for sample in self.samples
            if sample.stage.model.name == stage.model.name and sample.gpu_memory
        ]
        if seen:
            return math.ceil(max(seen)) + CONTEXT_MB
        weights = 4 * self.model(stage.model.name).parameters / MEGABYTE
        return math.ceil(CONTEXT_MB + 4 * weights + self._activations_mb(stage))

    def _host_mb(self, stage: Stage) -> float:
        """Weights, gradients, two moments of Adam, the best epoch's weights, and one more copy
        while loading or writing; where the GPU holds the first four, three copies on the host."""
        weights = 4 * self.model(stage.model.name).parameters / MEGABYTE
        if self.device == "cuda":
            return PROCESS_MB["cuda"] + 3 * weights
        return PROCESS_MB["cpu"] + 6 * weights + self._activations_mb(stage)

    def _activations_mb(self, stage: Stage) -> float:
        """A micro-batch's activations: about 34 values of the hidden size a token and layer, three
        attention maps a head, and three copies of a text-to-text model's scores of all words."""
        size, tokens = self.model(stage.model.name), MICRO_BATCH[self.device]
        bytes_each = 4 if self.device == "cpu" else 3  # bfloat16, with some of it in float32
        length = min(stage.model.max_length, tokens)
        a_layer = 34 * size.hidden + 3 * length * max(1, size.hidden // 64)
        words = 0 if stage.model.family == "encoder" else 3 * size.vocabulary
        return bytes_each * tokens * (size.layers * a_layer + words) / MEGABYTE
