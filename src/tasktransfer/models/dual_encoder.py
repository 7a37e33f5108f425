"""The dual encoder: separate encoders for context and candidate, whose encodings are compared.

Rashkin et al., section 4: the score of a reply is the dot product of two encodings, each the mean
of the last layer over the tokens. The loss is the negative log of the softmax over the replies of
the batch. A linear layer on the context's encoding predicts labels. The encoding of an additional
encoder (``beside``; the penultimate layer of a trained classifier) is concatenated to theirs. A
linear layer then projects both back to the original width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.core.fidelity import Fidelity
from tasktransfer.core.specs import Pooling
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers.ragged import pad_rows
from tasktransfer.models.encoder import HEADS_FILE
from tasktransfer.models.encoder_inputs import get_labels
from tasktransfer.models.heads import create_head
from tasktransfer.models.low_rank import has_adapter, save_pretrained
from tasktransfer.models.micro_batches import split_by_length, split_training_batch
from tasktransfer.models.staging import Arrays, Inputs, copy_to_device
from tasktransfer.models.weights import read_weights
from tasktransfer.tasks.card import Task

WEIGHTS_FILE = "dual_encoder.safetensors"
CONTEXT, CANDIDATE = 0, 1
SIDES = ("context", "candidate")


class DualEncoder:
    """Two encoders of one architecture, with heads on the first for tasks with labels."""

    def __init__(
        self,
        context: Any,
        candidate: Any,
        tasks: Mapping[str, Task],
        *,
        seed: int,
        pads: Sequence[int],
        cosine_scale: float | None,
        fidelity: Fidelity,
        device: torch.device,
        beside: Any = None,
        beside_reads: Pooling = "mean",
    ) -> None:
        self.tasks, self.pads, self.device = tasks, pads, device
        self.encoding_beside = ENCODINGS[beside_reads]
        self.cosine_scale, self.fidelity = cosine_scale, fidelity
        self.config = context.config
        self.side_by_side = False
        self.hidden_size = int(self.config.hidden_size)
        self.layers = int(self.config.num_hidden_layers)
        self.paths: tuple[str, ...] = ()
        labelled = {name: task for name, task in tasks.items() if task.labels}
        heads = {
            name: create_head(self.hidden_size, task, seed, fidelity.head_start)
            for name, task in labelled.items()
        }
        modules = {"context": context, "candidate": candidate, "heads": nn.ModuleDict(heads)}
        if beside is not None:
            wide = self.hidden_size + int(beside.config.hidden_size)
            sides = {
                side: create_projection(wide, self.hidden_size, seed + i)
                for i, side in enumerate(SIDES)
            }
            modules |= {"beside": beside, "projection": nn.ModuleDict(sides)}
        self.module = nn.ModuleDict(modules).to(device)
        self.has_beside = beside is not None

    # --- the protocol ---------------------------------------------------------------------------

    def get_parts(self) -> dict[str, dict[str, nn.Parameter]]:
        named = ["context", "candidate", *(["beside", "projection"] if self.has_beside else [])]
        parts = {name: dict(self.module[name].named_parameters()) for name in named}
        heads: Any = self.module["heads"]
        return parts | {f"head.{task}": dict(h.named_parameters()) for task, h in heads.items()}

    def enter_training_mode(self) -> None:
        self.module.train(self.fidelity.backbone_dropout)
        if self.has_beside:
            self.module["beside"].eval()

    def compute_loss_divisor(self, split: EncodedSplit, examples: Sequence[int]) -> float:
        return float(len(examples))

    def prepare_inputs(self, split: EncodedSplit, examples: Sequence[int]) -> Inputs:
        sides = SIDES if self.has_in_batch_loss(split) else SIDES[:1]
        arrays: Arrays = {}
        for side, name in enumerate(sides):
            arrays |= self._build_side_arrays(split, examples, side, len(sides), name)
        if not self.has_in_batch_loss(split):
            arrays["labels"] = get_labels(split, examples)
        return Inputs(copy_to_device(arrays, self.device))

    def compute_loss(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None = None
    ) -> Tensor:
        """Compute the summed loss of a task with labels."""
        inputs = inputs or self.prepare_inputs(split, examples)
        return functional.cross_entropy(
            self._compute_logits(split.task, inputs), inputs["labels"][:, 0], reduction="sum"
        )

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
        logits = self._compute_logits(split.task, self.prepare_inputs(split, examples))
        labels = self.tasks[split.task].labels
        return [(labels[best],) for best in logits.argmax(-1).tolist()]

    def save(self, folder: Path) -> None:
        from safetensors.torch import save_file

        self.config.save_pretrained(folder)
        heads = self.module["heads"].state_dict()
        tensors = {name: tensor.contiguous().cpu() for name, tensor in heads.items()}
        save_file(tensors, folder / HEADS_FILE)
        apart = ["heads."]
        for side in SIDES if has_adapter(self.module["context"]) else ():
            save_pretrained(self.module[side], folder / side)
            apart.append(f"{side}.")
        named = {
            name: p.detach().contiguous().cpu()
            for name, p in self.module.named_parameters()  # shared parameters are listed once
            if not name.startswith(tuple(apart))
        }
        if named:
            save_file(named, folder / WEIGHTS_FILE)

    def load(self, folder: Path) -> None:
        """Load saved weights, except those that this model does not have.

        A model with an additional encoder may start from one without it.
        """
        own = dict(self.module.named_parameters())
        for file, prefix in ((WEIGHTS_FILE, ""), (HEADS_FILE, "heads.")):
            there = read_weights(folder / file) if (folder / file).is_file() else {}
            for name, tensor in there.items():
                if f"{prefix}{name}" in own:
                    own[f"{prefix}{name}"].data.copy_(tensor)

    # --- replies among those of the batch -------------------------------------------------------

    def has_in_batch_loss(self, split: EncodedSplit) -> bool:
        """Return whether a split's task is trained with in-batch negatives."""
        return self.tasks[split.task].kind == "reply"

    def encode(self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None) -> Tensor:
        """Encode contexts and replies, shape (examples, 2, hidden size)."""
        inputs = inputs or self.prepare_inputs(split, examples)
        return torch.stack(
            [self._encode_inputs(inputs, side) for side in (CONTEXT, CANDIDATE)], dim=1
        )

    def encode_side(self, split: EncodedSplit, examples: Sequence[int], side: int) -> Tensor:
        """Encode only contexts or only replies, shape (examples, hidden size)."""
        arrays = self._build_side_arrays(split, examples, side, len(SIDES), SIDES[side])
        return self._encode_inputs(Inputs(copy_to_device(arrays, self.device)), side)

    def compute_scores(self, contexts: Tensor, candidates: Tensor) -> Tensor:
        """Compute the score of each candidate for each context, (contexts, candidates)."""
        if self.cosine_scale is not None:
            contexts, candidates = (functional.normalize(x, dim=-1) for x in (contexts, candidates))
            return self.cosine_scale * contexts @ candidates.T
        return contexts @ candidates.T

    def compute_in_batch_loss(self, encodings: Tensor) -> Tensor:
        """Compute the summed cross-entropy of each row's reply against the batch's replies."""
        scores = self.compute_scores(encodings[:, CONTEXT].float(), encodings[:, CANDIDATE].float())
        right = torch.arange(len(scores), device=scores.device)
        return functional.cross_entropy(scores, right, reduction="sum")

    # --- forward --------------------------------------------------------------------------------

    def _build_side_arrays(
        self, split: EncodedSplit, examples: Sequence[int], side: int, sides: int, name: str
    ) -> Arrays:
        """Return the token ids and masks of contexts or replies, for one or two encoders."""
        arrays: Arrays = {}
        for index, pad in enumerate(self.pads):
            rows = split.first_sequence[list(examples)] + index * sides + side
            ids, mask = pad_rows(split.sequences.take(rows), pad)
            arrays |= {f"{name}{index}": ids, f"{name}{index}_mask": mask}
        return arrays

    def _encode_inputs(self, inputs: Inputs, side: int) -> Tensor:
        name = SIDES[side]
        own = pool_mean(self.module[name], inputs[f"{name}0"], inputs[f"{name}0_mask"])
        if not self.has_beside:
            return own
        beside = self.module["beside"]
        other = self.encoding_beside(beside, inputs[f"{name}1"], inputs[f"{name}1_mask"])
        projection: Any = self.module["projection"]
        projected: Tensor = projection[name](torch.cat([own, other], dim=-1))
        return projected

    def _compute_logits(self, task: str, inputs: Inputs) -> Tensor:
        heads: Any = self.module["heads"]
        logits: Tensor = heads[task](self._encode_inputs(inputs, CONTEXT))
        return logits


