"""Predictions of an exported model.

model = load_predictor("my-model")
model.predict(["The invoice is wrong.", [{"speaker": "customer", "text": "Hello"}]])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasktransfer.encoding.encoder_examples import build_encoder_examples
from tasktransfer.errors import DataError, ModelError
from tasktransfer.evaluation import portable
from tasktransfer.models.exported import Embedder, ExportedEncoder
from tasktransfer.results.exported import ExportedModel, read_exported_model
from tasktransfer.tasks.card import Instance

Floats = npt.NDArray[np.float64]
Dialogue = str | Sequence[Any] | Mapping[str, Any]
"""A text; a list of turns; or an object with ``turns`` and the fields of the model's query.

A turn is a text or an object with ``speaker`` and ``text``."""

BATCH = 32


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for one input.

    Attributes:
        label: most probable label; None if its probability is below the requested minimum.
        probability: calibrated probability of the most probable label.
        top: most probable labels with their probabilities, best first, as many as requested.
    """

    label: str | None
    probability: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Predictor:
    """A loaded model.

    Attributes:
        exported: contents of its ``tasktransfer.json``.
        compute: function (instances, batch size) → logits, (instances, labels).
    """

    exported: ExportedModel
    compute: Callable[[Sequence[Instance], int], Floats]

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that the model predicts."""
        return self.exported.labels

    def predict(
        self,
        dialogues: Sequence[Dialogue],
        *,
        top_k: int = 0,
        min_probability: float = 0.0,
        batch_size: int = BATCH,
    ) -> list[Prediction]:
        """Predict the label or labels of each dialogue.

        A model that labels turns predicts the last turn of each dialogue, and reads the turns
        before it.

        Args:
            dialogues: texts, lists of turns, or objects with ``turns`` (``Dialogue``).
            top_k: number of labels in ``Prediction.top``.
            min_probability: probability below which ``Prediction.label`` is None.
            batch_size: number of inputs that are computed together.

        Raises:
            DataError: a dialogue has no text or another type; the message has its index.
        """
        if isinstance(dialogues, str | Mapping):
            raise DataError(
                "dialogues: The value is one dialogue, but it must be a list. Pass a list of "
                "dialogues."
            )
        instances = [self._read_dialogue(n, each) for n, each in enumerate(dialogues)]
        return self.predict_instances(
            instances, top_k=top_k, min_probability=min_probability, batch_size=batch_size
        )

    def predict_instances(
        self,
        instances: Sequence[Instance],
        *,
        top_k: int = 0,
        min_probability: float = 0.0,
        batch_size: int = BATCH,
    ) -> list[Prediction]:
        """Predict each instance, with the options of ``predict``."""
        if not instances:
            return []
        logits = self.compute(instances, batch_size)
        probabilities = compute_probabilities(logits, self.exported.temperature)
        order = np.argsort(-probabilities, axis=1, kind="stable")
        predictions = []
        for row, best in zip(probabilities, order, strict=True):
            top = tuple((self.labels[n], float(row[n])) for n in best[: max(1, top_k)])
            label, probability = top[0]
            known = label if probability >= min_probability else None
            predictions.append(Prediction(known, probability, top if top_k else ()))
        return predictions

    def _read_dialogue(self, number: int, dialogue: Dialogue) -> Instance:
        fields: Mapping[str, Any] = dialogue if isinstance(dialogue, Mapping) else {}
        turns = fields.get("turns") if isinstance(dialogue, Mapping) else dialogue
        some = [turns] if isinstance(turns, str) else turns
        if not isinstance(some, list | tuple):
            raise DataError(
                f"dialogues[{number}]: The dialogue has the type {type(dialogue).__name__}, which "
                "is not supported. Pass a string, a list of turns, or an object with turns."
            )
        texts = [text for turn in some if (text := _format_turn(number, turn))]
        if not texts:
            raise DataError(
                f"dialogues[{number}]: The dialogue has no text. Remove the dialogue, or pass its "
                "text."
            )
        query = {}
        for name in self.exported.inputs.query_fields:
            value = fields.get(name)
            if not isinstance(value, str) or not value.strip():
                raise DataError(
                    f"dialogues[{number}]: The field {name} is missing. Pass an object with "
                    "turns and this field, which the model reads."
                )
            query[name] = value.strip()
        context = self.exported.inputs.separator.join(texts)
        is_turn = self.exported.inputs.scope != "dialogue"
        focus = len(context) - len(texts[-1]) if is_turn else len(context)
        return self.exported.build_instance(str(number), context, focus, query)


def _format_turn(number: int, turn: Any) -> str:
    """Format a turn as the model's input, or as "" without text."""
    speaker, text = "", turn
    if isinstance(turn, Mapping):
        speaker, text = turn.get("speaker") or "", turn.get("text")
    if not isinstance(text, str) or not isinstance(speaker, str):
        raise DataError(
            f"dialogues[{number}]: A turn has the type {type(turn).__name__}, which is not "
            "supported. Pass a string, or an object with speaker and text."
        )
    text, speaker = text.strip(), speaker.strip()
    return f"{speaker}: {text}" if speaker and text else text


