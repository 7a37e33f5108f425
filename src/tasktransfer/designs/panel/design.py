"""The panel study as a design. Imports of pandas and matplotlib stay in the functions that need
them: the Snakefile imports this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasktransfer.designs.design import Design, Outputs, Shown
from tasktransfer.designs.panel import inputs
from tasktransfer.designs.panel import plan as plans
from tasktransfer.designs.panel.config import PanelConfig
from tasktransfer.designs.panel.sources.dataset import PANEL_DIALOGUES, PANEL_TINY
from tasktransfer.designs.panel.stand_ins import stand_ins
from tasktransfer.results.study import Study
from tasktransfer.tables import COMMON
from tasktransfer.tasks.card import Instance

if TYPE_CHECKING:  # imports pyarrow
    from tasktransfer.data.recipes import Ingredients, Recipe, Split

TABLES = (*COMMON, "ratings", "choices", "few_shot", "pairs", "leaks", "trainings", "items")
STATISTICS = ("correlations", "experts", "tests", "averages", "few", "hits", "ceilings")
PRINTED = {
    "table1": "Table I: dialogues and pairs",
    "table2": "Table II: rated sets",
    "table3": "Table III: in-domain correlations",
    "table4": "Table IV: out-of-domain correlations",
    "table5": "Table V: few-shot transfer, panel-mean and single",
    "table6": "Table VI: few-shot transfer, cited",
    "table7": "Table VII: response selection",
    "table8": "Table VIII: merged experts",
    "resources": "Sizes and times",
    "tests": "Williams' tests against single and collection",
    "pairs": "Training pairs by how they were made",
    "leaks": "Leaks between corpora and rated sets",
    "ceilings": "What ratings allow, and what words and lengths reach",
}
FIGURES = ("correlations", "few_shot", "experts")


def _outputs(study: Study) -> Outputs:
    ends = ("csv", "md", "tex", "parquet")
    return Outputs(
        tables=tuple(f"tables/{name}.parquet" for name in TABLES),
        statistics=tuple(f"tables/{name}.parquet" for name in STATISTICS),
        figures=tuple(f"figures/{name}.{end}" for name in FIGURES for end in ("png", "pdf")),
        printed=tuple(f"figures/{name}.{end}" for name in PRINTED for end in ends),
        shown=(
            *(Shown(f"figures/{n}.png", "Figures", labels={"figure": n}) for n in FIGURES),
            *(
                Shown(f"figures/{name}.csv", "Tables", labels={"table": title})
                for name, title in PRINTED.items()
            ),
        ),
    )


def _collect(study: Study, complete: bool) -> None:
    from tasktransfer.designs.panel.collect import collect  # noqa: PLC0415

    collect(study, complete)


def _statistics(study: Study) -> None:
    from tasktransfer.designs.panel.statistics import make_statistics  # noqa: PLC0415

    make_statistics(study)


def _figures(study: Study) -> None:
    from tasktransfer.designs.panel.figures import draw  # noqa: PLC0415
    from tasktransfer.designs.panel.printed import write_printed  # noqa: PLC0415

    write_printed(study)
    draw(study)


def _recipe(name: str) -> Recipe:
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


PANEL = Design(
    name="panel",
    config=PanelConfig,
    kinds=plans.KINDS,
    grows_with=("seeds", "few_shot.draws", "few_shot.percent", "few_shot.sets"),
    plan=plans.plan,
    outputs=_outputs,
    collect=_collect,
    statistics=_statistics,
    figures=_figures,
    stand_ins=stand_ins,
    tables_version=3,
    of_dialogues=("tables/items.parquet",),
    recipes={name: _recipe(name) for name in inputs.RECIPES},
    datasets=(PANEL_DIALOGUES, PANEL_TINY),
)
