"""Encoder-decoders that are built from a recipe instead of a checkpoint (Parthasarathi et al. 2021,
section 4.2 and Appendix A). Read at every start: no torch here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from tasktransfer.core.digests import canonical_json
from tasktransfer.core.specs import plain_fields
from tasktransfer.errors import ModelError
from tasktransfer.files import json_text

RECIPE = "recipe:"
"""What the weights of a model begin with that is built: its architecture follows, as JSON."""

FILE = "architecture.json"

ArchitectureKind = Literal["lstm", "lstm_attention", "bilstm_attention", "hred", "transformer"]

_OF_TRANSFORMERS = ("heads", "feed_forward", "dropout")
"""Fields that a recurrent model does not read."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """``units``: of the hidden states. ``layers``: of the encoder and as many of the decoder.
    ``heads`` and ``feed_forward``: of a Transformer. ``dropout``: between layers. ``embedding``: of
    words; a Transformer's is as wide as its states. ``least_count``: how often a word is seen in
    training to be in the vocabulary."""

    kind: ArchitectureKind
    embedding: int = 128
    units: int = 256
    layers: int = 2
    heads: int = 2
    feed_forward: int = 2048
    dropout: float = 0.0
    least_count: int = 3

    @property
    def weights(self) -> str:
        """What names the base model, see ``core.specs.ModelSpec``. What its kind does not read
        stands there at its default: it changes no number."""
        return RECIPE + canonical_json(plain_fields(self._as_read))

    @property
    def has_dropout(self) -> bool:
        """Whether its kind has any."""
        return self.kind == "transformer"

    @property
    def _as_read(self) -> Architecture:
        if self.kind == "transformer":
            return self
        unread = {f.name: f.default for f in fields(self) if f.name in _OF_TRANSFORMERS}
        return replace(self, **unread)  # type: ignore[arg-type]

    def parameters(self, vocabulary: int) -> int:
        """How many numbers are trained, embeddings and output untied."""
        words = vocabulary * (2 * self.embedding + self.units + 1)
        if self.kind == "transformer":
            return words + _transformer(self)
        stack = _lstm(self.embedding, self.units, self.layers)
        encoder = {
            "bilstm_attention": _bilstm(self.embedding, self.units, self.layers),
            "hred": stack + _lstm(self.units, self.units, self.layers),
        }.get(self.kind, stack)
        # Additive attention: two maps and a vector; and the map of state and what was attended to.
        attention = 0 if self.kind == "lstm" else (4 * self.units + 2) * self.units
        return words + encoder + stack + attention


def is_recipe(base: str) -> bool:
    """Whether a base model is built."""
    return base.startswith(RECIPE)


def of_weights(weights: str) -> Architecture:
    """The architecture that weights name."""
    return Architecture(**json.loads(weights.removeprefix(RECIPE)))


def saved_in(folder: Path) -> dict[str, object] | None:
    """What a folder says of the built model in it; None: it holds another kind of checkpoint.

    Raises:
        ModelError: the file is damaged.
    """
    file = folder / FILE
    if not file.is_file():
        return None
    content = json_text.read_object(file)
    if "architecture" not in content:
        raise ModelError(f"{file}: damaged, no architecture; train the stage again")
    return content


def refuse_other(folder: Path, weights: str) -> None:
    """Raise ModelError if a folder holds a snapshot of another architecture than ``weights``."""
    saved = saved_in(folder)
    wanted = plain_fields(of_weights(weights))
    if saved is None or saved["architecture"] != wanted:
        found = "no architecture" if saved is None else canonical_json(saved["architecture"])
        raise ModelError(
            f"{folder / FILE}: found {found}, expected {canonical_json(wanted)}: a snapshot of "
            "another architecture; remove the folder and train the stage again"
        )


def _lstm(inputs: int, units: int, layers: int) -> int:
    """torch's LSTM: four gates, each with two biases."""
    first = 4 * units * (inputs + units + 2)
    return first + (layers - 1) * 4 * units * (2 * units + 2)


def _bilstm(inputs: int, units: int, layers: int) -> int:
    first = 8 * units * (inputs + units + 2)
    return first + (layers - 1) * 8 * units * (3 * units + 2)


def _transformer(of: Architecture) -> int:
    width = of.units
    attention = 4 * width * (width + 1)
    block = 2 * width * of.feed_forward + of.feed_forward + width
    norm = 2 * width
    encoder = attention + block + 2 * norm
    decoder = 2 * attention + block + 3 * norm
    return of.layers * (encoder + decoder) + 2 * norm
