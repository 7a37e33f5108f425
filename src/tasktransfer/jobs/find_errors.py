"""The most confident errors of a simple method, and probable label errors, with file and line.

Each dialogue is predicted by a reference that was fitted on other dialogues of all splits. The
probabilities therefore show which label the other dialogues suggest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasktransfer.core.nodes import Fit
from tasktransfer.core.references import FROZEN, REGULARISATION, SPLIT, STRENGTH, TFIDF
from tasktransfer.data.cache import MANIFEST, read_instances
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.errors import ConfigError, DataError, RecordError, suggest_name
from tasktransfer.jobs import inputs
from tasktransfer.jobs.export_candidates import choose_task
from tasktransfer.jobs.needs import get_fit_model
from tasktransfer.jobs.reference_job import create_embedder
from tasktransfer.results.study import Study
from tasktransfer.stats.label_errors import Floats, crossfit_probabilities, find_label_errors
from tasktransfer.tasks.card import SPLITS, Instance, Task

METHODS = (FROZEN, TFIDF)
MAX_ERROR_FRACTION = 0.3
"""Fraction of wrong predictions above which a prediction is weak evidence against a label."""
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LabelledPlace:
    """A label that other dialogues contradict.

    Attributes:
        place: file and line, or the id of the instance if the reader knows no lines.
        label: label in the file.
        predicted: label that a model of other dialogues predicts.
        probability: its probability.
        label_probability: probability of the label in the file.
        probable_label_error: whether it is a probable label error (``stats.label_errors``).
        text: the part of the input that is labelled.
    """

    place: str
    split: str
    label: str
    predicted: str
    probability: float
    label_probability: float
    probable_label_error: bool
    text: str

    def describe(self, *, texts: bool) -> dict[str, str | float]:
        """Return the columns of an error's table row, with its text only if requested."""
        row = asdict(self)
        row |= {key: round(row[key], 3) for key in ("probability", "label_probability")}
        row["probable_label_error"] = "yes" if self.probable_label_error else ""
        if not texts:
            del row["text"]
        return row


@dataclass(frozen=True, slots=True)
class FoundErrors:
    """Errors of a task, the most confident one first.

    Attributes:
        method: reference that predicts the labels.
        instances: number of labelled instances.
        errors: instances whose prediction is another label.
    """

    dataset: str
    task: str
    method: str
    instances: int
    errors: list[LabelledPlace]

    @property
    def summary(self) -> str:
        """Sentence with the numbers of differing labels and probable label errors."""
        probable = sum(error.probable_label_error for error in self.errors)
        counts = (
            f"{self.dataset}/{self.task}: {len(self.errors):,} of {self.instances:,} labels differ "
            f"from the prediction of {self.method} for other dialogues; {probable:,} of them are "
            "probable label errors"
        )
        if len(self.errors) <= MAX_ERROR_FRACTION * self.instances:
            return counts
        right = 100 * (1 - len(self.errors) / self.instances)
        return (
            f"{counts}. As {self.method} predicts only {right:.0f} % of the labels, most of these "
            "may be errors of the method instead of the labels"
        )


def find_errors(study: Study, task: str | None, method: str | None) -> FoundErrors:
    """Predict each labelled instance with a model of other dialogues, and return the errors.

    Args:
        study: a study whose dialogues are prepared.
        task: as in ``choose_task``.
        method: one of ``METHODS``; None for TF-IDF or the study's references on frozen embeddings,
            whichever has the fewest errors.

    Raises:
        ConfigError: the study has no such task or method.
        DataError: scikit-learn is not installed, or there are fewer than two labels or dialogues.
        RecordError: the dialogues are not prepared.
    """
    dataset, name = choose_task(study, task)
    card = get_task(dataset, name)
    fits = list_method_fits(study, dataset, name, method)
    folder = inputs.get_cache(study, study.get_released_data(dataset))
    if not (folder / MANIFEST).exists():
        raise RecordError(
            f"{folder}: The dialogues are not prepared. Run the study with `tasktransfer run`."
        )
    of_split = {split: list(read_instances(folder, name, split)) for split in SPLITS}
    instances = [instance for some in of_split.values() for instance in some]
    splits = [split for split, some in of_split.items() for _ in some]
    given = np.array([card.labels.index(instance.target[0]) for instance in instances])
    several = [_crossfit_labels(study, card, instances, fit) for fit in fits]
    counts = [int((each.argmax(axis=1) != given).sum()) for each in several]
    best = counts.index(min(counts))
    fit, probabilities = fits[best], several[best]
    predicted, is_error = probabilities.argmax(axis=1), find_label_errors(probabilities, given)
    places = [
        place
        for split in SPLITS
        for place in _list_places(study, dataset, name, split, of_split[split])
    ]
    errors = [
        LabelledPlace(
            places[n],
            splits[n],
            card.labels[given[n]],
            card.labels[predicted[n]],
            float(probabilities[n, predicted[n]]),
            float(probabilities[n, given[n]]),
            bool(is_error[n]),
            instances[n].context[instances[n].focus :] or instances[n].context,
        )
        for n in np.argsort(-probabilities.max(axis=1), kind="stable")
        if predicted[n] != given[n]
    ]
    label = TFIDF if fit is None else f"{FROZEN} with {get_fit_model(study, fit).name}"
    return FoundErrors(dataset, name, label, len(instances), errors)


