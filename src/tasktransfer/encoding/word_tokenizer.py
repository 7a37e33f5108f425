"""Word tokenizers with the vocabulary of the training split, for built models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tasktransfer.datasets.reply_pairs import TURN_END
from tasktransfer.tasks.compose import split_words

SPECIAL = ("<pad>", "</s>", "<unk>", TURN_END)
PAD, END, UNKNOWN, TURN_END_ID = range(len(SPECIAL))
"""Ids of the special tokens. Answers begin after an end token, as in BART."""


def build_word_tokenizer(texts: Iterable[str], least_count: int) -> Any:
    """Build a tokenizer of lower-case words that occur at least ``least_count`` times.

    More frequent words have smaller ids.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    counts = Counter(word for text in texts for word in split_words(text.replace(TURN_END, " ")))
    kept = sorted((w for w, n in counts.items() if n >= least_count), key=lambda w: (-counts[w], w))
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *kept])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIAL[UNKNOWN]))
    core.normalizer = normalizers.Lowercase()
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+|[^\w\s]+"), "removed", invert=True)
    core.add_special_tokens(list(SPECIAL))
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core,
        pad_token=SPECIAL[PAD],
        eos_token=SPECIAL[END],
        unk_token=SPECIAL[UNKNOWN],
        clean_up_tokenization_spaces=False,
    )


def truncate_to_last_words(text: str, most: int) -> str:
    """Truncate a text to its last ``most`` tokens, joined by spaces.

    Tokens are lower-case words and ends of turns.
    """
    first, *others = (split_words(part) for part in text.split(TURN_END))
    tokens = [*first, *(token for part in others for token in (TURN_END, *part))]
    return " ".join(tokens[-most:])
