"""Samplers: the examples and the order of updates. Pure numpy.

An update is a tuple of weighted batches: one optimiser step on the weighted sum of their mean
losses. A sampler returns the updates of an epoch, which depend only on the seed and the epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Sampler, Training
from tasktransfer.encoding.encoded import EncodedSplit, check_same_instances
from tasktransfer.errors import DataError

Sizes = Mapping[str, int]
"""Number of examples per task, in any order."""


TEMPERATURE = 2.0
"""Temperature of the sampler ``temperature``: 1 samples tasks in proportion to their size, larger
values more evenly."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples of one task, and the weight of their mean loss."""

    task: str
    examples: tuple[int, ...]
    weight: float = 1.0


Update = tuple[Batch, ...]


# --- samplers -----------------------------------------------------------------------------------


def build_task_batches(
    sizes: Sizes, training: Training, seed: int, epoch: int, weigh_alone: bool = False
) -> list[Update]:
    """Return all batches of all tasks once, one batch per update.

    The next task is sampled in proportion to its remaining batches (paper, section 4; feta-spec,
    multitask mixing). A task's last batch may be smaller. For weights see
    ``compute_task_weights``. With the toolkit's ``batches_per_update``, an update is the mean of
    three of these batches, see ``_group_batches``.
    """

    step = get_batch_size(training)

    def sample_batches(epoch: int) -> list[Batch]:
        generator = np.random.default_rng([seed, epoch])
        weights = compute_task_weights(sizes, step, training.task_weighting, weigh_alone)
        waiting: dict[str, list[Batch]] = {}
        for task in sorted(sizes):
            waiting[task] = _shuffle_task(generator, task, sizes[task], step, weights[task])
        tickets = [task for task, batches in waiting.items() for _ in batches]
        # Shuffling one ticket per batch samples tasks in proportion to their remaining batches.
        return [waiting[tickets[i]].pop(0) for i in generator.permutation(len(tickets))]

    fidelity = training.fidelity
    several, kept = fidelity.batches_per_update, fidelity.leftover_batches == "next_epoch"
    before = sample_batches(epoch - 1) if kept and several > 1 and epoch > 1 else []
    return _group_batches(sample_batches(epoch), several, kept, before)


