"""A small valid study to damage in one place, and the resulting messages."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tasktransfer.config import Document
from tasktransfer.designs import validate_config
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.errors import ConfigError

SMALL: dict[str, Any] = {
    "study": "small",
    "datasets": {
        "DailyDialog": {"tasks": ["emotion_recognition", "dialogue_nli", "topic_classification"]},
        "Friends": {"tasks": ["question_answering", "relation_extraction"]},
    },
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
}

GONE = object()


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """Return SMALL with the value at a path replaced (or removed)."""
    result = copy.deepcopy(SMALL)
    place: Any = result
    for key in path[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
    if to is GONE:
        del place[path[-1]]
    elif isinstance(place, list) and path[-1] == len(place):
        place.append(to)
    else:
        place[path[-1]] = to
    return result


def parse(study: Any, file: str = "study.yaml") -> TransferConfig:
    """Open a study that is a mapping already; messages name ``file``."""
    config = validate_config(Document(study, file))
    assert isinstance(config, TransferConfig)
    return config


def refusal(study: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(study)
    return str(caught.value)
