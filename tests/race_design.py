"""A design with two successive choices: the best source, then the best learning rate.

The target starts from the best source, with several learning rates. The best one gets further
seeds. The second choice becomes known when the first is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasktransfer.config import CommonConfig, TrainingConfig
from tasktransfer.core.nodes import Node, Outcome, Stage, Start
from tasktransfer.core.plan import Choice, Plan, PlanBuilder, Step
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import Selection, Training
from tasktransfer.datasets import build_data_node
from tasktransfer.designs.design import Design
from tasktransfer.errors import ConfigError
from tasktransfer.present.declared import Analysis
from tasktransfer.results.frames import NUMBER, TEXT, WHOLE, Columns, Frame, Frames
from tasktransfer.results.planned_study import read_choice, write_choice
from tasktransfer.results.records import get_selected_round, read_record
from tasktransfer.results.revisions import Revisions
from tasktransfer.results.study import Study

DATASET, TARGET = "DailyDialog", "topic_classification"
SOURCES = ("dialogue_act_classification", "emotion_recognition")
RATES = (1e-3, 3e-3)
SOURCE, RATE = "best_source", "best_rate"


class RaceConfig(CommonConfig):
    training: TrainingConfig = TrainingConfig()

    @property
    def dataset_names(self) -> tuple[str, ...]:
        return (DATASET,)


def plan(config: RaceConfig, revisions: Revisions) -> Plan:
    builder = PlanBuilder(lambda step, starts: ("target" if starts else "source", _label(step)))
    data = build_data_node(DATASET, revisions.data[DATASET], {"few_sample": config.data.few_sample})
    training = Training(**{**config.training.resolve(), "epochs": 1})
    (spec,) = revisions.models.values()

    def stages(source: str, *rates: float, seed: int = 0) -> list[Stage]:
        """Add a source, or its targets with some learning rates, one run each."""
        first = Step((source,), Selection((source,)))
        made = [
            list(builder.build_stages(steps, data, spec, training, seed).values())[-1]
            for steps in (
                [[first, _target(training, rate)] for rate in rates] if rates else [[first]]
            )
        ]
        for stage in made:
            about = {"source": source}
            builder.add_run(Run(stage.kind, spec.name, seed, about, Outcome((Start(stage),))))
        return made

    sources = [stage for source in SOURCES for stage in stages(source)]
    steps = [Step((SOURCES[0],), Selection((SOURCES[0],))), _target(training, RATES[0])]
    like = tuple(builder.build_stages(steps, data, spec, training, 0).values())
    source, rate = (read_choice(config.results, name) for name in (SOURCE, RATE))
    choices = [Choice(SOURCE, tuple(sources), made=source is not None, like=like)]
    if source is not None:
        raced = stages(source, *RATES)
        choices.append(Choice(RATE, tuple(raced), made=rate is not None))
        if rate is not None:
            for seed in config.seeds:
                stages(source, rate, seed=seed)
    return builder.build_plan(choices)


def _target(training: Training, rate: float) -> Step:
    step = Step((TARGET,), Selection((TARGET,)))
    return replace(step, training=replace(training, learning_rate=rate))


def _label(step: Step) -> str:
    return f"{step.train_tasks[0]}_{step.training.learning_rate if step.training else 'usual'}"


def choose(study: Study, name: str) -> None:
    best = _best(study, study.get_choice(name).after)
    chosen = {SOURCE: best.train_tasks[0], RATE: best.training.learning_rate}
    write_choice(study.config.results, name, chosen[name])


def _best(study: Study, nodes: Sequence[Node]) -> Stage:
    """Return the training with the best dev score."""
    scores = {
        node: get_selected_round(
            read_record(Path(study.get_record_path(node))), node.select_on
        ).dev_score
        for node in nodes
        if isinstance(node, Stage)
    }
    return max(scores, key=scores.__getitem__)


def make_race(frames: Frames) -> Iterator[tuple[Any, ...]]:
    if frames.study.pending_choices:
        raise ConfigError(f"{frames.study.pending_choices[0].name} is not made")
    for run in frames.collected.runs:
        rate = run.stages[-1].training.learning_rate
        yield run.method, run.about["source"], run.seed, rate


RACE: Columns = (
    ("kind", TEXT, "kind of training"),
    ("source", TEXT, "source task"),
    ("seed", WHOLE, "random seed"),
    ("rate", NUMBER, "learning rate"),
)
ANALYSIS = Analysis(
    question="Which source is best, and which learning rate after it?",
    answer=lambda frames: [f"{len(frames['race'])} runs were trained."],
    frames=(Frame("race", RACE, make_race),),
    about=("source",),
)
DESIGN = Design(
    name="race",
    config=RaceConfig,
    kinds=("source", "target"),
    plan=plan,
    analysis=lambda study: ANALYSIS,
    choose=choose,
)
