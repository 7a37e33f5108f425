"""Contrastive fine-tuning: batches, loss, training of a tiny encoder, its nodes and statistics."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from small_models import make_model
from tasktransfer.core.nodes import Fit
from tasktransfer.core.references import (
    CONTRASTIVE,
    CONTRASTIVE_SETTINGS,
    FROZEN,
    TUNING,
)
from tasktransfer.datasets import get_task
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.runs import is_reference
from tasktransfer.designs.transfer.statistics.without_transfer import (
    Baseline,
    build_reference_table,
)
from tasktransfer.errors import TrainingError
from tasktransfer.evaluation.contrastive import (
    ContrastiveEncoder,
    compute_contrastive_loss,
    compute_rate_factor,
    sample_batches,
)
from tasktransfer.evaluation.embedding_references import predict_by_fine_tuned_regression
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.stats.bootstrap import Trainings
from tasktransfer.stats.cells import Cell
from tasktransfer.tasks.card import Instance
from tasktransfer.training.hardware import Hardware

CARD = get_task("DailyDialog", "emotion_recognition")
WORDS = {
    "happiness": ("gold", "silver", "copper"),
    "sadness": ("tulip", "daisy", "rose"),
    "anger": ("storm",),
}
SETTINGS = {**CONTRASTIVE_SETTINGS, "updates": 12, "batch_size": 6, "learning_rate": 1e-3}


def build_instance(number: int, label: str, text: str, before: str = "") -> Instance:
    context = f"{before} {text}".strip()
    ids, focus = (f"i{number}", f"d{number}"), len(context) - len(text)
    return Instance(*ids, CARD.name, context, focus, {}, (), (label,))


LABELLED_WORDS = [(label, word) for label, words in WORDS.items() for word in words]
TRAIN = [
    build_instance(number, label, f"{word} and {word}", before="well" if number % 2 else "")
    for number, (label, word) in enumerate(LABELLED_WORDS)
]
"""Three instances of two labels, and one of a third."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = [instance.context for instance in TRAIN]
    return str(make_model("encoder", texts * 10, tmp_path_factory.mktemp("tiny")))


def load(checkpoint: str) -> ContrastiveEncoder:
    return ContrastiveEncoder(checkpoint, None, 16, Hardware())


def embed(encoder: ContrastiveEncoder) -> Any:
    vectors = encoder.embed_texts([instance.context for instance in TRAIN])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# --- batches and loss -----------------------------------------------------------------------------


def test_a_batch_has_each_of_its_labels_equally_often() -> None:
    labels = np.array([0] * 30 + [1] * 3 + [2, 3, 4, 4])
    batches = list(sample_batches(labels, 8, 50, seed=1))
    for batch in batches:
        assert len(batch) == 8
        assert set(Counter(labels[batch]).values()) == {2}
    seen = Counter(int(label) for batch in batches for label in set(labels[batch]))
    assert max(seen.values()) - min(seen.values()) <= 10, "no label is preferred"
    of_largest = [n for batch in batches for n in batch if n < 30]
    assert set(of_largest) == set(range(30)), "every instance is read"
    assert len(set(of_largest[:30])) == 30, "and none twice before all are"
    again = sample_batches(labels, 8, 50, seed=1)
    assert all((a == b).all() for a, b in zip(batches, again, strict=True))
    other = sample_batches(labels, 8, 50, seed=2)
    assert not all((a == b).all() for a, b in zip(batches, other, strict=True))


def test_two_labels_fill_a_batch() -> None:
    labels = np.array([0] * 40 + [1])
    (batch,) = sample_batches(labels, 8, 1, seed=0)
    assert Counter(labels[batch]) == {0: 4, 1: 4}
    assert len(set(batch[labels[batch] == 0])) == 4


def test_the_loss_is_that_of_the_paper() -> None:
    chance = torch.Generator().manual_seed(0)
    vectors, labels = torch.randn(6, 4, generator=chance), torch.tensor([0, 0, 1, 1, 1, 1])
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    expected = 0.0
    for i in range(6):
        scores = {j: math.exp(float(unit[i] @ unit[j]) / 0.5) for j in range(6) if j != i}
        positives = [j for j in scores if labels[j] == labels[i]]
        terms = [math.log(scores[j] / sum(scores.values())) for j in positives]
        expected -= sum(terms) / len(terms) / 6
    loss = compute_contrastive_loss(vectors, labels, 0.5)
    assert float(loss) == pytest.approx(expected, abs=1e-5)


def test_the_learning_rate_rises_and_falls() -> None:
    factors = [compute_rate_factor(update, 20) for update in range(21)]
    assert factors[:2] == [0.5, 1.0] and factors[20] == 0.0
    assert factors[2:] == sorted(factors[2:], reverse=True)
    assert compute_rate_factor(0, 1) == 1.0


# --- training -------------------------------------------------------------------------------------


