"""Operation counts of trainings and predictions on the fake CUDA device, for tests to compare.

Run by ``python tests/fake_cuda.py FOLDER``, which prepares the device first.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, get_args
from unittest import mock

import torch
from torch import Tensor, nn

from fake_device import CUDA, NONDETERMINISTIC, Counts, watched
from fake_models import batch_of, model_of, move
from fake_other_models import MODELS
from small_models import KINDS, small_stage
from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.evaluation.instance_predictions import predict_answers
from tasktransfer.models.family import FamilyModel
from tasktransfer.training import ahead, loop
from tasktransfer.training.evaluate import predict_instances
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.in_batch import uses_in_batch_loss
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.precision import Precision
from tasktransfer.training.progress import Progress
from tasktransfer.training.samplers import Batch
from tasktransfer.training.setup import Setup
from tasktransfer.training.switches import set_switches

TRAIN_TOKENS, EVAL_TOKENS = 32768, 65536


def everything() -> dict[str, Any]:
    """Run all cases, and return their results.

    ``counts``: operations per update by family, for models of base shape. ``problems``: errors of
    small models of every family with every kind of task. ``others``: counts per update, or the
    error, for other kinds of models. ``evaluations``: settings of a small model's evaluation by
    family, and the error, if any. ``faults``: planted faults and how they were detected.
    ``nondeterministic``: such operations of small deterministic models, by family.
    """
    return {
        "counts": of_base_shapes(),
        "bytes_a_token": of_memory(),
        "evaluations": of_evaluations(),
        "problems": of_every_kind(),
        "others": of_other_models(),
        "faults": of_planted_faults(),
        "nondeterministic": of_deterministic_trainings(),
    }


def of_base_shapes() -> dict[str, Any]:
    """Count the second update of 60 examples; the first one creates the optimizer state."""
    counted = {}
    for family in FAMILIES:
        split = batch_of(family, *KINDS["utterance_classification"])
        model = model_of(family, get_task("DailyDialog", split.task))
        with watched(len(split)) as counts:
            move(model)
            train(model, split, counts, updates=2)
        counted[family] = {
            **counts.summary(),
            "tokens": int(split.count_tokens().sum()),
            "operations": dict(counts.operations.most_common()),
        }
    return counted


def of_memory() -> dict[str, dict[str, float]]:
    """Return the bytes per token, including padding, that the backward pass needs.

    Keys are family and precision.
    """
    needed: dict[str, dict[str, float]] = {}
    for family in FAMILIES:
        split = batch_of(family, *KINDS["utterance_classification"])
        padded = len(split) * int(split.compute_longest_lengths().max())
        tokens = padded if family == "encoder_decoder" else int(split.count_tokens().sum())
        for precision in get_args(Precision):
            model = model_of(family, get_task("DailyDialog", split.task))
            with watched(len(split)) as counts:
                move(model)
                train(model, split, counts, precision=precision)
            needed.setdefault(family, {})[precision] = sum(counts.saved.values()) / tokens
    return needed


def of_every_kind() -> dict[str, str]:
    """Return the errors of small models in training and prediction, by family and kind of task."""
    problems = {}
    for family in FAMILIES:
        for kind, (dataset, name) in KINDS.items():
            if family == "encoder" or kind == "span":  # all kinds are equal for text-to-text models
                problem, _ = _tried(family, dataset, name)
                problems[f"{family} {kind}"] = problem
    return {where: problem for where, problem in problems.items() if problem}


def of_other_models() -> dict[str, dict[str, Any]]:
    """Return the counts of the second update, and the error of training or prediction, if any."""
    seen: dict[str, dict[str, Any]] = {}
    for name, make in MODELS.items():
        model, split = make()
        error, counted = "", {}
        with watched(len(split)) as counts:
            move(model)
            try:
                train(model, split, counts, updates=2)
                counted = counts.summary()
                if not uses_in_batch_loss(model, split):
                    predict_instances(model, split, EVAL_TOKENS, setup())
            except (RuntimeError, TypeError, ValueError, NotImplementedError) as problem:
                error = f"{type(problem).__name__}: {problem}"
        seen[name] = {**counted, "error": error}
    return seen


def of_evaluations() -> dict[str, dict[str, Any]]:
    """Return how evaluations run a trained model on a GPU of 80 GiB, according to its config."""
    seen: dict[str, dict[str, Any]] = {}
    memory = SimpleNamespace(total_memory=80 << 30)
    for family in FAMILIES:
        dataset, name = KINDS["utterance_classification"]
        split = batch_of(family, dataset, name, 6)
        model = model_of(family, get_task(dataset, name), layers=2)
        with (
            watched(len(split)) as counts,
            mock.patch.object(torch.cuda, "get_device_properties", lambda device: memory),
        ):
            move(model)
            device = Hardware().prepare_device()
            setup = Hardware().choose_setup(model, family, device)
            predict_answers(model, split, setup)
        seen[family] = {
            "device": device.type,
            "precision": setup.precision,
            "tokens": setup.eval_budget.tokens,
            "launches": counts.operations.total(),
            "casts": counts.operations["_to_copy"],
        }
    return seen


def of_planted_faults() -> dict[str, dict[str, Any]]:
    """Return how faults were detected: the error raised, and copies that the host waits for."""
    noticed: dict[str, dict[str, Any]] = {}
    for family in FAMILIES:
        for name, plant in FAULTS.items():
            error, counts = _tried(family, *KINDS["utterance_classification"], plant)
            blocking = counts.blocking_copies
            noticed[f"{family} {name}"] = {"error": error, "blocking_copies": blocking}
    return noticed


def of_deterministic_trainings() -> dict[str, list[str]]:
    """Return operations without a deterministic kernel, with ``training.deterministic``.

    This runs last, because the switches remain set.
    """
    seen = {}
    with watched(1):
        set_switches(1, deterministic=True)
    for family in FAMILIES:
        error, counts = _tried(family, *KINDS["utterance_classification"])
        seen[family] = [error] if error else sorted(NONDETERMINISTIC & {*counts.operations})
    return seen


def _tried(
    family: Family,
    dataset: str,
    name: str,
    plant: Callable[[nn.Module], None] = lambda module: None,
) -> tuple[str | None, Counts]:
    """Return the error of training and prediction with a small model, if any, and counts."""
    split = batch_of(family, dataset, name, 6)
    model = model_of(family, get_task(dataset, name), layers=2)
    with watched(len(split)) as counts:
        move(model)
        plant(model.module)
        try:
            train(model, split, counts)
            predict_instances(model, split, EVAL_TOKENS, setup())
        except (RuntimeError, TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}", counts
    return None, counts


def train(
    model: FamilyModel,
    split: EncodedSplit,
    counts: Counts,
    updates: int = 1,
    precision: Precision = "bfloat16",
) -> None:
    """Train a model on a whole split at once; ``counts`` then contain the last update."""
    moving = list(model.module.parameters())
    optimiser = torch.optim.Adam(moving, fused=True)
    stage = small_stage(split.task)
    update = (Batch(split.task, tuple(range(len(split)))),)
    splits, quiet = {split.task: split}, Progress(1, "", io.StringIO())
    gpu = setup(precision)
    for _ in range(updates):
        counts.clear()
        with mock.patch.object(ahead, "ThreadPoolExecutor", _AtOnce):
            loop._train_round(model, moving, optimiser, stage, splits, 1, [update], gpu, quiet)


class _AtOnce:
    """Executor that runs tasks in the calling thread, because the fake device is thread-local."""

    def __init__(self, *_: Any) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*arguments))
        return done

    def shutdown(self, **_: Any) -> None:
        pass


def setup(precision: Precision = "bfloat16") -> Setup:
    """Return the training setup of a GPU."""
    budgets = TokenBudget(TRAIN_TOKENS, "training"), TokenBudget(EVAL_TOKENS, "evaluation")
    return Setup(CUDA, *budgets, precision)


# --- faults -------------------------------------------------------------------------------------


def _weight_on_the_cpu(module: nn.Module) -> None:
    norm = _last_norm(module)
    norm.weight = nn.Parameter(torch.ones(norm.weight.shape))


def _input_on_the_cpu(module: nn.Module) -> None:
    _after_last_norm(module, lambda made: made + torch.ones(made.shape[-1]))


def _blocking_copy(module: nn.Module) -> None:
    _after_last_norm(module, lambda made: made + torch.ones(made.shape[-1]).to(CUDA))


def _after_last_norm(module: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
    def changed(module: nn.Module, inputs: Any, made: Tensor) -> Tensor:
        return change(made)

    _last_norm(module).register_forward_hook(changed)


def _last_norm(module: nn.Module) -> Any:
    return [part for part in module.modules() if "Norm" in type(part).__name__][-1]


FAULTS: dict[str, Callable[[nn.Module], None]] = {
    "none": lambda module: None,
    "weight on the CPU": _weight_on_the_cpu,
    "input on the CPU": _input_on_the_cpu,
    "blocking copy": _blocking_copy,
}
