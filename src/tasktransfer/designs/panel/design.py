"""Declaration of the design ``panel``.

The Snakefile imports this module, so modules that need pandas or pyarrow are lazy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.design import Design
from tasktransfer.designs.panel import inputs
from tasktransfer.designs.panel import plan as plans
from tasktransfer.designs.panel.config import PanelConfig
from tasktransfer.designs.panel.shown import build_analysis
from tasktransfer.designs.panel.sources.dataset import PANEL_DIALOGUES, PANEL_TINY
from tasktransfer.designs.panel.substitutes import list_substitutes

if TYPE_CHECKING:
    from tasktransfer.designs.panel import items, leaks, pairs, ratings, selection, shortages
else:
    package = LazyPackage(__package__)
    items, leaks, pairs = package.items, package.leaks, package.pairs
    ratings, selection, shortages = package.ratings, package.selection, package.shortages

PANEL = Design(
    name="panel",
    config=PanelConfig,
    kinds=plans.KINDS,
    grows_with=("seeds", "few_shot.draws", "few_shot.percentages", "few_shot.sets"),
    plan=plans.plan_study,
    analysis=build_analysis,
    substitutes=list_substitutes,
    recipes={
        inputs.LEAKS: leaks.filter_leaks,
        inputs.PAIRS: pairs.build_training_pairs,
        inputs.FEW: ratings.sample_few_ratings,
        inputs.CHOICES: selection.build_selection_choices,
        inputs.TOGETHER: ratings.join_rated_sets,
    },
    recipes_first=(inputs.LEAKS, inputs.CHOICES, inputs.TOGETHER),
    shortages=shortages.find_shortages,
    items=items.list_items,
    datasets=(PANEL_DIALOGUES, PANEL_TINY),
)
