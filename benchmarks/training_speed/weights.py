"""Models with public shapes and random weights, for measurements without checkpoints.

Their tokenizers are trained on the data. Text-to-text models are then briefly trained to end their
answers. Otherwise every answer would have the maximum length, unlike those of a trained model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.training_speed.cases import LENGTHS
from tasktransfer.core.specs import Family, ModelSpec, Training
from tasktransfer.data.cache import read_instances
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.encoding.manifest import read_manifest
from tasktransfer.layers.ragged import Ragged
from tasktransfer.models.load import Loading, load_model
from tasktransfer.tasks.compose import build_answer_text, build_prompt_parts

VOCABULARY: dict[Family, int] = {"encoder": 30522, "decoder": 50257, "encoder_decoder": 32128}
"""Rows of the embeddings; the trained tokenizers may use fewer."""

LAYERS_HIDDEN_HEADS = {"tiny": (2, 64, 4), "small": (6, 384, 6), "base": (12, 768, 12)}
"""``base``: BERT-base, GPT-2 and T5-base. ``small``: half of that, MiniLM's size."""

TEACHING_STEPS, TEACHING_BATCH, TEACHING_RATE, TEACHING_TOKENS = 60, 16, 1e-3, 32


def write_random_model(
    family: Family, shapes: str, texts: Sequence[str], tokenizer: Any, out: Path
) -> None:
    """Write a random model of a shape, and the given tokenizer or one trained on ``texts``."""
    torch.manual_seed(0)
    words = 1200 if shapes == "tiny" else VOCABULARY[family]
    tokenizer = tokenizer or train_tokenizer(family, texts, words)
    tokenizer.model_max_length = LENGTHS[family]
    _build_model(family, shapes, max(words, len(tokenizer)), tokenizer).save_pretrained(out)
    tokenizer.save_pretrained(out)


def build_texts(instances: Path, dataset: str, tasks: Sequence[str]) -> list[str]:
    """Return prompts and answers of the tasks' training instances, in a fixed order."""
    texts: set[str] = set()
    for name in tasks:
        task = get_task(dataset, name)
        for row in read_instances(instances, name, "train"):
            for output in range(len(task.outputs)) if task.outputs else (None,):
                prompt = "".join(build_prompt_parts(task, row, output))
                texts |= {prompt, " " + build_answer_text(task, row, output)}
    return sorted(texts)


def train_tokenizer(family: Family, texts: Sequence[str], words: int) -> Any:
    """Train a BERT-like tokenizer, or a byte-level one for the text-to-text families."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from tokenizers.trainers import BpeTrainer, WordPieceTrainer
    from transformers import PreTrainedTokenizerFast

    if family == "encoder":
        names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        core.normalizer = normalizers.BertNormalizer()
        core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        core.train_from_iterator(
            texts, WordPieceTrainer(vocab_size=words, special_tokens=names, show_progress=False)
        )
        core.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        core.decoder = decoders.WordPiece()
        special = [f"{n.strip('[]').lower()}_token" for n in names]
        return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
            tokenizer_object=core,
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
            **dict(zip(special, names, strict=True)),
        )
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=words,
        special_tokens=["<pad>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    if family == "encoder_decoder":
        core.post_processor = processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", 1)]
        )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core,
        pad_token="<pad>",
        eos_token="</s>",
        clean_up_tokenization_spaces=False,
    )


def _build_model(family: Family, shapes: str, words: int, tokenizer: Any) -> Any:
    layers, hidden, heads = LAYERS_HIDDEN_HEADS[shapes]
    if family == "encoder":
        from transformers import BertConfig, BertModel

        return BertModel(
            BertConfig(
                vocab_size=words,
                hidden_size=hidden,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                intermediate_size=4 * hidden,
                pad_token_id=tokenizer.pad_token_id,
            )
        )
    ends = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    if family == "decoder":
        from transformers import GPT2Config, GPT2LMHeadModel

        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=words,
                n_embd=hidden,
                n_layer=layers,
                n_head=heads,
                bos_token_id=tokenizer.eos_token_id,
                **ends,
            )
        )
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=words,
            d_model=hidden,
            d_kv=hidden // heads,
            d_ff=4 * hidden,
            num_layers=layers,
            num_heads=heads,
            decoder_start_token_id=tokenizer.pad_token_id,  # type: ignore[call-arg]
            tie_word_embeddings=True,
            **ends,
        )
    )


def teach_to_end(family: Family, folder: Path, encoded: Path, tasks: Sequence[str]) -> None:
    """Briefly train a text-to-text model on the prompts' last words and the answers."""
    dataset = read_manifest(encoded)["dataset"]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    spec = ModelSpec("", family, "", 0)
    cards = {name: get_task(dataset, name) for name in tasks}
    loading = Loading(spec, Training(dropout=0.0), encoded, 0, device)
    model = load_model(loading, str(folder), None, cards)
    optimiser = torch.optim.Adam(model.module.parameters(), lr=TEACHING_RATE)
    model.module.train()
    splits = [_cut_prompts(read_split(encoded, task, "train")) for task in tasks]
    for split, examples in _iterate_lessons(splits):
        (
            model.compute_loss(split, examples) / model.compute_loss_divisor(split, examples)
        ).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.module.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    model.save(folder)


def _iterate_lessons(splits: Sequence[EncodedSplit]) -> Iterator[tuple[EncodedSplit, list[int]]]:
    generator = np.random.default_rng(0)
    for step in range(TEACHING_STEPS):
        split = splits[step % len(splits)]
        yield split, generator.integers(len(split), size=TEACHING_BATCH).tolist()


def _cut_prompts(split: EncodedSplit) -> EncodedSplit:
    rows = [split.sequences[i][-TEACHING_TOKENS:] for i in range(len(split))]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    return replace(split, sequences=Ragged(np.concatenate(rows), starts))
