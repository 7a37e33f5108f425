"""Identity of a tiny world, computed before generation. Uses the standard library only."""

from __future__ import annotations

import hashlib
import json

from tasktransfer.errors import ConfigError

GENERATOR_VERSION = 1
"""Version of the generator. Increase it if any byte of the output changes for a seed and size. A
test checks the digest of the default world."""

DEFAULT_DIALOGUES = 240
"""Default dialogues per dataset: the smallest world in which all planted effects were measured."""

MINIMUM_DIALOGUES = 120
"""Minimum dialogues per dataset. With fewer, splits have too few scenes of each kind for scores."""


def name_revision(seed: int, dialogues: int) -> str:
    """Return a name for the exact bytes that ``generate`` writes for these parameters.

    Raises:
        ConfigError: the seed or size is not valid.
    """
    check_parameters(seed, dialogues)
    parameters = {"dialogues": dialogues, "seed": seed, "version": GENERATOR_VERSION}
    text = json.dumps(parameters, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"tiny-world {text}".encode()).hexdigest()
    return f"tiny-world-v{GENERATOR_VERSION}-{digest[:12]}"


def check_parameters(seed: int, dialogues: int) -> None:
    """Raise ConfigError for invalid parameters; names key, value and remedy."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"tiny world: The seed is {seed!r}. Use an integer of 0 or more.")
    if isinstance(dialogues, bool) or not isinstance(dialogues, int):
        raise ConfigError(f"tiny world: The number of dialogues is {dialogues!r}. Use an integer.")
    if dialogues < MINIMUM_DIALOGUES:
        raise ConfigError(
            f"tiny world: {dialogues} dialogues are too few to evaluate every task. Use "
            f"{MINIMUM_DIALOGUES} or more."
        )
