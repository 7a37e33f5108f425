"""Endpoints that serve a study's prompted models: host, key and capabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tasktransfer.config import CommonConfig
from tasktransfer.core.specs import SERVED
from tasktransfer.errors import ConfigError
from tasktransfer.evaluation.prompting.keys import read_key
from tasktransfer.evaluation.prompting.permissions import describe_key, find_refusals
from tasktransfer.evaluation.prompting.probe_store import ProbeStore, get_answers_folder
from tasktransfer.operate.facts import Endpoint


def describe_endpoints(config: CommonConfig) -> list[Endpoint]:
    """Return the endpoint, key and capabilities of each served model."""
    return [
        {
            "model": model,
            "endpoint": at.endpoint,
            "key_variable": at.key_variable,
            "key": describe_key(at.key_variable),
            "refusals": [*find_refusals(at.endpoint or "", at.key_variable)],
            "probes": probes.list_descriptions(),
        }
        for (model, probes), at in zip(
            _collect_probes(config), config.endpoints.values(), strict=True
        )
    ]


def format_endpoints(endpoints: Sequence[Endpoint]) -> Iterator[str]:
    """Yield the lines on endpoints in the output of ``plan`` and ``validate``."""
    for each in endpoints:
        yield f"prompted model {each['model']}: served at {each['endpoint']} {each['key']}"
        yield from (f"  NOT ALLOWED: {text}" for text in each["refusals"])
        yield from (f"  {text}" for text in each["probes"] or ["not probed yet"])


def require_allowed_endpoints(config: CommonConfig) -> None:
    """Raise an error if the user has not allowed an endpoint or the use of its key.

    Raises:
        ConfigError: an endpoint is not allowed, or a key is invalid. The message contains the
            reason and the remedy.
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


def delete_probes(config: CommonConfig) -> Iterator[str]:
    """Delete the cached probes of endpoints, and yield one line per endpoint."""
    for model, probes in _collect_probes(config):
        if probes.delete():
            yield (
                f"prompted model {model}: probe deleted; its endpoint is probed again before the "
                "next evaluation. Finished evaluations are kept"
            )
        else:
            yield f"prompted model {model}: not probed yet"


def _collect_probes(config: CommonConfig) -> Iterator[tuple[str, ProbeStore]]:
    for model, at in config.endpoints.items():
        folder = get_answers_folder(config.results, model, f"{SERVED}{at.served or model}")
        yield model, ProbeStore(folder)
