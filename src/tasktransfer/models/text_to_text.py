"""The text-to-text families: decoders (GPT-2 and its kin) and encoder-decoders (T5, BART).

The prompt goes in, the answer's words come out (paper, section 4: log p(y|x)). Decoding is greedy:
the toolkit samples, so its scores vary from call to call.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.core.fidelity import DEFAULT, Fidelity
from tasktransfer.models import attention
from tasktransfer.models.encoded import IGNORED, EncodedSplit, Ints
from tasktransfer.models.family import pad
from tasktransfer.models.generation import generate, generate_from_trees, reads_trees
from tasktransfer.models.micro_batches import (
    micro_batches_by_length,
    micro_batches_of_trees,
    micro_batches_to_train_on,
)
from tasktransfer.models.packing import first_position, pack
from tasktransfer.models.prompt_trees import prompt_trees
from tasktransfer.tasks.card import Task
from tasktransfer.tasks.compose import parse_answer
from tasktransfer.tasks.toolkit_texts import parse_as_toolkit


class Decoder:
    """A causal language model that continues the prompt with the answer."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        tasks: dict[str, Task],
        *,
        max_answer_tokens: dict[str, int],
        loss_on: str,
        device: torch.device,
        plain: bool = False,
        fidelity: Fidelity = DEFAULT,
    ) -> None:
        self.fidelity = fidelity
        self.module = model.to(device)
        self.tokenizer = tokenizer
        self.tasks = tasks
        self.max_answer_tokens = max_answer_tokens
        self.side_by_side = attention.is_ours(model)
        self.hidden_size = int(model.config.hidden_size)
        self.whole_sequence = loss_on == "sequence"
        self.device = device
        self.first_position = None if plain else first_position(model.config)
        self.trees = not plain and fidelity.repetition_penalty == 1.0 and reads_trees(model)
        self.paths = attention.paths_of(
            model, model.config, packed=self.first_position is not None, trees=self.trees
        )
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._positions = "position_ids" in inspect.signature(model.forward).parameters

    def parts(self) -> dict[str, dict[str, nn.Parameter]]:
        return {"body": dict(self.module.named_parameters())}

    def start_training(self) -> None:
        self.module.train(self.fidelity.backbone_dropout)

    def weight(self, split: EncodedSplit, examples: Sequence[int]) -> float:
        counted = sum(len(split.labels[u]) for u in examples)
        if self.whole_sequence:
            # Every token but the first is predicted.
            counted += sum(len(split.sequences[_sequence(split, u)]) - 1 for u in examples)
        return float(counted)

    def training_micro_batches(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        packed = self.first_position is not None
        return micro_batches_to_train_on(split, examples, token_budget, packed=packed)

    def prediction_micro_batches(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        if not self.trees:
            groups = [examples]
            if self.fidelity.repetition_penalty != 1.0:
                # Padding would be penalised as if it had been read: it may be the end's token.
                groups = self._equally_long(split, examples)
            return [
                some
                for group in groups
                for some in micro_batches_by_length(split, group, token_budget, padded=True)
            ]
        trees = prompt_trees([split.sequences[_sequence(split, u)] for u in examples])
        return [
            [examples[prompt] for tree in micro_batch for prompt in tree.prompts]
            for micro_batch in micro_batches_of_trees(trees, token_budget)
        ]

    def _equally_long(self, split: EncodedSplit, examples: Sequence[int]) -> list[Sequence[int]]:
        """The examples in groups with prompts of one length, long ones first."""
        groups: dict[int, list[int]] = {}
        for example in examples:
            length = len(split.sequences[_sequence(split, example)])
            groups.setdefault(length, []).append(example)
        return [groups[length] for length in sorted(groups, reverse=True)]

    def loss(self, split: EncodedSplit, examples: Sequence[int]) -> Tensor:
        prompts = [split.sequences[_sequence(split, u)] for u in examples]
        answers = [split.labels[u] for u in examples]
        if self.first_position is None:
            return self._loss_padded(prompts, answers)
        return self._loss_packed(prompts, answers)

    def _loss_packed(self, prompts: Sequence[Ints], answers: Sequence[Ints]) -> Tensor:
        """Prompts and answers end to end; the (large) output layer runs only on the tokens that
        a counted one follows."""
        rows = [np.concatenate(pair) for pair in zip(prompts, answers, strict=True)]
        packed = pack(rows, self.device, causal=True)
        counted = [
            np.arange(1 if self.whole_sequence else len(prompt), len(row))
            for prompt, row in zip(prompts, rows, strict=True)
        ]
        before = np.concatenate([s + c - 1 for s, c in zip(packed.starts, counted, strict=True)])
        targets = np.concatenate([row[c] for row, c in zip(rows, counted, strict=True)])
        logits = self.module(
            input_ids=packed.ids,
            position_ids=packed.positions + (self.first_position or 0),
            attention_mask=torch.zeros(attention.PLACEHOLDER, device=self.device),
            packed=packed,
            use_cache=False,
            logits_to_keep=torch.from_numpy(before).to(self.device),
        ).logits[0]
        wanted = torch.from_numpy(targets.astype(np.int64)).to(self.device)
        return functional.cross_entropy(logits.float(), wanted, reduction="sum")

    def _loss_padded(self, prompts: Sequence[Ints], answers: Sequence[Ints]) -> Tensor:
        """The plain way: padded on the left, so that all answers end in the last column and the
        output layer runs on the answers' columns only."""
        rows = [np.concatenate(pair) for pair in zip(prompts, answers, strict=True)]
        ids, mask = pad(rows, self._pad_id, self.device, left=True)
        if self.whole_sequence:
            targets = ids.masked_fill(mask == 0, IGNORED)
            for i, row in enumerate(rows):
                targets[i, -len(row)] = IGNORED
        else:
            targets, _ = pad(answers, IGNORED, self.device, left=True)
        inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
        if self._positions:
            inputs["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
        width = min(targets.shape[1] + 1, ids.shape[1])
        if self._keeps_logits:
            inputs["logits_to_keep"] = width
        logits = self.module(**inputs, use_cache=False).logits[:, -width:-1]
        targets = targets[:, -(width - 1) :]
        return functional.cross_entropy(
            logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum"
        )

    def predict(self, split: EncodedSplit, examples: Sequence[int]) -> list[tuple[str, ...]]:
        prompts = [split.sequences[_sequence(split, u)] for u in examples]
        longest = self.max_answer_tokens[split.task]
        if self.trees:
            generated = generate_from_trees(
                self.module,
                prompt_trees(prompts),
                longest=longest,
                end=self.tokenizer.eos_token_id,
                fill=self._pad_id,
            )
        else:
            ids, mask = pad(prompts, self._pad_id, self.device, left=True)
            penalty = self.fidelity.repetition_penalty
            whole = generate(self.module, self.tokenizer, ids, mask, longest, penalty)
            generated = whole[:, ids.shape[1] :]
        return _parsed(self.tasks[split.task], self.tokenizer, generated, self.fidelity.answers)

    def save(self, folder: Path) -> None:
        self.module.save_pretrained(folder)

    @property
    def _pad_id(self) -> int:
        return int(self.tokenizer.pad_token_id)


class EncoderDecoder:
    """A sequence-to-sequence model that reads the prompt and writes the answer."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        tasks: dict[str, Task],
        *,
        max_answer_tokens: dict[str, int],
        device: torch.device,
        fidelity: Fidelity = DEFAULT,
    ) -> None:
        self.fidelity = fidelity
        self.module = model.to(device)
        self.tokenizer = tokenizer
        self.tasks = tasks
        self.max_answer_tokens = max_answer_tokens
        self.side_by_side = attention.is_ours(model)
        self.hidden_size = int(model.config.hidden_size)
        self.paths = attention.paths_of(model, model.config, packed=False)
        self.device = device

    def parts(self) -> dict[str, dict[str, nn.Parameter]]:
        body = dict(self.module.named_parameters())
        encoder = dict(self.module.get_encoder().named_parameters())
        read = {id(parameter) for parameter in encoder.values()}
        decoder = {name: p for name, p in body.items() if id(p) not in read}
        return {"encoder": encoder, "decoder": decoder, "body": body}

    def start_training(self) -> None:
        self.module.train(self.fidelity.backbone_dropout)

    def weight(self, split: EncodedSplit, examples: Sequence[int]) -> float:
        return float(sum(len(split.labels[u]) for u in examples))

    def loss(self, split: EncodedSplit, examples: Sequence[int]) -> Tensor:
        ids, mask = self._inputs(split, examples)
        targets, _ = pad([split.labels[u] for u in examples], IGNORED, self.device)
        # The model shifts the labels itself; the loss it returns is a mean, and a sum is wanted.
        logits = self.module(
            input_ids=ids, attention_mask=mask, labels=targets, use_cache=False
        ).logits
        return functional.cross_entropy(
            logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum"
        )

    def training_micro_batches(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        return micro_batches_by_length(split, examples, token_budget, padded=True)

    prediction_micro_batches = training_micro_batches

    def predict(self, split: EncodedSplit, examples: Sequence[int]) -> list[tuple[str, ...]]:
        ids, mask = self._inputs(split, examples)
        longest, penalty = self.max_answer_tokens[split.task], self.fidelity.repetition_penalty
        generated = generate(self.module, self.tokenizer, ids, mask, longest, penalty)
        return _parsed(self.tasks[split.task], self.tokenizer, generated, self.fidelity.answers)

    def save(self, folder: Path) -> None:
        self.module.save_pretrained(folder)

    def _inputs(self, split: EncodedSplit, examples: Sequence[int]) -> tuple[Tensor, Tensor]:
        rows = [split.sequences[_sequence(split, u)] for u in examples]
        return pad(rows, int(self.tokenizer.pad_token_id), self.device)


def _sequence(split: EncodedSplit, example: int) -> int:
    """A text-to-text example holds exactly one sequence."""
    return int(split.first_sequence[example])


def _parsed(task: Task, tokenizer: Any, generated: Tensor, answers: str) -> list[tuple[str, ...]]:
    texts = tokenizer.batch_decode(generated, skip_special_tokens=True)
    parse = parse_as_toolkit if answers == "tlidb" else parse_answer
    return [parse(task, text) for text in texts]
