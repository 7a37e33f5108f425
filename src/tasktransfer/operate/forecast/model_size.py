"""How large a model is, read off its files, or known by name."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tasktransfer.config import TINY
from tasktransfer.core.architecture import of_weights
from tasktransfer.core.specs import Family
from tasktransfer.files import json_text
from tasktransfer.files.tensors import tensor_shapes
from tasktransfer.results.revisions import is_hub_name
from tasktransfer.results.study import Study

Basis = Literal["its files", "its name", "its recipe", "a guess: as large as BERT base"]


@dataclass(frozen=True, slots=True)
class ModelSize:
    """``parameters`` in all; ``layers`` of encoder and decoder together."""

    parameters: int
    hidden: int
    layers: int
    vocabulary: int
    basis: Basis

    def working(self, family: Family) -> float:
        """Parameters that a token of the input is multiplied with. Embeddings are looked up only,
        except where a decoder's output layer uses them; and an encoder-decoder's input passes its
        first half; context and reply pass an encoder each."""
        inner = max(self.parameters - self.vocabulary * self.hidden, self.parameters * 0.3)
        return {
            "encoder": inner,
            "decoder": self.parameters,
            "encoder_decoder": inner / 2,
            "dual_encoder": inner,
        }[family]


_GUESS = (109_500_000, 768, 12, 30522)
_TINY = (200_000, 64, 2, 1200)
_PUBLISHED = {
    "bert-base": _GUESS,
    "bert-large": (335_100_000, 1024, 24, 30522),
    "distilbert-base": (66_400_000, 768, 6, 30522),
    "roberta-base": (124_600_000, 768, 12, 50265),
    "roberta-large": (355_400_000, 1024, 24, 50265),
    "gpt2": (124_400_000, 768, 12, 50257),
    "distilgpt2": (81_900_000, 768, 6, 50257),
    "gpt2-medium": (354_800_000, 1024, 24, 50257),
    "gpt2-large": (774_000_000, 1280, 36, 50257),
    "gpt2-xl": (1_557_600_000, 1600, 48, 50257),
    "t5-small": (60_500_000, 512, 12, 32128),
    "t5-base": (222_900_000, 768, 24, 32128),
    "t5-large": (737_700_000, 1024, 48, 32128),
    "t5-3b": (2_851_600_000, 1024, 48, 32128),
}
"""Name on the hub, without owner and case → parameters, hidden size, layers, vocabulary."""

WORDS = 10_000
"""The vocabulary of a model that is built, before the data says it."""

_HIDDEN = ("hidden_size", "d_model", "n_embd", "dim")
_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")


def model_size(study: Study, name: str) -> ModelSize:
    """The size of a model of a study: from its files where they are on this disk, else by name."""
    model = study.model(name)
    checkpoint, made = model.checkpoint, model.built
    if model.recipe is not None:
        built = of_weights(model.recipe)
        return ModelSize(
            built.parameters(WORDS), built.units, 2 * built.layers, WORDS, "its recipe"
        )
    if made is not None:
        layer = 4 * made.hidden**2 + 2 * made.hidden * made.feed_forward
        layers = made.layers + made.decoder_layers
        parameters = made.words * made.hidden + layers * layer
        return ModelSize(parameters, made.hidden, layers, made.words, "its recipe")
    for folder in _folders(study, name):
        if size := _from_folder(folder):
            return size
    if checkpoint == TINY:
        return ModelSize(*_TINY, "its name")
    short = checkpoint.rstrip("/").rsplit("/", 1)[-1].lower().removeprefix("flan-")
    for ending in ("-uncased", "-cased"):
        short = short.removesuffix(ending)
    if short in _PUBLISHED:
        return ModelSize(*_PUBLISHED[short], "its name")
    return ModelSize(*_GUESS, "a guess: as large as BERT base")


def _folders(study: Study, name: str) -> Iterator[Path]:
    base = study.base_model(name)
    if not is_hub_name(base):
        yield Path(base).expanduser()
        return
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    folder = hub / f"models--{base.replace('/', '--')}"
    revision = study.revision(name) or "main"
    yield folder / "snapshots" / revision
    try:
        commit = (folder / "refs" / revision).read_text().strip()
    except (OSError, ValueError):
        return
    yield folder / "snapshots" / commit


def _from_folder(folder: Path) -> ModelSize | None:
    """None where there are no weights that can be read."""
    parameters = 0
    for file in folder.glob("*.safetensors"):
        shapes = tensor_shapes(file)
        if shapes is None:
            return None
        parameters += sum(map(math.prod, shapes.values()))
    if not parameters:
        return None
    config = json_text.read_object(folder / "config.json")

    def first(names: tuple[str, ...], default: int) -> int:
        return next((config[name] for name in names if isinstance(config.get(name), int)), default)

    layers = first(_LAYERS, 12) + int(config.get("num_decoder_layers") or 0)
    return ModelSize(
        parameters, first(_HIDDEN, 768), layers, first(("vocab_size",), 30522), "its files"
    )
