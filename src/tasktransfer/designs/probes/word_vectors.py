"""Replies compared by word vectors: the measure that the paper calls BERT.

Vectors are a text file as GloVe and word2vec write it, a word and its numbers a line; or the input
embeddings of an encoder whose vocabulary is ``vocab.txt``: a stand-in, the paper's are not at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError
from tasktransfer.files.data_files import text_lines
from tasktransfer.tasks.words import words

Vectors = Mapping[str, npt.NDArray[np.float64]]


def read_vectors(path: Path) -> Vectors:
    """The vectors of a text file, or the input embeddings of a checkpoint's folder.

    Raises:
        DataError: a line is no word with numbers, or has another count of them than the first; the
            folder holds no such encoder.
    """
    return _input_embeddings(path) if path.is_dir() else _of_text(path)


def _of_text(file: Path) -> Vectors:
    """A first line of two numbers (word2vec's) is passed over."""
    vectors: dict[str, npt.NDArray[np.float64]] = {}
    size = 0
    for number, line in text_lines(file):
        word, *numbers = line.rstrip().split(" ")
        if number == 1 and len(numbers) == 1:
            continue
        try:
            vector = np.array([float(component) for component in numbers])
        except ValueError:
            vector = np.empty(0)
        size = size or len(vector)
        if not size or len(vector) != size or not np.isfinite(vector).all():
            raise DataError(
                f"{file}, line {number}: found {line[:40]!r}, expected a word and {size or 'its'} "
                "numbers; see probes.word_vectors"
            )
        vectors[word] = vector
    if not vectors:
        raise DataError(f"{file}: holds no vector; see probes.word_vectors")
    return vectors


def agreement(replies: Iterable[tuple[str, str]], vectors: Vectors) -> float:
    """The negated mean squared difference of summed word vectors, over (reply, reference) pairs:
    0 at best. A word without a vector counts as zeros."""
    zero = np.zeros_like(next(iter(vectors.values())))

    def total(text: str) -> npt.NDArray[np.float64]:
        summed: npt.NDArray[np.float64] = sum((vectors.get(w, zero) for w in words(text)), zero)
        return summed

    squares = [((total(reply) - total(reference)) ** 2).mean() for reply, reference in replies]
    return -float(np.mean(squares))


def _input_embeddings(checkpoint: Path) -> Vectors:
    """The input embeddings of whole words, where the vocabulary is ``vocab.txt``."""
    from safetensors import SafetensorError  # noqa: PLC0415  # tables are made without it
    from safetensors.numpy import load_file  # noqa: PLC0415

    try:
        weights = load_file(checkpoint / "model.safetensors")
        vocabulary = [word for _, word in text_lines(checkpoint / "vocab.txt")]
        (name,) = (name for name in weights if name.endswith("word_embeddings.weight"))
        vectors = [*zip(vocabulary, weights[name].astype(np.float64), strict=True)]
    except (OSError, ValueError, SafetensorError) as error:
        raise DataError(
            f"{checkpoint}: holds no encoder with word embeddings for its vocab.txt ({error}); "
            "name one, or a text file of word vectors (probes.word_vectors)"
        ) from None
    return {word: vector for word, vector in vectors if not word.startswith(("##", "["))}
