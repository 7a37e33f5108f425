"""A study in one file: how does truncating the context to its last turns change task scores?

    plugins: [examples/last_turns.py]
    design: last_turns
    dataset: DailyDialog
    tasks: [emotion_recognition, topic_classification]
    turns: [1, 2, 4]

Each task is trained on whole contexts and, with the same seeds, on their last 1, 2 and 4 turns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Self, cast

from pydantic import Field, model_validator

from tasktransfer.config import CommonConfig, TrainingConfig
from tasktransfer.config.fields import DISTINCT, LIST, Count
from tasktransfer.core.nodes import Outcome, Start
from tasktransfer.core.plan import Plan, PlanBuilder, Step
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import Selection, Training
from tasktransfer.datasets import build_data_node, get_recipe_version, get_task
from tasktransfer.designs.design import Design
from tasktransfer.designs.names import DatasetName, TaskNames
from tasktransfer.present import columns
from tasktransfer.present.declared import Analysis, Figure, FlatTable, PivotTable, Table
from tasktransfer.results.frames import NUMBER, TEXT, WHOLE, Columns, Frame, Frames
from tasktransfer.results.revisions import Revisions
from tasktransfer.tasks.card import SPLITS, Instance

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Canvas

    from tasktransfer.data.recipes import Ingredients
    from tasktransfer.results.collect import Collected
    from tasktransfer.results.store import Metadata

UNCUT, RECIPE = "whole", "last_turns"
ABOUT = ("dataset", "task", "turns")
"""Keys of ``Run.about``."""
CELLS: Columns = (
    ("task", TEXT, "task that is trained and tested"),
    ("model", TEXT, "model, as the study names it"),
    ("turns", TEXT, "number of last turns of the context that are kept, or whole"),
    ("against", TEXT, "whole: difference from whole contexts; empty: the score itself"),
    ("seeds", WHOLE, "number of seeds; for a difference, the seeds of both"),
    ("value", NUMBER, "mean score, 0-100, or mean difference, points"),
    ("low", NUMBER, "95 % interval over seeds and dialogues"),
    ("high", NUMBER, "95 % interval over seeds and dialogues"),
    ("p", NUMBER, "two-sided p-value of no difference"),
    ("q", NUMBER, "p adjusted for the false discovery rate"),
)


# --- config and plan ----------------------------------------------------------------------------


class LastTurnsTraining(TrainingConfig):
    epochs: Count = Field(default=10, description="passes over the training set")


class LastTurnsConfig(CommonConfig):
    """Common keys of a study, and three keys of this design."""

    training: LastTurnsTraining = Field(default=LastTurnsTraining(), description="hyperparameters")
    dataset: DatasetName = Field(default="DailyDialog", description="dataset of the tasks")
    tasks: TaskNames = Field(description="tasks, each trained separately")
    turns: Annotated[tuple[Count, ...], LIST, Field(min_length=1), DISTINCT] = Field(
        default=(1, 2, 4), description="numbers of last turns that are kept"
    )

    @property
    def dataset_names(self) -> tuple[str, ...]:
        return (self.dataset,)

    @model_validator(mode="after")
    def _no_spans(self) -> Self:
        """Refuse span tasks, whose gold answer may be cut off."""
        spans = [task for task in self.tasks if get_task(self.dataset, task).kind == "span"]
        if spans:
            raise ValueError(
                f"tasks: {spans[0]!r} is a span task, whose answer may be cut off; remove it"
            )
        return self


def plan(config: LastTurnsConfig, revisions: Revisions) -> Plan:
    """Plan one training stage per task, model, seed and context length."""
    builder = PlanBuilder(lambda step, _: ("baseline", step.train_tasks[0]), get_recipe_version)
    whole = build_data_node(config.dataset, revisions.data[config.dataset],
                    {"few_sample": config.data.few_sample})  # fmt: skip
    training = Training(**config.training.resolve())
    for turns in (UNCUT, *map(str, config.turns)):
        data = whole
        if turns != UNCUT:
            data = replace(whole, settings={**whole.settings, "turns": int(turns)}, recipe=RECIPE)
        for spec in revisions.models.values():
            for task in config.tasks:
                for seed in config.seeds:
                    step = Step((task,), Selection((task,)))
                    (stage,) = builder.build_stages([step], data, spec, training, seed).values()
                    about = {"dataset": config.dataset, "task": task, "turns": turns}
                    outcome = Outcome((Start(stage),))
                    builder.add_run(Run("baseline", spec.name, seed, about, outcome))
    return builder.build_plan()


def last_turns(ingredients: Ingredients) -> dict[tuple[str, str], list[Instance]]:
    """Return the instances with the last ``turns`` turns of their contexts."""
    from tasktransfer.data.cache import read_instances

    (cache,), turns = ingredients.caches, ingredients.settings["turns"]
    return {
        (task, split): [cut_to(turns, each) for each in read_instances(cache, task, split)]
        for task in ingredients.tasks
        for split in SPLITS
    }


def cut_to(turns: int, instance: Instance) -> Instance:
    """Truncate an instance's context to its last turns.

    A context without known turns, or with fewer turns, is not changed.
    """
    start = instance.turns[-turns] if len(instance.turns) > turns else 0
    return replace(
        instance,
        context=instance.context[start:],
        focus=max(0, instance.focus - start),
        turns=tuple(place - start for place in instance.turns if place >= start),
    )


# --- frames -------------------------------------------------------------------------------------


def build_study_metadata(collected: Collected) -> Metadata:
    """Return the metadata of the study's frames, with the order of names."""
    from tasktransfer.results.common_frames import build_metadata

    config = cast(LastTurnsConfig, collected.study.config)
    models, turns = [model.name for model in config.models], [*map(str, config.turns), UNCUT]
    return build_metadata(collected, order={"task": config.tasks, "model": models, "turns": turns})


