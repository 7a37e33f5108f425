"""Declaration of the design ``empathetic``.

The Snakefile imports this module, so modules that need pandas or pyarrow are lazy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.design import Design
from tasktransfer.designs.empathetic.config import EmpatheticConfig
from tasktransfer.designs.empathetic.plan import KINDS, plan_study
from tasktransfer.designs.empathetic.shown import build_analysis
from tasktransfer.designs.empathetic.sources.dialogues import EMPATHETIC_DIALOGUES
from tasktransfer.designs.empathetic.sources.others import OTHERS
from tasktransfer.designs.empathetic.stand_ins import list_stand_ins

if TYPE_CHECKING:
    from tasktransfer.designs.empathetic import items, recipes
else:
    items, recipes = LazyPackage(__package__).items, LazyPackage(__package__).recipes

EMPATHETIC = Design(
    name="empathetic",
    config=EmpatheticConfig,
    kinds=KINDS,
    plan=plan_study,
    analysis=build_analysis,
    stand_ins=list_stand_ins,
    recipes={"prepend": recipes.prepend_labels},
    items=items.list_items,
    datasets=(EMPATHETIC_DIALOGUES, *OTHERS),
)
