"""Loading of tokenizers by Hugging Face name or folder, with checks of their vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasktransfer.core.specs import Family
from tasktransfer.encoding.reading import build_source_arguments, translate_library_errors
from tasktransfer.errors import ModelError

Tokenizer = Any
"""A fast tokenizer of transformers, whose classes have no useful static types."""

MIN_USED_ROWS = 0.5
"""Minimum fraction of the embedding rows that a tokenizer must use.

Embeddings are often padded to a round number of rows. If more than half of them are unused, the
tokenizer belongs to another model."""

SHOWN_WORDS = 5

VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model", "*.bpe", "*.tiktoken")
"""Names of vocabulary files."""


def load_tokenizer(checkpoint: str, revision: str | None, family: Family) -> Any:
    """Load a checkpoint's fast tokenizer, with left truncation and a padding token.

    Raises:
        ModelError: the tokenizer cannot be loaded, its vocabulary is missing in the folder, or it
            has no fast version (needed for character offsets), no end-of-sequence token although
            answers are generated, or no token for padding.
    """
    from transformers import AutoTokenizer

    _check_vocabulary_files(Path(checkpoint))
    with translate_library_errors(checkpoint, "The tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(**build_source_arguments(checkpoint, revision))
    _check_vocabulary_file_of_class(Path(checkpoint), tokenizer)
    if not tokenizer.is_fast:
        raise ModelError(
            f"{checkpoint}: The folder contains no fast tokenizer. Add tokenizer.json to the "
            "folder."
        )
    if family in ("decoder", "encoder_decoder") and tokenizer.eos_token_id is None:
        raise ModelError(
            f"{checkpoint}: The tokenizer has no end-of-sequence token, which a model with "
            f"`family: {family}` needs to end an answer. Set eos_token in tokenizer_config.json."
        )
    if tokenizer.pad_token_id is None:
        # GPT-2 and similar models have none. Padding is masked, so any token can be used.
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token_id is None:
        raise ModelError(
            f"{checkpoint}: The tokenizer has no padding token. Set pad_token in "
            "tokenizer_config.json."
        )
    tokenizer.truncation_side = "left"
    tokenizer.model_max_length = 1 << 30  # The study checks lengths itself, without warnings.
    return tokenizer


def _check_vocabulary_files(folder: Path) -> None:
    """Raise ModelError if a folder has no vocabulary file.

    Otherwise transformers would create an empty tokenizer, to which every word is unknown.
    """
    if not folder.is_dir() or (folder / "tokenizer.json").is_file():
        return
    if not any(file.is_file() for name in VOCABULARIES for file in folder.glob(name)):
        raise _build_vocabulary_error(folder, "tokenizer.json, vocab.txt or similar file")
    if (folder / "vocab.json").is_file() and not (folder / "merges.txt").is_file():
        raise _build_vocabulary_error(
            folder, "merges.txt next to vocab.json, and no tokenizer.json"
        )


def _check_vocabulary_file_of_class(folder: Path, tokenizer: Any) -> None:
    """Raise ModelError if a folder's vocabulary file belongs to another kind of tokenizer."""
    name = type(tokenizer).vocab_files_names.get("vocab_file")
    if not folder.is_dir() or (folder / "tokenizer.json").is_file() or name is None:
        return
    if not (folder / name).is_file():
        raise _build_vocabulary_error(
            folder, f"tokenizer.json or {name} ({type(tokenizer).__name__})"
        )


def _build_vocabulary_error(folder: Path, files: str) -> ModelError:
    return ModelError(
        f"{folder}: The tokenizer's vocabulary is missing, because the folder has no {files}. Copy "
        "the checkpoint's tokenizer files into the folder."
    )


def check_vocabulary_size(tokenizer: Any, rows: int, checkpoint: str) -> None:
    """Raise an error if a token lacks an embedding, or if most embeddings are unused.

    Args:
        rows: number of embeddings of the model.

    Raises:
        ModelError: the tokenizer does not fit the weights.
    """
    tokens = max(tokenizer.get_vocab().values(), default=-1) + 1
    if MIN_USED_ROWS * rows <= tokens <= rows:
        return
    problem = "more than" if tokens > rows else f"less than {MIN_USED_ROWS:.0%} of"
    raise ModelError(
        f"{checkpoint}: The tokenizer has {tokens} tokens, which is {problem} the {rows} "
        "embeddings in the weights. Use a tokenizer and weights from the same checkpoint."
    )


def truncate_texts_left(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[str]:
    """Truncate each text on the left to ``max_length`` tokens.

    The limit includes the special tokens that the tokenizer adds.
    """
    tokenizer.truncation_side = "left"
    encoded = tokenizer(
        list(texts),
        truncation=True,
        max_length=max_length,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    begins = (
        next((begin for (begin, _), added in zip(*both, strict=True) if not added), len(text))
        for text, *both in zip(
            texts, encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True
        )
    )
    return [text[begin:] for text, begin in zip(texts, begins, strict=True)]


def check_known_words(tokenizer: Any, words: Counter[str], limit: float, checkpoint: str) -> None:
    """Raise an error if the tokenizer does not know enough words of the study.

    Args:
        words: words of the study and their frequencies.
        limit: largest fraction of them (0 to 1) that may contain an unknown token.

    Raises:
        ModelError: the limit is exceeded. The message gives the fraction and the most frequent
            unknown words.
    """
    if tokenizer.unk_token_id is None or not words:
        return
    rows = tokenizer(list(words), add_special_tokens=False)["input_ids"]
    unknown = Counter(
        {
            word: words[word]
            for word, ids in zip(words, rows, strict=True)
            # A byte-level tokenizer without vocabulary returns no tokens.
            if tokenizer.unk_token_id in ids or not ids
        }
    )
    fraction = unknown.total() / words.total()
    if fraction > limit:
        examples = ", ".join(repr(word) for word, _ in unknown.most_common(SHOWN_WORDS))
        raise ModelError(
            f"{checkpoint}: The tokenizer maps {fraction:.1%} of the study's words to the "
            f"unknown token ({examples}, ...), but models.max_unknown_words allows "
            f"{limit:.1%}. Use a checkpoint for the study's language with its own tokenizer, "
            "or raise the limit."
        )
