"""Resolution of branches and tags on the Hugging Face hub to commits, without loading models."""

from __future__ import annotations

import functools
import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SECONDS = 5.0
"""Time limit of a request to the hub, since every start of a study may send one."""


def is_commit(revision: str) -> bool:
    """Return whether a revision is a commit, which never changes."""
    return _COMMIT.fullmatch(revision) is not None


@functools.cache
def resolve_commit(name: str, revision: str) -> str | None:
    """Return the commit of a branch or tag from the hub, or else from this machine's cache.

    An offline training loads the cached commit. None if neither has it.
    """
    return _fetch_commit(name, revision) or _find_cached_commit(name, revision)


def _fetch_commit(name: str, revision: str) -> str | None:
    try:
        # Tables and figures can be made on machines without the model libraries.
        from huggingface_hub import HfApi, constants
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        return None
    if constants.HF_HUB_OFFLINE or _unreachable:
        return None
    try:
        return HfApi().model_info(name, revision=revision, timeout=_SECONDS).sha
    except HfHubHTTPError:  # unknown name or no access: loading reports it
        return None
    except Exception as error:  # raised by the hub client's HTTP library
        _unreachable.append(str(error))
        return None


_unreachable: list[str] = []
"""Errors of an unreachable hub; if there are any, this process sends no further requests."""


def _find_cached_commit(name: str, revision: str) -> str | None:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    found = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(found).parent.name if isinstance(found, str) else None
