"""An encoder-decoder in this process: the encoder reads the prompt, the decoder answers.

A question is encoded once, however many choices it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from tasktransfer.encoding.text import encode_answers
from tasktransfer.evaluation.prompting.model import Likelihood, truncate_at_stop
from tasktransfer.evaluation.prompting.texts import Ids, PromptTokenizer
from tasktransfer.models.family import pad_to_tensors
from tasktransfer.tasks.asking import InstancePrompt, Prompt
from tasktransfer.training.setup import Setup


@dataclass
class Seq2SeqModel:
    """An encoder-decoder with its tokenizer. Prompts are plain text without a chat template."""

    module: Any
    texts: PromptTokenizer
    device: torch.device
    setup: Setup
    counts: dict[str, float] = field(
        default_factory=lambda: {"read_tokens": 0, "generated_tokens": 0}
    )
    gives_likelihoods: bool = True

    def __post_init__(self) -> None:
        self.module.eval()

    @property
    def max_length(self) -> int:
        return self.texts.max_length

    def list_notes(self, *, chooses: bool) -> list[str]:
        return list(self.texts.notes)

    def count_tokens(self, prompt: Prompt) -> int:
        return self.texts.count_tokens(prompt) + 1  # The tokenizer adds an end-of-sequence token.

    def truncate_text(self, text: str, most: int, keeps: str) -> str:
        return self.texts.truncate_text(text, most, keeps)

    def compute_likelihoods(self, prompts: Sequence[InstancePrompt]) -> list[list[Likelihood]]:
        return [self._score_choices(prompt) for prompt in prompts]

    def _score_choices(self, prompt: InstancePrompt) -> list[Likelihood]:
        answers = encode_answers(self.texts.tokenizer, prompt.choices, "encoder_decoder")
        special = set(self.texts.tokenizer.all_special_ids)
        ids = self._tokenize_prompts([prompt.prompt])

        def score_batches(tokens: int) -> list[Likelihood]:
            scored: list[Likelihood] = []
            states = self.module.get_encoder()(**ids)[0]
            together = max(1, tokens // max(map(len, answers)))
            for begin in range(0, len(answers), together):
                batch = answers[begin : begin + together]
                labels, mask = pad_to_tensors(_convert_rows(batch), 0, self.device)
                logits = self.module(
                    encoder_outputs=(states.expand(len(batch), -1, -1),),
                    attention_mask=ids["attention_mask"].expand(len(batch), -1),
                    decoder_input_ids=self._shift_labels(labels),
                    decoder_attention_mask=mask,
                ).logits.float()
                each = logits.gather(-1, labels[..., None])[..., 0] - logits.logsumexp(-1)
                for row, answer in zip(each.tolist(), batch, strict=True):
                    counted = [p for p, i in zip(row, answer, strict=False) if i not in special]
                    scored.append(Likelihood(sum(counted), len(counted)))
            return scored

        with torch.inference_mode():
            return self.setup.eval_budget.run_within_memory(score_batches, undo=lambda: None)

    def _shift_labels(self, labels: torch.Tensor) -> torch.Tensor:
        begin = labels.new_full((len(labels), 1), self.module.config.decoder_start_token_id)
        return torch.cat([begin, labels[:, :-1]], 1)

    def _tokenize_prompts(self, prompts: Sequence[Prompt]) -> dict[str, torch.Tensor]:
        rows: list[Ids] = self.texts.tokenizer([prompt.text for prompt in prompts])["input_ids"]
        self.counts["read_tokens"] += sum(map(len, rows))
        ids, mask = pad_to_tensors(
            _convert_rows(rows), self.texts.tokenizer.pad_token_id, self.device
        )
        return {"input_ids": ids, "attention_mask": mask}

    def generate(self, prompts: Sequence[Prompt], most: int, stops: Sequence[str]) -> list[str]:
        return [self._generate_answer(prompt, most, stops) for prompt in prompts]

    def _generate_answer(self, prompt: Prompt, most: int, stops: Sequence[str]) -> str:
        with torch.inference_mode():
            ids = self.module.generate(
                **self._tokenize_prompts([prompt]),
                max_new_tokens=most,
                do_sample=False,
                num_beams=1,
            )[0]
        self.counts["generated_tokens"] += len(ids)
        return truncate_at_stop(self.texts.tokenizer.decode(ids, skip_special_tokens=True), stops)

    def get_counts(self) -> dict[str, float]:
        return dict(self.counts)


def _convert_rows(rows: Sequence[Ids]) -> list[Any]:
    return [np.asarray(row, np.int32) for row in rows]
