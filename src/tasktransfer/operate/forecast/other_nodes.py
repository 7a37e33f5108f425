"""Estimated time of evaluations, fits and derived data.

These estimates are coarser than those of trainings, which dominate most studies. Tokens that a
model reads are counted. Other constants were measured in the demos and the laptop studies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Outcome, Stage
from tasktransfer.core.references import CONTRASTIVE, FROZEN, NEAREST, TUNING
from tasktransfer.core.specs import ModelSpec
from tasktransfer.datasets import get_task
from tasktransfer.operate.forecast.sizes import Sizes
from tasktransfer.operate.forecast.speed import Speed
from tasktransfer.tasks.asking import has_choices
from tasktransfer.tasks.card import SPLITS

JOB_SECONDS = 1.5
"""Seconds of any job for starting the command, reading and writing."""
DATA_SECONDS = 5.0
"""Seconds of derived data, without the tokens that a model reads for them."""
FIT_SECONDS = 0.15
"""Least seconds per fitted task."""
FIT_SECONDS_PER_NUMBER = 18.6e-9
"""Seconds per row, feature and label of a fit: ``python -m benchmarks.probe_fits``."""
LABELS = 30
"""Assumed number of labels per fitted task."""
TEXT_FEATURES = 1_000
"""Assumed number of word features per text, for fits without a model."""
PROBE_SECONDS_PER_NUMBER = 3.2e-10
"""Seconds per row, feature, label and iteration of a probe: ``python -m benchmarks.probe_fits``."""
PROBE_LABELS = 100
"""Assumed mean number of labels per probe. MultiWOZ's probes have 2 to 644."""
PROBE_ITERATIONS = 50
"""Assumed iterations of a probe of an encoder, which converges before ``max_iter``.

Probes of decoders, whose states have a few very large elements, and of word counts reach
``max_iter``.
"""
PROBE_WORDS = 100
"""Assumed number of distinct words per context; word counts are sparse."""
PROMPT_TOKENS = 70
"""Tokens of a prompt in addition to the dialogue. The common prefix, with shots, is read once."""
CHOICE_TOKENS = 60
"""Cost of scoring a choice in tokens read: its tokens are few, but the prompt's cache is copied."""
OPTIONS = 4
"""Assumed number of choices for a task without labels."""
ANSWER_TOKENS = 25
"""Assumed number of tokens in a generated answer."""
REPLY_TOKENS = 20
"""Assumed number of tokens in a candidate reply, whose likelihood P@1 needs."""
STEP_TOKENS = 40
"""Cost of generating a token in tokens read: each token passes through all weights alone."""

Speeds = Callable[[ModelSpec, str], Speed]
"""(model, precision in the config) → its speed."""


