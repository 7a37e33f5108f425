"""Estimated cost of a node: seconds, memory, disk.

``tasktransfer plan`` sums it up, and the Snakefile uses it to request runtime and memory for
thousands of jobs. Trainings that differ only in their seed are therefore estimated once. Time of a
training = start + training tokens x speed + updates x cost of an update + evaluated tokens x speed.
Speeds come from ``speed``, tokens from ``sizes``. Other nodes are estimated in ``other_nodes``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

from tasktransfer.config.model_sizes import ModelSize
from tasktransfer.core.nodes import Fit, Node, Stage
from tasktransfer.core.references import FROZEN, NEAREST
from tasktransfer.datasets import get_task
from tasktransfer.jobs.needs import get_fit_model
from tasktransfer.operate.forecast.model_size import compute_model_size
from tasktransfer.operate.forecast.other_nodes import OtherNodeEstimates
from tasktransfer.operate.forecast.rates import (
    Device,
    Precision,
    Rates,
    get_typical_rates,
    read_cached_rates,
)
from tasktransfer.operate.forecast.sizes import Sizes, Volume
from tasktransfer.operate.forecast.speed import (
    Basis,
    Sample,
    Speed,
    Work,
    compute_speed,
    correct_speed,
    read_samples,
    scale_speed,
)
from tasktransfer.operate.forecast.timed_updates import format_key, read_timed_updates
from tasktransfer.results.node_folders import LAYER, get_layer_folder_name
from tasktransfer.results.study import Study
from tasktransfer.tasks.initial_heads import select_fitted_tasks
from tasktransfer.training.device import list_devices

MICRO_BATCH = 1024
"""Tokens of a micro-batch on a CPU in float32, as in ``training.run`` (which imports torch).

In bfloat16 there are twice as many tokens of half the size.
"""

LEAST_GAIN, LEAST_WIDTH = 1.4, 192
"""Least speed-up and hidden size for which ``auto`` resolves to bfloat16 on a CPU.

