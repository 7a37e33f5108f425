"""Micro-batches of updates. On a GPU, a thread prepares the next update during the current one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

import torch

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.staging import Inputs
from tasktransfer.training.samplers import Update


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Some examples of a batch.

    Attributes:
        inputs: prepared inputs; None if they are prepared when the loss is computed.
    """

    examples: list[int]
    inputs: Inputs | None = None


MicroBatches = list[list[MicroBatch]]
"""Micro-batches of an update, per batch of the update."""


def split_into_micro_batches(
    model: FamilyModel, splits: Mapping[str, EncodedSplit], update: Update, tokens: int
) -> MicroBatches:
    """Split the batches of an update into micro-batches of at most about ``tokens`` tokens."""
    return [
        [
            MicroBatch(examples)
            for examples in model.split_for_training(splits[b.task], b.examples, tokens)
        ]
        for b in update
    ]


class UpdatePreparer:
    """The updates of a round as micro-batches, of which the next one is prepared in a thread.

    A GPU computes asynchronously: while it computes an update, a thread prepares the next one and
    starts copying it to the device. On a CPU this gains nothing, so nothing is prepared ahead.
    """

    def __init__(
        self,
        model: FamilyModel,
        splits: Mapping[str, EncodedSplit],
        updates: Sequence[Update],
        device: torch.device,
    ) -> None:
        self._model, self._splits, self._updates = model, splits, updates
        self._thread = ThreadPoolExecutor(1, "ahead") if device.type == "cuda" else None
        self._waiting: dict[tuple[int, int], Future[MicroBatches]] = {}

    def __enter__(self) -> UpdatePreparer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)

    def get_update(self, number: int, tokens: int) -> MicroBatches:
        """Return an update of the round as micro-batches, while preparing the next update.

        Args:
            number: number of the update, from 0.
            tokens: approximate number of tokens per micro-batch.
        """
        if self._thread is None:
            return split_into_micro_batches(
                self._model, self._splits, self._updates[number], tokens
            )
        ready = self._waiting.pop((number, tokens), None)
        self._waiting.clear()  # prepared for more tokens than fit into memory
        made = self._prepare_update(number, tokens) if ready is None else ready.result()
        if number + 1 < len(self._updates):
            following = self._thread.submit(self._prepare_update, number + 1, tokens)
            self._waiting[number + 1, tokens] = following
        return made

    def _prepare_update(self, number: int, tokens: int) -> MicroBatches:
        update = self._updates[number]
        made = split_into_micro_batches(self._model, self._splits, update, tokens)
        return [
            [
                MicroBatch(
                    part.examples, self._model.prepare_inputs(self._splits[b.task], part.examples)
                )
                for part in of_batch
            ]
            for b, of_batch in zip(update, made, strict=True)
        ]