def test_instances_with_the_same_label_become_similar(checkpoint: str) -> None:
    encoder = load(checkpoint)
    labels = np.array([instance.target[0] for instance in TRAIN])

    def separation() -> float:
        similar = embed(encoder) @ embed(encoder).T
        same = labels[:, None] == labels[None, :]
        return float(similar[same].mean() - similar[~same].mean())

    before = separation()
    encoder.fine_tune(CARD, TRAIN, SETTINGS, seed=0)
    assert separation() > before + 0.1
    predicted = predict_by_fine_tuned_regression(
        lambda *_: encoder.embed_texts, CARD, TRAIN, TRAIN, 0
    )
    assert predicted == [instance.target for instance in TRAIN]


def test_equal_seeds_give_equal_embeddings(checkpoint: str) -> None:
    several = []
    for seed in (3, 3, 4):
        encoder = load(checkpoint)
        encoder.fine_tune(CARD, TRAIN, {**SETTINGS, "updates": 2}, seed)
        several.append(embed(encoder))
    assert (several[0] == several[1]).all()
    assert not np.allclose(several[0], several[2])


def test_one_label_leaves_the_encoder_unchanged(checkpoint: str) -> None:
    encoder = load(checkpoint)
    before = embed(encoder)
    encoder.fine_tune(CARD, TRAIN[:3], SETTINGS, seed=0)
    assert (embed(encoder) == before).all()


def test_a_loss_that_is_not_a_number_is_an_error(checkpoint: str) -> None:
    words = "emotion_recognition: The contrastive loss is nan in update"
    with pytest.raises(TrainingError, match=words):
        load(checkpoint).fine_tune(CARD, TRAIN, {**SETTINGS, "learning_rate": 1e30}, seed=0)


# --- nodes and statistics -------------------------------------------------------------------------

STUDY: dict[str, Any] = {
    "study": "contrastive",
    "data": {"tiny_world": {"dialogues": 120}},
    "datasets": {"DailyDialog": {"tasks": ["emotion_recognition", "causal_emotion_entailment"]}},
    "models": [
        {"name": "bert", "family": "encoder", "checkpoint": "tiny"},
        {"name": "gpt", "family": "decoder", "checkpoint": "tiny"},
    ],
    "algorithms": ["baseline"],
    "references": [FROZEN, CONTRASTIVE],
    "seeds": 2,
}


@pytest.mark.usefixtures("here")
def test_a_fit_per_seed_predicts_tasks_with_one_label() -> None:
    datasets = {"DailyDialog": {"tasks": ["emotion_recognition", "causal_emotion_span_extraction"]}}
    Path("study.yaml").write_text(yaml.safe_dump({**STUDY, "datasets": datasets}))
    study = open_study("study.yaml")
    runs = [run for run in study.plan.runs if run.variant == CONTRASTIVE]
    assert all(map(is_reference, runs))
    assert [(run.model, run.seed) for run in runs] == [("bert", 0), ("bert", 1)]
    for run in runs:
        fit = run.outcome
        assert isinstance(fit, Fit)
        assert (fit.tasks, fit.seed) == (("emotion_recognition",), run.seed)
        assert fit.settings[TUNING] == CONTRASTIVE_SETTINGS
    frozen = next(run.outcome for run in study.plan.runs if run.variant == FROZEN)
    assert isinstance(frozen, Fit) and TUNING not in frozen.settings
    contrastive = runs[0].outcome
    assert isinstance(contrastive, Fit)
    estimates = Estimates(study, "cpu")
    assert estimates.estimate_seconds(contrastive) > 2 * estimates.estimate_seconds(frozen)


@pytest.mark.usefixtures("here")
def test_tasks_that_are_only_sources_are_left_out() -> None:
    pair = {"source": "emotion_recognition", "target": "dialogue_act_classification"}
    tasks = [*pair.values()]
    study = {**STUDY, "algorithms": ["pretrain_finetune"]}
    study["datasets"] = {"DailyDialog": {"tasks": tasks, "pairs": [pair]}}
    Path("study.yaml").write_text(yaml.safe_dump(study))
    tasks_of = {
        run.variant: run.outcome.tasks
        for run in open_study("study.yaml").plan.runs
        if isinstance(run.outcome, Fit)
    }
    assert tasks_of == {FROZEN: (*tasks,), CONTRASTIVE: ("dialogue_act_classification",)}


def test_a_baseline_below_the_contrastive_score_has_learned() -> None:
    def make_cell(*scores: float) -> Cell:
        return Cell(Trainings(tuple(range(len(scores))), np.array(scores), None), None, "logit")

    target = ("DailyDialog", "bert", "emotion_recognition")
    references = {(target, FROZEN): make_cell(40.0), (target, CONTRASTIVE): make_cell(70.0, 71.0)}
    baselines = {target: Baseline(make_cell(60.0, 62.0), (False, False))}
    table = build_reference_table(references, baselines)
    assert table["reference"].tolist() == [FROZEN]
    assert table["state"].tolist() == ["learned"]