A layer of width 64 is slower in bfloat16 (training/bfloat16_gain.py measures at the model's width).
"""

MEGABYTE = 2**20
PROCESS_MB = {"cpu": 600, "cuda": 3500}
"""Memory of Python, torch and transformers in MiB; with a GPU, CUDA's libraries on the host too."""

MARGIN = {"measured": 2.0}
OTHER_MARGIN = 4.0
"""Factors between the estimate and the time requested from a batch system.

Other cluster nodes may be slower, and unmeasured estimates may be wrong by this factor.
"""

LEAST_MINUTES = 20
LEAST_MB = {"cpu": 1500, "cuda": 6000}

RECORD_BYTES, EPOCH_BYTES, PREDICTIONS_BYTES, PREDICTION_BYTES = 3000, 700, 3000, 25
"""Bytes of a record, of an epoch in record and log, of a predictions file, and of a prediction.

They were measured in the demo and in a study on real data.
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimated cost of one training.

    ``samples``, ``tokens``: totals over all epochs, as in a record. ``evaluated``: units
    that the model reads without an update: dev after every round, test once, and train once to fit
    a new head. ``checkpoint``: bytes of the checkpoint. ``results``: bytes of record, log and
    predictions.
    """

    samples: int
    tokens: int
    evaluated: int
    evaluated_tokens: int
    seconds: float
    checkpoint: int
    results: int


class Estimates:
    """Estimated cost of a study's nodes.

    Args:
        study: a study; if its inputs are missing, sizes come from the paper.
        device: training device; None for the device of most records, or else of this machine.
        rates: speed of matrix products on the device; None for the cached rates of this machine, or
            else assumed ones.
    """

    def __init__(
        self, study: Study, device: Device | None = None, rates: Rates | None = None
    ) -> None:
        self.study = study
        self.sizes = Sizes(study)
        self._asked = device
        self._rates = rates
        self._costs: dict[tuple[Any, ...], Cost] = {}
        self.model = cache(self._compute_model_size)
        self.speed = cache(self._estimate_speed)
        self._most_memory = cache(self._find_measured_memory)
        self._besides = OtherNodeEstimates(
            self.sizes,
            lambda model, precision: self.speed(
                model.name, self.resolve_precision(model.name, precision)
            ),
            lambda name: self.model(name).hidden,
            study.config.training.precision,
            partial(get_fit_model, study),
            lambda fit: self._sharing_fits[self._get_representations(fit)],
        )

    def _get_representations(self, fit: Fit) -> tuple[str, ...]:
        """Return a key of the texts' representations that a fit reads.

        Fits with the same key read the same representations, which are computed once.
        """
        if LAYER in fit.settings:
            return (get_layer_folder_name(fit),)
        if fit.learner in (FROZEN, NEAREST):
            return (fit.data.digest, get_fit_model(self.study, fit).name, *fit.tasks)
        return (fit.digest,)

    @cached_property
    def _sharing_fits(self) -> Counter[tuple[str, ...]]:
        """Number of fits that share representations, which are computed once."""
        return Counter(map(self._get_representations, self.study.plan.fits))

    # --- basis of the estimates ---

    @cached_property
    def samples(self) -> list[Sample]:
        """Measured speeds from some of the study's finished trainings."""
        return [] if self.study.has_unknown_inputs else read_samples(self.study)

    @cached_property
    def device(self) -> Device:
        """Device on which the study trains."""
        if self._asked:
            return self._asked
        trained_on = Counter(sample.device for sample in self.samples).most_common(1)
        is_gpu = trained_on[0][0] == "cuda" if trained_on else bool(list_devices())
        return "cuda" if is_gpu else "cpu"

    @cached_property
    def rates(self) -> Rates:
        """Speed of matrix products on the device."""
        if self._rates is not None and self._rates.device == self.device:
            return self._rates
        return read_cached_rates(self.device) or get_typical_rates(self.device)

    @cached_property
    def is_for_this_machine(self) -> bool:
        """True if the speed of matrix products was measured on this machine."""
        return self.rates == read_cached_rates(self.device)

    def resolve_precision(self, name: str, wanted: str) -> Precision:
        """Return the number format of a model's trainings, resolving ``auto`` for the device."""
        if wanted != "auto":
            return "bfloat16" if wanted == "bfloat16" else "float32"
        gain = self.rates.flops["bfloat16"] / self.rates.flops["float32"]
        wide = self.device == "cuda" or self.model(name).hidden >= LEAST_WIDTH
        return "bfloat16" if wide and gain >= LEAST_GAIN else "float32"

    def _compute_model_size(self, name: str) -> ModelSize:
        """Return the size of a model in the study."""
        return compute_model_size(self.study, name)

    def _estimate_speed(self, name: str, precision: Precision) -> Speed:
        """Estimate a model's training speed from its size, corrected by measured records.

        The records are the model's own, or else those of the model nearest in size in its family.
        Without records, updates that were timed on this machine correct the speed.
        """
        family = self.study.revisions.models[name].family
        mine = compute_speed(self.model(name), family, self.rates, precision)
        size = self.model(name).parameters
        others = [
            other
            for other, spec in self.study.revisions.models.items()
            if spec.family == family and other != name
        ]
        others.sort(key=lambda other: abs(math.log(self.model(other).parameters / size)))
        for other in (name, *others):
            right = correct_speed(mine, self._iterate_work(other))
            if right is not None:
                of_another: Basis = "measured with another model"
                return right if other == name else replace(right, basis=of_another)
        if self.is_for_this_machine:
            key = format_key(self.device, family, self.model(name), precision)
            if (timed := read_timed_updates(key)) is not None:
                return scale_speed(mine, timed)
        return mine

    def _select_samples(self, name: str) -> list[Sample]:
        """Return the samples of a model that were measured on the study's device."""
        return [
            sample
            for sample in self.samples
            if sample.stage.model.name == name and sample.device == self.device
        ]

    def _iterate_work(self, name: str) -> Iterator[Work]:
        """Yield the computed seconds of a model's trainings with records."""
        family = self.study.revisions.models[name].family
        for sample in self._select_samples(name):
            stage = sample.stage
            precision = self.resolve_precision(name, stage.training.precision)
            speed = compute_speed(self.model(name), family, self.rates, precision)
            tokens, evaluated = self._count_tokens(stage)
            train = speed.estimate_training_seconds(stage, tokens, self._count_updates(stage))
            yield Work(sample, train, evaluated * speed.evaluate)

    # --- a node ---

    def estimate_cost(self, stage: Stage) -> Cost:
        """Estimate the cost of a training."""
        key = (
            *(stage.data.digest, stage.model.name, stage.train_tasks, bool(stage.trains)),
            *(
                tuple(selection.tasks for selection in stage.selections),
                stage.selection.every,
                stage.training,
            ),
        )
        if key not in self._costs:
            self._costs[key] = self._compute_cost(stage)
        return self._costs[key]

    def estimate_seconds(self, node: Node) -> float:
        """Estimate the seconds of a node of any kind."""
        return (
            self.estimate_cost(node).seconds
            if isinstance(node, Stage)
            else self._besides.estimate_seconds(node)
        )

    def _compute_cost(self, stage: Stage) -> Cost:
        model, training = stage.model.name, stage.training
        train = [self.sizes.measure_split(stage, task, "train") for task in stage.train_tasks]
        evaluated = list(self._iterate_evaluations(stage))
        speed = self.speed(model, self.resolve_precision(model, training.precision))
        tokens, evaluated_tokens = self._count_tokens(stage)
        seconds = (
            speed.start
            + speed.estimate_training_seconds(stage, tokens, self._count_updates(stage))
            + evaluated_tokens * speed.get_evaluation_speed(stage.dataset, stage.measured_on)
        )
        predicted = sum(
            self.sizes.measure_split(stage, task, "test").instances for task in stage.tested
        )
        return Cost(
            samples=round(self._count_passes(stage) * sum(v.units for v in train)),
            tokens=tokens,
            evaluated=sum(volume.units * times for volume, times in evaluated),
            evaluated_tokens=evaluated_tokens,
            seconds=seconds,
            checkpoint=4 * self.model(model).trained * len(stage.selections),
            results=RECORD_BYTES
            + EPOCH_BYTES * self._count_rounds(stage)
            + PREDICTIONS_BYTES
            + PREDICTION_BYTES * predicted,
        )

    def compute_mean_length(self, stage: Stage) -> int:
        """Return the mean number of tokens per training instance of a stage, at least 1."""
        train = [self.sizes.measure_split(stage, task, "train") for task in stage.train_tasks]
        return max(1, round(sum(v.tokens for v in train) / max(1, sum(v.units for v in train))))

    def _count_epoch_updates(self, stage: Stage) -> int:
        """Return the number of updates in an epoch."""
        train = (self.sizes.measure_split(stage, task, "train").units for task in stage.train_tasks)
        return max(1, sum(math.ceil(units / stage.training.batch_size) for units in train))

    def _count_updates(self, stage: Stage) -> int:
        tasks = len(stage.train_tasks)
        return stage.training.count_updates(stage.sampler, tasks, self._count_epoch_updates(stage))

    def _count_passes(self, stage: Stage) -> float:
        """Return the number of passes over the training sets."""
        return self._count_updates(stage) / self._count_epoch_updates(stage)

    def _count_rounds(self, stage: Stage) -> int:
        return math.ceil(
            self._count_updates(stage) / (stage.selection.every or self._count_epoch_updates(stage))
        )

    def _iterate_evaluations(self, stage: Stage) -> Iterator[tuple[Volume, int]]:
        """Yield each evaluated volume with the number of its evaluations.

        The training instances on which a new head is fitted are evaluated once.
        """
        fitted = _list_fitted_tasks(stage)
        starts_at_zero = stage.keeps_round(0) or all(task in fitted for task in stage.measured_on)
        rounds = self._count_rounds(stage) + int(starts_at_zero)
        for task in stage.measured_on:
            yield self.sizes.measure_split(stage, task, "dev"), rounds
        for task in stage.new_heads:
            if task in fitted:
                yield self.sizes.measure_split(stage, task, "train"), 1
        for task in stage.tested:
            yield self.sizes.measure_split(stage, task, "test"), 1

    def _count_tokens(self, stage: Stage) -> tuple[int, int]:
        """Return the numbers of training tokens in all passes and of evaluated tokens."""
        train = sum(
            self.sizes.measure_split(stage, task, "train").tokens for task in stage.train_tasks
        )
        evaluated = sum(volume.tokens * times for volume, times in self._iterate_evaluations(stage))
        return round(self._count_passes(stage) * train), evaluated

    # --- requests to a batch system ---

    def compute_runtime_minutes(self, stage: Stage, attempt: int = 1) -> int:
        """Return the minutes that a training requests from a batch system.

        They are at least ``LEAST_MINUTES``, and double with each further attempt.
        """
        margin = MARGIN.get(self._get_speed_basis(stage), OTHER_MARGIN)
        minutes = math.ceil(margin * self.estimate_cost(stage).seconds / 60)
        return int(max(LEAST_MINUTES, minutes) * 2 ** (max(attempt, 1) - 1))

    def _get_speed_basis(self, stage: Stage) -> Basis:
        precision = self.resolve_precision(stage.model.name, stage.training.precision)
        return self.speed(stage.model.name, precision).basis

    def compute_memory_mb(self, stage: Stage, attempt: int = 1) -> int:
        """Return the host memory in MiB that a training requests from a batch system.

        It is half as much again as needed, and doubles with each further attempt.
        """
        needed = 1.5 * (self._most_memory(stage.model.name) or self._estimate_host_mb(stage))
        rounded = math.ceil(max(needed, LEAST_MB[self.device]) / 500) * 500
        return int(rounded * 2 ** (max(attempt, 1) - 1))

    def _find_measured_memory(self, name: str) -> float | None:
        return max((sample.memory for sample in self._select_samples(name)), default=None)

    def _estimate_host_mb(self, stage: Stage) -> float:
        """Estimate the host memory of a training in MiB.

        On a CPU it holds weights, gradients, Adam's two moments, the best epoch's weights, and one
        more copy while loading or writing. With a GPU, the host holds three copies of the weights.
        Frozen parameters need only the weights and the copy while loading.
        """
        size = self.model(stage.model.name)
        weights, moving = (4 * n / MEGABYTE for n in (size.parameters, size.trained))
        if self.device == "cuda":
            return PROCESS_MB["cuda"] + 2 * weights + moving
        # A micro-batch's activations: about 34 vectors of the hidden size per token and layer,
        # three attention maps per head, and three copies of a text-to-text model's logits.
        length = min(stage.model.max_length, MICRO_BATCH)
        a_layer = 34 * size.hidden + 3 * length * max(1, size.hidden // 64)
        words = 0 if stage.model.family == "encoder" else 3 * size.vocabulary
        activations = 4 * MICRO_BATCH * (size.layers * a_layer + words) / MEGABYTE
        return PROCESS_MB["cpu"] + 2 * weights + 4 * moving + activations


def _list_fitted_tasks(stage: Stage) -> Collection[str]:
    """Return the tasks whose heads are fitted before the first update if no stage trained them."""
    if stage.model.family != "encoder":
        return ()
    tasks = {name: get_task(stage.dataset, name) for name in stage.tasks}
    return select_fitted_tasks(tasks, stage.training.head_initialization)
