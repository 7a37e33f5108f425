"""Declaration of the design ``probes``.

The Snakefile imports this module, so functions that need pandas or matplotlib import them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.datasets.personachat import PERSONACHAT
from tasktransfer.designs.design import Design
from tasktransfer.designs.probes.config import ProbesConfig
from tasktransfer.designs.probes.facts import RECIPE
from tasktransfer.designs.probes.plan import KIND, plan_study
from tasktransfer.designs.probes.shown import build_analysis
from tasktransfer.designs.probes.substitutes import list_substitutes
from tasktransfer.tasks.card import Instance

if TYPE_CHECKING:  # imports pyarrow
    from tasktransfer.data.recipes import Ingredients, Split


def _derive_dialogue_labels(ingredients: Ingredients) -> Mapping[Split, list[Instance]]:
    from tasktransfer.designs.probes.labels import derive_dialogue_labels  # noqa: PLC0415

    return derive_dialogue_labels(ingredients)


PROBES = Design(
    name="probes",
    config=ProbesConfig,
    kinds=(KIND,),
    grows_with=("seeds", "models", "training.epochs", "probes.snapshots"),
    plan=plan_study,
    analysis=build_analysis,
    substitutes=list_substitutes,
    recipes={RECIPE: _derive_dialogue_labels},
    recipes_first=(RECIPE,),
    datasets=(MULTIWOZ, PERSONACHAT),
)