def list_method_fits(study: Study, dataset: str, task: str, method: str | None) -> list[Fit | None]:
    """Return the study's fits on frozen embeddings, and None, which stands for TF-IDF.

    Args:
        method: one of ``METHODS``, to return only its entries; None for all.

    Raises:
        ConfigError: the method is unknown, or the study has no such reference.
    """
    fits: list[Fit | None] = [
        fit
        for fit in study.plan.fits
        if fit.learner == FROZEN
        and fit.data.name == dataset
        and task in fit.tasks
        and SPLIT not in fit.settings  # not the fit that check_baselines adds
    ]
    if method not in (None, *METHODS):
        raise ConfigError(
            f"--method {method}: The command does not support this "
            f"method.{suggest_name(str(method), METHODS)} Choose one of {', '.join(METHODS)}."
        )
    if method == FROZEN and not fits:
        raise ConfigError(
            f"--method {FROZEN}: The study does not list this method in references. Add the method "
            f"to references, or choose {TFIDF}."
        )
    if method == TFIDF:
        return [None]
    return fits if method == FROZEN else [None, *fits]


def _crossfit_labels(
    study: Study, card: Task, instances: Sequence[Instance], fit: Fit | None
) -> Floats:
    """Return label probabilities from models of other dialogues, (instances, labels)."""
    from tasktransfer.evaluation import portable  # noqa: PLC0415  # imports scikit-learn

    clusters = [instance.dialogue_id for instance in instances]
    if len(set(clusters)) < 2:
        raise DataError(
            f"{card.name}: All labels are in one dialogue, but at least two dialogues with labels "
            "are needed to hold one out. Provide more dialogues."
        )
    features: Any = None
    if fit is not None:
        embed = create_embedder(study, fit)
        assert embed is not None
        parts = portable.list_embedded_parts(card, instances)
        features = portable.compute_embeddings(embed, card, parts, instances)
    strength = float(fit.settings.get(STRENGTH, REGULARISATION)) if fit is not None else 1.0

    def predict(train: Positions, asked: Positions) -> Floats:
        given = [instances[n] for n in train]
        if fit is None:
            words = portable.WordWeights.fit(card, given)
            known = words.compute_features(card, given)
            others = words.compute_features(card, [instances[n] for n in asked])
        else:
            known, others = features[train], features[asked]
        found = portable.fit_regression(card, known, given, 0, strength)
        scores = np.asarray(others @ found.weight.T + found.bias, np.float64)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities = np.zeros((len(asked), len(card.labels)))
        columns = [card.labels.index(label) for label in found.labels]
        probabilities[:, columns] = raised / raised.sum(axis=1, keepdims=True)
        return probabilities

    numbers = np.array([card.labels.index(instance.target[0]) for instance in instances])
    return crossfit_probabilities(clusters, len(card.labels), predict, given=numbers)


def _list_places(
    study: Study, dataset: str, task: str, split: str, instances: Sequence[Instance]
) -> list[str]:
    """Return the file and line (or the ID) of each instance."""
    reader, few = DATASETS[dataset].reader, study.config.data.few_sample
    if not DATASETS[dataset].has_own_files:
        return [instance.id for instance in instances]
    release = reader.open(Path(study.get_release(dataset)), few)
    if release.places is None:
        return [instance.id for instance in instances]
    return [place for _, place in zip(instances, release.places(task, split), strict=True)]
