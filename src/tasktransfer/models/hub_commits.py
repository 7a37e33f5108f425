"""Which commit a name on the Hugging Face hub stands for, asked without loading anything."""

from __future__ import annotations

import functools
import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SECONDS = 5.0
"""For an answer of the hub: every start of a study may ask."""


def is_commit(revision: str) -> bool:
    """Whether a revision is a commit, which nobody can move."""
    return _COMMIT.fullmatch(revision) is not None


@functools.cache
def commit_of(name: str, revision: str) -> str | None:
    """The commit of a branch or tag: as the hub has it now, else as this machine's cache has it,
    which is what an offline training loads. None where neither tells."""
    return _of_hub(name, revision) or _of_cache(name, revision)


def _of_hub(name: str, revision: str) -> str | None:
    try:
        # Tables and figures are made where no library of models is installed.
        from huggingface_hub import HfApi, constants
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        return None
    if constants.HF_HUB_OFFLINE or _unreachable:
        return None
    try:
        return HfApi().model_info(name, revision=revision, timeout=_SECONDS).sha
    except HfHubHTTPError:  # no such name, or none that this user may read: the loading says so
        return None
    except Exception as error:  # the HTTP library's, whichever the hub's client has
        _unreachable.append(str(error))
        return None


_unreachable: list[str] = []
"""Why the hub could not be reached: then no other name asks it in this process."""


def _of_cache(name: str, revision: str) -> str | None:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    found = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(found).parent.name if isinstance(found, str) else None
