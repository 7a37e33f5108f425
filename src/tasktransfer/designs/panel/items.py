"""Rated items without their ratings, for a user's own rater."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from tasktransfer.data.prepared import require_prepared_instances
from tasktransfer.designs.panel.config import get_config
from tasktransfer.designs.panel.inputs import find_rated_items
from tasktransfer.designs.panel.ratings import read_rated_items
from tasktransfer.designs.panel.sources.cards import list_rated_sets
from tasktransfer.designs.panel.sources.texts import split_context
from tasktransfer.results.study import Study


class ItemToRate(TypedDict):
    """A response in a context, to be rated by a criterion. ``set``: name of its rated set."""

    set: str
    item: str
    criterion: str
    context: list[str]
    response: str


def list_items(study: Study) -> Iterator[ItemToRate]:
    """Yield the items of all rated sets, with the criterion that people rated.

    Raises:
        DataError: the rated sets are not prepared yet.
    """
    config = get_config(study)
    cache = require_prepared_instances(
        Path(study.get_instances_folder(config.dataset)), study.config_file
    )
    data = find_rated_items(study.plan)
    settings = {} if data is None else data.settings
    sets = list_rated_sets(config.dataset)
    for name in config.rated_sets:
        for item in read_rated_items(cache, name, settings):
            yield {
                "set": name,
                "item": item.id,
                "criterion": sets[name].criterion,
                "context": list(split_context(item.context, item.turns)),
                "response": item.query["response"],
            }
