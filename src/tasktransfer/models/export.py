"""Writing of a fine-tuned encoder with its head as a folder that other libraries load.

transformers has a class per architecture, whose head reads one kind of pooled state. If this is the
state that our head reads, its weights get the class's names. Any other head is written in the
layout of sentence-transformers: Transformer, Pooling, and Dense without activation. Neither
library has a layout for a head that reads only the labelled turn. The encoder of such a model is
saved in transformers' format, and its head in a separate file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from tasktransfer.core.nodes import Stage
from tasktransfer.errors import ModelError
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.load import Loading, load_model
from tasktransfer.models.low_rank import merge_adapters
from tasktransfer.models.pairs import average_tokens
from tasktransfer.tasks.card import Task

TOLERANCE = 1e-5
"""Largest difference between the logits of our head and of a class of transformers."""

POOLING_FOLDER = "1_Pooling"
DENSE_FOLDER = "2_Dense"
DENSE_WEIGHTS = "model.safetensors"


class EncoderFormat(NamedTuple):
    """A written encoder's format: the library that loads it, and what its head reads."""

    layout: Literal["transformers", "sentence_transformers", "tasktransfer"]
    pooling: Literal["pooler", "first_token", "mean", "turn"]


def load_trained_encoder(
    stage: Stage, task: Task, checkpoint: str, encoded: Path, base: str, revision: str | None
) -> Encoder:
    """Load a stage's best round on the CPU, with transformers' own layers.

    Args:
        encoded: folder of the stage's token ids, for their manifest and tokenizer.
        base, revision: released model under the checkpoint of an adapter.
    """
    loading = Loading(
        *(stage.model, stage.training, encoded, stage.seed, torch.device("cpu")),
        plain=True,
        base=base,
        base_revision=revision,
    )
    encoder = load_model(loading, checkpoint, None, {task.name: task})
    assert isinstance(encoder, Encoder)
    return encoder


def write_encoder(
    encoder: Encoder, task: str, labels: Sequence[str], max_length: int, folder: Path
) -> EncoderFormat:
    """Write an encoder and the head of one task as config.json and safetensors.

    Args:
        encoder: the model, on the CPU. Its adapter of low rank is merged into its weights.
        labels: labels in the order of the head's outputs.
        max_length: maximum sequence length in tokens.
        folder: existing folder.

    Raises:
        ModelError: the head or the architecture cannot be expressed.
    """
    if encoder.adapters is not None or encoder.reads == "pair":
        what = "compares two segments" if encoder.reads == "pair" else "has bottleneck adapters"
        raise ModelError(
            f"models[].{'reads' if encoder.reads == 'pair' else 'adapter_reduction'}: The model "
            f"formats of transformers cannot represent a model that {what}. Export another model."
        )
    encoder.module.eval()
    head = encoder.heads[task]
    assert isinstance(head, nn.Linear)
    backbone = merge_adapters(encoder.backbone)
    config = _add_label_names(backbone.config, labels)
    if encoder.reads not in ("mean", "turn"):
        model = _build_classifier(backbone, head, config)
        if model is not None:
            model.save_pretrained(folder)
            return EncoderFormat("transformers", "pooler")
        if _has_pooler(backbone):
            raise ModelError(
                f"{config.model_type}: The package transformers has no classifier that reads "
                "this pooler. Set models[].reads: mean and train again, or export another "
                "model."
            )
    backbone.config = config
    backbone.save_pretrained(folder)
    dense = folder / DENSE_FOLDER
    if encoder.reads == "turn" and encoder.tasks[task].kind == "utterance_classification":
        dense.mkdir()
        write_dense_layer(dense, head.weight, head.bias)
        return EncoderFormat("tasktransfer", "turn")
    pooling: Literal["first_token", "mean"] = (
        "mean" if encoder.reads in ("mean", "turn") else "first_token"
    )
    write_sentence_modules(folder, pooling, max_length, encoder.hidden_size, normalised=False)
    write_dense_layer(dense, head.weight, head.bias)
    return EncoderFormat("sentence_transformers", pooling)


def _add_label_names(config: Any, labels: Sequence[str]) -> Any:
    """Return a copy of a config that names the labels."""
    described = deepcopy(config)
    described.update(build_label_config(labels))
    return described


def build_label_config(labels: Sequence[str]) -> dict[str, Any]:
    """Return the config keys with the names of a classifier's labels."""
    return {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: index for index, label in enumerate(labels)},
        "problem_type": "single_label_classification",
    }


