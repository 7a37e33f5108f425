"""The probe study as a design. Imports of pandas and matplotlib stay in the functions that need
them: the Snakefile imports this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.datasets.personachat import PERSONACHAT
from tasktransfer.designs.design import Design, Outputs, Shown
from tasktransfer.designs.probes.config import ProbesConfig
from tasktransfer.designs.probes.facts import RECIPE
from tasktransfer.designs.probes.plan import KIND, plan
from tasktransfer.designs.probes.stand_ins import stand_ins
from tasktransfer.results.study import Study
from tasktransfer.tables import COMMON
from tasktransfer.tasks.card import Instance

if TYPE_CHECKING:  # imports pyarrow
    from tasktransfer.data.recipes import Ingredients, Split

TABLES = (*COMMON, "probed", "rounds", "labels", "projections")
STATISTICS = ("intervals", "replies", "claims", "agreement")
PRINTED = (
    *(f"table{number}" for number in range(3, 10)),
    "beyond",
    "claims",
    "agreement",
    "unsolved",
    "probe_labels",
)
FIGURES = ("f1_by_epoch", "representations", "bleu_against_f1", "ties")
SHOWN_DIALOGUE = "figures/one_dialogue.md"


def _outputs(study: Study) -> Outputs:
    figures = tuple(f"figures/{name}.{end}" for name in FIGURES for end in ("png", "pdf"))
    printed = tuple(f"figures/{name}.{end}" for name in PRINTED for end in ("csv", "md"))
    return Outputs(
        tables=tuple(f"tables/{name}.parquet" for name in TABLES),
        statistics=tuple(f"tables/{name}.parquet" for name in STATISTICS),
        figures=figures,
        printed=(*printed, SHOWN_DIALOGUE),
        shown=tuple(
            Shown(f"figures/{name}.png", "Figures", labels={"figure": name}) for name in FIGURES
        ),
    )


def _dialogue_labels(ingredients: Ingredients) -> Mapping[Split, list[Instance]]:
    from tasktransfer.designs.probes.labels import dialogue_labels  # noqa: PLC0415

    return dialogue_labels(ingredients)


def _collect(study: Study, complete: bool) -> None:
    from tasktransfer.designs.probes.collect import collect  # noqa: PLC0415

    collect(study, complete)


def _statistics(study: Study) -> None:
    from tasktransfer.designs.probes.intervals import write_statistics  # noqa: PLC0415

    write_statistics(study)


def _figures(study: Study) -> None:
    from tasktransfer.designs.probes.figures import write_figures  # noqa: PLC0415
    from tasktransfer.designs.probes.printed import write_printed  # noqa: PLC0415

    write_printed(study)
    write_figures(study)


PROBES = Design(
    name="probes",
    config=ProbesConfig,
    kinds=(KIND,),
    grows_with=("seeds", "models", "training.epochs", "probes.snapshots"),
    plan=plan,
    outputs=_outputs,
    collect=_collect,
    statistics=_statistics,
    figures=_figures,
    stand_ins=stand_ins,
    recipes={RECIPE: _dialogue_labels},
    datasets=(MULTIWOZ, PERSONACHAT),
    tables_version=4,
    of_dialogues=("tables/labels.parquet",),
)
