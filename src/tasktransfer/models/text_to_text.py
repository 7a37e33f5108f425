"""The text-to-text families: decoders (GPT-2 and similar) and encoder-decoders (T5, BART).

The models read a prompt and generate the answer (paper, section 4: log p(y|x)). Decoding is greedy.
The toolkit samples, so its scores vary from call to call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.core.fidelity import DEFAULT, Fidelity
from tasktransfer.encoding.encoded import IGNORED_LABEL, EncodedSplit
from tasktransfer.layers import attention
from tasktransfer.layers.packing import get_first_position, plan_layout
from tasktransfer.layers.prompt_trees import build_prompt_trees
from tasktransfer.layers.ragged import Ragged, index_spans, pad_rows
from tasktransfer.models.family import pad_to_tensors
from tasktransfer.models.generation import can_decode_trees, generate_from_trees, generate_sequences
from tasktransfer.models.low_rank import save_pretrained
from tasktransfer.models.micro_batches import (
    split_by_length,
    split_training_batch,
    split_trees,
)
from tasktransfer.models.staging import Arrays, Inputs, copy_to_device
from tasktransfer.tasks.card import Task
from tasktransfer.tasks.compose import parse_answer
from tasktransfer.tasks.toolkit_texts import parse_toolkit_answer

GPU_PADDING = 8


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
        self.side_by_side = attention.uses_own_attention(model)
        self.hidden_size = int(model.config.hidden_size)
        self.layers = int(model.config.num_hidden_layers)
        self.whole_sequence = loss_on == "sequence"
        self.device = device
        self.first_position = None if plain else get_first_position(model.config)
        self.trees = not plain and fidelity.repetition_penalty == 1.0 and can_decode_trees(model)
        self.paths = attention.list_fast_paths(
            model, model.config, packed=self.first_position is not None, trees=self.trees
        )
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._positions = "position_ids" in inspect.signature(model.forward).parameters

    def get_parts(self) -> dict[str, dict[str, nn.Parameter]]:
        return {"body": dict(self.module.named_parameters())}

    def enter_training_mode(self) -> None:
        self.module.train(self.fidelity.backbone_dropout)

    def compute_loss_divisor(self, split: EncodedSplit, examples: Sequence[int]) -> float:
        counted = sum(len(split.labels[u]) for u in examples)
        if self.whole_sequence:
            # Every token except the first is predicted.
            counted += sum(len(split.sequences[_locate_sequence(split, u)]) - 1 for u in examples)
        return float(counted)

    def split_for_training(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        packed = self.first_position is not None
        whole = self.device.type == "cuda"
        return split_training_batch(split, examples, token_budget, packed=packed, whole=whole)

    def split_for_prediction(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        if not self.trees:
            groups = [examples]
            if self.fidelity.repetition_penalty != 1.0:
                # Padding may be the end token, and the penalty would count it as prompt.
                groups = self._group_by_length(split, examples)
            return [
                some
                for group in groups
                for some in split_by_length(split, group, token_budget, padded=True)
            ]
        trees = build_prompt_trees([split.sequences[_locate_sequence(split, u)] for u in examples])
        return [
            [examples[prompt] for tree in micro_batch for prompt in tree.prompts]
            for micro_batch in split_trees(trees, token_budget)
        ]

    def _group_by_length(self, split: EncodedSplit, examples: Sequence[int]) -> list[Sequence[int]]:
        """Group examples by the length of their prompts, longest first."""
        groups: dict[int, list[int]] = {}
        for example in examples:
            length = len(split.sequences[_locate_sequence(split, example)])
            groups.setdefault(length, []).append(example)
        return [groups[length] for length in sorted(groups, reverse=True)]

    def prepare_inputs(self, split: EncodedSplit, examples: Sequence[int]) -> Inputs:
        prompts = split.sequences.take(split.get_sequence_rows(examples))
        answers = split.labels.take(examples)
        if self.first_position is None:
            return Inputs(copy_to_device(self._pad_inputs(prompts, answers), self.device))
        return self._pack_inputs(prompts, answers, self.first_position)

    def _pack_inputs(self, prompts: Ragged, answers: Ragged, first_position: int) -> Inputs:
        """Pack prompts and answers without padding.

        ``targets`` are the counted tokens; ``before`` are the indices of the tokens before them.
        """
        rows = prompts.join(answers)
        layout = plan_layout(rows, self.device, first_position=first_position, causal=True)
        first = np.ones_like(prompts.lengths()) if self.whole_sequence else prompts.lengths()
        counts = rows.lengths() - first
        arrays = {
            **layout.arrays,
            "before": index_spans(layout.starts + first - 1, counts),
            "targets": rows.values[index_spans(rows.starts[:-1] + first, counts)].astype(np.int64),
        }
        tensors = copy_to_device(arrays, self.device)
        return Inputs(tensors, layout.build_pack(tensors))

    def _pad_inputs(self, prompts: Ragged, answers: Ragged) -> Arrays:
        """Pad prompts and answers on the left, so that all answers end in the last column."""
        rows = prompts.join(answers)
        ids, mask = pad_rows(rows, self._pad_id, left=True)
        if self.whole_sequence:
            targets = np.where(mask == 0, IGNORED_LABEL, ids)
            targets[np.arange(len(ids)), ids.shape[1] - rows.lengths()] = IGNORED_LABEL
        else:
            targets, _ = pad_rows(answers, IGNORED_LABEL, left=True)
        positions = np.maximum(mask.cumsum(-1) - 1, 0)
        return {"ids": ids, "mask": mask, "positions": positions, "targets": targets}

    def compute_loss(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None = None
    ) -> Tensor:
        inputs = inputs or self.prepare_inputs(split, examples)
        read = {"input_ids": inputs["ids"], "attention_mask": inputs["mask"]}
        if inputs.pack is not None:
            # The (large) output layer is computed only for tokens before a counted token.
            logits = self.module(
                **read,
                position_ids=inputs["positions"],
                packed=inputs.pack,
                use_cache=False,
                logits_to_keep=inputs["before"],
            ).logits.squeeze(0)
            return functional.cross_entropy(logits.float(), inputs["targets"], reduction="sum")
        if self._positions:
            read["position_ids"] = inputs["positions"]
        targets = inputs["targets"]
        width = min(targets.shape[1] + 1, inputs["ids"].shape[1])
        kept = {"logits_to_keep": width} if self._keeps_logits else {}
        logits = self.module(**read, **kept, use_cache=False).logits[:, -width:-1]
        return _sum_cross_entropy(logits, targets[:, -(width - 1) :])

    def predict(self, split: EncodedSplit, examples: Sequence[int]) -> list[tuple[str, ...]]:
        prompts = [split.sequences[_locate_sequence(split, u)] for u in examples]
        longest = self.max_answer_tokens[split.task]
        if self.trees:
            generated = generate_from_trees(
                self.module,
                build_prompt_trees(prompts),
                longest=longest,
                end=self.tokenizer.eos_token_id,
                fill=self._pad_id,
            )
        else:
            ids, mask = pad_to_tensors(prompts, self._pad_id, self.device, left=True)
            penalty = self.fidelity.repetition_penalty
            whole = generate_sequences(self.module, self.tokenizer, ids, mask, longest, penalty)
            generated = whole[:, ids.shape[1] :]
        return _parse_answers(
            self.tasks[split.task], self.tokenizer, generated, self.fidelity.answers
        )

    def save(self, folder: Path) -> None:
        save_pretrained(self.module, folder)

    @property
    def _pad_id(self) -> int:
        return int(self.tokenizer.pad_token_id)


Encoding = Callable[[EncodedSplit, Sequence[int], Inputs], Tensor]
"""Function (split, examples, inputs) → encodings of the tokens, (rows, tokens, hidden size)."""


class EncoderDecoder:
    """A sequence-to-sequence model that encodes the prompt and decodes the answer.

    Attributes:
        encoding: function that computes the states to which the decoder attends; None for the
            encoder's last layer.
    """

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
        self.side_by_side = attention.uses_own_attention(model)
        self.hidden_size = int(model.config.hidden_size)
        self.layers = int(model.config.num_hidden_layers)
        self.paths = attention.list_fast_paths(model, model.config, packed=False)
        self.device = device
        self.encoding: Encoding | None = None

    def get_parts(self) -> dict[str, dict[str, nn.Parameter]]:
        """Return the parameters of the encoder, the decoder and the whole model, by name."""
        body = dict(self.module.named_parameters())
        encoder = dict(self.module.get_encoder().named_parameters())
        read = {id(parameter) for parameter in encoder.values()}
        decoder = {name: p for name, p in body.items() if id(p) not in read}
        return {"encoder": encoder, "decoder": decoder, "body": body}

    def enter_training_mode(self) -> None:
        self.module.train(self.fidelity.backbone_dropout)

    def compute_loss_divisor(self, split: EncodedSplit, examples: Sequence[int]) -> float:
        return float(sum(len(split.labels[u]) for u in examples))

    def prepare_inputs(self, split: EncodedSplit, examples: Sequence[int]) -> Inputs:
        targets, _ = pad_rows(
            split.labels.take(examples), IGNORED_LABEL, multiple=self._padding_multiple
        )
        return self.build_inputs(split, examples, {"targets": targets})

    def compute_loss(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None = None
    ) -> Tensor:
        inputs = inputs or self.prepare_inputs(split, examples)
        return _sum_cross_entropy(self._compute_logits(split, examples, inputs), inputs["targets"])

    def compute_losses(self, split: EncodedSplit, examples: Sequence[int]) -> Tensor:
        """Compute each example's loss, summed over its answer's tokens, shape (examples,)."""
        inputs = self.prepare_inputs(split, examples)
        logits, targets = self._compute_logits(split, examples, inputs), inputs["targets"]
        each = functional.cross_entropy(
            logits.float().transpose(1, 2), targets, ignore_index=IGNORED_LABEL, reduction="none"
        )
        return each.sum(1)

    def _compute_logits(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs
    ) -> Tensor:
        # The model shifts the labels itself. Its own loss is a mean, but the sum is needed.
        logits: Tensor = self.module(
            **self._build_model_inputs(split, examples, inputs),
            labels=inputs["targets"],
            use_cache=False,
        ).logits
        return logits

    def _build_model_inputs(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs
    ) -> dict[str, Any]:
        """Return the model's inputs: token ids, or states that replace them."""
        if self.encoding is None:
            return {"input_ids": inputs["ids"], "attention_mask": inputs["mask"]}
        return {"attention_mask": inputs["mask"], **self.encode_context(split, examples, inputs)}

    def encode_context(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs
    ) -> dict[str, Any]:
        """Compute the encoder states to which the decoder attends."""
        from transformers.modeling_outputs import BaseModelOutput

        if self.encoding is not None:
            states = self.encoding(split, examples, inputs)
        else:
            encoder = self.module.get_encoder()
            read = {"input_ids": inputs["ids"], "attention_mask": inputs["mask"]}
            states = encoder(**read).last_hidden_state
        return {"encoder_outputs": BaseModelOutput(last_hidden_state=states)}

    def split_for_training(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        whole = self.device.type == "cuda"
        return split_training_batch(split, examples, token_budget, packed=False, whole=whole)

    def split_for_prediction(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        return split_by_length(split, examples, token_budget, padded=True)

    def predict(self, split: EncodedSplit, examples: Sequence[int]) -> list[tuple[str, ...]]:
        inputs = self.build_inputs(split, examples, {})
        longest, penalty = self.max_answer_tokens[split.task], self.fidelity.repetition_penalty
        more = {} if self.encoding is None else self.encode_context(split, examples, inputs)
        generated = generate_sequences(
            self.module, self.tokenizer, inputs["ids"], inputs["mask"], longest, penalty, **more
        )
        return _parse_answers(
            self.tasks[split.task], self.tokenizer, generated, self.fidelity.answers
        )

    def save(self, folder: Path) -> None:
        save_pretrained(self.module, folder)

    @property
    def _padding_multiple(self) -> int:
        """Number whose multiples are the padded lengths of rows in tokens.

        Attention on a GPU needs its bias padded like this, and otherwise pads it in every layer.
        """
        return GPU_PADDING if self.device.type == "cuda" else 1

    def build_inputs(self, split: EncodedSplit, examples: Sequence[int], more: Arrays) -> Inputs:
        """Return the prompts and additional arrays on the device."""
        rows = split.sequences.take(split.first_sequence[np.asarray(examples, dtype=np.int64)])
        ids, mask = pad_rows(
            rows, int(self.tokenizer.pad_token_id), multiple=self._padding_multiple
        )
        return Inputs(copy_to_device({"ids": ids, "mask": mask, **more}, self.device))


def _sum_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Sum the cross-entropy over all counted targets.

    Args:
        logits: (rows, tokens, vocabulary).
    """
    return functional.cross_entropy(
        logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED_LABEL, reduction="sum"
    )


def _locate_sequence(split: EncodedSplit, example: int) -> int:
    """Return the index of a text-to-text example's only sequence."""
    return int(split.first_sequence[example])


def _parse_answers(
    task: Task, tokenizer: Any, generated: Tensor, answers: str
) -> list[tuple[str, ...]]:
    texts = tokenizer.batch_decode(generated, skip_special_tokens=True)
    parse = parse_toolkit_answer if answers == "tlidb" else parse_answer
    return [parse(task, text) for text in texts]