class OtherNodeEstimates:
    """Estimator of the seconds of nodes other than trainings."""

    def __init__(
        self,
        sizes: Sizes,
        speed: Speeds,
        hidden: Callable[[str], int],
        precision: str,
        released: Callable[[Fit], ModelSpec],
        sharing: Callable[[Fit], int],
    ) -> None:
        """Create the estimator for nodes other than trainings.

        Args:
            sizes: sizes of the study's data.
            speed: speed of a model.
            hidden: hidden size of a model, by name.
            precision: precision in the config, used for released models.
            released: released model that a fit reads.
            sharing: number of fits that read the representations that a fit computes.
        """
        self._sizes, self._speed, self._hidden = sizes, speed, hidden
        self._precision, self._released, self._sharing = precision, released, sharing

    def estimate_seconds(self, node: Node) -> float:
        """Estimate the seconds of a node other than a training.

        Raises:
            TypeError: the node is a training.
        """
        if isinstance(node, Evaluation):
            return JOB_SECONDS + sum(self._estimate_evaluation(node))
        if isinstance(node, Fit):
            return JOB_SECONDS + sum(self._estimate_fit(node))
        if isinstance(node, Data):
            return DATA_SECONDS + sum(self._estimate_labelling(node))
        raise TypeError(
            f"the node {node.label} is a training stage, whose time is estimated separately"
        )

    def _estimate_evaluation(self, node: Evaluation) -> Iterator[float]:
        """Yield the seconds that each model of an outcome needs to read its data."""
        if isinstance(node.of, Fit):
            return
        limit = _find_row_limit(node)
        if node.asked is not None:
            assert node.of.model is not None
            yield self._estimate_prompted_evaluation(node, node.of.model, limit)
            return
        models: list[tuple[ModelSpec, str]] = [
            (stage.model, stage.training.precision) for stage in node.of.stages
        ]
        if node.of.model is not None:
            models.append((node.of.model, self._precision))
        if _reads_rows_once(node.of):
            models = models[:1]
        for model, precision in models:
            speed = self._speed(model, precision)
            read = self._sizes.measure_data(node.data, model.name, node.task, node.split, limit)
            yield read.tokens * speed.evaluate * int(node.settings.get("beams", 1))
            for pool in node.pools:
                most = node.settings.get("pool_limit")
                held = self._sizes.measure_data(pool.data, model.name, pool.task, "train", most)
                yield held.tokens * speed.evaluate

    def _estimate_prompted_evaluation(
        self, node: Evaluation, model: ModelSpec, limit: int | None
    ) -> float:
        """Estimate the seconds of a prompted model, or return 0 for endpoints of unknown speed."""
        if is_answered_by_endpoint(node):
            return 0.0
        read = self._sizes.measure_data(node.data, model.name, node.task, node.split, limit)
        card = get_task(node.data.name, node.task)
        answering = ANSWER_TOKENS * STEP_TOKENS
        if has_choices(card):
            answering = (len(card.labels) or OPTIONS) * CHOICE_TOKENS
        if "block" in node.settings:  # P@1: every reply of a block is a choice
            answering = int(node.settings["block"]) * REPLY_TOKENS
        tokens = read.tokens + read.units * (PROMPT_TOKENS + answering)
        return tokens * self._speed(model, self._precision).read

    def _estimate_fit(self, node: Fit) -> Iterator[float]:
        limit = node.settings.get("limit_train")
        if node.learner == CONTRASTIVE:
            yield sum(self._estimate_tuning(node, task) for task in node.tasks)
        model = None
        if node.on is not None and node.on.stage is not None:
            stage = node.on.stage
            model, task = stage.model, stage.train_tasks[0]  # same texts as the fit's tasks
            yield self._estimate_reading(node, model, stage.training.precision, stage.data, task)
        elif "max_iter" in node.settings and "model" in node.settings:
            model = self._released(node)
            reading = self._estimate_reading(node, model, "float32", node.data, node.tasks[0])
            yield reading / self._sharing(node)
        elif node.learner in (FROZEN, NEAREST):
            model = self._released(node)
            read = (
                self._estimate_reading(node, model, "float32", node.data, t) for t in node.tasks
            )
            yield sum(read) / self._sharing(node)
        features = TEXT_FEATURES if model is None else self._hidden(model.name)
        number = LABELS * FIT_SECONDS_PER_NUMBER
        if "max_iter" in node.settings:
            features = PROBE_WORDS if model is None else features
            number = _estimate_probe_seconds(node.settings["max_iter"], model)
        for task in node.tasks:
            rows = self._sizes.count_instances(node.data, task, "train", limit)
            yield FIT_SECONDS + rows * features * number

    def _estimate_reading(
        self, node: Fit, model: ModelSpec, precision: str, data: Data, task: str
    ) -> float:
        """Return the seconds in which a model represents the texts of a fit."""
        limits = {split: node.settings.get(f"limit_{split}") for split in ("train", "test")}
        volumes = (
            self._sizes.measure_data(data, model.name, task, split, limit)
            for split, limit in limits.items()
        )
        return sum(volume.tokens for volume in volumes) * self._speed(model, precision).read

    def _estimate_tuning(self, node: Fit, task: str) -> float:
        """Estimate the seconds to fine-tune an encoder on a task and to embed its instances."""
        model, tuning = self._released(node), node.settings[TUNING]
        speed = self._speed(model, "float32")
        train, test = (
            self._sizes.measure_data(node.data, model.name, task, split, node.settings.get(limit))
            for split, limit in (("train", "limit_train"), ("test", "limit_test"))
        )
        updates, batch_size = int(tuning["updates"]), int(tuning["batch_size"])
        trained = updates * batch_size * train.tokens / max(1, train.instances)
        embedding = (train.tokens + test.tokens) * speed.read
        return speed.start + updates * speed.update + trained * speed.train + embedding

    def _estimate_labelling(self, node: Data) -> Iterator[float]:
        """Yield the seconds that trained models need to label texts for derived data."""
        for stage in (used for used in node.uses if isinstance(used, Stage)):
            speed = self._speed(stage.model, stage.training.precision)
            task = stage.train_tasks[0]
            wanted = sum(int(node.settings.get(split, 0)) for split in SPLITS)
            times = float(node.settings.get("made", 1)) * len(node.settings.get("domains", [""]))
            read = self._sizes.measure_data(stage.data, stage.model.name, task, "train")
            mean = read.tokens / max(1, read.instances)
            yield wanted * times * mean * speed.evaluate


def _estimate_probe_seconds(max_iter: int, model: ModelSpec | None) -> float:
    """Return the seconds per row and feature of a probe, which is also fitted on shuffled labels.

    Args:
        model: model that represents the rows, or None for word counts.
    """
    converges = model is not None and model.family != "decoder"
    iterations = min(max_iter, PROBE_ITERATIONS) if converges else max_iter
    return 2 * PROBE_LABELS * iterations * PROBE_SECONDS_PER_NUMBER


def is_answered_by_endpoint(node: Node) -> bool:
    """Return whether an endpoint computes a node, so that its time is unknown."""
    of = node.of if isinstance(node, Evaluation) else None
    return isinstance(of, Outcome) and of.model is not None and of.model.served


def _find_row_limit(node: Evaluation) -> int | None:
    """Return the maximum number of instances that an evaluation reads, or None for all."""
    settings = node.settings
    if isinstance(settings.get("blocks"), int) and isinstance(settings.get("block"), int):
        return int(settings["blocks"]) * int(settings["block"])
    limit: int | None = settings.get("limit", (node.asked or {}).get("limit_test"))
    return limit


def _reads_rows_once(outcome: Outcome) -> bool:
    """Return whether a single model reads each row."""
    merged = any(start.merged or start.parts for start in outcome.starts)
    return outcome.combine == "route" or (merged and outcome.combine != "mean")
