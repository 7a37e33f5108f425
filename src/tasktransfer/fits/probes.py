"""Linear probes of the facts in a representation, one classifier per fact.

All probes of a snapshot run in one job (Parthasarathi et al. 2021, section 4.3). A fact with one
label per turn uses multinomial logistic regression, a fact with a set of labels one-vs-rest. As in
the released code (``release_compat``), all can use one-vs-rest, so that a turn may get no label.
Each probe has two references that need no representation: the best constant answer, and the same
probe on labels that are shuffled among the turns of dialogues of one type.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError, format_quantity
from tasktransfer.files.progress import show_progress
from tasktransfer.fits.linear_probes import (
    LinearClassifier,
    fit_multinomial_classifier,
    fit_one_vs_rest_classifiers,
)
from tasktransfer.fits.mlp_probes import fit_mlp
from tasktransfer.metrics import open_labels
from tasktransfer.metrics.answers import encode_answers
from tasktransfer.results.rows import Row
from tasktransfer.results.schema import MLP, PRIOR, PROJECTION, SHUFFLED
from tasktransfer.tasks.card import Instance

Floats = npt.NDArray[np.float64]
Labels = Sequence[tuple[str, ...]]
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ProbeInputs:
    """The inputs from which all probes of a snapshot are fitted.

    Attributes:
        read: task → split (train, test) → instances.
        features: function instances → features, (instances, features), dense or sparse.
        folder: folder for output files.
        note: function called with notes for the record.
    """

    read: Mapping[str, Mapping[str, Sequence[Instance]]]
    features: Callable[[Sequence[Instance]], Any]
    settings: Mapping[str, Any]
    seed: int
    folder: Path
    note: Report


@dataclass
class ProbeResults:
    """The results of fitted probes, in the format of a record."""

    instances: dict[str, int] = field(default_factory=dict)
    measures: dict[str, dict[str, float]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Probe:
    """A fitted classifier.

    Attributes:
        labels: labels of the training split, sorted.
        one: whether each instance gets exactly one label.
    """

    labels: tuple[str, ...]
    linear: LinearClassifier
    one: bool

    def predict(self, features: Any) -> list[tuple[str, ...]]:
        """Predict the most likely label of each row, or all labels with a score above 0."""
        scores = self.linear.compute_scores(features)
        if self.one:
            return [(self.labels[best],) for best in scores.argmax(axis=1)]
        return [tuple(self.labels[k] for k in np.flatnonzero(row)) for row in scores > 0]


def fit_probes(inputs: ProbeInputs) -> ProbeResults:
    """Fit and score the probes of every task, and return their results.

    The settings are ``C``, ``max_iter``, ``sets`` (the tasks with sets of labels),
    ``release_compat`` and ``mlp``.

    Raises:
        DataError: a representation is not finite, or a task's training labels are all the same.
    """
    fitted = ProbeResults()
    for task, read in show_progress(inputs.read.items(), "fitting probes"):
        train, test = read["train"], read["test"]
        features = {
            split: _require_finite_features(inputs, task, read[split])
            for split in ("train", "test")
        }
        golds = {
            split: [instance.target for instance in read[split]] for split in ("train", "test")
        }
        _check_several_labels(task, train)
        _report_unseen_labels(inputs, task, golds, test)
        measures, answers = _fit_probe(inputs, task, features, golds)
        shuffled = {split: shuffle_labels_by_type(read[split], inputs.seed) for split in golds}
        shuffled_measures, guesses = _fit_probe(inputs, task, features, shuffled, keep=False)
        majority = Counter(label for gold in golds["train"] for label in gold).most_common(1)[0][0]
        constant = find_best_constant_answer(golds["train"])
        fitted.instances[task] = len(test)
        fitted.measures[task] = {
            **measures,
            "shuffled_f1": shuffled_measures["micro_f1"],
            "selectivity": measures["micro_f1"] - shuffled_measures["micro_f1"],
            "prior_f1": compute_micro_f1([constant] * len(test), golds["test"]),
            "minority_f1": compute_micro_f1(*_remove_label(majority, answers, golds["test"])),
            "classes": float(len({label for gold in golds["train"] for label in gold})),
            "train_rows": float(len(train)),
        }
        fitted.rows += _build_prediction_rows(task, test, answers, golds["test"])
        fitted.rows += _build_prediction_rows(f"{task}+{SHUFFLED}", test, guesses, shuffled["test"])
        fitted.rows += _build_prediction_rows(
            f"{task}+{PRIOR}", test, [constant] * len(test), golds["test"]
        )
        if inputs.settings.get("mlp"):
            dialogues = [instance.dialogue_id for instance in train]
            predictions = fit_mlp(
                features["train"],
                golds["train"],
                dialogues,
                inputs.seed,
                one=_has_single_label(inputs, task),
            ).predict(features["test"])
            fitted.measures[task]["mlp_f1"] = compute_micro_f1(predictions, golds["test"])
            fitted.rows += _build_prediction_rows(f"{task}+{MLP}", test, predictions, golds["test"])
    _save_projection(inputs)
    return fitted


def compute_micro_f1(answers: Labels, golds: Labels) -> float:
    """Compute the micro-F1 of answers, 0 to 100."""
    sums = open_labels.tally_label_sets(
        encode_answers(list(answers)), encode_answers(list(golds))
    ).sum(axis=0)
    return float(100 * open_labels.compute_micro_f1(sums))


def find_best_constant_answer(golds: Labels) -> tuple[str, ...]:
    """Find the constant answer with the highest micro-F1 on gold answers.

    It consists of the most frequent labels, or of one label if every gold answer has one label.
    """
    counts = Counter(label for gold in golds for label in gold).most_common()
    hits = np.cumsum([count for _, count in counts])
    guessed = len(golds) * np.arange(1, len(counts) + 1)
    if all(len(gold) == 1 for gold in golds):
        return (counts[0][0],)
    best = int((2 * hits / (guessed + hits[-1])).argmax())
    return tuple(label for label, _ in counts[: best + 1])


def shuffle_labels_by_type(instances: Sequence[Instance], seed: int) -> list[tuple[str, ...]]:
    """Shuffle labels among the turns of dialogues of equal type.

    The type is the query's field ``type``. Label frequencies do not change, and labels can be
    predicted only from the type.
    """
    places: dict[str, list[int]] = {}
    for index, instance in enumerate(instances):
        places.setdefault(instance.query.get("type", ""), []).append(index)
    generator = np.random.default_rng([seed, len(instances)])
    labels: list[tuple[str, ...]] = [()] * len(instances)
    for _, of_type in sorted(places.items()):
        for index, other in zip(of_type, generator.permutation(of_type), strict=True):
            labels[index] = instances[int(other)].target
    return labels


def _fit_probe(
    inputs: ProbeInputs,
    task: str,
    features: Mapping[str, Any],
    golds: Mapping[str, Labels],
    *,
    keep: bool = True,
) -> tuple[dict[str, float], list[tuple[str, ...]]]:
    """Fit a probe, and return its measures and predictions on the test split."""
    one = _has_single_label(inputs, task)
    probe = _fit_classifier(features["train"], golds["train"], inputs.settings, one=one)
    if not probe.linear.converged:
        inputs.note(f"{task}: The fit stopped after max_iter {probe.linear.iterations} iterations.")
    if keep:
        _save_probe(probe, inputs.folder / task)
    answers = probe.predict(features["test"])
    measures = {"micro_f1": compute_micro_f1(answers, golds["test"])}
    return measures | {"iterations": float(probe.linear.iterations)}, answers


def _has_single_label(inputs: ProbeInputs, task: str) -> bool:
    """Return whether each turn has exactly one label of a task."""
    return task not in inputs.settings.get("sets", ()) and not inputs.settings.get("release_compat")


def _fit_classifier(
    features: Any, golds: Labels, settings: Mapping[str, Any], *, one: bool
) -> Probe:
    labels = tuple(sorted({label for gold in golds for label in gold}))
    number = {label: index for index, label in enumerate(labels)}
    cost, most = float(settings.get("C", 1.0)), int(settings.get("max_iter", 250))
    if one:
        classes = np.array([number[gold[0]] for gold in golds])
        return Probe(labels, fit_multinomial_classifier(features, classes, cost, most), True)
    wanted = np.zeros((len(golds), len(labels)))
    for row, gold in enumerate(golds):
        wanted[row, [number[label] for label in gold]] = 1
    return Probe(labels, fit_one_vs_rest_classifiers(features, wanted, cost, most), False)


def _require_finite_features(inputs: ProbeInputs, task: str, instances: Sequence[Instance]) -> Any:
    features = inputs.features(instances)
    values = features.data if hasattr(features, "tocsr") else features
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
        instance = instances[row]
        raise DataError(
            f"{inputs.folder}: In the task {task}, the representation of instance {instance.id} "
            f"(dialogue {instance.dialogue_id}) contains the value "
            f"{features[row][~np.isfinite(features[row])][0]}. Train the stage again with a lower "
            "training.learning_rate, or leave this snapshot out."
        )
    return features


def _check_several_labels(task: str, train: Sequence[Instance]) -> None:
    """Raise DataError if all training instances have the same labels."""
    golds = {instance.target for instance in train}
    if len(golds) < 2:
        only = " and ".join(map(repr, train[0].target)) or "no label"
        raise DataError(
            f"{task}: The probe cannot be fitted, because all {len(train)} training instances "
            f"have {only} (from {train[0].id} in dialogue {train[0].dialogue_id} to "
            f"{train[-1].id} in dialogue {train[-1].dialogue_id}). Remove the task from "
            "probes.tasks, or provide more dialogues."
        )


def _report_unseen_labels(
    inputs: ProbeInputs, task: str, golds: Mapping[str, Labels], test: Sequence[Instance]
) -> None:
    seen = {label for gold in golds["train"] for label in gold}
    unseen = sorted({label for gold in golds["test"] for label in gold} - seen)
    if unseen:
        example = next(instance for instance in test if unseen[0] in instance.target)
        inputs.note(
            f"{task}: The test split has {format_quantity(len(unseen), 'label')} that the training "
            f"split does not have, such as {unseen[0]!r} of instance {example.id}, dialogue "
            f"{example.dialogue_id}. Probes cannot predict these labels, which count as missed."
        )


def _remove_label(label: str, answers: Labels, golds: Labels) -> tuple[Labels, Labels]:
    """Remove a label from answers and gold labels."""

    def remove(rows: Labels) -> list[tuple[str, ...]]:
        return [tuple(other for other in labels if other != label) for labels in rows]

    return remove(answers), remove(golds)


def _build_prediction_rows(
    task: str, instances: Sequence[Instance], answers: Labels, golds: Labels
) -> list[Row]:
    scores = 100 * open_labels.compute_label_set_f1(
        open_labels.tally_label_sets(encode_answers(list(answers)), encode_answers(list(golds)))
    )
    columns = zip(instances, answers, golds, scores, strict=True)
    return [
        Row(index, task, instance.id, answer, gold, float(score), instance.dialogue_id)
        for index, (instance, answer, gold, score) in enumerate(columns)
    ]


def _save_probe(probe: Probe, folder: Path) -> None:
    from safetensors.numpy import save_file  # noqa: PLC0415  # Tables do not need it.

    folder.mkdir(parents=True, exist_ok=True)
    save_file({"weights": probe.linear.weights.astype(np.float32)}, folder / "probe.safetensors")
    content = {"labels": probe.labels, "one": probe.one}
    (folder / "probe.json").write_text(json.dumps(content) + "\n", encoding="utf-8")


def _save_projection(inputs: ProbeInputs) -> None:
    """Save the training representations on their first two principal components (Figure 2)."""
    task = next(iter(inputs.read))
    features = inputs.features(inputs.read[task]["train"])
    if hasattr(features, "tocsr"):
        return
    centred = features - features.mean(axis=0)
    squares, turn = np.linalg.eigh(centred.T @ centred)
    kept = {"projection": (centred @ turn[:, :-3:-1]).astype(np.float32)}
    kept["variance"] = (squares[:-3:-1] / max(squares.sum(), 1e-300)).astype(np.float32)
    np.savez(inputs.folder / PROJECTION, **kept)
