"""Which examples make up which update, and in which order. Pure numpy.

An update is a tuple of weighted batches: one step of the optimiser on the weighted sum of their
mean losses. A sampler makes the updates of an epoch, from the seed and the epoch alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Sampler, Training
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import DataError

Sizes = Mapping[str, int]
"""Examples per task; the order does not matter."""


TEMPERATURE = 2.0
"""Of ``temperature``: 1 is in proportion to size, more is more even."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples of one task, and what their mean loss is multiplied by."""

    task: str
    examples: tuple[int, ...]
    weight: float = 1.0


Update = tuple[Batch, ...]


# --- samplers -----------------------------------------------------------------------------------


def task_batches(
    sizes: Sizes, training: Training, seed: int, epoch: int, weigh_alone: bool = False
) -> list[Update]:
    """Every batch of every task once, one an update, the next task drawn in proportion to its
    remaining batches (paper, section 4; feta-spec, multitask mixing).

    A task's last batch may be smaller. Weights: see ``task_weights``. With the toolkit's
    ``batches_per_update`` an update is the mean of three batches that were drawn so, see
    ``_in_updates``.
    """

    step = batch_size(training)

    def drawn(epoch: int) -> list[Batch]:
        generator = np.random.default_rng([seed, epoch])
        weights = task_weights(sizes, step, training.task_weighting, weigh_alone)
        waiting: dict[str, list[Batch]] = {}
        for task in sorted(sizes):
            waiting[task] = _shuffled(generator, task, sizes[task], step, weights[task])
        tickets = [task for task, batches in waiting.items() for _ in batches]
        # Shuffling one ticket a batch is drawing without replacement in proportion to what remains.
        return [waiting[tickets[i]].pop(0) for i in generator.permutation(len(tickets))]

    fidelity = training.fidelity
    several, kept = fidelity.batches_per_update, fidelity.leftover_batches == "next_epoch"
    before = drawn(epoch - 1) if kept and several > 1 and epoch > 1 else []
    return _in_updates(drawn(epoch), several, kept, before)


