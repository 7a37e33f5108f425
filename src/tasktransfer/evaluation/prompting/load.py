"""From a checkpoint to a model that is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tasktransfer.core.specs import ModelSpec
from tasktransfer.encoding.tokenizer import check_vocabulary, load_tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.evaluation.prompting.chat_template import open_template
from tasktransfer.evaluation.prompting.local import CausalModel
from tasktransfer.evaluation.prompting.model import Chat
from tasktransfer.evaluation.prompting.seq2seq import Seq2SeqModel
from tasktransfer.evaluation.prompting.texts import Texts
from tasktransfer.models.check_model import check_length
from tasktransfer.models.checkpoint import load_pretrained
from tasktransfer.tasks.asking import Prompt
from tasktransfer.training.hardware import Hardware

PLAIN = "an encoder-decoder is asked in plain text"


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
        chat: whether its chat template renders prompts; ``auto``: if it has one.

    Raises:
        ModelError: it is an encoder, lacks the chat template that ``chat`` asks for or has a broken
            one, or its tokenizer cannot be read.
    """
    if model.family not in ("decoder", "encoder_decoder"):
        raise ModelError(f"{start}: an encoder writes nothing and cannot be asked; take a decoder")
    tokenizer = load_tokenizer(start, revision, model.family)
    if model.family == "encoder_decoder":
        if chat == "yes":
            raise ModelError(f"{start}: {PLAIN}; set chat: auto for this prompted model")
        notes = (f"it has a chat template, but {PLAIN}",) if tokenizer.chat_template else ()
        return Texts(tokenizer, model.max_length, notes=notes)
    if chat == "yes" and not tokenizer.chat_template:
        raise ModelError(f"{start}: has no chat template; set chat: auto for this prompted model")
    if chat == "no" or not tokenizer.chat_template:
        return Texts(tokenizer, model.max_length)
    template = open_template(tokenizer, start)
    return Texts(tokenizer, model.max_length, template, template.notes)


def check_prompts(model: ModelSpec, start: str, chat: Chat, *, examples: bool) -> tuple[str, ...]:
    """Render a prompt as the model would read it; return what a record would note about it.

    Args:
        start: folder of the checkpoint.
        chat: see ``load_texts``.
        examples: whether prompts have examples, which are turns of the assistant.

    Raises:
        ModelError: see ``load_texts`` and ``Texts.text``.
    """
    texts = load_texts(model, start, None, chat)
    turns = ("A question.", "An answer.", "Another question.")
    texts.text(Prompt(turns if examples else turns[:1]))
    return texts.notes


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
    check_length(module, start, model.max_length)
    config = module.config.get_text_config()
    layers = int(getattr(config, "num_hidden_layers", None) or config.num_layers)
    sized: Any = _Sized(module, int(config.hidden_size), layers)
    setup = hardware.setup(sized, model.family, device)
    module.to(device, torch.bfloat16 if setup.precision == "bfloat16" else torch.float32)
    kind = Seq2SeqModel if model.family == "encoder_decoder" else CausalModel
    return kind(module, texts, device, setup)
