"""Contexts of the test set without their replies, for a user's own replier."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from tasktransfer.data.cache import read_instances
from tasktransfer.data.prepared import require_prepared_instances
from tasktransfer.data.samples import select_instances
from tasktransfer.designs.empathetic.config import get_config
from tasktransfer.designs.empathetic.sources.cards import ED, REPLY, TURN
from tasktransfer.results.study import Study


class ItemToAnswer(TypedDict):
    """Turns of a dialogue up to the listener's reply."""

    item: str
    context: list[str]


def list_items(study: Study) -> Iterator[ItemToAnswer]:
    """Yield the test contexts that the listener replies to, within the limits of the study.

    Raises:
        DataError: the dialogues are not prepared yet.
    """
    _, settings = get_config(study).replier_comparison
    cache = require_prepared_instances(Path(study.get_instances_folder(ED)), study.config_file)
    instances = read_instances(cache, REPLY.name, "test")
    for instance in select_instances(instances, settings.get("limit")):
        yield {"item": instance.id, "context": instance.context.split(TURN)}