def _group_batches(
    batches: list[Batch], several: int, kept: bool, before: list[Batch]
) -> list[Update]:
    """Group batches into updates with ``several`` batches each.

    Leftover batches at the end form their own update. If ``kept``, they join the next epoch's first
    update instead: there is no optimiser step in between, so their gradients accumulate as in the
    toolkit.

    Args:
        before: batches of the previous epoch.
    """
    if several == 1:
        return [(batch,) for batch in batches]
    full = len(batches) // several * several
    groups = [batches[i : i + several] for i in range(0, full, several)]
    if not kept and batches[full:]:
        groups.append(batches[full:])
    divisors = [min(several, len(group)) for group in groups]
    if kept:
        groups[0] = [*before[len(before) // several * several :], *groups[0]]
    return [
        tuple(replace(batch, weight=batch.weight / divisor) for batch in group)
        for group, divisor in zip(groups, divisors, strict=True)
    ]


def get_batch_size(training: Training) -> int:
    """Return the number of examples per batch.

    This differs from ``training.batch_size``, the number per update, if an update has several
    batches.
    """
    return max(1, training.batch_size // training.fidelity.batches_per_update)


def sample_tasks_uniformly(sizes: Sizes, training: Training, seed: int, epoch: int) -> list[Update]:
    """Return updates of one batch, each of a uniformly sampled task (PoE, section VI-C).

    There are as many updates as for ``task_batches``. A task's examples come in shuffled passes, so
    none repeats before all were used. Every weight is 1, because sampling sets the tasks'
    proportions.
    """
    generator = np.random.default_rng([seed, epoch])
    drawn = generator.integers(len(sizes), size=_count_batches(sizes, training.batch_size))
    return _fill_updates(generator, drawn.tolist(), sizes, training.batch_size)


def sample_tasks_by_temperature(
    sizes: Sizes, training: Training, seed: int, epoch: int
) -> list[Update]:
    """Return updates of one batch, each of a task sampled by size^(1 / ``TEMPERATURE``).

    This lies between sampling in proportion to size and ``uniform``. It differs from ``uniform`` in
    these probabilities only.
    """
    generator = np.random.default_rng([seed, epoch])
    shares = np.array([sizes[task] for task in sorted(sizes)]) ** (1 / TEMPERATURE)
    count = _count_batches(sizes, training.batch_size)
    drawn = generator.choice(len(sizes), size=count, p=shares / shares.sum())
    return _fill_updates(generator, drawn.tolist(), sizes, training.batch_size)


def _fill_updates(
    generator: np.random.Generator, drawn: list[int], sizes: Sizes, step: int
) -> list[Update]:
    """Return updates of one batch each, from the tasks with given indices.

    Args:
        drawn: index of the task of each update, in the sorted order of the tasks' names.
    """
    tasks = sorted(sizes)
    waiting: dict[str, list[Batch]] = {task: [] for task in tasks}
    updates: list[Update] = []
    for task in (tasks[index] for index in drawn):
        if not waiting[task]:
            waiting[task] = _shuffle_task(generator, task, sizes[task], step)
        updates.append((waiting[task].pop(0),))
    return updates


def sample_random_weights(sizes: Sizes, training: Training, seed: int, epoch: int) -> list[Update]:
    """Return updates of one batch per task, with new random loss weights in each update.

    The weights are a softmax of standard normal numbers (Lin et al. 2021). This is a control:
    gradient surgery has not been shown to be better (Kurin et al. 2022, Xin et al. 2022). There
    are about as many batches as for ``task_batches``, so those of small tasks repeat.
    """
    generator = np.random.default_rng([seed, epoch])
    tasks = sorted(sizes)
    every = _iterate_batches_by_task(generator, sizes, training.batch_size)
    updates: list[Update] = []
    for _ in range(math.ceil(_count_batches(sizes, training.batch_size) / len(tasks))):
        drawn = np.exp(generator.standard_normal(len(tasks)))
        weights = (drawn / drawn.sum()).tolist()
        batches = zip(next(every), weights, strict=True)
        updates.append(tuple(replace(batch, weight=weight) for batch, weight in batches))
    return updates


def sample_bandit_candidates(
    sizes: Sizes, training: Training, seed: int, epoch: int
) -> list[Update]:
    """Return updates of one batch per task, of which a bandit chooses two during training.

    These are the batches of the target and of one source (``core.bandits``). About as many
    batches are therefore trained as for ``task_batches``. The other batches are skipped, which is
    harmless because batches are sampled at random.
    """
    every = _iterate_batches_by_task(
        np.random.default_rng([seed, epoch]), sizes, training.batch_size
    )
    return [next(every) for _ in range(math.ceil(_count_batches(sizes, training.batch_size) / 2))]


def _iterate_batches_by_task(
    generator: np.random.Generator, sizes: Sizes, step: int
) -> Iterator[tuple[Batch, ...]]:
    """Yield one batch of each task, endlessly, in shuffled passes over the data."""
    waiting: dict[str, list[Batch]] = {task: [] for task in sorted(sizes)}
    while True:
        for task, batches in waiting.items():
            if not batches:
                batches.extend(_shuffle_task(generator, task, sizes[task], step))
        yield tuple(batches.pop(0) for batches in waiting.values())


def mix_tasks(sizes: Sizes, training: Training, seed: int, epoch: int) -> list[Update]:
    """Return updates whose instances come from uniformly sampled tasks (PoE, section VI-C).

    There are as many updates as for ``task_batches``. The instances of a task form a batch, which
    is weighted by its fraction of the update. The update's loss is therefore the mean over its
    instances. They come in shuffled passes as in ``uniform``.
    """
    generator = np.random.default_rng([seed, epoch])
    tasks = sorted(sizes)
    waiting: dict[str, list[int]] = {task: [] for task in tasks}
    updates: list[Update] = []
    for _ in range(_count_batches(sizes, training.batch_size)):
        drawn = generator.integers(len(tasks), size=training.batch_size)
        batches = []
        for index, count in enumerate(np.bincount(drawn, minlength=len(tasks)).tolist()):
            task = tasks[index]
            while len(waiting[task]) < count:
                waiting[task] += generator.permutation(sizes[task]).tolist()
            examples, waiting[task] = waiting[task][:count], waiting[task][count:]
            if examples:
                batches.append(Batch(task, tuple(examples), count / training.batch_size))
        updates.append(tuple(batches))
    return updates


def pair_instances(sizes: Sizes, training: Training, seed: int, epoch: int) -> list[Update]:
    """Return updates that contain a batch of identical instances for each task."""
    generator = np.random.default_rng([seed, epoch])
    tasks = sorted(sizes)
    return [
        tuple(Batch(task, batch.examples, 1 / len(tasks)) for task in tasks)
        for batch in _shuffle_task(generator, tasks[0], sizes[tasks[0]], training.batch_size)
    ]


SAMPLERS: dict[Sampler, Callable[[Sizes, Training, int, int], list[Update]]] = {
    "task_batches": build_task_batches,
    "uniform": sample_tasks_uniformly,
    "mixed": mix_tasks,
    "together": pair_instances,
    "temperature": sample_tasks_by_temperature,
    "random_weights": sample_random_weights,
    "exp3": sample_bandit_candidates,
    "ucb1": sample_bandit_candidates,
}


def compute_task_weights(
    sizes: Sizes, batch_size: int, weighting: str, weigh_alone: bool = False
) -> dict[str, float]:
    """Return the weight of each task's loss.

    Args:
        weighting: ``none`` for weights of 1, the paper's plain sum; ``inverse_sqrt`` for
            1/sqrt(number of the task's batches), the toolkit's default.
        weigh_alone: whether ``inverse_sqrt`` also applies to a single task, whose weight is
            otherwise 1.
    """
    if weighting == "none" or (len(sizes) == 1 and not weigh_alone):
        return dict.fromkeys(sizes, 1.0)
    return {task: 1 / math.sqrt(math.ceil(n / batch_size)) for task, n in sizes.items()}


def _shuffle_task(
    generator: np.random.Generator, task: str, size: int, step: int, weight: float = 1.0
) -> list[Batch]:
    """Return one shuffled pass over a task in batches of ``step`` examples.

    The last batch may be smaller.
    """
    order = generator.permutation(size).tolist()
    return [Batch(task, tuple(order[i : i + step]), weight) for i in range(0, size, step)]


def _count_batches(sizes: Sizes, step: int) -> int:
    return sum(math.ceil(size / step) for size in sizes.values())


# --- rounds -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Schedule:
    """The updates of a training by round.

    A round is an epoch, or ``every`` updates. In the second case, the last round may be shorter.
    """

    sampler: Sampler
    sizes: Sizes
    training: Training
    seed: int
    every: int | None = None
    weigh_alone: bool = False
    """True if a task that is trained alone is weighted, see ``compute_task_weights``."""
    _epoch: tuple[int, list[Update]] = field(default=(0, []))
    """Cache of the last epoch's updates, since its rounds follow each other."""

    @staticmethod
    def build(stage: Stage, splits: Mapping[str, EncodedSplit]) -> Schedule:
        """Build the training schedule of a stage from its training splits.

        Raises:
            DataError: tasks of the sampler ``together`` do not share their instances, or there are
                too few batches for an update.
        """
        if stage.sampler == "together":
            check_same_instances(splits)
        sizes = {task: len(split) for task, split in splits.items()}
        schedule = Schedule(
            stage.sampler,
            sizes,
            stage.training,
            stage.seed,
            stage.selection.every,
            stage.training.fidelity.weighting_when_finetuning and _has_multitask_ancestor(stage),
        )
        if schedule._updates_per_epoch < 1:
            batches = _count_batches(sizes, get_batch_size(stage.training))
            raise DataError(
                f"{', '.join(sizes)}: An epoch has {batches} batches, but an update needs "
                f"{stage.training.fidelity.batches_per_update} batches, so the model would never "
                "be updated. Set training.fidelity.leftover_batches to own_update, or remove the "
                "task."
            )
        return schedule

    @property
    def rounds(self) -> int:
        """Number of rounds without early stopping."""
        return math.ceil(self.updates / self._updates_per_round)

    @property
    def updates(self) -> int:
        """Number of updates in the whole training without early stopping."""
        return self.training.count_updates(self.sampler, len(self.sizes), self._updates_per_epoch)

    @property
    def epochs(self) -> float:
        """Number of passes over the training sets without early stopping."""
        return self.updates / self._updates_per_epoch

    def iterate_round(self, number: int) -> Iterator[Update]:
        """Yield the updates of a round, which is numbered from 1."""
        last = min(number * self._updates_per_round, self.updates)
        for update in range((number - 1) * self._updates_per_round, last):
            epoch, position = divmod(update, self._updates_per_epoch)
            yield self._build_epoch(epoch + 1)[position]

    @property
    def _updates_per_round(self) -> int:
        return self.every or self._updates_per_epoch

    @property
    def _updates_per_epoch(self) -> int:
        if self.sampler == "together":
            return math.ceil(next(iter(self.sizes.values())) / self.training.batch_size)
        if self.sampler in ("uniform", "mixed", "temperature"):
            return _count_batches(self.sizes, self.training.batch_size)
        if self.sampler == "random_weights":
            return math.ceil(_count_batches(self.sizes, self.training.batch_size) / len(self.sizes))
        if self.sampler in ("exp3", "ucb1"):
            return math.ceil(_count_batches(self.sizes, self.training.batch_size) / 2)
        fidelity = self.training.fidelity
        batches = _count_batches(self.sizes, get_batch_size(self.training))
        if fidelity.leftover_batches == "next_epoch":
            return batches // fidelity.batches_per_update
        return math.ceil(batches / fidelity.batches_per_update)

    def _build_epoch(self, epoch: int) -> list[Update]:
        if self._epoch[0] != epoch:
            sampler = SAMPLERS[self.sampler]
            if self.weigh_alone and self.sampler == "task_batches":
                sampler = partial(build_task_batches, weigh_alone=True)
            self._epoch = epoch, sampler(self.sizes, self.training, self.seed, epoch)
        return self._epoch[1]


def _has_multitask_ancestor(stage: Stage) -> bool:
    """Return whether the stage starts from a training on several tasks."""
    return any(len(each.train_tasks) > 1 or _has_multitask_ancestor(each) for each in stage.parents)
