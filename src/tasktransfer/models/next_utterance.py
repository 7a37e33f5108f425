"""Encoder-decoders that are built from a recipe and trained on words (``FamilyModel``).

The vocabulary comes from the training instances only. Decoding is greedy and free-running, also for
the Transformer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.core.architecture import (
    FILE,
    Architecture,
    is_recipe,
    parse_weights,
    read_metadata,
)
from tasktransfer.encoding.encoded import IGNORED_LABEL, EncodedSplit
from tasktransfer.encoding.word_tokenizer import END, PAD, TURN_END_ID
from tasktransfer.errors import ModelError
from tasktransfer.layers import sequence_to_sequence as layers
from tasktransfer.layers.ragged import pad_rows
from tasktransfer.models.micro_batches import split_by_length
from tasktransfer.models.staging import Inputs, copy_to_device
from tasktransfer.models.weights import read_weights
from tasktransfer.tasks.card import Task
from tasktransfer.tasks.compose import parse_answer

WEIGHTS = "model.safetensors"

BATCH_SIZE = 64
"""Batch size for computing representations."""

Representation = Literal["state", "sum"]
"""Pooling of a text's representation.

``state``: the last state of the encoder's top layer, or the mean over words in a Transformer
(section 4.2). ``sum``: the sum of the last states of all layers, or over words in a Transformer
(the released code, which includes padding)."""


class Network(nn.Module):
    """The encoder and the decoder of an architecture."""

    def __init__(self, of: Architecture, vocabulary: int) -> None:
        super().__init__()
        if of.kind == "transformer":
            sizes = (vocabulary, of.units, of.layers, of.heads, of.feed_forward, of.dropout)
            self.encoder: nn.Module = layers.TransformerEncoder(*sizes)
            self.decoder: nn.Module = layers.TransformerDecoder(*sizes)
            return
        size = (vocabulary, of.embedding, of.units, of.layers)
        if of.kind == "hred":
            self.encoder = layers.HierarchicalEncoder(*size, TURN_END_ID)
        else:
            both_ways = of.kind == "bilstm_attention"
            self.encoder = layers.RecurrentEncoder(*size, both_ways=both_ways)
        self.decoder = layers.RecurrentDecoder(*size, attends=of.kind != "lstm")


class NextUtterance:
    """A generator of the next utterance, which implements ``FamilyModel``."""

    paths: tuple[str, ...] = ()
    side_by_side = False

    def __init__(
        self,
        network: Network,
        architecture: Architecture,
        tokenizer: Any,
        tasks: dict[str, Task],
        max_answer_tokens: dict[str, int],
        device: torch.device,
    ) -> None:
        self.module: nn.Module = network.to(device)
        self.encoder, self.decoder = network.encoder, network.decoder
        self.architecture = architecture
        self.tokenizer = tokenizer
        self.tasks = tasks
        self.max_answer_tokens = max_answer_tokens
        self.device = device
        self.hidden_size, self.layers = architecture.units, architecture.layers

    def get_parts(self) -> dict[str, dict[str, nn.Parameter]]:
        return {
            "encoder": dict(self.encoder.named_parameters()),
            "decoder": dict(self.decoder.named_parameters()),
            "body": dict(self.module.named_parameters()),
        }

    def enter_training_mode(self) -> None:
        self.module.train()

    def compute_loss_divisor(self, split: EncodedSplit, examples: Sequence[int]) -> float:
        return float(sum(len(split.labels[example]) for example in examples))

    def split_for_training(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        return split_by_length(split, examples, token_budget, padded=True)

    split_for_prediction = split_for_training

    def prepare_inputs(self, split: EncodedSplit, examples: Sequence[int]) -> Inputs:
        rows = split.sequences.take(split.get_sequence_rows(examples))
        answers = split.labels.take(examples)
        targets, _ = pad_rows(answers, IGNORED_LABEL)
        given, _ = pad_rows(answers, PAD)
        arrays = {"targets": targets, "said": np.roll(given, 1, axis=1)}
        arrays["said"][:, 0] = END
        return Inputs(self._build_row_tensors(rows, arrays))

    def compute_loss(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None = None
    ) -> Tensor:
        inputs = inputs or self.prepare_inputs(split, examples)
        read = self._encode_rows(inputs.tensors)
        logits = self.decoder(inputs["said"], read).float()
        return functional.cross_entropy(
            logits.flatten(0, 1),
            inputs["targets"].flatten(),
            ignore_index=IGNORED_LABEL,
            reduction="sum",
        )

    def predict(self, split: EncodedSplit, examples: Sequence[int]) -> list[tuple[str, ...]]:
        rows = split.sequences.take(split.get_sequence_rows(examples))
        read = self._encode_rows(self._build_row_tensors(rows))
        longest = self.max_answer_tokens[split.task]
        generated = self.decoder.generate(read, END, END, longest).tolist()  # type: ignore[operator]
        written = [row[: row.index(END)] if END in row else row for row in generated]
        texts = self.tokenizer.batch_decode(written, skip_special_tokens=True)
        return [parse_answer(self.tasks[split.task], text) for text in texts]

    def _build_row_tensors(
        self, rows: Any, besides: Mapping[str, Any] = MappingProxyType({})
    ) -> dict[str, Tensor]:
        """Return token ids and other arrays on the device, and lengths and words on the host.

        Words are split into sentences on the host, which avoids a copy back from the device.
        """
        ids, _ = pad_rows(rows, PAD)
        lengths = torch.from_numpy(rows.lengths().astype(np.int64))
        there = copy_to_device({"ids": ids, **besides}, self.device)
        return {**there, "lengths": lengths, "words": torch.from_numpy(ids)}

    def _encode_rows(self, rows: Mapping[str, Tensor]) -> layers.EncoderOutput:
        read: layers.EncoderOutput
        if isinstance(self.encoder, layers.HierarchicalEncoder):
            read = self.encoder(rows["ids"], rows["lengths"], rows["words"])
        else:
            read = self.encoder(rows["ids"], rows["lengths"])
        return read

    def encode_texts(
        self, texts: Sequence[str], max_length: int, how: Representation, together: int = BATCH_SIZE
    ) -> Tensor:
        """Encode the last ``max_length`` words of each text as a vector, (texts, units).

        Args:
            together: batch size.
        """
        self.module.eval()
        parts = []
        for begin in range(0, len(texts), together):
            some = self.tokenizer(list(texts[begin : begin + together]))["input_ids"]
            rows = [torch.tensor(ids[-max_length:]) for ids in some]
            lengths = torch.tensor([len(row) for row in rows])
            ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
            with torch.inference_mode():
                read = {"ids": ids.to(self.device), "lengths": lengths, "words": ids}
                parts.append(_compute_vector(self._encode_rows(read), how).cpu())
        return torch.cat(parts)

    def save(self, folder: Path) -> None:
        save_file(self.module.state_dict(), folder / WEIGHTS)
        content = {"architecture": asdict(self.architecture), "vocabulary": len(self.tokenizer)}
        (folder / FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def load_next_utterance_model(
    start: str,
    tokenizer: Any,
    tasks: dict[str, Task],
    max_answer_tokens: dict[str, int],
    device: torch.device,
    dropout: float | None = None,
) -> NextUtterance:
    """Load a saved model, or create a randomly initialised one from a recipe.

    Raises:
        ModelError: a saved model is damaged, or has another vocabulary.
    """
    saved = None if is_recipe(start) else read_metadata(Path(start))
    architecture = parse_weights(start) if saved is None else Architecture(**saved["architecture"])  # type: ignore[arg-type]
    network = Network(architecture, len(tokenizer))
    if saved is not None:
        _load_weights(network, Path(start) / WEIGHTS)
    if dropout is not None:
        for module in network.modules():
            if isinstance(module, nn.Dropout):
                module.p = dropout
    return NextUtterance(network, architecture, tokenizer, tasks, max_answer_tokens, device)


def _load_weights(network: Network, file: Path) -> None:
    try:
        network.load_state_dict(read_weights(file))
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise ModelError(
            f"{file}: The weights do not match the architecture ({first}). Train the model again."
        ) from error


def _compute_vector(read: layers.EncoderOutput, how: Representation) -> Tensor:
    if read.last is not None:
        hidden = read.last[0]
        return (hidden[-1] if how == "state" else hidden.sum(0)).float()
    mask = read.mask[:, :, None].float()
    total = (read.memory.float() * mask).sum(1)
    return total / mask.sum(1) if how == "state" else total
