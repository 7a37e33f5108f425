"""Cosine similarity of context and response by a released encoder, without fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from tasktransfer.core.nodes import Evaluation, Outcome
from tasktransfer.datasets import get_task
from tasktransfer.evaluation.features import compute_features
from tasktransfer.evaluation.outcome import EvaluationInputs, SplitPredictions
from tasktransfer.tasks.card import Instance, format_ratings
from tasktransfer.tasks.compose import build_encoder_text
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.setup import Setup

ContextPart = Literal["last", "whole", "most"]
"""Part of the context that is compared with a response: its last utterance, the whole text, or the
most similar utterance."""


def predict_cosine_ratings(
    evaluation: Evaluation,
    outcome: Outcome,
    places: EvaluationInputs,
    instances: Sequence[Instance],
) -> SplitPredictions:
    """Predict each instance's rating as the cosine similarity of context and response.

    The settings are ``cosine``, the part of the context, and ``pooling``: mean, which is the
    default, or input for the input embeddings.

    -1 is the low end of the task's scale, and 1 the high end. For a context that is not divided
    into utterances, ``last`` and ``most`` use the whole text.

    Raises:
        ModelError: the encoder or its tokenizer cannot be loaded.
    """
    assert outcome.model is not None, "the cosine similarity is computed by a released model"
    task, model = get_task(evaluation.data.name, evaluation.task), outcome.model
    part: ContextPart = evaluation.settings["cosine"]
    pairs = [
        (_select_utterances(instance, part), build_encoder_text(task, instance)[0])
        for instance in instances
    ]
    texts = sorted({text for before, response in pairs for text in (*before, response)}, key=len)
    vectors = compute_features(
        Path(places.base(model.name)),
        places.encoded[evaluation.data, model.name] / "tokenizer",
        model,
        texts,
        evaluation.settings.get("pooling", "mean"),
        places.hardware,
        places.revision(model.name),
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vector_of_text = dict(zip(texts, vectors, strict=True))
    fractions = [
        (1 + max(float(vector_of_text[text] @ vector_of_text[response]) for text in before)) / 2
        for before, response in pairs
    ]
    predictions = format_ratings(task, np.clip(fractions, 0, 1).tolist())
    return SplitPredictions(
        list(predictions), [float(text) for (text,) in predictions], _build_setup(places)
    )


def _build_setup(places: EvaluationInputs) -> Setup:
    """Return a setup that describes how a model computed features, for the record."""
    budget = TokenBudget(0, "representation")
    return Setup(places.hardware.prepare_device(), budget, budget, "float32")


def _select_utterances(instance: Instance, part: ContextPart) -> list[str]:
    if part == "whole" or not instance.turns:
        return [instance.context]
    ends = [*(start - 1 for start in instance.turns[1:]), len(instance.context)]
    utterances = [instance.context[a:b] for a, b in zip(instance.turns, ends, strict=True)]
    return utterances[-1:] if part == "last" else utterances