def compute_probabilities(logits: Floats, temperature: float) -> Floats:
    """Convert logits to probabilities by softmax with a temperature, (instances, labels)."""
    scaled = logits / temperature
    raised = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    probabilities: Floats = raised / raised.sum(axis=1, keepdims=True)
    return probabilities


# --- loading --------------------------------------------------------------------------------------


def load_predictor(folder: str | Path) -> Predictor:
    """Load an exported model as a predictor.

    Raises:
        ModelError: a file is missing or damaged.
        DataError: the model reads words, and scikit-learn is not installed.
    """
    exported = read_exported_model(Path(folder))
    return Predictor(exported, load_logits_function(Path(folder), exported))


def load_logits_function(
    folder: Path, exported: ExportedModel
) -> Callable[[Sequence[Instance], int], Floats]:
    """Load the function that computes an exported model's logits.

    Raises:
        ModelError: a file is missing or damaged.
        DataError: the model reads words, and scikit-learn is not installed.
    """
    if exported.reader == "encoder":
        return _load_encoder(folder, exported)
    if exported.reader == "words":
        arrays = portable.read_arrays(folder / portable.WEIGHTS)
        words = portable.WordWeights.read(folder, arrays)
        weight, bias = _get_checked_arrays(folder, exported, arrays, "weight", "bias")

        def read_words(instances: Sequence[Instance], together: int) -> Floats:
            features = words.compute_features(exported.card, instances)
            return np.asarray(features @ weight.T + bias, np.float64)

        return read_words
    return _load_embeddings(folder, exported)


def _load_encoder(
    folder: Path, exported: ExportedModel
) -> Callable[[Sequence[Instance], int], Floats]:
    pooling, longest = exported.pooling or "pooler", exported.inputs.max_length
    assert longest is not None
    encoder = ExportedEncoder(folder, exported.layout, pooling, len(exported.labels))

    def read(instances: Sequence[Instance], together: int) -> Floats:
        examples = list(
            build_encoder_examples(encoder.tokenizer, exported.card, instances, longest)
        )
        order = sorted(range(len(examples)), key=lambda n: len(examples[n].sequences[0]))
        logits = np.zeros((len(examples), len(exported.labels)))
        for begin in range(0, len(order), together):
            some = order[begin : begin + together]
            rows = [examples[n].sequences[0] for n in some]
            starts = [examples[n].second_starts[0] for n in some]
            turns = [(examples[n].turn_starts or [0])[0] for n in some]
            logits[some] = encoder.compute_logits(rows, starts, turns)
        return logits

    return read


def _load_embeddings(
    folder: Path, exported: ExportedModel
) -> Callable[[Sequence[Instance], int], Floats]:
    assert exported.inputs.max_length is not None
    embedder = Embedder(folder, exported.inputs.max_length)
    is_dense = exported.layout == "sentence_transformers"
    file = folder / ("3_Dense/model.safetensors" if is_dense else portable.WEIGHTS)
    arrays, prefix = portable.read_arrays(file), "linear." if is_dense else ""
    names = ("embeddings", "answers")
    if exported.reader == "embeddings":
        names = (f"{prefix}weight", f"{prefix}bias")
    first, second = _get_checked_arrays(folder, exported, arrays, *names)

    def read(instances: Sequence[Instance], together: int) -> Floats:
        features = portable.compute_embeddings(
            lambda texts: embedder.embed_texts(texts, together),
            exported.card,
            exported.parts,
            instances,
        )
        if exported.reader == "embeddings":
            return np.asarray(features @ first.T + second, np.float64)
        return portable.compute_similarities(first, second, features)

    return read


def _get_checked_arrays(
    folder: Path, exported: ExportedModel, arrays: Mapping[str, Any], first: str, second: str
) -> tuple[Any, Any]:
    """Return two arrays of a folder, after checking that they match the labels."""
    labels = len(exported.labels)
    if {first, second} <= arrays.keys():
        one, two = arrays[first], arrays[second]
        rows = len(one) if exported.reader != "neighbours" else int(two.max(initial=-1)) + 1
        if rows == labels and all(map(math.isfinite, (one.sum(), two.sum()))):
            return one, two
    raise ModelError(
        f"{folder}: The folder is damaged, because the weights do not match the {labels} "
        "labels. Export the model again with `tasktransfer export-model`."
    )
