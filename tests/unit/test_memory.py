"""Errors that mean a lack of memory, for every kind of memory."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
import torch

from tasktransfer.training.memory import TokenBudget, is_memory_shortage

SHORTAGES = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:117] data. DefaultCPUAllocator: not enough memory"
    ),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
]


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: str(error)[:40])
def test_a_shortage_halves_the_micro_batch(error: RuntimeError) -> None:
    assert is_memory_shortage(error)
    budget, tried = TokenBudget(64, "training"), []

    def work(tokens: int) -> int:
        tried.append(tokens)
        if tokens > 20:
            raise error
        return tokens

    assert budget.run_within_memory(work, undo=lambda: None) == 16
    assert tried == [64, 32, 16]


def test_other_errors_are_not() -> None:
    error = RuntimeError("CUDA error: an illegal memory access was encountered")
    assert not is_memory_shortage(error)
    with pytest.raises(RuntimeError, match="illegal"):
        TokenBudget(64, "training").run_within_memory(Mock(side_effect=error), lambda: None)
