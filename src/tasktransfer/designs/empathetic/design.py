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
from tasktransfer.designs.empathetic.sources.additional_datasets import ADDITIONAL_DATASETS
from tasktransfer.designs.empathetic.sources.dialogues import EMPATHETIC_DIALOGUES
from tasktransfer.designs.empathetic.substitutes import list_substitutes

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
    substitutes=list_substitutes,
    recipes={"prepend": recipes.prepend_labels},
    items=items.list_items,
    datasets=(EMPATHETIC_DIALOGUES, *ADDITIONAL_DATASETS),
)
