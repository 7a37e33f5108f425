"""BERT-base, GPT-2 and T5-base without weights, and artificial batches for the fake CUDA device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)

from fake_device import CUDA
from tasktransfer.core.fidelity import DEFAULT
from tasktransfer.core.specs import Family
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers import attention
from tasktransfer.layers.dropout import use_fast_dropout
from tasktransfer.layers.ragged import build_ragged
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.text_to_text import Decoder, EncoderDecoder
from tasktransfer.tasks.card import Task

META = torch.device("meta")
LONGEST_ANSWER = 4


def model_of(
    family: Family, task: Task, layers: int = 12, *, backbone: Any = None, **more: Any
) -> FamilyModel:
    """Build a model of its family's base shape without weights, see ``move``.

    Args:
        backbone: backbone to use instead of the family's own.
        more: arguments of ``Encoder``.
    """
    backbone = backbone or _backbone(family, layers)
    use_fast_dropout(backbone)
    attention.register_attention()
    backbone.set_attn_implementation(attention.NAME)
    tasks, longest = {task.name: task}, {task.name: LONGEST_ANSWER}
    model: Any
    if family == "encoder":
        model = Encoder(backbone, tasks, seed=0, pad_token_id=0, token_types=True,
                        longest_spans=longest, fidelity=DEFAULT, device=META,
                        first_position=0, **more)  # fmt: skip
    elif family == "decoder":
        model = Decoder(backbone, TOKENIZER, tasks, max_answer_tokens=longest,
                        loss_on="answer", device=META)  # fmt: skip
    else:
        model = EncoderDecoder(backbone, TOKENIZER, tasks, max_answer_tokens=longest, device=META)
    return model


def move(model: Any) -> None:
    """Move a model's weights to the fake device; see ``watched``."""
    for part in (model, getattr(model, "model", model)):
        part.device = CUDA
    moved: dict[int, Tensor] = {}
    for held in [d for m in model.module.modules() for d in (m._parameters, m._buffers)]:
        for name, value in held.items():
            if value is None:
                continue
            there = torch.empty(value.shape, dtype=value.dtype, device=CUDA)
            is_parameter = isinstance(value, nn.Parameter)
            kept = nn.Parameter(there) if is_parameter else there
            held[name] = moved.setdefault(id(value), kept)  # tied weights stay tied


def _backbone(family: Family, layers: int) -> Any:
    with META:
        if family == "encoder":
            return BertModel(BertConfig(num_hidden_layers=layers))
        if family == "decoder":
            return GPT2LMHeadModel(GPT2Config(n_layer=layers, pad_token_id=0, eos_token_id=1))
        sizes = {"d_model": 768, "d_ff": 3072, "num_heads": 12, "num_layers": layers}
        tokens = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
        return T5ForConditionalGeneration(T5Config(**sizes, **tokens))


TOKENIZER = SimpleNamespace(
    pad_token_id=0, eos_token_id=1, batch_decode=lambda rows, **_: ["neutral"] * len(rows)
)


def batch_of(family: Family, dataset: str, name: str, count: int = 60) -> EncodedSplit:
    """Build ``count`` artificial examples with 12 to 512 tokens, distributed as in dialogues."""
    draw = np.random.default_rng(0)
    task = get_task(dataset, name)
    options = 4 if family == "encoder" and task.kind == "multiple_choice" else 1
    lengths = np.clip(draw.gamma(2.0, 75, count * options), 12, 512).astype(int)
    sequences = [draw.integers(5, 1000, length) for length in lengths]
    rows, offsets = range(count), [np.arange(2 * n) for n in lengths]
    nothing = [np.zeros(0, int)] * count
    labels = [draw.integers(5, 1000, LONGEST_ANSWER - u % 2) for u in rows]
    if family == "encoder":
        labels = [_labels(task, int(lengths[u * options])) for u in rows]
    return EncodedSplit(
        task=name,
        instance=np.arange(count, dtype=np.int32),
        output=np.zeros(count, np.int32),
        first_sequence=np.arange(0, (count + 1) * options, options, dtype=np.int32),
        sequences=build_ragged(sequences),
        second_starts=(lengths // 2).astype(np.int32),
        labels=build_ragged(labels),
        offsets=build_ragged(offsets if task.kind == "span" else nothing),
        ids=[str(u) for u in rows],
        dialogue_ids=[None] * count,
        targets=[("neutral",)] * count,
        contexts=["x" * 2000] * count,
    )


def _labels(task: Task, tokens: int) -> Any:
    match task.kind:
        case "span":
            return np.array([1, tokens // 2])
        case "multi_label":
            return np.arange(task.classes) == 0
        case "multi_output":
            return np.zeros(len(task.outputs), int)
        case _:
            return np.zeros(1, int)
