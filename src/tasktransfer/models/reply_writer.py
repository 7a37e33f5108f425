"""An encoder-decoder whose encodings are also used by heads, or extended by another encoder.

A linear layer on the mean encoding predicts labels (Rashkin et al., section 4, Multitask). An
additional encoder (``beside``) may add its encoding of the whole text to the encoding of every
token (Ensemble).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.core.specs import Pooling
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers.ragged import pad_rows
from tasktransfer.models.dual_encoder import ENCODINGS, create_projection, pool_mean
from tasktransfer.models.encoder import HEADS_FILE
from tasktransfer.models.encoder_inputs import get_labels
from tasktransfer.models.heads import create_head
from tasktransfer.models.staging import Inputs, copy_to_device
from tasktransfer.models.text_to_text import EncoderDecoder
from tasktransfer.models.weights import read_weights
from tasktransfer.tasks.card import Task

BESIDE_FILE = "beside.safetensors"


class ReplyWriter:
    """An encoder-decoder with heads for tasks with labels, and an optional frozen encoder."""

    def __init__(
        self,
        model: EncoderDecoder,
        tasks: Mapping[str, Task],
        *,
        seed: int,
        beside: Any = None,
        beside_pad: int = 0,
        beside_reads: Pooling = "mean",
    ) -> None:
        self.model, self.tasks, self.device = model, tasks, model.device
        self.hidden_size, self.layers = model.hidden_size, model.layers
        self.side_by_side, self.paths, self.beside_pad = False, model.paths, beside_pad
        self.encoding_beside = ENCODINGS[beside_reads]
        heads = {
            name: create_head(self.hidden_size, task, seed, model.fidelity.head_start)
            for name, task in tasks.items()
            if task.by_head
        }
        modules: dict[str, nn.Module] = {"model": model.module, "heads": nn.ModuleDict(heads)}
        if beside is not None:
            wide = self.hidden_size + int(beside.config.hidden_size)
            modules |= {
                "beside": beside,
                "projection": create_projection(wide, self.hidden_size, seed),
            }
            model.encoding = self._compute_encoding
        self.module = nn.ModuleDict(modules).to(self.device)
        self.has_beside = beside is not None

    def get_parts(self) -> dict[str, dict[str, nn.Parameter]]:
        more = ["beside", "projection"] if self.has_beside else []
        heads: Any = self.module["heads"]
        return {
            **self.model.get_parts(),
            **{name: dict(self.module[name].named_parameters()) for name in more},
            **{f"head.{task}": dict(head.named_parameters()) for task, head in heads.items()},
        }

    def enter_training_mode(self) -> None:
        self.model.enter_training_mode()
        if self.has_beside:
            self.module["beside"].eval()

    def compute_loss_divisor(self, split: EncodedSplit, examples: Sequence[int]) -> float:
        by_head = self.tasks[split.task].by_head
        return float(len(examples)) if by_head else self.model.compute_loss_divisor(split, examples)

    def prepare_inputs(self, split: EncodedSplit, examples: Sequence[int]) -> Inputs:
        if not self.tasks[split.task].by_head:
            return self.model.prepare_inputs(split, examples)
        return self.model.build_inputs(split, examples, {"labels": get_labels(split, examples)})

    def compute_loss(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None = None
    ) -> Tensor:
        if not self.tasks[split.task].by_head:
            return self.model.compute_loss(split, examples, inputs)
        inputs = inputs or self.prepare_inputs(split, examples)
        logits = self._compute_logits(split.task, inputs)
        return functional.cross_entropy(logits, inputs["labels"][:, 0], reduction="sum")

    def split_for_training(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        return self.model.split_for_training(split, examples, token_budget)

    def split_for_prediction(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        return self.model.split_for_prediction(split, examples, token_budget)

    def predict(self, split: EncodedSplit, examples: Sequence[int]) -> list[tuple[str, ...]]:
        if not self.tasks[split.task].by_head:
            return self.model.predict(split, examples)
        labels = self.tasks[split.task].labels
        logits = self._compute_logits(split.task, self.model.build_inputs(split, examples, {}))
        return [(labels[best],) for best in logits.argmax(-1).tolist()]

    def compute_losses(self, split: EncodedSplit, examples: Sequence[int]) -> Tensor:
        """Compute the loss of each example, as ``EncoderDecoder.compute_losses`` does."""
        return self.model.compute_losses(split, examples)

    def save(self, folder: Path) -> None:
        from safetensors.torch import save_file

        self.model.save(folder)
        for file, names in ((HEADS_FILE, ["heads"]), (BESIDE_FILE, ["beside", "projection"])):
            named = {
                f"{name}.{key}" if file == BESIDE_FILE else key: tensor.contiguous().cpu()
                for name in names
                if name in self.module
                for key, tensor in self.module[name].state_dict().items()
            }
            if named:
                save_file(named, folder / file)

    def load(self, folder: Path) -> None:
        """Load the heads and second encoder that ``save`` has written, if any."""
        own = dict(self.module.named_parameters())
        for file, prefix in ((HEADS_FILE, "heads."), (BESIDE_FILE, "")):
            there = read_weights(folder / file) if (folder / file).is_file() else {}
            for name, tensor in there.items():
                if f"{prefix}{name}" in own:
                    own[f"{prefix}{name}"].data.copy_(tensor)

    def _compute_logits(self, task: str, inputs: Inputs) -> Tensor:
        encoder = self.model.module.get_encoder()
        heads: Any = self.module["heads"]
        logits: Tensor = heads[task](pool_mean(encoder, inputs["ids"], inputs["mask"]))
        return logits

    def _compute_encoding(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs
    ) -> Tensor:
        """Encode the tokens, shape (rows, tokens, hidden size).

        They include the additional encoder's encoding of the text.
        """
        encoder = self.model.module.get_encoder()
        own = encoder(input_ids=inputs["ids"], attention_mask=inputs["mask"]).last_hidden_state
        rows = split.sequences.take(split.first_sequence[list(examples)] + 1)
        read = copy_to_device(
            dict(zip(("ids", "mask"), pad_rows(rows, self.beside_pad), strict=True)), self.device
        )
        with torch.no_grad():
            other = self.encoding_beside(self.module["beside"], read["ids"], read["mask"])
        both = torch.cat([own, other[:, None].expand(-1, own.shape[1], -1)], dim=-1)
        projected: Tensor = self.module["projection"](both)
        return projected
