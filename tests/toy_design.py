"""A plugin design in one file that uses every feature of the core once.

It has two stages, a fit, evaluations by Spearman's correlation and a custom measure, and a custom
figure. The second stage starts from the first, with a frozen body and derived data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from pydantic import Field

from tasktransfer.config import CommonConfig, TrainingConfig
from tasktransfer.config.fields import Count
from tasktransfer.core.nodes import Evaluation, Fit, Outcome, Start
from tasktransfer.core.plan import Plan, PlanBuilder, Step
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import Selection, Training
from tasktransfer.datasets import build_data_node
from tasktransfer.designs.design import Design
from tasktransfer.metrics.measures import Measure, Values
from tasktransfer.present.columns import make_number_column, make_text_column
from tasktransfer.present.declared import Analysis, Figure, PivotTable, Table
from tasktransfer.results.common_frames import build_metadata
from tasktransfer.results.revisions import Revisions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Canvas

    from tasktransfer.results.collect import Collected
    from tasktransfer.results.frames import Frames
    from tasktransfer.results.store import Metadata

DATASET, FIRST, SECOND = "DailyDialog", "dialogue_act_classification", "topic_classification"
ABOUT = ("task",)
"""Keys of ``Run.about``."""


def mean_gap(predicted: Values, gold: Values) -> float:
    """Return the mean absolute difference of predicted and gold numbers."""
    return float(abs(predicted - gold).mean())


class ToyTraining(TrainingConfig):
    epochs: Count = Field(default=1, description="passes over the training set")


class ToyConfig(CommonConfig):
    """Config of this design: the common keys, and two of its own."""

    training: ToyTraining = Field(default=ToyTraining(), description="hyperparameters")
    part: Count | None = Field(default=None, description="judge so many instances besides")

    @property
    def dataset_names(self) -> tuple[str, ...]:
        return (DATASET,)


def frozen_body() -> list[Step]:
    """Train everything on the first task, then only the second task's head."""
    first = Step((FIRST,), Selection((FIRST,)))
    return [first, Step((SECOND,), Selection((SECOND,), "micro_f1"), trains=(f"head.{SECOND}",))]


def plan(config: ToyConfig, revisions: Revisions) -> Plan:
    builder = PlanBuilder(lambda step, starts: ("tuned" if starts else "base", step.train_tasks[0]))
    few = {"few_sample": config.data.few_sample}
    data = build_data_node(DATASET, revisions.data[DATASET], few)
    training = Training(**config.training.resolve())
    for spec in revisions.models.values():
        for seed in config.seeds:
            fit = Fit("logistic_texts", data, (SECOND,), seed)
            settings = {**few, "k": 1, "task": SECOND}
            told = replace(data, settings=settings, recipe="prepend_labels", uses=(fit,))
            first, second = frozen_body()
            steps = [first, Step(**{**vars(second), "data": told})]
            stage = list(builder.build_stages(steps, data, spec, training, seed).values())[-1]
            for method, of, on in (("frozen", Outcome((Start(stage),)), told), ("fit", fit, data)):
                judged = Evaluation(of, on, SECOND, ("spearman", "micro_f1", "mean_gap"))
                several = [judged]
                if config.part is not None:
                    several.append(replace(judged, settings={"limit": config.part}))
                builder.add_run(Run(method, spec.name, seed, {"task": SECOND}, of, tuple(several)))
    return builder.build_plan()


def build_study_metadata(collected: Collected) -> Metadata:
    config = cast(ToyConfig, collected.study.config)
    return build_metadata(collected, cuts=f"part {config.part}" if config.part else "")


def measured(frames: Frames) -> pd.DataFrame:
    frame = frames["scores"].query("split == 'test' and measure in ['spearman', 'mean_gap']")
    return frame.groupby(["method", "model", "task", "measure"], as_index=False)["value"].mean()


def answer(frames: Frames) -> list[str]:
    best = measured(frames).query("measure == 'spearman'").sort_values("value").iloc[-1]
    return [f"{best['method']} correlates most, {best['value']:.2f}."]


def draw(frames: Frames) -> Canvas:
    from tasktransfer.present.kit.panels import create_panels
    from tasktransfer.present.kit.style import add_title

    figure, (axes,) = create_panels(1, 4, 3)
    rows = measured(frames).query("measure == 'spearman'")
    axes.bar(rows["method"], rows["value"])
    add_title(figure, "Spearman's correlation by method", None, frames.metadata)
    return figure


SCORES = Table(
    "scores",
    "Table 1",
    measured,
    PivotTable(
        (make_text_column("method", "Method"),), "measure", make_number_column("value", "", ".2f")
    ),
    keys=("method", "model", "measure"),
    caption="Mean over seeds on the test split.",
)
ANALYSIS = Analysis(
    question="Does a frozen body rate as well as logistic regression?",
    answer=answer,
    about=ABOUT,
    metadata=build_study_metadata,
    tables=(SCORES,),
    figures=(
        Figure("spearman", "Correlation by method", draw, ("scores",), caption="Mean over seeds."),
    ),
)

DESIGN = Design(
    name="toy",
    config=ToyConfig,
    kinds=("base", "tuned"),
    plan=plan,
    analysis=lambda study: ANALYSIS,
    measures={"mean_gap": Measure("mean_gap", False, scale="plain", of_rows=mean_gap)},
    substitutes=lambda _: {"a large model": "a toy"},
)
