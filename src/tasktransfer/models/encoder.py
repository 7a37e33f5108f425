"""The encoder family (BERT and similar models): one linear head per task on the encoder's outputs.

Paper, Appendix B: pooled output → dropout → linear. The outputs of a head depend on the task:

    spans             start and end logits per token
    multiple choice   one score per option
    multi-label       one sigmoid per label
    multi-output      two-way outputs
    rating            one sigmoid

Heads may instead read the unpooled first token, the mean over all tokens or over the labelled turn,
or compare two segments (``core.specs.Reads``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tasktransfer.core.fidelity import Fidelity
from tasktransfer.core.specs import Reads
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers import attention
from tasktransfer.layers.dropout import FastDropout
from tasktransfer.layers.first_tokens import narrow_last_layer
from tasktransfer.layers.packing import plan_layout
from tasktransfer.models.adapters import AdapterBank
from tasktransfer.models.encoder_inputs import (
    build_packed_arrays,
    build_padded_arrays,
    get_labels,
    get_turn_starts,
    index_options,
    mask_allowed_tokens,
)
from tasktransfer.models.heads import (
    compute_label_loss,
    compute_rating_loss,
    compute_span_loss,
    create_head,
    find_best_spans,
    find_text_edges,
    has_unanswerable,
    select_labels,
)
from tasktransfer.models.low_rank import save_pretrained
from tasktransfer.models.micro_batches import split_by_length, split_training_batch
from tasktransfer.models.pairs import (
    average_tokens,
    compare_pairs,
    initialise_as_cosine,
    split_pairs,
)
from tasktransfer.models.staging import Array, Arrays, Inputs, copy_to_device
from tasktransfer.models.weights import read_weights
from tasktransfer.tasks.card import SCALE_STEPS, Task, format_ratings

HEADS_FILE = "heads.safetensors"
TOOLKIT_PADDING = 8
"""The toolkit pads its batches to a multiple of this number of tokens."""
ALL_TOKENS: tuple[Reads, ...] = ("mean", "turn", "pair")
"""Types of heads that read the last states of all tokens."""
TOOLKIT_BATCH = 20
"""The toolkit's batch size; it keeps the order of the instances, also in dev and test."""