def pool_mean(encoder: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the last layer over unmasked tokens, (rows, hidden size), float32."""
    states: Tensor = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    states = states.to(torch.promote_types(states.dtype, torch.float32))
    weights = mask[:, :, None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


def pool_first_token(encoder: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the pooled first token, which a classification head reads, (rows, hidden size).

    It is the first token's last state if the encoder has no pooler. See ``encoder.Encoder``.
    """
    outputs = encoder(input_ids=ids, attention_mask=mask)
    pooled: Tensor | None = getattr(outputs, "pooler_output", None)
    return outputs.last_hidden_state[:, 0] if pooled is None else pooled


ENCODINGS: dict[Pooling, Callable[[Any, Tensor, Tensor], Tensor]] = {
    "mean": pool_mean,
    "pooler": pool_first_token,
}
"""Pooling functions (encoder, token ids, mask) → encoding, by their names in ``core.specs``."""


def create_projection(wide: int, narrow: int, seed: int) -> nn.Linear:
    """Create a linear layer that is near the identity on its first ``narrow`` inputs.

    All other weights are small random numbers.
    """
    layer = nn.Linear(wide, narrow)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        layer.weight.normal_(0.0, 0.02, generator=generator)
        layer.weight[:, :narrow] += torch.eye(narrow)
        layer.bias.zero_()
    return layer
