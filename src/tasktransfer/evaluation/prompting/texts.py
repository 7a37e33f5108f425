"""Rendering and tokenization of prompts and choices for a model in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasktransfer.encoding.middle import compute_kept_ends
from tasktransfer.evaluation.prompting.chat_template import ChatTemplate
from tasktransfer.tasks.asking import InstancePrompt, Prompt

Ids = list[int]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A prompt followed by a choice.

    Attributes:
        ids: token ids of both.
        begin: index of the choice's first token.
    """

    ids: Ids
    begin: int


@dataclass
class PromptTokenizer:
    """A tokenizer with a chat template, which does not need the model's weights.

    Attributes:
        max_length: maximum length of prompt and answer in tokens.
        chat: template that renders prompts. None if they are plain text.
        notes: notes about the prompts for the record.
    """

    tokenizer: Any
    max_length: int
    chat: ChatTemplate | None = None
    notes: tuple[str, ...] = ()
    gives_likelihoods: bool = True

    def render_prompt(self, prompt: Prompt) -> str:
        """Render a prompt as the text that the model reads.

        Raises:
            ModelError: the chat template does not render the prompt completely.
        """
        return self.chat.render(prompt) if self.chat else prompt.text

    def tokenize_texts(self, texts: Sequence[str]) -> list[Ids]:
        """Tokenize complete texts, including special tokens where no chat template adds them."""
        rows: list[Ids] = self.tokenizer(list(texts), add_special_tokens=False)["input_ids"]
        return rows if self.chat else [[*self._prefix_ids, *row] for row in rows]

    @property
    def _prefix_ids(self) -> Ids:
        """Special token IDs that the tokenizer adds before a text."""
        empty: Ids = self.tokenizer("")["input_ids"]
        return [i for i in empty[:1] if i == self.tokenizer.bos_token_id]

    def count_tokens(self, prompt: Prompt) -> int:
        return len(self.tokenize_texts([self.render_prompt(prompt)])[0])

    def truncate_text(self, text: str, most: int, keeps: str) -> str:
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        places = encoded["offset_mapping"]
        if len(places) <= most:
            return text
        if most <= 0:
            return ""
        if keeps == "both" and most > 1:
            head, tail = compute_kept_ends(len(places), most)
            return f"{text[: places[head - 1][1]]} {text[places[-tail][0] :]}"
        return text[places[-most][0] :] if keeps == "end" else text[: places[most - 1][1]]

    def tokenize_choices(self, prompt: InstancePrompt) -> list[TokenRow]:
        """Tokenize the prompt followed by each choice."""
        rendered = self.render_prompt(prompt.prompt)
        gap = "" if self.chat else " "
        before, *whole = self.tokenize_texts(
            [rendered, *(f"{rendered}{gap}{choice}" for choice in prompt.choices)]
        )
        rows = []
        for choice, ids in zip(prompt.choices, whole, strict=True):
            begin = len(before)
            if ids[:begin] != before:  # A token spans the end of the prompt and the choice.
                begin = self._locate_choice_start(f"{rendered}{gap}{choice}", len(rendered))
            rows.append(TokenRow(ids, begin))
        return rows

    def _locate_choice_start(self, text: str, prompt: int) -> int:
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        places = encoded["offset_mapping"]
        first = next((n for n, (_, end) in enumerate(places) if end > prompt), len(places))
        return first + (0 if self.chat else len(self._prefix_ids))
