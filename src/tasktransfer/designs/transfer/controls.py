"""Controls: trainings that differ from a transfer in one thing, and rule out one reason for it.

That a target scores higher after a source shows that something of the first training helped, not
that the source's task did. Each control leaves out what the source teaches and keeps another part
of pretrain_finetune. Like an algorithm, a control is a list of steps and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tasktransfer.core.nodes import Data
from tasktransfer.core.specs import Selection, Training
from tasktransfer.core.steps import Step

CONTROLLED = "pretrain_finetune"
"""The algorithm whose order of trainings the controls have."""

SHUFFLED = "shuffled_source"
"""The control that has the source's texts."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a run trains on and how, before a control changes it."""

    data: Data
    training: Training
    seed: int


def self_transfer(source: str, target: str, given: Given) -> list[Step]:
    """The target, then the target again with a new optimiser: as many trainings as a transfer."""
    return [_step(target), _step(target)]


def longer_baseline(source: str, target: str, given: Given) -> list[Step]:
    """The target alone for twice the epochs."""
    training = replace(given.training, epochs=2 * given.training.epochs)
    return [Step((target,), Selection((target,)), training=training)]


def shuffled_source(source: str, target: str, given: Given) -> list[Step]:
    """The source with its labels permuted, then the target: the source's texts, label words and
    number of updates, and nothing of which label belongs to which text."""
    return [
        Step((source,), Selection((source,)), data=shuffled(given.data, given.seed)),
        _step(target),
    ]


def shuffled(data: Data, seed: int) -> Data:
    """The same instances with permuted labels: other permutations for other seeds, so that no
    single permutation decides and the spread over seeds holds that of permutations."""
    settings = {**data.settings, "seed": seed}
    return Data(data.name, data.revision, settings, "shuffled_labels")


def _step(task: str) -> Step:
    return Step((task,), Selection((task,)))


@dataclass(frozen=True, slots=True)
class Control:
    """``steps``: (source, target, what is given) → steps. ``of_source``: whether it depends on the
    source; otherwise a target has one for all its sources. ``rules_out``: the other reasons for a
    transfer's gain that beating it excludes."""

    steps: Callable[[str, str, Given], list[Step]]
    of_source: bool
    label: str
    rules_out: str


CONTROLS: dict[str, Control] = {
    "self_transfer": Control(
        self_transfer, False, "Self-transfer", "a restarted optimiser, more updates"
    ),
    "longer_baseline": Control(longer_baseline, False, "Longer baseline", "more updates"),
    SHUFFLED: Control(
        shuffled_source,
        True,
        "Shuffled source",
        "seeing the source's texts, any training at all",
    ),
}


def asked(controls: tuple[str, ...], pairs: tuple[tuple[str, str], ...]) -> Iterator[Asked]:
    """What controls of these (source, target) pairs are run, in the order of the controls; of a
    control that does not depend on the source one per target."""
    for name in controls:
        if CONTROLS[name].of_source:
            yield from (Asked(name, source, target) for source, target in pairs)
        else:
            targets = dict.fromkeys(target for _, target in pairs)
            yield from (Asked(name, "", target) for target in targets)


@dataclass(frozen=True, slots=True)
class Asked:
    """A control of a pair; ``source`` is empty where it does not depend on the source."""

    control: str
    source: str
    target: str

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,) if self.source else ()
