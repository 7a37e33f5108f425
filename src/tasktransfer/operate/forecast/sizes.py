"""How much a stage reads: instances, units and tokens of a task's split."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import Data, Stage
from tasktransfer.core.specs import Family
from tasktransfer.datasets import DATASETS
from tasktransfer.files import json_text
from tasktransfer.results.revisions import is_generated
from tasktransfer.results.study import Study

TEXT_TO_TEXT_TOKENS = 1.15
"""A prompt's words, and the vocabularies of GPT-2 and T5, which are coarser than BERT's."""

OPTIONS_TOGETHER = 1.5
"""Text-to-text models read all options after one context, an encoder a context per option."""


@dataclass(frozen=True, slots=True)
class Volume:
    """``units`` are what batches are made of: an instance, or (text-to-text models, tasks with
    several outputs) one output of an instance. ``tokens`` without padding."""

    instances: int
    units: int
    tokens: int


class Sizes:
    """The volumes of a study's splits, each looked up once."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._encoded = cache(self._read_encoded)
        self._prepared = cache(self._read_prepared)
        self._volume = cache(self._counted)

    def of(self, stage: Stage, task: str, split: str) -> Volume:
        """What one pass over a split is for a stage's model, limits of the config included."""
        limit = getattr(stage.training, f"limit_{split}")
        return self.read(stage.data, stage.model.name, task, split, limit)

    def read(
        self, data: Data, model: str, task: str, split: str, limit: int | None = None
    ) -> Volume:
        """What one pass over a split of some data is for a model.

        Args:
            limit: instances at most; what a recipe leaves by its settings counts too.
        """
        whole = self._volume(data.name, model, task, split)
        limits = [known for known in (limit, _left_by_recipe(data, split)) if known is not None]
        if not limits or min(limits) >= whole.instances:
            return whole
        share = min(limits) / whole.instances
        return Volume(min(limits), round(whole.units * share), round(whole.tokens * share))

    def instances(self, data: Data, task: str, split: str, limit: int | None = None) -> int:
        """Instances of a split of some data, ``limit`` at most."""
        limits = [known for known in (limit, _left_by_recipe(data, split)) if known is not None]
        return min([self._instances(data.name, task, split), *limits])

    def basis(self, dataset: str, model: str) -> str:
        """Where the sizes are from, for readers; tasks whose size is assumed are named."""
        if self._encoded(dataset, model):
            return "the encoded data"
        if self._prepared(dataset):
            return "the prepared data"
        if is_generated(self._study.config, dataset):
            return "the tiny world"
        known = DATASETS[dataset]
        assumed = [
            task for task in self._study.tasks(self._study.data(dataset)) if task not in known.sizes
        ]
        if not assumed:
            return known.sizes_from
        return f"an assumption for {', '.join(assumed)}, whose size {dataset} does not give"

    def _counted(self, dataset: str, model: str, task: str, split: str) -> Volume:
        spec = self._study.revisions.models[model]
        instances = self._instances(dataset, task, split)
        encoded = self._encoded(dataset, model)
        key = f"{task}-{split}"
        if key in encoded.get("tokens", {}):
            return Volume(instances, encoded["units"][key], encoded["tokens"][key])
        units, tokens = _units_and_tokens(
            dataset, task, spec.family, spec.max_length, bool(self._study.synthetic(dataset))
        )
        return Volume(instances, instances * units, round(instances * units * tokens))

    def _instances(self, dataset: str, task: str, split: str) -> int:
        prepared = self._prepared(dataset)
        if prepared:
            return int(prepared.get(task, {}).get(split, {}).get("samples", 0))
        data, known = self._study.config.data, DATASETS[dataset]
        few = data.few_sample
        if is_generated(self._study.config, dataset):
            return known.tiny_instances(task, split, data.tiny_world.dialogues, few_sample=few)
        return known.instances(task, split, few_sample=few)

    def _read_encoded(self, dataset: str, model: str) -> dict[str, Any]:
        manifest = read_manifest(self._study.encoded(self._study.data(dataset), model))
        is_counted = all(isinstance(manifest.get(key), dict) for key in ("tokens", "units"))
        return manifest if is_counted else {}

    def _read_prepared(self, dataset: str) -> dict[str, Any]:
        tasks = read_manifest(self._study.instances(dataset)).get("tasks")
        return tasks if isinstance(tasks, dict) else {}


def read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a cache; empty where there is none that can be read."""
    return json_text.read_object(Path(folder, "manifest.json"))


def _units_and_tokens(
    dataset: str, task: str, family: Family, max_length: int, synthetic: bool
) -> tuple[int, float]:
    """(units an instance, tokens a unit), from the table of sizes."""
    known = DATASETS[dataset]
    size, card = known.size(task), known.tasks[task]
    tiny = known.tiny.sizes.get(task) if synthetic and known.tiny else None
    tokens: float = tiny.tokens if tiny else size.tokens
    a_sequence = tokens / size.sequences
    if family == "encoder":
        return 1, within(a_sequence, max_length) * size.sequences
    if size.sequences > 1:
        a_sequence *= OPTIONS_TOGETHER
    return max(1, len(card.outputs)), within(a_sequence * TEXT_TO_TEXT_TOKENS, max_length)


def within(mean: float, longest: int) -> float:
    """The mean number of tokens read of texts that are cut off at ``longest``.

    Lengths of dialogues are taken for gamma distributed of shape 2: on five of the shipped study's
    six tasks that gives what its records have read within 4 %, on the sixth within 8 %.
    """
    x = 2 * longest / mean
    below = 1 - math.exp(-x) * (1 + x + x * x / 2)
    above = math.exp(-x) * (1 + x)
    return mean * below + longest * above


def _left_by_recipe(data: Data, split: str) -> int | None:
    """Instances that a recipe leaves of a split at most, as its settings say: so many right
    answers, each with its candidates (with one other for training); None: they do not say."""
    settings: Mapping[str, Any] = data.settings
    limit = settings.get("limit_test" if split == "test" else "limit_train")
    if not data.recipe or not isinstance(limit, int):
        return None
    candidates = settings.get("candidates", 1)
    if candidates is True or not isinstance(candidates, int) or candidates < 2:
        return limit
    return limit * (candidates if split == "test" else 2)
