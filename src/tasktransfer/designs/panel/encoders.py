"""Description of the encoder of the cosines and its training data."""

from __future__ import annotations

from tasktransfer.config import TINY
from tasktransfer.designs.panel.config import PanelConfig

_PAIRS = "1.17 billion pairs of texts, most of them Reddit comments with their replies"
TRAINED_ON = {"all-minilm": _PAIRS, "all-mpnet-base": _PAIRS}
"""Beginning of a released encoder's name in lower case → its training data (its model card)."""


def describe_cosines(config: PanelConfig) -> str:
    """Return a sentence on the encoder whose cosines rate responses, and on its training data."""
    checkpoint = config.models[0].checkpoint
    name = checkpoint.rstrip("/").rpartition("/")[2]
    known = (text for start, text in TRAINED_ON.items() if name.lower().startswith(start))
    data = next(known, "data that the study does not record")
    if checkpoint == TINY:
        name = "the tiny encoder"
        data = "synthetic dialogues with masked language modelling"
    return (
        f"The cosine similarities use mean-pooled vectors of {name}, which was pretrained on "
        f"{data}. The study does not train this encoder further."
    )
