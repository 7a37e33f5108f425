"""The identity of a tiny world, known before anything is generated. Standard library only."""

from __future__ import annotations

import hashlib
import json

from tasktransfer.errors import ConfigError

GENERATOR_VERSION = 1
"""Raise this whenever one byte of the output changes for the same seed and size; a test holds
the digest of the default world."""

DEFAULT_DIALOGUES = 240
"""Dialogues per dataset: the smallest world in which every planted effect was measured."""

MINIMUM_DIALOGUES = 120
"""Below this a split no longer holds every kind of scene often enough to be scored."""


def revision(seed: int, dialogues: int) -> str:
    """Name the exact bytes that ``generate`` writes for these parameters.

    Raises ConfigError for a seed or size that cannot be generated.
    """
    check_parameters(seed, dialogues)
    parameters = {"dialogues": dialogues, "seed": seed, "version": GENERATOR_VERSION}
    text = json.dumps(parameters, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"tiny-world {text}".encode()).hexdigest()
    return f"tiny-world-v{GENERATOR_VERSION}-{digest[:12]}"


def check_parameters(seed: int, dialogues: int) -> None:
    """Refuse what no world can be made from, naming the key, the value and the remedy."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"tiny world: seed is {seed!r}; give an integer from 0")
    if isinstance(dialogues, bool) or not isinstance(dialogues, int):
        raise ConfigError(f"tiny world: dialogues is {dialogues!r}; give an integer")
    if dialogues < MINIMUM_DIALOGUES:
        raise ConfigError(
            f"tiny world: dialogues is {dialogues}, too few for scorable splits; "
            f"give at least {MINIMUM_DIALOGUES}"
        )
