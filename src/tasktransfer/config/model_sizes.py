"""The size of a checkpoint, read from its files or looked up by its name."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tasktransfer.config.places import expand_path
from tasktransfer.core.specs import Family
from tasktransfer.files import json_text
from tasktransfer.files.json_text import read_tensor_shapes

Basis = Literal[
    "its files", "its config", "its name", "its recipe", "a guess: as large as BERT base"
]


@dataclass(frozen=True, slots=True)
class ModelSize:
    """The size of a model.

    Attributes:
        parameters: total number of parameters.
        hidden: hidden size.
        layers: number of layers of encoder and decoder together.
        vocabulary: number of tokens of the vocabulary.
        basis: source of these numbers.
        adapter: number of parameters of the trained adapter, None if the weights are trained.
        written: fraction of tokens that belong to answers, for which the output layer computes
            logits of the whole vocabulary.
    """

    parameters: int
    hidden: int
    layers: int
    vocabulary: int
    basis: Basis
    adapter: int | None = None
    written: float = 0.0

    @property
    def is_guess(self) -> bool:
        """True if neither files nor a published size of the model are known."""
        return self.basis == "a guess: as large as BERT base"

    @property
    def trained(self) -> int:
        """Number of parameters that are trained, with gradients and optimiser states."""
        return self.parameters if self.adapter is None else self.adapter

    @property
    def backward_cost(self) -> float:
        """Cost of the backward pass, in units of a forward pass.

        It is one pass for the gradients of the inputs, and a part of one for the trained weights.
        """
        return 1 + self.trained / self.parameters

    def count_multiplied_parameters(self, family: Family) -> float:
        """Return the number of parameters by which each input token is multiplied.

        Embeddings are only looked up, except in a decoder's output layer. An input of an
        encoder-decoder passes the encoder only, about half of the model. In a dual encoder context
        and reply pass one encoder each.
        """
        inner = max(self.parameters - self.vocabulary * self.hidden, self.parameters * 0.3)
        return {
            "encoder": inner,
            "decoder": self.parameters,
            "encoder_decoder": inner / 2 + self.written * self.vocabulary * self.hidden,
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
    "all-minilm-l6-v2": (22_700_000, 384, 6, 30522),
    "all-mpnet-base-v2": (109_500_000, 768, 12, 30527),
    "smollm2-135m-instruct": (134_500_000, 576, 30, 49152),
    "t5-small": (60_500_000, 512, 12, 32128),
    "t5-base": (222_900_000, 768, 24, 32128),
    "t5-large": (737_700_000, 1024, 48, 32128),
    "t5-3b": (2_851_600_000, 1024, 48, 32128),
    "modernbert-base": (149_000_000, 768, 22, 50368),
    "modernbert-large": (394_800_000, 1024, 28, 50368),
    **{
        f"ettin-{kind}-{name}": size
        for kind in ("encoder", "decoder")
        for name, size in {
            "17m": (16_800_000, 256, 7, 50368),
            "32m": (31_900_000, 384, 10, 50368),
            "68m": (68_100_000, 512, 19, 50368),
            "150m": (149_000_000, 768, 22, 50368),
            "400m": (394_800_000, 1024, 28, 50368),
            "1b": (1_028_100_000, 1792, 28, 50368),
        }.items()
    },
    "deberta-v3-base": (183_800_000, 768, 12, 128100),
    "qwen3-0.6b": (596_000_000, 1024, 28, 151936),
    "smollm2-135m": (134_500_000, 576, 30, 49152),
    "smollm2-360m": (361_800_000, 960, 32, 49152),
}
"""Lower-case hub name without owner → parameters, hidden size, layers, vocabulary."""

_HIDDEN = ("hidden_size", "d_model", "n_embd", "dim")
_INNER = ("intermediate_size", "d_ff", "n_inner", "hidden_dim")
_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")


def read_model_size(folder: Path) -> ModelSize | None:
    """Read the size of the checkpoint in a folder, or return None without readable weights."""
    parameters = 0
    for file in folder.glob("*.safetensors"):
        shapes = read_tensor_shapes(file)
        if shapes is None:
            return None
        parameters += sum(map(math.prod, shapes.values()))
    config = json_text.read_object(folder / "config.json")
    if not parameters and not any(name in config for name in _HIDDEN):
        return None

    def first(names: tuple[str, ...], default: int) -> int:
        return next((config[name] for name in names if isinstance(config.get(name), int)), default)

    layers = first(_LAYERS, 12) + int(config.get("num_decoder_layers") or 0)
    hidden, words = first(_HIDDEN, 768), first(("vocab_size",), 30522)
    if parameters:
        return ModelSize(parameters, hidden, layers, words, "its files")
    inner = first(_INNER, 4 * hidden)
    parameters = words * hidden + layers * (4 * hidden + 2 * inner) * hidden
    return ModelSize(parameters, hidden, layers, words, "its config")


def find_published_size(checkpoint: str) -> ModelSize:
    """Return the published size of a checkpoint by its name, or the size of BERT base."""
    short = checkpoint.rstrip("/").rsplit("/", 1)[-1].lower().removeprefix("flan-")
    short = short.split(".q")[0].removesuffix(".gguf")  # the quantisation in a GGUF file's name
    for ending in ("-uncased", "-cased"):
        short = short.removesuffix(ending)
    if checkpoint == "tiny":
        return ModelSize(*_TINY, "its name")
    if short in _PUBLISHED:
        return ModelSize(*_PUBLISHED[short], "its name")
    return ModelSize(*_GUESS, "a guess: as large as BERT base")


def find_layer_count(checkpoint: str, family: Family, revision: str) -> int | None:
    """Return the number of layers of a checkpoint's encoder or decoder, or None if it is unknown.

    It is read from the config in the checkpoint's folder or in the hub's cache, or looked up by the
    checkpoint's name.
    """
    place = Path(expand_path(checkpoint))
    for folder in (place, *list_cached_folders(checkpoint, revision)):
        config = json_text.read_object(folder / "config.json")
        for name in ("encoder_layers", *_LAYERS) if family == "encoder_decoder" else _LAYERS:
            if isinstance(config.get(name), int):
                return int(config[name])
    size = find_published_size(checkpoint)
    if size.basis != "its name":
        return None
    both = family == "encoder_decoder" and checkpoint != "tiny"
    return size.layers // 2 if both else size.layers


def list_cached_folders(name: str, revision: str) -> Iterator[Path]:
    """Yield the folders in the Hugging Face hub's cache that contain a model."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    folder = hub / f"models--{name.replace('/', '--')}"
    yield folder / "snapshots" / revision
    try:
        commit = (folder / "refs" / revision).read_text().strip()
    except (OSError, ValueError):
        return
    yield folder / "snapshots" / commit
