"""Loading of checkpoints as prompted models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tasktransfer.core.specs import ModelSpec
from tasktransfer.encoding.tokenizer import check_vocabulary_size, load_tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.evaluation.prompting.chat_template import load_chat_template
from tasktransfer.evaluation.prompting.local import CausalModel
from tasktransfer.evaluation.prompting.model import Chat
from tasktransfer.evaluation.prompting.seq2seq import Seq2SeqModel
from tasktransfer.evaluation.prompting.texts import PromptTokenizer
from tasktransfer.models.check_model import check_length
from tasktransfer.models.checkpoint import load_pretrained
from tasktransfer.tasks.asking import Prompt
from tasktransfer.training.hardware import Hardware

PLAIN_TEXT_REASON = "an encoder-decoder is prompted in plain text"


@dataclass(frozen=True, slots=True)
class _ModelSize:
    """Properties of a model that determine its precision and memory."""

    module: Any
    hidden_size: int
    layers: int
    side_by_side: bool = False


def load_prompt_tokenizer(
    model: ModelSpec, start: str, revision: str | None, chat: Chat = "auto"
) -> PromptTokenizer:
    """Load a released model's tokenizer and chat template, without weights.

    Args:
        start: Hugging Face name or folder.
        chat: whether its chat template renders prompts. ``auto`` uses the template if there is
            one.

    Raises:
        ModelError: the model is an encoder, has a broken chat template or none although ``chat``
            requires one, or its tokenizer cannot be read.
    """
    if model.family not in ("decoder", "encoder_decoder"):
        raise ModelError(f"{start}: An encoder cannot generate text. Prompt a decoder instead.")
    tokenizer = load_tokenizer(start, revision, model.family)
    if model.family == "encoder_decoder":
        if chat == "yes":
            raise ModelError(
                f"{start}: An encoder-decoder cannot use a chat template, because it is prompted "
                "in plain text. Set chat: auto for this prompted model."
            )
        notes = (
            (f"it has a chat template, but {PLAIN_TEXT_REASON}",) if tokenizer.chat_template else ()
        )
        return PromptTokenizer(tokenizer, model.max_length, notes=notes)
    if chat == "yes" and not tokenizer.chat_template:
        raise ModelError(
            f"{start}: The model has no chat template. Set chat: auto for this prompted model."
        )
    if chat == "no" or not tokenizer.chat_template:
        return PromptTokenizer(tokenizer, model.max_length)
    template = load_chat_template(tokenizer, start)
    return PromptTokenizer(tokenizer, model.max_length, template, template.notes)


def check_prompts(model: ModelSpec, start: str, chat: Chat, *, examples: bool) -> tuple[str, ...]:
    """Check that a test prompt can be rendered, and return notes for the records.

    Args:
        start: folder of the checkpoint.
        chat: as in ``load_prompt_tokenizer``.
        examples: whether prompts have few-shot examples, which are turns of the assistant.

    Raises:
        ModelError: the tokenizer cannot be loaded, or the chat template cannot render the prompt.
    """
    texts = load_prompt_tokenizer(model, start, None, chat)
    turns = ("A question.", "An answer.", "Another question.")
    texts.render_prompt(Prompt(turns if examples else turns[:1]))
    return texts.notes


def load_prompted_model(
    model: ModelSpec, start: str, revision: str | None, hardware: Hardware, chat: Chat = "auto"
) -> CausalModel | Seq2SeqModel:
    """Load a released model for prompting on this process's device.

    Its weights are in bfloat16 if it computes in bfloat16.

    Args:
        start, chat: as in ``load_prompt_tokenizer``.

    Raises:
        ModelError: the model cannot be prompted, or its checkpoint cannot be read.
    """
    texts = load_prompt_tokenizer(model, start, revision, chat)
    device = hardware.prepare_device()
    module = load_pretrained(model.family, start, revision)
    check_vocabulary_size(texts.tokenizer, module.get_input_embeddings().weight.shape[0], start)
    check_length(module, start, model.max_length)
    config = module.config.get_text_config()
    layers = int(getattr(config, "num_hidden_layers", None) or config.num_layers)
    sized: Any = _ModelSize(module, int(config.hidden_size), layers)
    setup = hardware.choose_setup(sized, model.family, device)
    module.to(device, torch.bfloat16 if setup.precision == "bfloat16" else torch.float32)
    kind = Seq2SeqModel if model.family == "encoder_decoder" else CausalModel
    return kind(module, texts, device, setup)