def _in_updates(
    batches: list[Batch], several: int, kept: bool, before: list[Batch]
) -> list[Update]:
    """Batches put together to updates of so many.

    Those at the end that are too few are an update of their own or, if ``kept``, join the next
    epoch's first: no step lies between, so their gradients are what the toolkit leaves over there.
    ``before``: the batches of the epoch before.
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


def batch_size(training: Training) -> int:
    """Examples of a batch; ``training.batch_size`` is an update's."""
    return max(1, training.batch_size // training.fidelity.batches_per_update)


def uniform(sizes: Sizes, training: Training, seed: int, epoch: int) -> list[Update]:
    """A batch of one task an update, the task drawn uniformly whatever the tasks' sizes (PoE,
    section VI-C). As many updates as ``task_batches`` makes.

    A task's examples come in shuffled passes: none twice before all were drawn. Every weight is 1:
    which task counts how much is in the draw.
    """
    generator = np.random.default_rng([seed, epoch])
    drawn = generator.integers(len(sizes), size=_batches(sizes, training.batch_size))
    return _as_drawn(generator, drawn.tolist(), sizes, training.batch_size)


def temperature(sizes: Sizes, training: Training, seed: int, epoch: int) -> list[Update]:
    """As ``uniform``, a task drawn in proportion to its size to the power of 1 / ``TEMPERATURE``:
    between its size and no regard for it."""
    generator = np.random.default_rng([seed, epoch])
    shares = np.array([sizes[task] for task in sorted(sizes)]) ** (1 / TEMPERATURE)
    count = _batches(sizes, training.batch_size)
    drawn = generator.choice(len(sizes), size=count, p=shares / shares.sum())
    return _as_drawn(generator, drawn.tolist(), sizes, training.batch_size)


def _as_drawn(
    generator: np.random.Generator, drawn: list[int], sizes: Sizes, step: int
) -> list[Update]:
    """A batch of one task an update, the task by its place among the names."""
    tasks = sorted(sizes)
    waiting: dict[str, list[Batch]] = {task: [] for task in tasks}
    updates: list[Update] = []
    for task in (tasks[index] for index in drawn):
        if not waiting[task]:
            waiting[task] = _shuffled(generator, task, sizes[task], step)
        updates.append((waiting[task].pop(0),))
    return updates


def random_weights(sizes: Sizes, training: Training, seed: int, epoch: int) -> list[Update]:
    """A batch of every task an update, their losses weighted at random, anew each time: a softmax
    of standard normal numbers (Lin et al. 2021). A control: gradient surgery has not been shown to
    do better (Kurin et al. 2022, Xin et al. 2022). As many batches as ``task_batches`` has, those
    of small tasks more than once."""
    generator = np.random.default_rng([seed, epoch])
    tasks = sorted(sizes)
    every = _of_every_task(generator, sizes, training.batch_size)
    updates: list[Update] = []
    for _ in range(math.ceil(_batches(sizes, training.batch_size) / len(tasks))):
        drawn = np.exp(generator.standard_normal(len(tasks)))
        weights = (drawn / drawn.sum()).tolist()
        batches = zip(next(every), weights, strict=True)
        updates.append(tuple(replace(batch, weight=weight) for batch, weight in batches))
    return updates


def offered(sizes: Sizes, training: Training, seed: int, epoch: int) -> list[Update]:
    """A batch of every task an update, of which a bandit takes two while it trains: the target's,
    and that of one source (``core.bandits``). So there are as many batches trained on as
    ``task_batches`` has. The others are passed over: each is drawn at random as well as the next.
    """
    every = _of_every_task(np.random.default_rng([seed, epoch]), sizes, training.batch_size)
    return [next(every) for _ in range(math.ceil(_batches(sizes, training.batch_size) / 2))]


def _of_every_task(
    generator: np.random.Generator, sizes: Sizes, step: int
) -> Iterator[tuple[Batch, ...]]:
    """A batch of every task, without end: in shuffled passes, as those of ``uniform``."""
    waiting: dict[str, list[Batch]] = {task: [] for task in sorted(sizes)}
    while True:
        for task, batches in waiting.items():
            if not batches:
                batches.extend(_shuffled(generator, task, sizes[task], step))
        yield tuple(batches.pop(0) for batches in waiting.values())


def mixed(sizes: Sizes, training: Training, seed: int, epoch: int) -> list[Update]:
    """An update's instances drawn one by one, the task of each uniformly whatever the tasks' sizes
    (PoE, section VI-C). As many updates as ``task_batches`` makes.

    The instances of a task are a batch, weighted by its share of the update: so the update's loss
    is the mean over its instances. They come in shuffled passes, as those of ``uniform`` do.
    """
    generator = np.random.default_rng([seed, epoch])
    tasks = sorted(sizes)
    waiting: dict[str, list[int]] = {task: [] for task in tasks}
    updates: list[Update] = []
    for _ in range(_batches(sizes, training.batch_size)):
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


def together(sizes: Sizes, training: Training, seed: int, epoch: int) -> list[Update]:
    """A batch of every task an update, all of the same instances: the mean of the tasks' losses."""
    generator = np.random.default_rng([seed, epoch])
    tasks = sorted(sizes)
    return [
        tuple(Batch(task, batch.examples, 1 / len(tasks)) for task in tasks)
        for batch in _shuffled(generator, tasks[0], sizes[tasks[0]], training.batch_size)
    ]


SAMPLERS: dict[Sampler, Callable[[Sizes, Training, int, int], list[Update]]] = {
    "task_batches": task_batches,
    "uniform": uniform,
    "mixed": mixed,
    "together": together,
    "temperature": temperature,
    "random_weights": random_weights,
    "exp3": offered,
    "ucb1": offered,
}


def task_weights(
    sizes: Sizes, batch_size: int, weighting: str, weigh_alone: bool = False
) -> dict[str, float]:
    """What each task's loss is multiplied by.

    ``none``: 1, the paper's plain sum. ``inverse_sqrt``: 1/sqrt(number of the task's batches) when
    several tasks are trained together, as the toolkit does by default; 1 for a task alone, unless
    ``weigh_alone``.
    """
    if weighting == "none" or (len(sizes) == 1 and not weigh_alone):
        return dict.fromkeys(sizes, 1.0)
    return {task: 1 / math.sqrt(math.ceil(n / batch_size)) for task, n in sizes.items()}


def _shuffled(
    generator: np.random.Generator, task: str, size: int, step: int, weight: float = 1.0
) -> list[Batch]:
    """One pass over a task in batches of ``step``; the last one may be smaller."""
    order = generator.permutation(size).tolist()
    return [Batch(task, tuple(order[i : i + step]), weight) for i in range(0, size, step)]


def _batches(sizes: Sizes, step: int) -> int:
    return sum(math.ceil(size / step) for size in sizes.values())


# --- rounds -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Schedule:
    """The updates of a training, round by round. A round is an epoch, or ``every`` updates; the
    last round then has what is left."""

    sampler: Sampler
    sizes: Sizes
    training: Training
    seed: int
    every: int | None = None
    weigh_alone: bool = False
    """Whether a task is weighted that is trained alone, see ``task_weights``."""
    _epoch: tuple[int, list[Update]] = field(default=(0, []))
    """The one that was asked for last: its rounds follow each other."""

    @staticmethod
    def of(stage: Stage, splits: Mapping[str, EncodedSplit]) -> Schedule:
        """The schedule of a stage on its training splits.

        Raises:
            DataError: tasks that are to be trained together do not share their instances, or there
                are too few batches for an update.
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
            stage.training.fidelity.weighting_when_finetuning and _after_several_tasks(stage),
        )
        if schedule._in_epoch < 1:
            batches = _batches(sizes, batch_size(stage.training))
            raise DataError(
                f"{', '.join(sizes)}: {batches} batches an epoch, and an update takes "
                f"{stage.training.fidelity.batches_per_update}: the toolkit never updates a model "
                "then; set training.fidelity.leftover_batches to own_update, or leave the task out"
            )
        return schedule

    @property
    def rounds(self) -> int:
        """How many there are, if nothing ends the training before."""
        return math.ceil(self.updates / self._in_round)

    @property
    def updates(self) -> int:
        """Updates of the whole training, if nothing ends it before."""
        return self.training.planned_updates(self.sampler, len(self.sizes), self._in_epoch)

    @property
    def epochs(self) -> float:
        """Passes over the training sets, if nothing ends the training before."""
        return self.updates / self._in_epoch

    def round(self, number: int) -> Iterator[Update]:
        """The updates of a round, from 1."""
        last = min(number * self._in_round, self.updates)
        for update in range((number - 1) * self._in_round, last):
            epoch, position = divmod(update, self._in_epoch)
            yield self._updates(epoch + 1)[position]

    @property
    def _in_round(self) -> int:
        return self.every or self._in_epoch

    @property
    def _in_epoch(self) -> int:
        if self.sampler == "together":
            return math.ceil(next(iter(self.sizes.values())) / self.training.batch_size)
        if self.sampler in ("uniform", "mixed", "temperature"):
            return _batches(self.sizes, self.training.batch_size)
        if self.sampler == "random_weights":
            return math.ceil(_batches(self.sizes, self.training.batch_size) / len(self.sizes))
        if self.sampler in ("exp3", "ucb1"):
            return math.ceil(_batches(self.sizes, self.training.batch_size) / 2)
        fidelity = self.training.fidelity
        batches = _batches(self.sizes, batch_size(self.training))
        if fidelity.leftover_batches == "next_epoch":
            return batches // fidelity.batches_per_update
        return math.ceil(batches / fidelity.batches_per_update)

    def _updates(self, epoch: int) -> list[Update]:
        if self._epoch[0] != epoch:
            sampler = SAMPLERS[self.sampler]
            if self.weigh_alone and self.sampler == "task_batches":
                sampler = partial(task_batches, weigh_alone=True)
            self._epoch = epoch, sampler(self.sizes, self.training, self.seed, epoch)
        return self._epoch[1]


def _after_several_tasks(stage: Stage) -> bool:
    """Whether a stage that this one goes on from, directly or not, trained several tasks."""
    return any(len(each.train_tasks) > 1 or _after_several_tasks(each) for each in stage.parents)


def check_same_instances(splits: Mapping[str, EncodedSplit]) -> None:
    """Refuse tasks that do not have the same instances in the same order.

    Raises:
        DataError: names the two tasks and the first difference.
    """
    (first, split), *others = sorted(splits.items())
    for task, other in others:
        counts = {first: len(split), task: len(other)}
        if len(split.ids) != len(other.ids) or len(split) != len(other):
            raise DataError(
                f"sampler together: the training splits of {first} and {task} have "
                f"{counts[first]} and {counts[task]} examples; give tasks that share their "
                "instances, or use another sampler"
            )
        pairs = enumerate(zip(split.ids, other.ids, strict=True))
        different = next(((i, pair) for i, pair in pairs if pair[0] != pair[1]), None)
        if different:
            index, (ours, another) = different
            raise DataError(
                f"sampler together: instance {index} of {first} is {ours!r}, of {task} "
                f"{another!r}; give tasks that share their instances in the same order, or use "
                "another sampler"
            )
