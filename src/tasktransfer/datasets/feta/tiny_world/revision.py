"""Identity of generated data, computed before generation with the standard library only."""

from __future__ import annotations

import hashlib
import json

from tasktransfer.errors import ConfigError

GENERATOR_VERSION = 1
"""Version of the generator. Increase it if any byte of the output changes for a seed and size. A
test checks the digest of the default data."""

DEFAULT_DIALOGUES = 240
"""Default number of dialogues per dataset, the smallest with which all effects were measured."""

MINIMUM_DIALOGUES = 120
"""Minimum number of dialogues per dataset. Fewer give too few scenes of each kind for scores."""


def format_revision(seed: int, dialogues: int) -> str:
    """Return the revision of the data that ``generate`` writes with these parameters.

    Raises:
        ConfigError: the seed or size is not valid.
    """
    check_parameters(seed, dialogues)
    parameters = {"dialogues": dialogues, "seed": seed, "version": GENERATOR_VERSION}
    text = json.dumps(parameters, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"tiny-world {text}".encode()).hexdigest()
    return f"tiny-world-v{GENERATOR_VERSION}-{digest[:12]}"


def check_parameters(seed: int, dialogues: int) -> None:
    """Raise ConfigError if a parameter is not valid."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError(
            f"tiny world: The seed must be a non-negative integer, but is {seed!r}. Choose another "
            "seed."
        )
    if isinstance(dialogues, bool) or not isinstance(dialogues, int):
        raise ConfigError(
            f"tiny world: The number of dialogues must be an integer, but is {dialogues!r}. Choose "
            "another number."
        )
    if dialogues < MINIMUM_DIALOGUES:
        raise ConfigError(
            f"tiny world: The {dialogues} dialogues are too few to evaluate every task. Use at "
            f"least {MINIMUM_DIALOGUES} dialogues."
        )
