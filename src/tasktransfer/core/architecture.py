"""Encoder-decoders that are built from a recipe instead of a checkpoint.

Source: Parthasarathi et al. 2021, section 4.2 and Appendix A. Every command imports this module, so
it does not import torch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from tasktransfer.core.identity import to_canonical_json
from tasktransfer.core.specs import list_plain_fields
from tasktransfer.errors import ModelError
from tasktransfer.files import json_text

RECIPE = "recipe:"
"""Prefix of the weights' name of a built model. Its architecture follows as JSON."""

FILE = "architecture.json"

ArchitectureKind = Literal["lstm", "lstm_attention", "bilstm_attention", "hred", "transformer"]

_TRANSFORMER_FIELDS = ("heads", "feed_forward", "dropout")
"""Fields that a recurrent model does not read."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The architecture of a built encoder-decoder.

    Attributes:
        embedding: size of word embeddings. A Transformer uses its hidden size.
        units: hidden size.
        layers: number of layers of the encoder, and of the decoder.
        heads: number of attention heads of a Transformer.
        feed_forward: inner size of a Transformer's feed-forward layers.
        dropout: dropout rate between layers.
        least_count: minimum count of a word in the training texts to be in the vocabulary.
    """

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
        """Name that identifies the base model's weights (see ``core.specs.ModelSpec``).

        Fields that its kind does not use have their default there, because they change no number.
        """
        return RECIPE + to_canonical_json(list_plain_fields(self._with_read_fields))

    @property
    def has_dropout(self) -> bool:
        """True if models of this kind use dropout."""
        return self.kind == "transformer"

    @property
    def _with_read_fields(self) -> Architecture:
        if self.kind == "transformer":
            return self
        unread = {f.name: f.default for f in fields(self) if f.name in _TRANSFORMER_FIELDS}
        return replace(self, **unread)  # type: ignore[arg-type]

    def count_parameters(self, vocabulary: int) -> int:
        """Return the number of trained parameters. Embeddings and output layer are not tied."""
        words = vocabulary * (2 * self.embedding + self.units + 1)
        if self.kind == "transformer":
            return words + _count_transformer_parameters(self)
        stack = _count_lstm_parameters(self.embedding, self.units, self.layers)
        encoder = {
            "bilstm_attention": _count_bilstm_parameters(self.embedding, self.units, self.layers),
            "hred": stack + _count_lstm_parameters(self.units, self.units, self.layers),
        }.get(self.kind, stack)
        # Additive attention: two matrices and a vector, and a matrix for state and context vector.
        attention = 0 if self.kind == "lstm" else (4 * self.units + 2) * self.units
        return words + encoder + stack + attention


def is_recipe(base: str) -> bool:
    """Return whether a base model is built from a recipe instead of a checkpoint."""
    return base.startswith(RECIPE)


def parse_weights(weights: str) -> Architecture:
    """Parse the architecture of a built model from the name of its weights."""
    return Architecture(**json.loads(weights.removeprefix(RECIPE)))


def read_metadata(folder: Path) -> dict[str, object] | None:
    """Read the metadata of a built model from its folder, or return None for checkpoints.

    Raises:
        ModelError: the file is damaged.
    """
    file = folder / FILE
    if not file.is_file():
        return None
    content = json_text.read_object(file)
    if "architecture" not in content:
        raise ModelError(
            f"{file}: The file does not describe an architecture, so it is probably damaged. "
            "Train the stage again."
        )
    return content


def check_architecture(folder: Path, weights: str) -> None:
    """Raise ModelError if a folder's snapshot has an architecture other than ``weights``."""
    saved = read_metadata(folder)
    wanted = list_plain_fields(parse_weights(weights))
    if saved is None or saved["architecture"] != wanted:
        found = "no architecture" if saved is None else to_canonical_json(saved["architecture"])
        raise ModelError(
            f"{folder / FILE}: The snapshot has the architecture {found}, but the config "
            f"specifies {to_canonical_json(wanted)}. Remove the folder and train the stage again."
        )


def _count_lstm_parameters(inputs: int, units: int, layers: int) -> int:
    """Return the number of parameters of torch's LSTM (four gates with two biases each)."""
    first = 4 * units * (inputs + units + 2)
    return first + (layers - 1) * 4 * units * (2 * units + 2)


def _count_bilstm_parameters(inputs: int, units: int, layers: int) -> int:
    first = 8 * units * (inputs + units + 2)
    return first + (layers - 1) * 8 * units * (3 * units + 2)


def _count_transformer_parameters(architecture: Architecture) -> int:
    width, inner = architecture.units, architecture.feed_forward
    attention = 4 * width * (width + 1)
    block = 2 * width * inner + inner + width
    norm = 2 * width
    encoder = attention + block + 2 * norm
    decoder = 2 * attention + block + 3 * norm
    return architecture.layers * (encoder + decoder) + 2 * norm
