"""The EmpatheticDialogues study as a design.

Imports of pandas and matplotlib stay in the functions that need them: the Snakefile imports this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasktransfer.designs.design import Design, Outputs, Shown
from tasktransfer.designs.empathetic.config import EmpatheticConfig
from tasktransfer.designs.empathetic.plan import KINDS, plan, stand_ins
from tasktransfer.designs.empathetic.sources.dialogues import EMPATHETIC_DIALOGUES
from tasktransfer.designs.empathetic.sources.others import OTHERS
from tasktransfer.results.study import Study
from tasktransfer.tables import COMMON
from tasktransfer.tasks.card import Instance

if TYPE_CHECKING:
    from tasktransfer.data.recipes import Ingredients, Split

TABLES = (*COMMON, "measured", "rows", "costs", "labels", "shared")
STATISTICS = ("summary", "differences", "by_emotion", "pools_chosen")
PRINTED = {
    "table2": "Table 2: automatic measures beside the published",
    "table3": "Table 3: human ratings (cited)",
    "table4": "Table 4: parameters, time and hardware",
    "table5": "Table 5: human comparisons (cited)",
    "table7": "Table 7: share of each emotion",
    "table9": "Table 9: accuracy of the classifiers",
    "differences": "differences to Base, with false-discovery control",
    "by_emotion": "P@1 by emotion of the dialogue",
    "pools_chosen": "where retrieved replies are from",
}
FIGURES = ("p_at_1_and_bleu", "human_comparisons")
PRINTED_ENDINGS, FIGURE_ENDINGS = ("csv", "md", "tex", "parquet"), ("png", "pdf")


def _outputs(study: Study) -> Outputs:
    figures = tuple(f"figures/{name}.{ending}" for name in FIGURES for ending in FIGURE_ENDINGS)
    printed = tuple(f"figures/{name}.{ending}" for name in PRINTED for ending in PRINTED_ENDINGS)
    return Outputs(
        tables=tuple(f"tables/{name}.parquet" for name in TABLES),
        statistics=tuple(f"tables/{name}.parquet" for name in STATISTICS),
        figures=figures,
        printed=printed,
        shown=(
            *(Shown(f"figures/{n}.png", "Figures", labels={"figure": n}) for n in FIGURES),
            *(
                Shown(f"figures/{name}.csv", "Tables", labels={"table": title})
                for name, title in PRINTED.items()
            ),
        ),
    )


def _collect(study: Study, complete: bool) -> None:
    from tasktransfer.designs.empathetic.collect import collect

    collect(study, complete)


def _statistics(study: Study) -> None:
    from tasktransfer.designs.empathetic.statistics import make_statistics

    make_statistics(study)


def _figures(study: Study) -> None:
    from tasktransfer.designs.empathetic.show import show

    show(study)


def _prepend(ingredients: Ingredients) -> Mapping[Split, list[Instance]]:
    from tasktransfer.designs.empathetic.recipes import prepend

    return prepend(ingredients)


EMPATHETIC = Design(
    name="empathetic",
    config=EmpatheticConfig,
    kinds=KINDS,
    plan=plan,
    outputs=_outputs,
    collect=_collect,
    statistics=_statistics,
    figures=_figures,
    stand_ins=stand_ins,
    tables_version=3,
    of_dialogues=("tables/labels.parquet", "tables/shared.parquet"),
    recipes={"prepend": _prepend},
    datasets=(EMPATHETIC_DIALOGUES, *OTHERS),
)
