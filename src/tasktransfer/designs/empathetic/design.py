"""The design of the EmpatheticDialogues study.

The Snakefile imports this module, so functions that need pandas or matplotlib import them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasktransfer.designs.design import Design, Outputs
from tasktransfer.designs.empathetic.config import EmpatheticConfig
from tasktransfer.designs.empathetic.plan import KINDS, plan, stand_ins
from tasktransfer.designs.empathetic.shown import shown
from tasktransfer.designs.empathetic.sources.dialogues import EMPATHETIC_DIALOGUES
from tasktransfer.designs.empathetic.sources.others import OTHERS
from tasktransfer.results.frames import COMMON
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance

if TYPE_CHECKING:
    from tasktransfer.data.recipes import Ingredients, Split

TABLES = (*COMMON, "measured", "rows", "costs", "labels", "shared")
STATISTICS = ("summary", "differences", "by_emotion", "pools_chosen")


def _list_outputs(study: Study) -> Outputs:
    return Outputs(
        tables=tuple(f"tables/{name}.parquet" for name in TABLES),
        statistics=tuple(f"tables/{name}.parquet" for name in STATISTICS),
    )


def _collect(study: Study, complete: bool) -> None:
    from tasktransfer.designs.empathetic.collect import collect

    collect(study, complete)


def _compute_statistics(study: Study) -> None:
    from tasktransfer.designs.empathetic.statistics import make_statistics

    make_statistics(study)


def _apply_prepend(ingredients: Ingredients) -> Mapping[Split, list[Instance]]:
    from tasktransfer.designs.empathetic.recipes import prepend

    return prepend(ingredients)


EMPATHETIC = Design(
    name="empathetic",
    config=EmpatheticConfig,
    kinds=KINDS,
    plan=plan,
    outputs=_list_outputs,
    collect=_collect,
    statistics=_compute_statistics,
    shown=shown,
    stand_ins=stand_ins,
    tables_version=4,
    of_dialogues=("tables/labels.parquet", "tables/shared.parquet"),
    recipes={"prepend": _apply_prepend},
    datasets=(EMPATHETIC_DIALOGUES, *OTHERS),
)
