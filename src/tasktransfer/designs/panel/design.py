"""The design of the panel study.

The Snakefile imports this module, so functions that need pandas or matplotlib import them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasktransfer.designs.design import Design, Outputs
from tasktransfer.designs.panel import inputs
from tasktransfer.designs.panel import plan as plans
from tasktransfer.designs.panel.config import PanelConfig
from tasktransfer.designs.panel.shown import SHOWN
from tasktransfer.designs.panel.sources.dataset import PANEL_DIALOGUES, PANEL_TINY
from tasktransfer.designs.panel.stand_ins import stand_ins
from tasktransfer.results.frames import COMMON
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance

if TYPE_CHECKING:  # imports pyarrow
    from tasktransfer.data.recipes import Ingredients, Recipe, Split

TABLES = (*COMMON, "ratings", "choices", "few_shot", "pairs", "leaks", "trainings", "items")
STATISTICS = ("correlations", "experts", "tests", "averages", "few", "hits", "ceilings")


def _build_outputs(study: Study) -> Outputs:
    return Outputs(
        tables=tuple(f"tables/{name}.parquet" for name in TABLES),
        statistics=tuple(f"tables/{name}.parquet" for name in STATISTICS),
    )


def _collect(study: Study, complete: bool) -> None:
    from tasktransfer.designs.panel.collect import collect  # noqa: PLC0415

    collect(study, complete)


def _write_statistics(study: Study) -> None:
    from tasktransfer.designs.panel.statistics import make_statistics  # noqa: PLC0415

    make_statistics(study)


def _build_recipe(name: str) -> Recipe:
    def recipe(ingredients: Ingredients) -> Mapping[Split, list[Instance]]:
        from tasktransfer.designs.panel import leaks, pairs, ratings, selection  # noqa: PLC0415

        made = {
            inputs.LEAKS: leaks.without_leaks,
            inputs.PAIRS: pairs.training_pairs,
            inputs.TOGETHER: ratings.rated_together,
            inputs.FEW: ratings.few_ratings,
            inputs.CHOICES: selection.response_selection,
        }
        return made[name](ingredients)

    return recipe


def _find_shortages(study: Study) -> list[str]:
    from tasktransfer.designs.panel.shortages import find_shortages  # noqa: PLC0415

    return find_shortages(study)


PANEL = Design(
    name="panel",
    config=PanelConfig,
    kinds=plans.KINDS,
    grows_with=("seeds", "few_shot.draws", "few_shot.percentages", "few_shot.sets"),
    plan=plans.plan,
    outputs=_build_outputs,
    collect=_collect,
    statistics=_write_statistics,
    shown=lambda study: SHOWN,
    stand_ins=stand_ins,
    tables_version=3,
    of_dialogues=("tables/items.parquet",),
    recipes={name: _build_recipe(name) for name in inputs.RECIPES},
    recipes_first=(inputs.LEAKS, inputs.CHOICES, inputs.TOGETHER),
    shortages=_find_shortages,
    datasets=(PANEL_DIALOGUES, PANEL_TINY),
)
