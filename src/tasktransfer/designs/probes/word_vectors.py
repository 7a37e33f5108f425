"""Comparison of replies by word vectors: the measure that the paper calls BERT.

Vectors come from a text file in the format of GloVe and word2vec (a word and its numbers per line),
or from the input embeddings of an encoder with a ``vocab.txt``. The embeddings are a substitute,
because the paper's vectors are not available.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError, format_location
from tasktransfer.files.data_files import read_lines
from tasktransfer.tasks.compose import split_words

Vectors = Mapping[str, npt.NDArray[np.float64]]


def read_vectors(path: Path) -> Vectors:
    """Read word vectors from a text file, or the input embeddings of a checkpoint.

    Raises:
        DataError: a line is not a word with numbers, its number of components differs from the
            first line's, or the folder does not contain a suitable encoder.
    """
    return _read_input_embeddings(path) if path.is_dir() else _read_text_vectors(path)


def _read_text_vectors(file: Path) -> Vectors:
    """Read word vectors from a text file. A first line of two numbers (word2vec) is skipped."""
    vectors: dict[str, npt.NDArray[np.float64]] = {}
    size = 0
    for number, line in read_lines(file):
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
                f"{format_location(file, number)}: The line must contain a word and "
                f"{size or 'its'} numbers, but is {line[:40]!r}. Fix the line, or set "
                "probes.word_vectors to another file."
            )
        vectors[word] = vector
    if not vectors:
        raise DataError(
            f"{file}: The file contains no vectors. Set probes.word_vectors to another file."
        )
    return vectors


def score_agreement(replies: Iterable[tuple[str, str]], vectors: Vectors) -> float:
    """Return the negative mean squared difference between summed word vectors (0 is best).

    The mean is over (reply, reference) pairs. A word without a vector counts as zeros.
    """
    zero = np.zeros_like(next(iter(vectors.values())))

    def sum_vectors(text: str) -> npt.NDArray[np.float64]:
        summed: npt.NDArray[np.float64] = sum(
            (vectors.get(w, zero) for w in split_words(text)), zero
        )
        return summed

    squares = [
        ((sum_vectors(reply) - sum_vectors(reference)) ** 2).mean() for reply, reference in replies
    ]
    return -float(np.mean(squares))


def _read_input_embeddings(checkpoint: Path) -> Vectors:
    """Read the input embeddings of whole words from a checkpoint with a ``vocab.txt``."""
    from safetensors import SafetensorError  # noqa: PLC0415  # tables do not need it
    from safetensors.numpy import load_file  # noqa: PLC0415

    try:
        weights = load_file(checkpoint / "model.safetensors")
        vocabulary = [word for _, word in read_lines(checkpoint / "vocab.txt")]
        (name,) = (name for name in weights if name.endswith("word_embeddings.weight"))
        vectors = [*zip(vocabulary, weights[name].astype(np.float64), strict=True)]
    except (OSError, ValueError, SafetensorError) as error:
        raise DataError(
            f"{checkpoint}: The folder contains no encoder with word embeddings for the words of "
            f"its vocab.txt ({error}). Set probes.word_vectors to the folder of an encoder, or to "
            "a text file of word vectors."
        ) from None
    return {word: vector for word, vector in vectors if not word.startswith(("##", "["))}