def make_cells(frames: Frames) -> pd.DataFrame:
    """Return the frame ``cells``: mean scores, and their differences from whole contexts."""
    from tasktransfer.stats.cells import build_cell_table, gather_cells, score_answers

    collected = frames.collected
    runs = ((run, get_task(run.about["dataset"], run.about["task"])) for run in collected.runs)
    cells = gather_cells(
        (
            (task.name, run.model, run.about["turns"]),
            run.seed,
            score_answers(collected.rows(run.stages[-1]), task),
        )
        for run, task in runs
    )
    names, against = ["task", "model", "turns"], {UNCUT: {"turns": UNCUT}}
    table = build_cell_table(cells, names, against, lambda _, against: against or None)
    return table.assign(p=table["p"].where(table["against"] != ""))


# --- output -------------------------------------------------------------------------------------


def scores(frames: Frames) -> pd.DataFrame:
    return frames["cells"][frames["cells"]["against"] == ""]


def differences(frames: Frames) -> pd.DataFrame:
    return frames["cells"][frames["cells"]["against"] == UNCUT]


def answer(frames: Frames) -> list[str]:
    """Name the tasks whose scores change significantly without earlier turns."""
    from tasktransfer.present.numbers import (
        format_value_with_interval,
        is_significantly_negative,
        is_significantly_positive,
        join_names,
    )

    cut = differences(frames).dropna(subset="q")
    worse, better = cut[is_significantly_negative(cut)], cut[is_significantly_positive(cut)]
    if cut.empty:
        return ["The effect of the context cannot be determined: no difference has an interval."]
    if worse.empty and better.empty:
        return [f"None of {len(cut)} truncations changes a score significantly (q ≤ 0.05)."]
    sentences = []
    for rows, what in ((worse, "Scores drop"), (better, "Scores rise")):
        points = [
            f"{row['task']} with its last {row['turns']} "
            f"({format_value_with_interval(row['value'], row['low'], row['high'], '+.1f')}, "
            f"{row['model']})"
            for row in rows.to_dict("records")
        ]
        if points:
            sentences.append(f"{what} significantly (q ≤ 0.05): {join_names(points)}.")
    return sentences


def draw(frames: Frames) -> Canvas | None:
    """Plot differences from whole contexts: one panel per model, one marker per length."""
    from tasktransfer.present.kit.panels import create_panels, make_line_entry, set_panel_title
    from tasktransfer.present.kit.series import Estimate, draw_zero_line, plot_forest
    from tasktransfer.present.kit.style import add_legend_below, add_title, get_series_look

    cut, order = differences(frames), frames.metadata.order_names
    if cut.empty:
        return None
    tasks, models = order("task", cut["task"]), order("model", cut["model"])
    lengths = order("turns", cut["turns"])
    looks = {turns: get_series_look(rank) for rank, turns in enumerate(lengths)}
    figure, axes = create_panels(len(models), 5.0, 0.55 * len(tasks) + 0.6)
    for panel, model in zip(axes, models, strict=True):
        own = cut[cut["model"] == model].set_index(["task", "turns"]).to_dict("index")
        groups = [
            [
                Estimate(turns, row["value"], row["low"], row["high"], look)
                for turns, look in looks.items()
                if (row := own.get((task, turns)))
            ]
            for task in tasks
        ]
        plot_forest(panel, groups, tasks)
        draw_zero_line(panel)
        set_panel_title(panel, model)
        panel.set_xlabel("points, difference from whole contexts")
    marks = [make_line_entry(f"last {n}", look, linestyle="none") for n, look in looks.items()]
    add_legend_below(figure, marks, "Bars: 95 % intervals over seeds and dialogues")
    title = "Score change without the earlier context"
    add_title(figure, title, int(cut["seeds"].max()), frames.metadata)
    return figure


TASK, MODEL = columns.make_text_column("task", "Task"), columns.make_text_column("model", "Model")
ANALYSIS = Analysis(
    question="How does truncating the context to its last turns change each task's score?",
    answer=answer,
    frames=(Frame("cells", CELLS, make_cells),),
    about=ABOUT,
    metadata=build_study_metadata,
    tables=(
        Table(
            "scores",
            "Table 1",
            scores,
            PivotTable(
                (TASK, MODEL), "turns", columns.make_estimate_column("value", "Score", ".1f")
            ),
            keys=("task", "model", "turns"),
            caption="Score on the test split by number of turns, mean over seeds, with "
            "95 % intervals over seeds and dialogues.",
        ),
        Table(
            "differences",
            "Table 2",
            differences,
            FlatTable(
                (
                    TASK,
                    MODEL,
                    columns.make_text_column("turns", "Turns"),
                    columns.make_estimate_column("value", "Minus whole", "+.1f"),
                    columns.make_p_value_column("q", "q"),
                    columns.make_number_column("seeds", "Seeds", "d"),
                )
            ),
            keys=("task", "model", "turns"),
            caption="Differences from whole contexts with the same seeds, in points.",
            section="sure",
        ),
    ),
    figures=(
        Figure(
            "lost",
            "Score change without the earlier context",
            draw,
            ("cells",),
            caption="Differences from whole contexts with 95 % intervals; below 0, scores drop.",
        ),
    ),
)

DESIGN = Design(
    name="last_turns",
    config=LastTurnsConfig,
    kinds=("baseline",),
    plan=plan,
    analysis=lambda study: ANALYSIS,
    recipes={RECIPE: last_turns},
    grows_with=("seeds", "models", "tasks", "turns"),
)
