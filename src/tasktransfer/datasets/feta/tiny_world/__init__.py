"""A tiny synthetic world in the FETA release format: small enough for seconds of training.

Two datasets of short dialogues made by grammar, all 17 tasks, with planted structure that says
which source helps which target (``truth``). docs/tiny-world.md describes it.
Importing this package is cheap: nothing is generated before ``generate`` is called.
"""

from tasktransfer.datasets.feta.tiny_world.revision import (
    DEFAULT_DIALOGUES,
    GENERATOR_VERSION,
    MINIMUM_DIALOGUES,
    revision,
)
from tasktransfer.datasets.feta.tiny_world.truth import HELPFUL, UNRELATED, Pair
from tasktransfer.datasets.feta.tiny_world.writer import generate

__all__ = [
    "DEFAULT_DIALOGUES",
    "GENERATOR_VERSION",
    "HELPFUL",
    "MINIMUM_DIALOGUES",
    "UNRELATED",
    "Pair",
    "generate",
    "revision",
]
