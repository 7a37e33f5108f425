"""A design with its own recipe, learner and measure, and without trainings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from tasktransfer.config import CommonConfig
from tasktransfer.core.nodes import Evaluation, Fit
from tasktransfer.core.plan import Plan, PlanBuilder
from tasktransfer.core.runs import Run
from tasktransfer.data.cache import read_instances
from tasktransfer.data.recipes import Ingredients, Split
from tasktransfer.datasets import build_data_node
from tasktransfer.designs.design import Design
from tasktransfer.fits import Features, Learner
from tasktransfer.metrics.measures import Measure, Values
from tasktransfer.present.declared import Analysis
from tasktransfer.results.revisions import Revisions
from tasktransfer.tasks.card import SPLITS, Instance, Task

DATASET, TASK = "DailyDialog", "topic_classification"


class BringingConfig(CommonConfig):
    @property
    def dataset_names(self) -> tuple[str, ...]:
        return (DATASET,)


def every_second(ingredients: Ingredients) -> dict[Split, list[Instance]]:
    """Keep every second training instance, and all instances of the other splits."""
    (cache,) = ingredients.caches
    read = {split: read_instances(cache, TASK, split) for split in SPLITS}
    return {(TASK, split): rows[:: 2 if split == "train" else 1] for split, rows in read.items()}


@dataclass(frozen=True)
class Frequent:
    """Classifier that always predicts the most frequent label of the training instances."""

    label: int
    labels: int

    def predict_probabilities(
        self, instances: Sequence[Instance], features: Features | None
    ) -> Features:
        return np.tile(np.eye(self.labels)[self.label], (len(instances), 1))

    def save(self, folder: Path) -> None:
        (folder / "label.json").write_text(json.dumps([self.label, self.labels]))


def fit(
    task: Task,
    instances: Sequence[Instance],
    features: Features | None,
    settings: Mapping[str, Any],
    seed: int,
) -> Frequent:
    ((label, _),) = Counter(one.target[0] for one in instances).most_common(1)
    return Frequent(task.labels.index(label), len(task.labels))


def load(folder: Path) -> Frequent:
    return Frequent(*json.loads((folder / "label.json").read_text()))


def squared_gap(predicted: Values, gold: Values) -> float:
    return float(((predicted - gold) ** 2).mean())


SQUARED_GAP = Measure("squared_gap", False, high=inf, scale="plain", of_rows=squared_gap)


def plan(config: BringingConfig, revisions: Revisions) -> Plan:
    builder = PlanBuilder(lambda step, starts: ("none", "none"))
    few = {"few_sample": config.data.few_sample}
    data = build_data_node(DATASET, revisions.data[DATASET], few)
    halved = replace(data, settings={**few, "task": TASK}, recipe="every_second")
    fitted = Fit("frequent", halved, (TASK,))
    judged = Evaluation(fitted, data, TASK, ("squared_gap",))
    builder.add_run(Run("frequent", config.models[0].name, 0, {"task": TASK}, fitted, (judged,)))
    return builder.build_plan()


ANALYSIS = Analysis("How often is the most frequent label right?", answer=lambda frames: [])
DESIGN = Design(
    name="bringing",
    config=BringingConfig,
    kinds=("none",),
    plan=plan,
    analysis=lambda study: ANALYSIS,
    measures={"squared_gap": SQUARED_GAP},
    learners={"frequent": Learner(fit, load)},
    recipes={"every_second": every_second},
    versions={("learner", "frequent"): 2},
)
