"""Exported encoders: loading, logits and embeddings, and the files written around them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tasktransfer.encoding.reading import build_source_arguments, translate_library_errors
from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.errors import ModelError
from tasktransfer.models.check_parameters import check_finite
from tasktransfer.models.checkpoint import load_pretrained
from tasktransfer.models.export import (
    DENSE_FOLDER,
    DENSE_WEIGHTS,
    build_label_config,
    pool_states,
    write_dense_layer,
    write_sentence_modules,
)
from tasktransfer.models.family import pad_to_tensors
from tasktransfer.models.representation import pool_texts
from tasktransfer.models.weights import read_weights

_REMEDY = "Export the model again with `tasktransfer export-model`"


def choose_device() -> torch.device:
    """Return the first GPU, or the CPU if there is none."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class ExportedEncoder:
    """A fine-tuned encoder with its head, from a folder of ``models.export.write_encoder``.

    Args:
        folder: the folder.
        layout: ``transformers`` for a classifier of transformers. In other layouts, the head has
            its own file.
        pooling: states that the head reads.
        labels: number of labels.

    Raises:
        ModelError: files are missing or damaged, or the head has another number of labels.
    """

    def __init__(self, folder: Path, layout: str, pooling: str, labels: int) -> None:
        self.device = choose_device()
        self.tokenizer = load_tokenizer(str(folder), None, "encoder")
        self.token_types = "token_type_ids" in self.tokenizer.model_input_names
        self.pooling = pooling
        self.dense: dict[str, Tensor] | None = None
        if layout != "transformers":
            tensors = read_weights(folder / DENSE_FOLDER / DENSE_WEIGHTS)
            self.dense = {name: tensor.to(self.device) for name, tensor in tensors.items()}
            outputs = len(self.dense["linear.bias"]) if "linear.bias" in self.dense else 0
        model = _load_encoder(folder, is_classifier=self.dense is None)
        if self.dense is None:
            outputs = model.config.num_labels
        if outputs != labels:
            raise ModelError(
                f"{folder}: The head has {outputs} outputs for {labels} labels, so the folder "
                f"is damaged. {_REMEDY}."
            )
        self.model = model.eval().to(self.device)

    def compute_logits(
        self,
        rows: Sequence[Sequence[int]],
        second_starts: Sequence[int],
        turn_starts: Sequence[int] = (),
    ) -> npt.NDArray[np.float64]:
        """Compute the logits of a batch, (sequences, labels).

        Args:
            rows: token ids of each sequence.
            second_starts: start of each sequence's second segment.
            turn_starts: index of the first token of each sequence's labelled turn, for a head that
                reads the turn.
        """
        arrays = [np.asarray(row, np.int32) for row in rows]
        ids, mask = pad_to_tensors(arrays, self.tokenizer.pad_token_id, self.device)
        read = {"input_ids": ids, "attention_mask": mask}
        if self.token_types:
            places = torch.arange(ids.shape[1], device=self.device)
            starts = torch.tensor(list(second_starts), device=self.device)
            read["token_type_ids"] = (places >= starts[:, None]).long() * mask
        with torch.inference_mode():
            outputs = self.model(**read)
            if self.dense is None:
                logits = outputs.logits
            else:
                turns = torch.tensor(list(turn_starts), device=self.device)
                states = pool_states(outputs, self.pooling, mask.sum(1), turns)
                logits = states @ self.dense["linear.weight"].T + self.dense["linear.bias"]
        return np.asarray(logits.float().cpu().numpy(), np.float64)


def _load_encoder(folder: Path, *, is_classifier: bool) -> Any:
    """Load a model in float32, and check that no weight is missing or damaged."""
    from transformers import AutoModel, AutoModelForSequenceClassification
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    classes: Any = AutoModelForSequenceClassification if is_classifier else AutoModel
    with translate_library_errors(str(folder), "The model"):
        model, report = classes.from_pretrained(
            **build_source_arguments(str(folder), None),
            dtype=torch.float32,
            use_safetensors=True,
            output_loading_info=True,
        )
    missing = [name for name in report["missing_keys"] if not name.startswith("pooler.")]
    if missing:
        raise ModelError(
            f"{folder}: The weights {missing[0]} are missing, so the folder is damaged. {_REMEDY}."
        )
    check_finite(model, str(folder))
    return model


class Embedder:
    """An encoder that embeds texts as mean-pooled states, for references on embeddings."""

    def __init__(self, folder: Path, max_length: int) -> None:
        self.device = choose_device()
        self.max_length = max_length
        self.tokenizer = load_tokenizer(str(folder), None, "encoder")
        self.model = _load_encoder(folder, is_classifier=False).eval().to(self.device)

    def embed_texts(self, texts: Sequence[str], together: int) -> npt.NDArray[np.float64]:
        """Compute the embeddings of texts, (texts, hidden size)."""
        return pool_texts(
            *(self.model, self.tokenizer, texts, self.max_length, "mean", self.device, together)
        )


def write_embedder(
    checkpoint: str, revision: str | None, labels: Sequence[str], folder: Path
) -> None:
    """Write a released encoder as config.json (with label names) and safetensors."""
    model = load_pretrained("encoder", checkpoint, revision, pooler="unused")
    model.config.update(build_label_config(labels))
    model.save_pretrained(folder)


def write_tokenizer(
    source: str, revision: str | None, max_length: int, side: str, folder: Path
) -> None:
    """Write a tokenizer that truncates texts to a model's maximum length.

    Args:
        side: ``left`` to keep the end of an input, ``right`` to keep its beginning.
    """
    tokenizer = load_tokenizer(source, revision, "encoder")
    tokenizer.truncation_side, tokenizer.model_max_length = side, max_length
    tokenizer.init_kwargs["truncation_side"] = side  # the only way to have it written
    tokenizer.save_pretrained(folder)
    # Transformers 5 writes a new name of the class, which earlier versions do not know.
    file = folder / "tokenizer_config.json"
    text = file.read_text("utf-8").replace('"TokenizersBackend"', '"PreTrainedTokenizerFast"')
    file.write_text(text, "utf-8")


def write_regression(folder: Path, weight: Any, bias: Any, max_length: int) -> None:
    """Write a regression on unit-length embeddings in the layout of sentence-transformers."""
    hidden = weight.shape[1]
    write_sentence_modules(folder, "mean", max_length, hidden, normalised=True)
    write_dense_layer(folder / "3_Dense", torch.from_numpy(weight), torch.from_numpy(bias))
