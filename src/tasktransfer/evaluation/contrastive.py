"""Contrastive fine-tuning of an encoder on training instances, before a linear classifier.

SetFit (Tunstall et al. 2022, "Efficient Few-Shot Learning Without Prompts") fine-tunes an encoder
on pairs of instances, and fits logistic regression on its embeddings. Here, an update has the loss
of supervised contrastive learning (Khosla et al. 2020, equation 2) on all pairs of its batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.errors import TrainingError
from tasktransfer.evaluation.embedding_references import build_part_texts
from tasktransfer.layers.dropout import use_fast_dropout
from tasktransfer.models.checkpoint import load_pretrained
from tasktransfer.models.representation import BATCH_SIZE, pool_states, pool_texts, tokenize_texts
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.training.hardware import Hardware

CHUNK_SIZE = 8
"""Number of texts that are padded together. They have similar lengths, which saves a third of the
tokens in a batch of 32."""
WARMUP_FRACTION = 0.1
"""Fraction of the updates in which the learning rate rises. It then falls linearly to zero."""


class ContrastiveEncoder:
    """An encoder that is fine-tuned so that instances with the same label have similar embeddings.

    Args:
        checkpoint: Hugging Face name or folder of an encoder.
        revision: revision of a name on the hub.
        max_length: maximum sequence length in tokens; the end of a text is kept.
        hardware: threads and determinism. Weights are always float32.

    Raises:
        ModelError: the checkpoint or its tokenizer cannot be loaded.
    """

    def __init__(
        self, checkpoint: str, revision: str | None, max_length: int, hardware: Hardware
    ) -> None:
        self.device = hardware.prepare_device()
        self.max_length = max_length
        self.tokenizer = load_tokenizer(checkpoint, revision, "encoder")
        attention = "eager" if self.device.type == "cpu" else None
        loaded = load_pretrained(
            "encoder", checkpoint, revision, attention=attention, pooler="unused"
        )
        use_fast_dropout(loaded)
        self.body = loaded.to(self.device)

    def fine_tune(
        self, task: Task, train: Sequence[Instance], settings: Mapping[str, Any], seed: int
    ) -> None:
        """Fine-tune the encoder contrastively on the instances of a task.

        The encoder is unchanged if all instances have the same label.

        Args:
            settings: ``core.references.CONTRASTIVE_SETTINGS``.
            seed: seed of batches and dropout.

        Raises:
            TrainingError: the loss becomes NaN or infinite.
        """
        labels = np.array([task.labels.index(instance.target[0]) for instance in train])
        if len(set(labels)) < 2:
            return
        torch.manual_seed(seed)
        updates = int(settings["updates"])
        optimiser = torch.optim.AdamW(self.body.parameters(), lr=float(settings["learning_rate"]))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda update: compute_rate_factor(update, updates)
        )
        parts = [texts for texts in build_part_texts(task, train).values() if any(texts)]
        self.body.train()
        batches = sample_batches(labels, int(settings["batch_size"]), updates, seed)
        for number, batch in enumerate(batches, start=1):
            states = [self._embed_with_gradients([texts[n] for n in batch]) for texts in parts]
            targets = torch.as_tensor(labels[batch], device=self.device)
            loss = compute_contrastive_loss(
                torch.cat(states, dim=1), targets, float(settings["temperature"])
            )
            if not math.isfinite(loss.item()):
                raise TrainingError(
                    f"{task.name}: The contrastive loss is {loss.item()} in update {number}. "
                    "Remove contrastive_logistic from references, or use another model."
                )
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.body.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        self.body.eval()

    def embed_texts(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Compute the mean-pooled states of texts, (texts, hidden size)."""
        order = np.argsort([len(text) for text in texts], kind="stable")
        ordered = [texts[n] for n in order]
        body, limit = self.body.eval(), self.max_length
        pooled = pool_texts(body, self.tokenizer, ordered, limit, "mean", self.device, BATCH_SIZE)
        in_order = np.empty_like(pooled)
        in_order[order] = pooled
        return in_order

    def save(self, folder: Path, names: Mapping[str, Any]) -> None:
        """Save config.json, with the additional keys ``names``, and the weights as safetensors."""
        self.body.config.update(dict(names))
        self.body.save_pretrained(folder)

    def _embed_with_gradients(self, texts: Sequence[str]) -> Tensor:
        """Compute unit-length embeddings with gradients, (texts, hidden size).

        The embedding of an empty text is zero.
        """
        present = [n for n, text in enumerate(texts) if text.strip()]
        present.sort(key=lambda n: len(texts[n]))
        embedded = torch.zeros(len(texts), self.body.config.hidden_size, device=self.device)
        for begin in range(0, len(present), CHUNK_SIZE):
            places = present[begin : begin + CHUNK_SIZE]
            ids, mask = tokenize_texts(
                self.tokenizer, [texts[n] for n in places], self.max_length, self.device
            )
            states = self.body(input_ids=ids, attention_mask=mask).last_hidden_state
            pooled = torch.nn.functional.normalize(pool_states(states, mask, "mean"), dim=1)
            embedded = embedded.index_copy(0, torch.tensor(places, device=self.device), pooled)
        return embedded


def compute_rate_factor(update: int, updates: int) -> float:
    """Compute the factor of the learning rate in an update, which rises and falls linearly."""
    rise = max(1, round(WARMUP_FRACTION * updates))
    return min((update + 1) / rise, max(0.0, (updates - update) / max(1, updates - rise)))


def sample_batches(
    labels: npt.NDArray[np.int64], batch_size: int, updates: int, seed: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the indices of the instances in each batch.

    A batch has the same number of instances for each of its labels, and at least two. All labels
    are equally frequent. A label's instances are read in random order, each once before any is
    repeated. The only instance of a label is paired with itself, and dropout makes the two
    embeddings differ.
    """
    chance = np.random.default_rng(seed)
    classes = np.unique(labels)
    together = min(len(classes), max(2, batch_size // 2))
    each = max(2, batch_size // together)
    choose_class = _cycle_shuffled(classes, chance)
    choose = {label: _cycle_shuffled(np.flatnonzero(labels == label), chance) for label in classes}
    for _ in range(updates):
        chosen: dict[int, None] = {}
        while len(chosen) < together:
            chosen[int(next(choose_class))] = None
        yield np.array([next(choose[label]) for label in chosen for _ in range(each)])


def _cycle_shuffled(values: npt.NDArray[np.int64], chance: np.random.Generator) -> Iterator[int]:
    """Yield values endlessly in random order, using all before any is repeated."""
    while True:
        yield from chance.permutation(values)


def compute_contrastive_loss(embeddings: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Compute the supervised contrastive loss of a batch.

    Each instance classifies the others by cosine similarity. Its targets are the instances with its
    label.

    Args:
        embeddings: (instances, size).
        labels: (instances,), each label at least twice.
        temperature: divisor of the similarities.
    """
    unit = torch.nn.functional.normalize(embeddings, dim=1)
    itself = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    logits = (unit @ unit.T / temperature).masked_fill(itself, -torch.inf)
    same = (labels[:, None] == labels[None, :]) & ~itself
    likelihoods = logits.log_softmax(dim=1).masked_fill(~same, 0.0)
    return -(likelihoods.sum(dim=1) / same.sum(dim=1)).mean()
