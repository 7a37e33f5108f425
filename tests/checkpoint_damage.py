"""Ways to damage a checkpoint's folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from architectures import write_checkpoint, write_tokenizer
from tasktransfer.core.specs import Family

Damage = Callable[[Path], object]
Weights = dict[str, torch.Tensor]
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Bad:
    """A damaged folder.

    ``message``: expected text of the error, after the folder or file name. ``family``: that of the
    study; None for the architecture's own.
    """

    name: str
    architecture: str
    message: str
    damage: Damage = lambda folder: None
    family: Family | None = None
    max_length: int = 128
    settings: dict[str, object] = field(default_factory=dict)


# --- ways to damage a folder --------------------------------------------------------------------


def without(*patterns: str) -> Damage:
    def damage(folder: Path) -> None:
        for pattern in patterns:
            for file in folder.glob(pattern):
                file.unlink()

    return damage


def with_bytes(name: str, change: Callable[[bytes], bytes]) -> Damage:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def with_content(name: str, content: bytes) -> Damage:
    return with_bytes(name, lambda _: content)


def with_weights(change: Callable[[Weights], Weights]) -> Damage:
    def damage(folder: Path) -> None:
        weights = load_file(folder / WEIGHTS)
        changed = {name: tensor.clone() for name, tensor in change(weights).items()}
        save_file(changed, folder / WEIGHTS, {"format": "pt"})

    return damage


def with_prefix(prefix: str) -> Damage:
    return with_weights(lambda weights: {f"{prefix}{n}": t for n, t in weights.items()})


def with_tensor(name: str) -> Damage:
    return with_weights(lambda weights: {**weights, name: torch.ones(3)})


def without_tensors(part: str) -> Damage:
    return with_weights(lambda weights: {n: t for n, t in weights.items() if part not in n})


def with_json(name: str, **values: object) -> Damage:
    def damage(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        content.update(values)
        kept = {key: value for key, value in content.items() if value is not ...}
        (folder / name).write_text(json.dumps(kept))

    return damage


def without_merges(folder: Path) -> None:
    """Write RoBERTa's older tokenizer files, one of which is missing."""
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    without("tokenizer*", "special*")(folder)
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))


def tokenizer_a_folder(folder: Path) -> None:
    without("tokenizer.json")(folder)
    (folder / "tokenizer.json").mkdir()


def another_vocabulary(folder: Path) -> None:
    without("tokenizer*", "special*")(folder)
    (folder / "spiece.model").write_bytes(b"not BERT's")


def one_value(value: float) -> Damage:
    def change(weights: Weights) -> Weights:
        name = next(n for n in weights if "layer.1" in n)
        weights[name].view(-1)[0] = value
        return weights

    return with_weights(change)


def weights_of(architecture: str) -> Damage:
    def damage(folder: Path) -> None:
        other = write_checkpoint(architecture, folder / "other")
        (other / WEIGHTS).replace(folder / WEIGHTS)

    return damage


def no_padding(folder: Path) -> None:
    with_json("tokenizer_config.json", pad_token=..., eos_token=...)(folder)
    with_json("special_tokens_map.json", pad_token=...)(folder) if (
        folder / "special_tokens_map.json"
    ).exists() else None


def without_head(folder: Path) -> None:
    AutoModel.from_pretrained(folder).save_pretrained(folder)


def words(count: int) -> Damage:
    """Return a damage that adds or removes tokens of the tokenizer."""
    texts = [" ".join(f"{a}{b}{c}" for a in "abcdefghij" for b in "klmnopq" for c in "rstuv")]
    return lambda folder: write_tokenizer("encoder", texts[:count] * 4, folder)
