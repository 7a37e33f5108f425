"""Creation of a built model's folder: its config, and a tokenizer of the training texts' words.

The weights are initialised when a training starts (``models.recipe``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasktransfer.config import ArchitectureConfig
from tasktransfer.config.places import expand_path
from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.errors import DataError, format_location
from tasktransfer.files import Maker, replace_folder
from tasktransfer.models.recipe import BUILT_FILE, VECTORS_FILE

MAKER = Maker("built model", BUILT_FILE, "weights")
SPECIAL = ("<pad>", "</s>", "<s>", "<unk>", "<SOC>", "<EOC>")
"""The six special tokens of the paper's code: padding, end and start of text, unknown, turns."""


def build_model_folder(
    architecture: ArchitectureConfig,
    instances: Sequence[Path],
    out: Path,
    weights: str,
    labels: Sequence[str],
) -> None:
    """Write config, tokenizer and, if used, word vectors of a built model into its folder.

    The folder is complete or does not exist.

    Args:
        instances: folders of cached instances, whose training texts define the vocabulary.
        weights: the model's identity, stored in the folder.
        labels: labels whose words are always in the vocabulary, since they may precede a text.

    Raises:
        DataError: the instances are missing or damaged, the vectors cannot be read or have another
            width, or ``out`` contains something else.
    """
    with replace_folder(out, MAKER) as folder:
        tokenizer = build_tokenizer(_iterate_texts(instances), architecture.vocabulary_size, labels)
        config = build_config(architecture, len(tokenizer))
        config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if architecture.vectors is not None:
            path = Path(expand_path(architecture.vectors))
            _write_vectors(path, tokenizer.get_vocab(), architecture.hidden, folder)
        (folder / BUILT_FILE).write_text(json.dumps({"weights": weights}) + "\n", encoding="utf-8")


def build_config(architecture: ArchitectureConfig, words: int) -> Any:
    """Return the transformers config for an architecture.

    Args:
        words: size of the vocabulary, including special tokens.
    """
    from transformers import MarianConfig

    return MarianConfig(
        vocab_size=words,
        d_model=architecture.hidden,
        encoder_layers=architecture.layers,
        decoder_layers=architecture.decoder_layers,
        encoder_attention_heads=architecture.heads,
        decoder_attention_heads=architecture.heads,
        encoder_ffn_dim=architecture.feed_forward,
        decoder_ffn_dim=architecture.feed_forward,
        max_position_embeddings=architecture.positions,
        activation_function="relu",
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=False,
        share_encoder_decoder_embeddings=True,
        pad_token_id=SPECIAL.index("<pad>"),
        eos_token_id=SPECIAL.index("</s>"),
        bos_token_id=SPECIAL.index("<s>"),
        decoder_start_token_id=SPECIAL.index("<s>"),
        forced_eos_token_id=None,
        is_encoder_decoder=True,
        architectures=["MarianMTModel"],
    )


def build_tokenizer(texts: Iterator[str], most: int, labels: Sequence[str] = ()) -> Any:
    """Build a tokenizer of lower-case words and punctuation marks.

    Its vocabulary has the ``most`` most frequent words of the texts. Ties are broken
    alphabetically, so that identical texts give identical ids. The words of ``labels``, which may
    precede a text, are always included.
    """
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    normalizer = normalizers.BertNormalizer()
    split = pre_tokenizers.BertPreTokenizer()

    def split_words(text: str) -> list[str]:
        return [word for word, _ in split.pre_tokenize_str(normalizer.normalize_str(text))]

    counts: Counter[str] = Counter()
    for text in texts:
        for part in text.split(SPECIAL[4]):
            counts.update(split_words(part))
    always = {word for label in labels for word in split_words(label)}
    ordered = sorted({*counts, *always}, key=lambda w: (w not in always, -counts[w], w))[:most]
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *ordered])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.normalizer, core.pre_tokenizer = normalizer, split
    core.add_special_tokens([AddedToken(word, normalized=False) for word in SPECIAL])
    core.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", SPECIAL.index("</s>"))]
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core,
        pad_token="<pad>",
        eos_token="</s>",
        bos_token="<s>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )


def _iterate_texts(instances: Sequence[Path]) -> Iterator[str]:
    """Yield the distinct contexts and replies in training splits."""
    for folder in instances:
        cached = read_manifest(folder)
        replies = [
            row
            for task, splits in cached.tasks.items()
            if splits["train"].samples
            for row in read_instances(folder, task, "train")
        ]
        yield from sorted({row.context for row in replies} | {row.target[0] for row in replies})


def _write_vectors(file: Path, vocabulary: dict[str, int], width: int, folder: Path) -> None:
    """Read word vectors from a text file, and write those of the vocabulary's words to a folder.

    Each line of the text file has the form ``word number number ...``.
    """
    from safetensors.numpy import save_file

    rows, vectors = [], []
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                word, *values = line.rstrip().split(" ")
                if word not in vocabulary or (number == 1 and len(values) == 1):
                    continue
                if len(values) != width:
                    raise DataError(
                        f"{format_location(file, number)}: The vector has {len(values)} "
                        f"numbers, but architecture.hidden is {width}. Use vectors of this "
                        "width, or change architecture.hidden."
                    )
                rows.append(vocabulary[word])
                vectors.append(np.array(values, np.float32))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{file}: The file cannot be read as word vectors ({error}). Fix the file."
        ) from error
    if not rows:
        raise DataError(f"{file}: The file has no vector for any training word. Use another file.")
    save_file({"rows": np.array(rows), "vectors": np.stack(vectors)}, folder / VECTORS_FILE)
