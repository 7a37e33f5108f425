"""The design of the probe study.

The Snakefile imports this module, so functions that need pandas or matplotlib import them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.datasets.personachat import PERSONACHAT
from tasktransfer.designs.design import Design, Outputs
from tasktransfer.designs.probes.config import ProbesConfig
from tasktransfer.designs.probes.facts import RECIPE
from tasktransfer.designs.probes.plan import KIND, plan
from tasktransfer.designs.probes.shown import shown
from tasktransfer.designs.probes.stand_ins import stand_ins
from tasktransfer.results.frames import COMMON
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance

if TYPE_CHECKING:  # imports pyarrow
    from tasktransfer.data.recipes import Ingredients, Split

TABLES = (*COMMON, "probed", "rounds", "labels", "projections")
STATISTICS = ("intervals", "replies", "claims", "agreement")


def _build_outputs(study: Study) -> Outputs:
    return Outputs(
        tables=tuple(f"tables/{name}.parquet" for name in TABLES),
        statistics=tuple(f"tables/{name}.parquet" for name in STATISTICS),
    )


def _make_dialogue_labels(ingredients: Ingredients) -> Mapping[Split, list[Instance]]:
    from tasktransfer.designs.probes.labels import dialogue_labels  # noqa: PLC0415

    return dialogue_labels(ingredients)


def _collect(study: Study, complete: bool) -> None:
    from tasktransfer.designs.probes.collect import collect  # noqa: PLC0415

    collect(study, complete)


def _write_statistics(study: Study) -> None:
    from tasktransfer.designs.probes.intervals import write_statistics  # noqa: PLC0415

    write_statistics(study)


PROBES = Design(
    name="probes",
    config=ProbesConfig,
    kinds=(KIND,),
    grows_with=("seeds", "models", "training.epochs", "probes.snapshots"),
    plan=plan,
    outputs=_build_outputs,
    collect=_collect,
    statistics=_write_statistics,
    shown=shown,
    stand_ins=stand_ins,
    recipes={RECIPE: _make_dialogue_labels},
    recipes_first=(RECIPE,),
    datasets=(MULTIWOZ, PERSONACHAT),
    tables_version=5,
    of_dialogues=("tables/labels.parquet",),
)