def _has_pooler(backbone: Any) -> bool:
    return getattr(backbone, "pooler", None) is not None


def _build_classifier(backbone: Any, head: nn.Linear, config: Any) -> Any:
    """Return transformers' classifier with our weights, or None if its logits would differ.

    Its head is a linear layer on the pooler's output, as in BERT, or contains the pooler, as in
    RoBERTa. Whether this is true is tested on random tokens.
    """
    from transformers import AutoModelForSequenceClassification

    classes: Any = AutoModelForSequenceClassification  # transformers leaves from_config untyped
    try:
        model = classes.from_config(config)
    except ValueError:  # the architecture has no classifier
        return None
    model.eval()
    body = getattr(model, model.base_model_prefix)
    body.load_state_dict(backbone.state_dict(), strict=False)
    own: Any = getattr(model, "classifier", None)
    dense = getattr(getattr(backbone, "pooler", None), "dense", None)
    pairs: list[tuple[Any, nn.Module | None]] = [(own, head)]
    if hasattr(own, "out_proj"):
        pairs = [(own.out_proj, head), (getattr(own, "dense", None), dense)]
    for target, source in pairs:
        if not isinstance(target, nn.Linear) or source is None:
            return None
        target.load_state_dict(source.state_dict())
    tokens, chance = config.vocab_size, torch.Generator().manual_seed(0)
    ids = torch.randint(tokens // 2, tokens, (2, 8), generator=chance)
    with torch.inference_mode():
        expected = head(pool_states(backbone(ids), "pooler", torch.full((2,), ids.shape[1])))
        difference = float((model(ids).logits - expected).abs().max())
    return model if difference <= TOLERANCE else None


def pool_states(
    outputs: Any, pooling: str, lengths: Tensor, turn_starts: Tensor | None = None
) -> Tensor:
    """Return the pooled state of each sequence, as a head reads it, (sequences, hidden size).

    Args:
        outputs: outputs of an encoder for padded sequences.
        pooling: ``mean``, ``turn``, ``first_token``, or ``pooler``, which is the first token if the
            encoder has no pooler.
        lengths: number of tokens of each sequence.
        turn_starts: index of the first token of each sequence's labelled turn, for ``turn``.
    """
    hidden: Tensor = outputs.last_hidden_state
    if pooling in ("mean", "turn"):
        return average_tokens(hidden, lengths, turn_starts if pooling == "turn" else None)
    pooled: Tensor | None = getattr(outputs, "pooler_output", None)
    return hidden[:, 0] if pooled is None or pooling == "first_token" else pooled


# --- the layout of sentence-transformers ----------------------------------------------------------


def write_sentence_modules(
    folder: Path, pooling: str, max_length: int, hidden: int, *, normalised: bool
) -> None:
    """Write the modules and settings that sentence-transformers needs for an encoder.

    Args:
        hidden: hidden size of the encoder.
        normalised: whether the pooled state is scaled to the length 1.
    """
    names = ["Transformer", "Pooling", *["Normalize"] * normalised, "Dense"]
    paths = ["", *(f"{number}_{name}" for number, name in enumerate(names[1:], start=1))]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"sentence_transformers.models.{name}",
        }
        for number, (name, path) in enumerate(zip(names, paths, strict=True))
    ]
    settings = {"max_seq_length": max_length, "do_lower_case": False}
    pooled = {
        "word_embedding_dimension": hidden,
        "pooling_mode_cls_token": pooling == "first_token",
        "pooling_mode_mean_tokens": pooling == "mean",
    }
    for path in paths[1:]:
        (folder / path).mkdir()
    _write_json(folder / "modules.json", modules)
    _write_json(folder / "sentence_bert_config.json", settings)
    _write_json(folder / POOLING_FOLDER / "config.json", pooled)


def write_dense_layer(folder: Path, weight: Tensor, bias: Tensor) -> None:
    """Write a linear layer as a sentence-transformers module in float32."""
    from safetensors.torch import save_file

    tensors = {"linear.weight": weight, "linear.bias": bias}
    save_file(
        {name: t.detach().float().cpu().contiguous() for name, t in tensors.items()},
        folder / DENSE_WEIGHTS,
        metadata={"format": "pt"},
    )
    settings = {
        "in_features": weight.shape[1],
        "out_features": weight.shape[0],
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    _write_json(folder / "config.json", settings)


def _write_json(file: Path, value: Any) -> None:
    file.write_text(f"{json.dumps(value, indent=1)}\n", encoding="utf-8")
