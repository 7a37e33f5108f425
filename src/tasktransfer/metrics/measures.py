"""The table of measures: every named number that selects a round or stands in a record.

A measure of a task's card (accuracy, the F1s, exact match) is made of sums over instances, see
``metrics.tally``. A correlation is none, nor is what weighs classes alike: they offer ``of_rows``,
and what resamples them has to take clusters (dialogues, contexts) whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Literal

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import ConfigError
from tasktransfer.tasks.card import Task
from tasktransfer.tasks.ratings import scale_of, share_of

Values = npt.NDArray[np.float64]
Answers = Sequence[tuple[str, ...]]
Scale = Literal["logit", "fisher", "logarithm", "plain"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A named number with its direction and range.

    ``of_rows``: (predicted, gold), a value each per instance → the number; None: it is made of
    sums over instances, or by the training itself (a loss).

    ``scale``: what intervals of a mean over seeds are made on. The logit between 0 and 100;
    Fisher's z, which is that of a correlation; the logarithm, of which means and differences are
    made too, since seeds scatter in the ratio of a perplexity; or the number itself.
    """

    name: str
    higher_is_better: bool = True
    low: float = 0.0
    high: float = 100.0
    of_rows: Callable[[Values, Values], float] | None = None
    scale: Scale = "logit"

    def better(self, value: float, than: float) -> bool:
        """Whether a value is better than another. A NaN is better than nothing."""
        return value > than if self.higher_is_better else value < than

    @property
    def worst(self) -> float:
        """What every value is better than."""
        return -inf if self.higher_is_better else inf

    def holds(self, value: float) -> bool:
        """Whether a value is in the range, but for rounding: a weighted mean of ones may come out
        a rounding error above one, and that must not lose a training."""
        slack = 1e-6
        return self.low - slack <= value <= self.high + slack


def pearson(predicted: Values, gold: Values) -> float:
    """Pearson's correlation; 0 where either has no spread, since nothing was told apart."""
    centred = predicted - predicted.mean(), gold - gold.mean()
    norm = np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum())
    return float((centred[0] * centred[1]).sum() / norm) if norm > 0 else 0.0


def spearman(predicted: Values, gold: Values) -> float:
    """Spearman's rank correlation: Pearson's of the ranks, ties at their average rank."""
    from scipy.stats import rankdata  # noqa: PLC0415  # slow to import, and few ask

    return pearson(rankdata(predicted), rankdata(gold))


def kendall(predicted: Values, gold: Values) -> float:
    """Kendall's tau-b; 0 where either has no spread."""
    from scipy.stats import kendalltau  # noqa: PLC0415

    value = float(kendalltau(predicted, gold).statistic)
    return 0.0 if isnan(value) else value


def balanced_accuracy(predicted: Values, gold: Values) -> float:
    """The mean over both classes of the share that is found, 0-100, for numbers of 0 to 1 that mean
    a class from a half on. Half of it is what a constant has; of one class alone, its share."""
    found, right = predicted >= 0.5, gold >= 0.5
    return float(np.mean([100 * (found[c] == right[c]).mean() for c in (right, ~right) if c.any()]))


_SHARES = (
    "accuracy",
    "exact_match",
    "closeness",
    "score",
    "bleu2",
    "bleu2_exchanged",
    "rouge_l",
    "meteor",
)
_F1 = tuple(
    f"{average}{name}"
    for name in ("f1", "multilabel_f1", "token_f1")
    for average in ("", "micro_", "macro_", "weighted_")
)

MEASURES: dict[str, Measure] = {
    **{name: Measure(name) for name in (*_SHARES, *_F1)},
    "loss": Measure("loss", higher_is_better=False, high=inf, scale="plain"),
    **{
        name: Measure(name, higher_is_better=False, low=1.0, high=inf, scale="logarithm")
        for name in ("perplexity", "word_perplexity")
    },
    "bleu": Measure("bleu"),
    "p_at_1": Measure("p_at_1"),
    "p_at_1_shuffled": Measure("p_at_1_shuffled"),
    "p_at_1_shuffled_sd": Measure("p_at_1_shuffled_sd"),
    "p_at_1_permuted": Measure("p_at_1_permuted"),
    "balanced_accuracy": Measure("balanced_accuracy", of_rows=balanced_accuracy),
    **{
        name: Measure(name, low=-1.0, high=1.0, of_rows=of_rows, scale="fisher")
        for name, of_rows in (("pearson", pearson), ("spearman", spearman), ("kendall", kendall))
    },
}
"""Name → measure: those of the package, and those that designs of plugins have added in this
process (``designs.add``). ``score`` is the mean of the measures that a task's card is scored by."""

PACKAGE = tuple(MEASURES)
"""The names of those that come with the package."""


def of_rows_names() -> tuple[str, ...]:
    """The measures that are no sums over instances."""
    return tuple(measure.name for measure in MEASURES.values() if measure.of_rows)


def out_of_range(values: dict[str, float]) -> str | None:
    """The first measure with a value that it cannot have, or None. Unknown names take any value."""
    for name, value in values.items():
        measure = MEASURES.get(name)
        if measure is not None and not measure.holds(value):
            return f"{name} is {value}, outside {measure.low:g} to {measure.high:g}"
    return None


def values_of(task: Task, answers: Answers) -> list[float]:
    """The number that each answer stands for: itself where the task is answered with a rating, the
    label where all labels of the task are numbers, else its place in the card.

    Raises:
        ConfigError: the task's answers are no single labels.
    """
    if not task.labels:
        raise ConfigError(f"{task.name}: is {task.kind}; its answers stand for no number")
    if task.kind == "rating":
        low, high = scale_of(task)
        return [low + share_of(task, answer[0]) * (high - low) for answer in answers]
    try:
        numbers = {label: float(label) for label in task.labels}
    except ValueError:
        numbers = {label: float(index) for index, label in enumerate(task.labels)}
    # An answer of several labels may have none.
    return [numbers.get(answer[0] if answer else "", float("nan")) for answer in answers]
