"""Cosine similarity of context and response by a released encoder, without fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from tasktransfer.core.nodes import Evaluation, Outcome
from tasktransfer.datasets import get_task
from tasktransfer.evaluation.features import compute_features
from tasktransfer.evaluation.outcome import Answered, Places
from tasktransfer.tasks.card import Instance
from tasktransfer.tasks.compose import build_encoder_text
from tasktransfer.tasks.ratings import format_ratings
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.setup import Setup

Compared = Literal["last", "whole", "most"]
"""Part of the context that is compared with a response: its last utterance, the whole text, or the
most similar utterance."""


def compute_cosines(
    evaluation: Evaluation, outcome: Outcome, places: Places, instances: Sequence[Instance]
) -> Answered:
    """Return each instance's cosine similarity as a rating.

    Settings: ``cosine``, the part of the context; ``pooling``, mean if it is missing, or input for
    the input embeddings.

    -1 is the low end of the task's scale, and 1 the high end. For a context that is not divided
    into utterances, ``last`` and ``most`` use the whole text.

    Raises:
        ModelError: the encoder or its tokenizer cannot be loaded.
    """
    assert outcome.model is not None, "the cosine is that of a released model"
    task, model = get_task(evaluation.data.name, evaluation.task), outcome.model
    what: Compared = evaluation.settings["cosine"]
    asked = [
        (_split_context(instance, what), build_encoder_text(task, instance)[0])
        for instance in instances
    ]
    texts = sorted({text for before, response in asked for text in (*before, response)}, key=len)
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
    of = dict(zip(texts, vectors, strict=True))
    shares = [
        (1 + max(float(of[text] @ of[response]) for text in before)) / 2
        for before, response in asked
    ]
    predictions = format_ratings(task, np.clip(shares, 0, 1).tolist())
    return Answered(
        list(predictions), [float(text) for (text,) in predictions], _build_setup(places)
    )


def _build_setup(places: Places) -> Setup:
    """Return the setup with which ``features`` runs a model, for the record."""
    budget = TokenBudget(0, "representation")
    return Setup(places.hardware.prepare_device(), budget, budget, "float32")


def _split_context(instance: Instance, what: Compared) -> list[str]:
    if what == "whole" or not instance.turns:
        return [instance.context]
    ends = [*(start - 1 for start in instance.turns[1:]), len(instance.context)]
    utterances = [instance.context[a:b] for a, b in zip(instance.turns, ends, strict=True)]
    return utterances[-1:] if what == "last" else utterances
