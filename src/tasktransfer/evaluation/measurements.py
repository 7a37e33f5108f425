"""Measurements of a model on a task's training instances, for selectors of sources.

They are features of a classifier, mean-pooled states, gradients, Fisher information and losses,
always in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tasktransfer.core.specs import ModelSpec, Training
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.errors import ConfigError
from tasktransfer.evaluation.features import compute_features as compute_mean_states
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.load import Loading, load_model
from tasktransfer.tasks.card import SINGLE_LABEL, Task
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.setup import Setup

Arrays = dict[str, npt.NDArray[Any]]

SKETCH_SIZE = 8192
FISHER_INSTANCES = 100
GRADIENT_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A model to be measured, with its settings.

    Attributes:
        start: its checkpoint, a folder or a name on the hub.
        of: task on which the model was trained. None for the base model.
        instances: maximum number of instances per task.
        texts: function from the name of a task to the input texts of these instances.
    """

    model: ModelSpec
    training: Training
    start: str
    revision: str | None
    encoded: Path
    seed: int
    of: Task | None
    instances: int
    texts: Callable[[str], list[str]]
    hardware: Hardware
    beside: str | None = None

    def read_train_split(self, task: str, instances: int | None = None) -> EncodedSplit:
        """Read the first training instances of a task, at most ``instances``."""
        return read_split(self.encoded, task, "train").limit_instances(instances or self.instances)

    def load_with_heads(self, *tasks: Task) -> tuple[FamilyModel, Setup]:
        """Load the model with heads for given tasks, and return it with its setup.

        The head for the task on which it was trained is loaded as well. Other heads are initialised
        at random.
        """
        device = self.hardware.prepare_device()
        cards = {task.name: task for task in tasks}
        same_name = any(map(self.is_namesake, tasks))
        if self.of is not None and not same_name:
            cards[self.of.name] = self.of
        loading = Loading(
            *(self.model, self.training, self.encoded, self.seed, device),
            beside=self.beside,
            heads=not same_name,
        )
        model = load_model(loading, self.start, self.revision, cards)
        return model, self.hardware.choose_setup(model, self.model.family, device)

    def is_namesake(self, task: Task) -> bool:
        """Return whether a task of another dataset has the same name as the trained task."""
        return self.of is not None and task.name == self.of.name and task != self.of


def compute_embeddings(measuring: MeasuredModel, task: Task) -> Arrays:
    """Compute the mean-pooled states of inputs, ``embeddings`` (inputs, size)."""
    states = compute_mean_states(
        Path(measuring.start),
        measuring.encoded / "tokenizer",
        measuring.model,
        measuring.texts(task.name),
        "mean",
        measuring.hardware,
        measuring.revision,
    )
    return {"embeddings": states.astype(np.float32)}


def compute_classifier_features(measuring: MeasuredModel, task: Task) -> Arrays:
    """Compute the inputs of the task's classifier, and the classifier's probabilities.

    Returns:
        ``features`` (inputs, size): inputs of the task's own classifier, or mean-pooled states for
        models without classifiers. ``probabilities`` (inputs, labels): probabilities of the labels
        of the model's own task, if it has a single-label classifier.
    """
    if measuring.model.family != "encoder":
        return {"features": compute_embeddings(measuring, task)["embeddings"]}
    model, setup = measuring.load_with_heads(task)
    assert isinstance(model, Encoder)
    read = setup.eval_budget.run_within_memory(
        lambda tokens: _record_head_inputs(model, measuring.read_train_split(task.name), tokens),
        undo=lambda: None,
    )
    found: Arrays = {"features": read.numpy()}
    own = measuring.of
    if own is not None and own.kind in SINGLE_LABEL:
        with_head = measuring.load_with_heads()[0] if measuring.is_namesake(task) else model
        assert isinstance(with_head, Encoder)
        with torch.inference_mode():
            logits = with_head.heads[own.name](read.to(setup.device))
        found["probabilities"] = torch.softmax(logits.double(), dim=-1).cpu().numpy()
    return found


