"""Data and models of a panel study's trainings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from tasktransfer.config.renamed_keys import restore_old_names
from tasktransfer.core.nodes import Data, Outcome, Stage, Start
from tasktransfer.core.plan import Plan, PlanBuilder, Step
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec, Reads, Selection
from tasktransfer.datasets import build_data_node
from tasktransfer.designs.panel.config import PanelConfig
from tasktransfer.designs.panel.names import REDDIT_SET
from tasktransfer.designs.panel.sources import cards
from tasktransfer.designs.panel.training_sections import StageConfig
from tasktransfer.results.revisions import Revisions

RECIPES = LEAKS, PAIRS, FEW, CHOICES, TOGETHER = (
    "without_leaks", "training_pairs", "few_ratings", "response_selection", "rated_together",
)  # fmt: skip

RECIPE_VERSIONS = {PAIRS: 2, TOGETHER: 2, FEW: 2}
"""Versions of recipes, which are raised if the instances or the way to encode them change.

Version 2: mask-and-fill replaces at most 15 % of the words, and a response that is too long is
truncated at its end.
"""


def make_selection(
    tasks: tuple[str, ...], section: StageConfig, measure: str = "accuracy"
) -> Selection:
    """Return the rule that selects the best round of a training on tasks by a dev measure."""
    return Selection(tasks, measure, section.round_updates, section.patience)


def is_for_paper_methods(config: PanelConfig, data: Data) -> bool:
    """Return whether training pairs are for the paper's methods, and not only for ``twin``."""
    section = config.pairs
    expected = (section.labels, [*section.perturbations])
    return (data.settings["labels"], [*data.settings["perturbations"]]) == expected


def find_rated_items(plan: Plan) -> Data | None:
    """Return the data node that joins all rated sets, or None if no method rates them."""
    rated = (data for data in plan.derived if data.recipe == TOGETHER)
    return next((data for data in rated if not data.settings.get("exchanged")), None)


class Inputs:
    """Data and models that the trainings of all seeds share."""

    def __init__(self, config: PanelConfig, revisions: Revisions, builder: PlanBuilder) -> None:
        self.config, self.builder = config, builder
        self.name = config.dataset
        self.base = build_data_node(self.name, revisions.data[self.name])
        self.models = revisions.models
        self.plain = self.get_model(config.models[0].name)
        self.twin = replace(self.plain, reads="pair")
        self.adapted = replace(self.plain, adapter_reduction=config.reduction)

    def get_model(self, name: str) -> ModelSpec:
        """Return a model of the study, with the configured input of its heads."""
        (section,) = (model for model in self.config.models if model.name == name)
        reads: Reads = "own_pooler" if section.reads == "pooler" else section.reads
        return replace(self.models[name], reads=reads)

    def get_task_name(self, name: str) -> str:
        """Return the name of a shared task in the study's dataset."""
        return cards.format_shared_task_name(name, self.name)

    def derive_data(self, recipe: str, settings: Mapping[str, Any], *uses: Any) -> Data:
        if recipe in RECIPE_VERSIONS:
            settings = {**settings, "version": RECIPE_VERSIONS[recipe]}
        return replace(self.base, settings=settings, recipe=recipe, uses=uses or (self.base,))

    @cached_property
    def filtered_dialogues(self) -> Data:
        """The dialogues after the leak filter."""
        return self._plan_leak_filter(drop=self.config.data.leaks.drop)

    def _plan_leak_filter(self, *, drop: bool) -> Data:
        labeller = [self.get_task_name(cards.LABELLER)] if self.config.labeller else []
        settings: dict[str, Any] = {
            "tasks": [*self.config.domains, *labeller],
            "against": list(self.config.all_rated_sets),
            "words": self.config.data.leaks.min_words,
            **self.halved_sets_setting,
        }
        if self.config.pairs.labels == "given":
            settings["whole"] = [self.get_task_name(cards.GIVEN)]
        return self.derive_data(LEAKS, settings if drop else {**settings, "drop": False})

    @cached_property
    def labeller(self) -> Stage | None:
        """The training of the labeller, or None if labels come from another source."""
        section = self.config.labeller
        if section is None:
            return None
        task = self.get_task_name(cards.LABELLER)
        # Two thirds of DailyDialog++'s pairs do not fit, so a constant labeller would have a high
        # accuracy.
        selection = make_selection((task,), section, "balanced_accuracy")
        step = Step((task,), selection, start=None, test_on=(task,), data=self.filtered_dialogues)
        model = self.get_model(section.model)
        if section.two_towers:
            model = replace(model, reads="pair")
        training = self.config.resolve_hyperparameters(section)
        seed = self.config.seeds[0]
        stages = self.builder.build_stages([step], self.filtered_dialogues, model, training, seed)
        return stages[step]

    def add_labeller(self) -> None:
        """Add a run for the labeller, so that it is in plans and tables."""
        if self.labeller is not None:
            outcome = Outcome((Start(self.labeller),))
            seed = self.config.seeds[0]
            about: dict[str, Any] = {}
            self.builder.add_run(Run("labeller", self.labeller.model.name, seed, about, outcome))

    @cached_property
    def pairs(self) -> Data:
        """The training pairs of the paper's methods."""
        return self.derive_pairs(self.filtered_dialogues)

    def select_pairs(self, method: str, *, leaky: bool = False) -> Data:
        """Return the pairs on which a model of all domains is trained."""
        dialogues = self._plan_leak_filter(drop=False) if leaky else self.filtered_dialogues
        if method != "twin":
            return self.derive_pairs(dialogues)
        own = {"labels": "made", "perturbations": list(self.config.twin.perturbations)}
        return self.derive_pairs(dialogues, **own)

    def derive_pairs(self, dialogues: Data, **changes: Any) -> Data:
        """Return the data node of training pairs, with some of the config's settings changed."""
        section = self.config.pairs
        own = restore_old_names(section.model_dump(), "pairs")
        settings: dict[str, Any] = {"domains": list(self.config.domains), **own}
        settings["perturbations"] = list(section.perturbations)
        settings |= changes
        settings["everything"] = self.get_task_name(cards.EVERYTHING)
        settings["labeller"] = self.get_task_name(cards.LABELLER)
        settings["given"] = self.get_task_name(cards.GIVEN)
        judges = [self.labeller] if self.labeller and settings["labels"] == "labeller" else []
        return self.derive_data(PAIRS, settings, dialogues, *judges)

    @property
    def halved_sets_setting(self) -> dict[str, Any]:
        """Setting ``halved``: the rated sets of which some paragraphs are used for training."""
        both = "Reddit" in self.config.domains and REDDIT_SET in self.config.all_rated_sets
        return {"halved": [REDDIT_SET]} if both else {}

    @cached_property
    def ratings(self) -> Data:
        """The data node with the items of all rated sets."""
        sets, task = list(self.config.rated_sets), self.get_task_name(cards.RATINGS)
        settings = {"sets": sets, "task": task, **self.halved_sets_setting}
        return self.derive_data(TOGETHER, settings)

    @cached_property
    def exchanged_ratings(self) -> Data:
        """The data node with rated items whose contexts are exchanged within their set."""
        return replace(self.ratings, settings={**self.ratings.settings, "exchanged": True})
