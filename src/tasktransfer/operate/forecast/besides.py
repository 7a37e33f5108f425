"""What takes time besides trainings: evaluations, fits and derived data.

Coarser than trainings, of which most studies are made: what a model reads is counted, the rest is
seconds that the demos and the laptops' studies have taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Outcome, Stage
from tasktransfer.core.specs import ModelSpec
from tasktransfer.datasets import get_task
from tasktransfer.operate.forecast.sizes import Sizes
from tasktransfer.operate.forecast.speed import Speed
from tasktransfer.tasks.asking import chosen_from
from tasktransfer.tasks.card import SPLITS

JOB_SECONDS = 1.5
"""Of any job: the command's start, reading, writing."""
DATA_SECONDS = 5.0
"""Of derived data, beside what a model reads for them."""
FIT_SECONDS = 0.15
"""Of a task that is fitted, however small."""
FIT_A_NUMBER = 18.6e-9
"""Of a row, feature and label: ``python -m benchmarks.probe_fits``."""
LABELS = 30
"""Of a task, where nothing says how many."""
TEXT_FEATURES = 1_000
"""Of a text's words, for fits without a model."""
ASKED_TOKENS = 70
"""Of a question to an asked model beside the dialogue: its words. What all prompts begin with,
shots too, is read once."""
CHOICE_TOKENS = 60
"""What a choice costs, in tokens read: its own are few, and what was read before it is copied."""
OPTIONS = 4
"""Choices of a task without labels."""
WRITTEN_TOKENS = 25
"""Of an answer that an asked model writes."""
STEP_TOKENS = 40
"""What writing a token costs, in tokens read: each goes through all weights alone."""

Speeds = Callable[[ModelSpec, str], Speed]
"""(model, precision as asked for) → its speed."""


class Besides:
    """Seconds of nodes that are no trainings."""

    def __init__(
        self, sizes: Sizes, speed: Speeds, hidden: Callable[[str], int], precision: str
    ) -> None:
        """``precision``: of models as they were released, as the study asks for it."""
        self._sizes, self._speed, self._hidden = sizes, speed, hidden
        self._precision = precision

    def seconds(self, node: Node) -> float:
        """Of one node; trainings are no business of this.

        Raises:
            TypeError: it is a training.
        """
        if isinstance(node, Evaluation):
            return JOB_SECONDS + sum(self._evaluated(node))
        if isinstance(node, Fit):
            return JOB_SECONDS + sum(self._fitted(node))
        if isinstance(node, Data):
            return DATA_SECONDS + sum(self._labelled(node))
        raise TypeError(f"{node.label} is a training")

    def _evaluated(self, node: Evaluation) -> Iterator[float]:
        """Each model of an outcome reads the split, or its part of it, and the pools."""
        if isinstance(node.of, Fit):
            return
        limit = _rows_of(node)
        if node.asked is not None:
            assert node.of.model is not None
            yield self._asked(node, node.of.model, limit)
            return
        models: list[tuple[ModelSpec, str]] = [
            (stage.model, stage.training.precision) for stage in node.of.stages
        ]
        if node.of.model is not None:
            models.append((node.of.model, self._precision))
        if _is_one_model(node.of):
            models = models[:1]
        for model, precision in models:
            speed = self._speed(model, precision)
            read = self._sizes.read(node.data, model.name, node.task, node.split, limit)
            yield read.tokens * speed.evaluate * int(node.settings.get("beams", 1))
            for pool in node.pools:
                most = node.settings.get("pool_limit")
                held = self._sizes.read(pool.data, model.name, pool.task, "train", most)
                yield held.tokens * speed.evaluate

    def _asked(self, node: Evaluation, model: ModelSpec, limit: int | None) -> float:
        """A language model is put questions; what an endpoint takes nobody here knows."""
        if is_answered_by_endpoint(node):
            return 0.0
        read = self._sizes.read(node.data, model.name, node.task, node.split, limit)
        card = get_task(node.data.name, node.task)
        answering = WRITTEN_TOKENS * STEP_TOKENS
        if chosen_from(card):
            answering = (len(card.labels) or OPTIONS) * CHOICE_TOKENS
        tokens = read.tokens + read.units * (ASKED_TOKENS + answering)
        return tokens * self._speed(model, self._precision).read

    def _fitted(self, node: Fit) -> Iterator[float]:
        limit = node.settings.get("limit_train")
        features = TEXT_FEATURES
        if node.on is not None and node.on.stage is not None:
            stage = node.on.stage
            features = self._hidden(stage.model.name)
            speed = self._speed(stage.model, stage.training.precision)
            task = stage.train_tasks[0]  # its texts are those of the fit's tasks
            for split in ("train", "test"):
                most = limit if split == "train" else None
                read = self._sizes.read(stage.data, stage.model.name, task, split, most)
                yield read.tokens * speed.read
        for task in node.tasks:
            rows = self._sizes.instances(node.data, task, "train", limit)
            yield FIT_SECONDS + rows * features * LABELS * FIT_A_NUMBER

    def _labelled(self, node: Data) -> Iterator[float]:
        """A trained model reads what it labels: as many texts as there are to be, several times."""
        for stage in (used for used in node.uses if isinstance(used, Stage)):
            speed = self._speed(stage.model, stage.training.precision)
            task = stage.train_tasks[0]
            wanted = sum(int(node.settings.get(split, 0)) for split in SPLITS)
            times = float(node.settings.get("made", 1)) * len(node.settings.get("domains", [""]))
            read = self._sizes.read(stage.data, stage.model.name, task, "train")
            mean = read.tokens / max(1, read.instances)
            yield wanted * times * mean * speed.evaluate


def is_answered_by_endpoint(node: Node) -> bool:
    """Whether a forecast has no time for a node, as a server that it knows nothing of does it."""
    of = node.of if isinstance(node, Evaluation) else None
    return isinstance(of, Outcome) and of.model is not None and of.model.served


def _rows_of(node: Evaluation) -> int | None:
    """Instances that an evaluation reads at most, as its settings say."""
    settings = node.settings
    if isinstance(settings.get("blocks"), int) and isinstance(settings.get("block"), int):
        return int(settings["blocks"]) * int(settings["block"])
    limit: int | None = settings.get("limit", (node.asked or {}).get("limit_test"))
    return limit


def _is_one_model(outcome: Outcome) -> bool:
    """Whether its stages are merged or put together into one model, or share out the rows."""
    merged = any(start.merged or start.parts for start in outcome.starts)
    return outcome.combine == "route" or (merged and outcome.combine != "mean")
