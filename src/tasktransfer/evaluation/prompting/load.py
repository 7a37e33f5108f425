"""From a checkpoint to a model that is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tasktransfer.core.specs import ModelSpec
from tasktransfer.encoding.tokenizer import check_vocabulary, load_tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.evaluation.prompting.local import CausalModel
from tasktransfer.evaluation.prompting.model import Chat
from tasktransfer.evaluation.prompting.seq2seq import Seq2SeqModel
from tasktransfer.evaluation.prompting.texts import Texts
from tasktransfer.models.checkpoint import load_pretrained
from tasktransfer.training.hardware import Hardware


@dataclass(frozen=True, slots=True)
class _Sized:
    """As much of a model as its precision and memory are chosen by."""

    module: Any
    hidden_size: int
    layers: int
    side_by_side: bool = False


def load_texts(model: ModelSpec, start: str, revision: str | None, chat: Chat = "auto") -> Texts:
    """What a released model reads, without its weights.

    Args:
        start: Hugging Face name or folder.
        chat: whether prompts are put as its chat template has them; ``auto``: where it has one.

    Raises:
        ModelError: it is an encoder, has no chat template where one is asked for, or its tokenizer
            cannot be read.
    """
    if model.family not in ("decoder", "encoder_decoder"):
        raise ModelError(f"{start}: an encoder writes nothing and cannot be asked; take a decoder")
    tokenizer = load_tokenizer(start, revision, model.family)
    has = bool(tokenizer.chat_template) and model.family == "decoder"
    if chat == "yes" and not has:
        raise ModelError(f"{start}: has no chat template; set chat: auto for this prompted model")
    return Texts(tokenizer, model.max_length, has if chat == "auto" else chat == "yes")


def load_asked(
    model: ModelSpec, start: str, revision: str | None, hardware: Hardware, chat: Chat = "auto"
) -> CausalModel | Seq2SeqModel:
    """A released model on this process's device. In bfloat16 its weights are, too.

    Args:
        start, chat: see ``load_texts``.

    Raises:
        ModelError: it cannot be asked (``load_texts``) or read (``checkpoint.load_pretrained``).
    """
    texts = load_texts(model, start, revision, chat)
    device = hardware.device()
    module = load_pretrained(model.family, start, revision)
    check_vocabulary(texts.tokenizer, module.get_input_embeddings().weight.shape[0], start)
    config = module.config.get_text_config()
    layers = int(getattr(config, "num_hidden_layers", None) or config.num_layers)
    sized: Any = _Sized(module, int(config.hidden_size), layers)
    setup = hardware.setup(sized, model.family, device)
    module.to(device, torch.bfloat16 if setup.precision == "bfloat16" else torch.float32)
    kind = Seq2SeqModel if model.family == "encoder_decoder" else CausalModel
    return kind(module, texts, device, setup)
