"""Where a study prompts models that run elsewhere: host, key, and what the endpoint can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tasktransfer.config import CommonConfig
from tasktransfer.core.specs import SERVED
from tasktransfer.errors import ConfigError
from tasktransfer.evaluation.prompting.keys import read_key
from tasktransfer.evaluation.prompting.permissions import describe_key, find_refusals
from tasktransfer.evaluation.prompting.probes import Probes, answers_folder


def describe_endpoints(config: CommonConfig) -> list[dict[str, Any]]:
    """Return for each prompted model behind an endpoint what is sent where, as plain data."""
    return [
        {
            "model": model,
            "endpoint": at.endpoint,
            "key_variable": at.key_variable,
            "key": describe_key(at.key_variable),
            "refusals": [*find_refusals(at.endpoint or "", at.key_variable)],
            "probes": probes.describe(),
        }
        for (model, probes), at in zip(_probes(config), config.endpoints.values(), strict=True)
    ]


def format_endpoints(endpoints: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines that ``plan`` and ``validate`` print of endpoints."""
    for each in endpoints:
        yield f"prompted model {each['model']}: asked at {each['endpoint']} {each['key']}"
        yield from (f"  NOT ALLOWED: {text}" for text in each["refusals"])
        yield from (f"  {text}" for text in each["probes"] or ["not probed yet"])


def refuse_endpoints(config: CommonConfig) -> None:
    """Raise if the user has not allowed an endpoint or its key.

    Raises:
        ConfigError: which, why, and how to allow it; or a key that cannot be one.
    """
    refused = [
        f"prompted model {model}: {text}"
        for model, at in config.endpoints.items()
        for text in find_refusals(at.endpoint or "", at.key_variable)
    ]
    if refused:
        raise ConfigError("\n".join(refused))
    for at in config.endpoints.values():
        read_key(at.key_variable)


def forget_probes(config: CommonConfig) -> Iterator[str]:
    """Remove what probes of the endpoints saw, and yield a line about each."""
    for model, probes in _probes(config):
        if probes.forget():
            yield (
                f"prompted model {model}: probe forgotten; its endpoint is probed again before the "
                "next evaluation. Finished evaluations stay as they are"
            )
        else:
            yield f"prompted model {model}: not probed yet"


def _probes(config: CommonConfig) -> Iterator[tuple[str, Probes]]:
    for model, at in config.endpoints.items():
        folder = answers_folder(config.results, model, f"{SERVED}{at.served or model}")
        yield model, Probes(folder)
