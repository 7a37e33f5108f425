"""The table of measures: every named number that selects an epoch or is in a record.

Measures of a task's card (accuracy, the F1s, exact match) are computed from sums over instances,
see ``metrics.tally_instances``. Correlations and measures with equal weights for classes are not.
They have a function ``of_rows``, and must be resampled by clusters (dialogues, contexts).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Literal

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import ConfigError
from tasktransfer.tasks.card import Task, compute_fraction, get_scale

Values = npt.NDArray[np.float64]
Answers = Sequence[tuple[str, ...]]
Scale = Literal["logit", "fisher", "logarithm", "plain"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A named number with its direction and range.

    Args:
        name: name of the measure.
        higher_is_better: true if higher values are better.
        low: minimum value.
        high: maximum value.
        of_rows: (predicted, gold) with one value per instance each → the number. None if the
            measure is computed from sums over instances, or by the training itself (a loss).
        scale: scale for intervals of a mean over seeds: the logit between 0 and 100; Fisher's z for
            correlations; the logarithm, also for means and differences, because perplexities vary
            by a factor over seeds; or the number itself (plain).
    """

    name: str
    higher_is_better: bool = True
    low: float = 0.0
    high: float = 100.0
    of_rows: Callable[[Values, Values], float] | None = None
    scale: Scale = "logit"

    def is_better(self, value: float, than: float) -> bool:
        """Return whether a value is better than another, which is false for NaN."""
        return value > than if self.higher_is_better else value < than

    @property
    def worst_value(self) -> float:
        """Value that is worse than all others."""
        return -inf if self.higher_is_better else inf

    def is_in_range(self, value: float) -> bool:
        """Return whether a value is in the measure's range, allowing for rounding.

        A weighted mean of ones may exceed one by a rounding error, which must not stop a training.
        """
        slack = 1e-6
        return self.low - slack <= value <= self.high + slack


def compute_pearson(predicted: Values, gold: Values) -> float:
    """Compute Pearson's correlation, or 0 if either side is constant."""
    centred = predicted - predicted.mean(), gold - gold.mean()
    norm = np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum())
    return float((centred[0] * centred[1]).sum() / norm) if norm > 0 else 0.0


def compute_spearman(predicted: Values, gold: Values) -> float:
    """Compute Spearman's rank correlation, with mean ranks for ties.

    It is defined as 0 if either side is constant.
    """
    from scipy.stats import rankdata  # noqa: PLC0415  # slow to import, and rarely needed

    return compute_pearson(rankdata(predicted), rankdata(gold))


def compute_kendall(predicted: Values, gold: Values) -> float:
    """Compute Kendall's tau-b, or 0 if either side is constant."""
    from scipy.stats import kendalltau  # noqa: PLC0415

    value = float(kendalltau(predicted, gold).statistic)
    return 0.0 if isnan(value) else value


def compute_balanced_accuracy(predicted: Values, gold: Values) -> float:
    """Compute balanced accuracy, the mean recall of both classes, 0-100.

    Values are from 0 to 1, and 0.5 or more is the positive class. A constant prediction gets 50. If
    gold has one class, the result is its recall.
    """
    guessed, right = predicted >= 0.5, gold >= 0.5
    return float(
        np.mean([100 * (guessed[c] == right[c]).mean() for c in (right, ~right) if c.any()])
    )


_PERCENTAGES = (
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
    **{name: Measure(name) for name in (*_PERCENTAGES, *_F1)},
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
    "balanced_accuracy": Measure("balanced_accuracy", of_rows=compute_balanced_accuracy),
    **{
        name: Measure(name, low=-1.0, high=1.0, of_rows=of_rows, scale="fisher")
        for name, of_rows in (
            ("pearson", compute_pearson),
            ("spearman", compute_spearman),
            ("kendall", compute_kendall),
        )
    },
}
"""Name → measure, including measures that the designs of plugins have added (``designs.add``).

``score`` is the mean of the measures that score a task's card.
"""

PACKAGE_MEASURES = tuple(MEASURES)
"""Names of the package's measures."""


def list_row_measures() -> tuple[str, ...]:
    """Return the names of measures that cannot be computed from sums over instances."""
    return tuple(measure.name for measure in MEASURES.values() if measure.of_rows)


def find_invalid_value(values: dict[str, float]) -> str | None:
    """Describe the first measure with an invalid value, or return None if all are valid.

    Unknown measures may have any value.
    """
    for name, value in values.items():
        measure = MEASURES.get(name)
        if measure is not None and not measure.is_in_range(value):
            return f"{name} is {value}, outside {measure.low:g} to {measure.high:g}"
    return None


def convert_answers_to_numbers(task: Task, answers: Answers) -> list[float]:
    """Convert answers to numbers.

    For a rating task this is the rating. Otherwise it is the label if all labels of the task are
    numbers, or else the label's position in the card.

    Raises:
        ConfigError: the task's answers are not single labels.
    """
    if not task.labels:
        raise ConfigError(
            f"{task.name}: The measure needs numeric answers, but tasks of kind {task.kind} do "
            "not have numeric answers. Choose another measure."
        )
    if task.kind == "rating":
        low, high = get_scale(task)
        return [low + compute_fraction(task, answer[0]) * (high - low) for answer in answers]
    try:
        numbers = {label: float(label) for label in task.labels}
    except ValueError:
        numbers = {label: float(index) for index, label in enumerate(task.labels)}
    # The answer of a multi-label task may be empty.
    return [numbers.get(answer[0] if answer else "", float("nan")) for answer in answers]
