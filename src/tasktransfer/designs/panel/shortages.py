"""Checks, before training, that rated sets and corpora are large enough for a panel study."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tasktransfer.core.nodes import Data
from tasktransfer.designs.panel import inputs
from tasktransfer.errors import DataError
from tasktransfer.results.node_folders import is_finished
from tasktransfer.results.study import Study

ONE_DRAW = ("task", "percent", "by")
"""Settings that identify few-shot data; of several samples only the first is tried."""


def find_shortages(study: Study) -> list[str]:
    """Return the error messages of recipes that fail for lack of prepared data."""
    return list(dict.fromkeys(_find_shortages(study)))


def _find_shortages(study: Study) -> Iterator[str]:
    tried: set[tuple[str, ...]] = set()
    for data in study.plan.derived:
        if data.recipe not in (inputs.FEW, inputs.CHOICES, inputs.TOGETHER):
            continue
        key = data.digest if data.recipe != inputs.FEW else ""
        setting = (data.recipe, key, *(str(data.settings.get(name)) for name in ONE_DRAW))
        if setting in tried or is_finished(study, data):
            continue
        tried.add(setting)
        yield from _try_recipe(study, data)


def _try_recipe(study: Study, data: Data) -> Iterator[str]:
    """Try a recipe on the prepared data, and yield the error message if it fails.

    The recipe is tried on the unfiltered corpora if the filtered ones are not prepared. It is not
    tried if neither are.
    """
    caches = [_find_cache(study, used) for used in data.uses if isinstance(used, Data)]
    if None in caches:
        return
    from tasktransfer.data.recipes import Ingredients  # noqa: PLC0415  # imports pyarrow
    from tasktransfer.designs.panel import ratings, selection  # noqa: PLC0415

    recipe = {
        inputs.FEW: ratings.sample_few_ratings,
        inputs.TOGETHER: ratings.join_rated_sets,
        inputs.CHOICES: selection.build_selection_choices,
    }[data.recipe]
    try:
        there = tuple(cache for cache in caches if cache is not None)
        recipe(Ingredients(there, (), (), study.list_tasks(data), data.settings))
    except DataError as error:
        yield str(error)


def _find_cache(study: Study, data: Data) -> Path | None:
    """Return the folder of prepared data, or of unfiltered corpora as a fallback, or None."""
    folders = [study.get_cache_folder(data)]
    if data.recipe == inputs.LEAKS:
        folders.append(study.get_instances_folder(data.name))
    prepared = (Path(folder) for folder in folders if Path(folder, "manifest.json").is_file())
    return next(prepared, None)