def _record_head_inputs(model: Encoder, split: EncodedSplit, tokens: int) -> Tensor:
    """Record the inputs of a task's head for each instance, in the split's order."""
    model.module.eval()
    rows: list[Tensor | None] = [None] * len(split)
    seen: list[Tensor] = []

    def record_inputs(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen.append(inputs[0].detach().float().cpu())

    with _attach_hook(model.heads[split.task], record_inputs), torch.inference_mode():
        for examples in model.split_for_prediction(split, range(len(split)), tokens):
            seen.clear()
            model.predict(split, examples)
            for example, row in zip(examples, torch.cat(seen), strict=True):
                rows[example] = row
    return torch.stack([row for row in rows if row is not None])


@contextmanager
def _attach_hook(module: nn.Module, hook: Callable[..., None]) -> Iterator[None]:
    handle = module.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def compute_losses(measuring: MeasuredModel, task: Task) -> Arrays:
    """Compute each instance's mean loss in a text-to-text model, ``losses`` (inputs,)."""
    if measuring.model.family == "encoder":
        raise ConfigError(
            f"{task.name}: The losses of the task cannot be computed, because an encoder has no "
            "trained head for it. Use a decoder or an encoder-decoder."
        )
    model, _ = measuring.load_with_heads(task)
    split = measuring.read_train_split(task.name)
    model.module.eval()
    total, weight = np.zeros(len(split.ids)), np.zeros(len(split.ids))
    with torch.inference_mode():
        for example in range(len(split)):
            row = int(split.instance[example])
            total[row] += float(model.compute_loss(split, [example]))
            weight[row] += model.compute_loss_divisor(split, [example])
    return {"losses": total / np.maximum(weight, 1)}


def compute_mean_gradient(measuring: MeasuredModel, task: Task) -> Arrays:
    """Compute a random projection of the shared parameters' mean gradient, (8192,).

    In the sketch each parameter is added with a random sign to a random position, which preserves
    inner products. An encoder's head is first fitted to the features (logistic regression), because
    with a random head the gradients of two tasks are similar only by chance. Embeddings of words
    and positions are excluded, because their gradients show which words two tasks share, and hide
    other similarities. On the generated datasets they rank an unrelated source first in two of five
    seeds.
    """
    model, setup = measuring.load_with_heads(task)
    split = measuring.read_train_split(task.name)
    if isinstance(model, Encoder):
        _fit_head(model, task, split, setup)
    embedded = {
        id(module.weight) for module in model.module.modules() if isinstance(module, nn.Embedding)
    }
    shared = {
        name: parameter
        for name, parameter in _select_shared_parameters(model).items()
        if id(parameter) not in embedded
    }
    total = [torch.zeros_like(parameter, dtype=torch.float32) for parameter in shared.values()]
    model.module.eval()
    weight = model.compute_loss_divisor(split, range(len(split)))
    for examples in model.split_for_training(split, range(len(split)), GRADIENT_TOKENS):
        loss = model.compute_loss(split, examples) / weight
        batch_gradients = torch.autograd.grad(loss, list(shared.values()), allow_unused=True)
        for index, gradient in enumerate(batch_gradients):
            if gradient is not None:
                total[index] += gradient.to_dense()
    return {"gradient": _compute_sketch([parameter.flatten().cpu().numpy() for parameter in total])}


def _fit_head(model: Encoder, task: Task, split: EncodedSplit, setup: Setup) -> None:
    """Fit a single-label task's randomly initialised head by logistic regression."""
    if task.kind not in SINGLE_LABEL:
        return
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  # slow to import

    read = _record_head_inputs(model, split, setup.eval_budget.tokens).numpy()
    classes = np.array([int(split.labels[example][0]) for example in range(len(split))])
    if len(set(classes.tolist())) < 2:
        return
    fitted = LogisticRegression(C=1.0, max_iter=500).fit(read, classes)
    head: Any = model.heads[task.name]
    weights, offset = fitted.coef_, fitted.intercept_
    if len(weights) == 1:  # Two classes have only one weight vector.
        weights, offset = np.concatenate([-weights, weights]) / 2, np.append(-offset, offset) / 2
    with torch.no_grad():
        head.weight.zero_()
        head.bias.fill_(-10.0)  # These are classes that do not occur.
        head.weight[fitted.classes_] = torch.from_numpy(weights).to(head.weight)
        head.bias[fitted.classes_] = torch.from_numpy(offset).to(head.bias)


def compute_fisher_information(measuring: MeasuredModel, task: Task) -> Arrays:
    """Compute the diagonal Fisher information of each parameter tensor, by name.

    It is the mean over instances of squared gradients of the gold answer's log-probability. Each
    tensor is scaled to a largest entry of 1, which does not change cosine similarities, and stored
    in half precision.
    """
    model, _ = measuring.load_with_heads(task)
    split = measuring.read_train_split(task.name, FISHER_INSTANCES)
    shared = _select_shared_parameters(model)
    total = {
        name: torch.zeros_like(parameter, dtype=torch.float32) for name, parameter in shared.items()
    }
    model.module.eval()
    for example in range(len(split)):
        loss = model.compute_loss(split, [example])
        gradients = torch.autograd.grad(loss, list(shared.values()), allow_unused=True)
        for (name, parameter), gradient in zip(total.items(), gradients, strict=True):
            if gradient is not None:
                total[name] = parameter + gradient.to_dense().float().square()
    scaled = {
        name: parameter / parameter.max().clamp_min(1e-30) for name, parameter in total.items()
    }
    return {name: parameter.half().cpu().numpy() for name, parameter in scaled.items()}


def _select_shared_parameters(model: FamilyModel) -> dict[str, nn.Parameter]:
    """Select the parameters shared by all tasks, without heads and task adapters."""
    parts = {
        name: part
        for name, part in model.get_parts().items()
        if not name.startswith(("head.", "adapter."))
    }
    return {
        name: parameter
        for part in parts.values()
        for name, parameter in part.items()
        if parameter.requires_grad
    }


def _compute_sketch(parts: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float64]:
    random = np.random.default_rng(0)
    sketch = np.zeros(SKETCH_SIZE)
    for part in parts:
        places = random.integers(0, SKETCH_SIZE, len(part))
        signs = random.integers(0, 2, len(part), dtype=np.int8) * 2 - 1
        sketch += np.bincount(places, part.astype(np.float64) * signs, SKETCH_SIZE)
    return sketch


MEASUREMENTS: dict[str, Callable[[MeasuredModel, Task], Arrays]] = {
    "embeddings": compute_embeddings,
    "features": compute_classifier_features,
    "gradients": compute_mean_gradient,
    "fisher": compute_fisher_information,
    "losses": compute_losses,
}
"""Learner of a fit (``selection.selector.MEASUREMENTS``) → function that measures a task."""