class Encoder:
    """A pre-trained encoder with a head for each task that it is trained or selected on."""

    def __init__(
        self,
        backbone: Any,
        tasks: dict[str, Task],
        *,
        seed: int,
        pad_token_id: int,
        token_types: bool,
        longest_spans: Mapping[str, int],
        fidelity: Fidelity,
        device: torch.device,
        first_position: int | None = None,
        adapter_reduction: int | None = None,
        reads: Reads = "pooler",
    ) -> None:
        self.backbone = backbone
        self.tasks = tasks
        self.pad_token_id = pad_token_id
        self.token_types = token_types
        self.longest_spans = longest_spans
        self.fidelity = fidelity
        self.device = device
        self.first_position = first_position
        self.side_by_side = attention.uses_own_attention(backbone)
        self.reads = reads
        self.hidden_size = int(backbone.config.hidden_size)
        self.layers = int(backbone.config.num_hidden_layers)
        firsts = first_position is not None and reads not in ALL_TOKENS
        self.narrow = firsts and narrow_last_layer(backbone)
        self.paths = attention.list_fast_paths(
            backbone,
            backbone.config,
            packed=first_position is not None,
            first_tokens=self.narrow,
        )
        if first_position is not None and device.type == "cpu":
            # A micro-batch has a few hundred words of a vocabulary of tens of thousands. A dense
            # gradient would write and add zeros for all others in every micro-batch.
            backbone.get_input_embeddings().sparse = True
        config = backbone.config
        rate = getattr(config, "classifier_dropout", None)
        rate = rate if rate is not None else _read_hidden_dropout(config)
        # Same dropout as in the backbone: torch's uses one random generator for all threads.
        self.dropout = FastDropout(rate) if self.side_by_side else nn.Dropout(rate)
        width = self.hidden_size * (2 if reads == "pair" else 1)
        self.heads = nn.ModuleDict(
            {
                name: create_head(width, task, seed, fidelity.head_start)
                for name, task in tasks.items()
            }
        )
        for name, task in tasks.items() if reads == "pair" else ():
            if task.kind == "rating":
                initialise_as_cosine(self.heads[name])  # type: ignore[arg-type]
        modules = {"backbone": backbone, "heads": self.heads, "dropout": self.dropout}
        self.adapters: AdapterBank | None = None
        if adapter_reduction is not None:
            self.adapters = AdapterBank(backbone, tuple(tasks), adapter_reduction, seed)
            modules["adapters"] = self.adapters
        self.module = nn.ModuleDict(modules).to(device)

    # --- the protocol ---------------------------------------------------------------------------

    def get_parts(self) -> dict[str, dict[str, nn.Parameter]]:
        heads = {f"head.{task}": dict(head.named_parameters()) for task, head in self.heads.items()}
        adapters = self.adapters.get_parts() if self.adapters is not None else {}
        return {"encoder": dict(self.backbone.named_parameters()), **heads, **adapters}

    def enter_training_mode(self) -> None:
        self.module.train()
        self.backbone.train(self.fidelity.backbone_dropout)

    def compute_loss_divisor(self, split: EncodedSplit, examples: Sequence[int]) -> float:
        return float(len(examples))

    def prepare_inputs(self, split: EncodedSplit, examples: Sequence[int]) -> Inputs:
        return self._build_inputs(split, examples, {"labels": get_labels(split, examples)})

    def compute_loss(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None = None
    ) -> Tensor:
        task = self.tasks[split.task]
        inputs = inputs or self.prepare_inputs(split, examples)
        logits, labels = self._compute_logits(task, inputs), inputs["labels"]
        match task.kind:
            case "span":
                scores = logits.masked_fill(~inputs["allowed"].unsqueeze(-1), float("-inf"))
                edges = [compute_span_loss(scores[..., k], labels[:, k]) for k in (0, 1)]
                return (edges[0] + edges[1]) / 2
            case "rating":
                shares = labels[:, 0].to(logits.dtype) / SCALE_STEPS
                return compute_rating_loss(task, logits[:, 0], shares)
            case _:
                return compute_label_loss(task, logits, labels)

    def split_for_training(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        if self._has_unrestricted_edges(split.task):
            # A batch's padding is part of its loss, so the batch must not be split.
            return [list(examples)]
        packed = self.first_position is not None
        whole = self.device.type == "cuda"
        return split_training_batch(split, examples, token_budget, packed=packed, whole=whole)

    def split_for_prediction(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        """Split evaluated examples into micro-batches; see ``FamilyModel``."""
        if self._has_unrestricted_edges(split.task):
            begins = range(0, len(examples), TOOLKIT_BATCH)
            return [list(examples[begin : begin + TOOLKIT_BATCH]) for begin in begins]
        return split_by_length(split, examples, token_budget, padded=self.first_position is None)

    def predict(self, split: EncodedSplit, examples: Sequence[int]) -> list[tuple[str, ...]]:
        task = self.tasks[split.task]
        inputs = self._build_inputs(split, examples, {})
        logits = self._compute_logits(task, inputs)
        match task.kind:
            case "span":
                return self._extract_spans(task, split, examples, logits, inputs["allowed"])
            case "multi_label":
                return [select_labels(task, row, self.fidelity.multi_label) for row in logits.cpu()]
            case "multi_output":
                best = logits.view(len(examples), len(task.outputs), task.classes).argmax(-1)
                return [tuple(task.labels[i] for i in row) for row in best.tolist()]
            case "rating":
                shares = torch.sigmoid(logits[:, 0].double())
                return list(format_ratings(task, shares.tolist()))
            case _:
                return [(task.labels[i],) for i in logits.argmax(-1).tolist()]

    def compute_head_inputs(self, split: EncodedSplit, examples: Sequence[int]) -> Tensor:
        """Compute the inputs of a task's head without dropout.

        The task must not have spans or options.

        Returns:
            States of shape (examples, input width of the head).
        """
        inputs = self._build_inputs(split, examples, {})
        return self._compute_states(self.tasks[split.task], inputs)

    def save(self, folder: Path) -> None:
        from safetensors.torch import save_file

        save_pretrained(self.backbone, folder)
        tensors = {
            name: t.detach().cpu().contiguous() for name, t in self.heads.state_dict().items()
        }
        save_file(tensors, folder / HEADS_FILE)
        if self.adapters is not None:
            self.adapters.save(folder)

    def load_heads(self, file: Path) -> None:
        """Load the heads and adapters for this model's tasks from a file."""
        for name, tensor in read_weights(file).items():
            task = name.rsplit(".", 1)[0]
            if task in self.tasks:
                self.heads.get_parameter(name).data.copy_(tensor)
        if self.adapters is not None:
            self.adapters.load(file.parent)

    def _has_unrestricted_edges(self, task: str) -> bool:
        """Return whether spans may begin and end at any token of a padded batch.

        The toolkit selects spans in this way.
        """
        return self.fidelity.span_choice == "edges" and self.tasks[task].kind == "span"

    # --- forward --------------------------------------------------------------------------------

    def _build_inputs(self, split: EncodedSplit, examples: Sequence[int], more: Arrays) -> Inputs:
        """Return the inputs of ``_compute_logits``, and additional arrays, on the device."""
        task, edges = self.tasks[split.task], self._has_unrestricted_edges(split.task)
        sequences = split.get_sequence_rows(examples)
        each_token = task.kind == "span"
        rows, second_starts = split.sequences.take(sequences), split.second_starts[sequences]
        if self.reads == "pair":
            rows = split_pairs(rows, second_starts)
            second_starts = rows.lengths()
        if self.reads in ALL_TOKENS:
            more = {**more, "lengths": rows.lengths().astype(np.int64)}
        if self.reads == "turn":
            more = {**more, "turn_starts": get_turn_starts(split, sequences)}
        layout = None
        if self.first_position is not None and not edges:
            layout = plan_layout(
                rows,
                self.device,
                first_position=self.first_position,
                firsts_only=self.narrow and not each_token,
            )
            arrays = build_packed_arrays(
                layout,
                second_starts,
                token_types=self.token_types,
                each_token=each_token or self.reads in ALL_TOKENS,
            )
        else:
            arrays = build_padded_arrays(
                rows,
                second_starts,
                fill=self.pad_token_id,
                multiple=TOOLKIT_PADDING if edges else 1,
                token_types=self.token_types,
            )
        if each_token:
            width = arrays["wanted" if layout else "ids"].shape[1]
            arrays["allowed"] = self._mask_allowed_tokens(split, examples, width)
        if task.kind == "multiple_choice":
            arrays |= index_options(split, examples)
        tensors = copy_to_device({**arrays, **more}, self.device)
        return Inputs(tensors, layout.build_pack(tensors) if layout else None)

    def _compute_logits(self, task: Task, inputs: Inputs) -> Tensor:
        """Compute the task's logits in float32.

        Shapes: (examples, tokens, 2) for spans, undefined beyond an example's tokens; (examples,
        options) for multiple choice, -inf for options that an example does not have; otherwise
        (examples, head width).
        """
        each_token = task.kind == "span"
        hidden = self.dropout(self._compute_states(task, inputs))
        logits: Tensor = self.heads[task.name](hidden)
        if each_token and inputs.pack is not None:
            return logits[inputs["wanted"]]
        if task.kind == "multiple_choice":
            scores = logits.squeeze(-1)[inputs["options"]]
            return scores.masked_fill(inputs["no_option"], float("-inf"))
        return logits

    def _compute_states(self, task: Task, inputs: Inputs) -> Tensor:
        """Compute the states that the task's head reads."""
        read = self._read_padded if inputs.pack is None else self._read_packed
        with self.adapters.use_task(task.name) if self.adapters is not None else nullcontext():
            return read(inputs, task.kind == "span")

    def _read_packed(self, inputs: Inputs, each_token: bool) -> Tensor:
        """Run the encoder on packed sequences, without padding.

        Returns:
            Hidden states of all tokens, shape (tokens, hidden size), or pooled states of the
            sequences, shape (sequences, hidden size).
        """
        read = {
            "input_ids": inputs["ids"],
            "position_ids": inputs["positions"],
            "attention_mask": inputs["mask"],
        }
        if self.token_types:
            read["token_type_ids"] = inputs["token_types"]
        hidden: Tensor = self.backbone(**read, packed=inputs.pack).last_hidden_state.squeeze(0)
        if each_token:
            return hidden
        if self.reads in ALL_TOKENS:
            return self._pool_tokens(hidden[inputs["wanted"]], inputs)
        first = hidden.index_select(0, inputs["wanted"])
        pooler = getattr(self.backbone, "pooler", None)
        return first if pooler is None else pooler(first[:, None])

    def _read_padded(self, inputs: Inputs, each_token: bool) -> Tensor:
        """Run the encoder on sequences that are padded to the longest.

        Returns:
            As ``_read_packed``, but hidden states of all tokens have the shape (sequences, longest,
            hidden size).
        """
        read = {"input_ids": inputs["ids"], "attention_mask": inputs["mask"]}
        if self.token_types:
            read["token_type_ids"] = inputs["token_types"]
        outputs = self.backbone(**read)
        hidden: Tensor = outputs.last_hidden_state
        if each_token:
            return hidden
        if self.reads in ALL_TOKENS:
            return self._pool_tokens(hidden, inputs)
        pooled: Tensor | None = getattr(outputs, "pooler_output", None)
        return hidden[:, 0] if pooled is None else pooled

    def _pool_tokens(self, hidden: Tensor, inputs: Inputs) -> Tensor:
        """Pool the states of all tokens for the heads.

        Args:
            hidden: states of shape (sequences, longest, hidden size).
        """
        if self.reads == "pair":
            return compare_pairs(hidden, inputs["lengths"])
        starts = inputs["turn_starts"] if self.reads == "turn" else None
        return average_tokens(hidden, inputs["lengths"], starts)

    def _mask_allowed_tokens(
        self, split: EncodedSplit, examples: Sequence[int], width: int
    ) -> Array:
        """Return a mask of tokens that may begin or end a span, (examples, ``width``)."""
        task = self.tasks[split.task]
        if self._has_unrestricted_edges(task.name):
            return np.ones((len(examples), width), dtype=bool)
        first = has_unanswerable(task) or self.fidelity.lost_spans == "first_token"
        return mask_allowed_tokens(split, examples, width, first=first)

    def _extract_spans(
        self,
        task: Task,
        split: EncodedSplit,
        examples: Sequence[int],
        logits: Tensor,
        allowed: Tensor,
    ) -> list[tuple[str, ...]]:
        """Extract each example's best span from the original text."""
        if self.fidelity.span_choice == "edges":
            first, last = logits.argmax(1).unbind(-1)
        else:
            first, last = find_best_spans(logits, allowed, self.longest_spans[task.name])
        answers: list[tuple[str, ...]] = []
        for example, a, b in zip(examples, first.tolist(), last.tolist(), strict=True):
            start, end = find_text_edges(split.offsets[example], a, b)
            context = split.contexts[int(split.instance[example])]
            answers.append((context[start:end] if start >= 0 and end >= start else "",))
        return answers


def _read_hidden_dropout(config: Any) -> float:
    for name in ("hidden_dropout_prob", "dropout", "mlp_dropout"):
        rate = getattr(config, name, None)
        if rate is not None:
            return float(rate)
    return 0.1
