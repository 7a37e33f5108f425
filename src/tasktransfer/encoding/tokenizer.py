"""Loading a tokenizer, by Hugging Face name or from a folder, fit for its family and its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasktransfer.core.specs import Family
from tasktransfer.encoding.reading import reading, source
from tasktransfer.errors import ModelError

Tokenizer = Any
"""A fast tokenizer of transformers; its classes carry no useful static types."""

LEAST_SHARE_OF_ROWS = 0.5
"""A model's embeddings have some rows more than its tokenizer has tokens (to a round number); with
half of them unused, the tokenizer is another model's."""

EXAMPLES = 5

VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model", "*.bpe", "*.tiktoken")
"""Files that vocabularies come in."""


def load_tokenizer(checkpoint: str, revision: str | None, family: Family) -> Any:
    """The checkpoint's fast tokenizer, cutting inputs from the left, with a padding token.

    Raises:
        ModelError: it cannot be loaded; its folder lacks the vocabulary; it has no fast version
            (character offsets need one), no end-of-sequence token where answers are generated, or
            no token that could pad.
    """
    from transformers import AutoTokenizer

    _check_vocabulary_files(Path(checkpoint))
    with reading(checkpoint, "the tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(**source(checkpoint, revision))
    _check_vocabulary_file_of_class(Path(checkpoint), tokenizer)
    if not tokenizer.is_fast:
        raise ModelError(f"{checkpoint}: no fast tokenizer; its folder needs tokenizer.json")
    if family in ("decoder", "encoder_decoder") and tokenizer.eos_token_id is None:
        raise ModelError(
            f"{checkpoint}: the tokenizer has no end-of-sequence token, which ends the answers "
            f"that family: {family} generates; set eos_token in tokenizer_config.json"
        )
    if tokenizer.pad_token_id is None:
        # GPT-2 and its kin have none; what is padded is masked, so any token serves.
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token_id is None:
        raise ModelError(
            f"{checkpoint}: the tokenizer has no padding token; set pad_token in "
            "tokenizer_config.json"
        )
    tokenizer.truncation_side = "left"
    tokenizer.model_max_length = 1 << 30  # lengths are the study's business: no warnings
    return tokenizer


def _check_vocabulary_files(folder: Path) -> None:
    """Without a vocabulary's file transformers makes an empty tokenizer, to which every word is
    unknown."""
    if not folder.is_dir() or (folder / "tokenizer.json").is_file():
        return
    if not any(file.is_file() for name in VOCABULARIES for file in folder.glob(name)):
        raise _no_vocabulary(folder, "tokenizer.json, vocab.txt or the like")
    if (folder / "vocab.json").is_file() and not (folder / "merges.txt").is_file():
        raise _no_vocabulary(folder, "merges.txt beside vocab.json, and no tokenizer.json")


def _check_vocabulary_file_of_class(folder: Path, tokenizer: Any) -> None:
    """The same of a folder that has a vocabulary's file, but one of another kind of tokenizer."""
    name = type(tokenizer).vocab_files_names.get("vocab_file")
    if not folder.is_dir() or (folder / "tokenizer.json").is_file() or name is None:
        return
    if not (folder / name).is_file():
        raise _no_vocabulary(folder, f"tokenizer.json or {name} ({type(tokenizer).__name__})")


def _no_vocabulary(folder: Path, files: str) -> ModelError:
    return ModelError(
        f"{folder}: no {files}: the tokenizer's vocabulary is missing; copy the tokenizer's files "
        "of the checkpoint into the folder"
    )


def check_vocabulary(tokenizer: Any, rows: int, checkpoint: str) -> None:
    """A tokenizer whose tokens all have an embedding, and that uses most of the embeddings.

    Args:
        rows: how many embeddings the model has.

    Raises:
        ModelError: it does not fit the weights.
    """
    tokens = max(tokenizer.get_vocab().values(), default=-1) + 1
    if LEAST_SHARE_OF_ROWS * rows <= tokens <= rows:
        return
    problem = "more than" if tokens > rows else f"less than {LEAST_SHARE_OF_ROWS:.0%} of what"
    raise ModelError(
        f"{checkpoint}: the tokenizer has {tokens} tokens, {problem} the weights have embeddings "
        f"for ({rows}); take both from the same checkpoint"
    )


def parts_read(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[str]:
    """What is left of each text where its last ``max_length`` tokens are read, those that the
    tokenizer adds among them."""
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


def check_words(tokenizer: Any, words: Counter[str], limit: float, checkpoint: str) -> None:
    """Refuse a tokenizer that does not know the words of the study.

    Args:
        words: the study's words and how often each occurs.
        limit: the largest share of them (0 to 1) that may hold an unknown token.

    Raises:
        ModelError: more than that; the message has the share and the most frequent ones.
    """
    if tokenizer.unk_token_id is None or not words:
        return
    rows = tokenizer(list(words), add_special_tokens=False)["input_ids"]
    unknown = Counter(
        {
            word: words[word]
            for word, ids in zip(words, rows, strict=True)
            # Of a byte-level tokenizer without vocabulary nothing is left.
            if tokenizer.unk_token_id in ids or not ids
        }
    )
    share = unknown.total() / words.total()
    if share > limit:
        examples = ", ".join(repr(word) for word, _ in unknown.most_common(EXAMPLES))
        raise ModelError(
            f"{checkpoint}: the tokenizer turns {share:.1%} of the study's words into unknown "
            f"tokens ({examples}, ...), and models.max_unknown_words allows {limit:.1%}; take a "
            "checkpoint of the study's language with its own tokenizer, or raise the limit"
        )
