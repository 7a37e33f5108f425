"""Tiny models of the three families for the tiny world, with a tokenizer trained on it.

They substitute for the public checkpoints: a short language-model pre-training on the dialogues
gives transfer a pre-trained model to start from, as in the paper. The recipe and the text determine
everything, so identical texts give identical models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tasktransfer.core.identity import TINY_RECIPE_VERSION
from tasktransfer.core.specs import Family
from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.datasets import get_task
from tasktransfer.files import Maker, replace_folder
from tasktransfer.models.family import pad_to_tensors
from tasktransfer.tasks.card import Instance, Task
from tasktransfer.tasks.compose import build_answer_text, build_prompt_parts

HIDDEN = 64
LAYERS = 2
HEADS = 4
POSITIONS = 512
VOCABULARY = 1200
STEPS = {"encoder": 300, "decoder": 300, "encoder_decoder": 500}
BATCH = 16
LENGTH = 64
LEARNING_RATE = 2e-3
MASKED = 0.15
SENTINELS = 10
SEED = 0

MAKER = Maker("tiny model", "tiny_model.json", "recipe")
"""Marker of the folder: only this file distinguishes it from a downloaded checkpoint."""

Texts = list[str]


def build_tiny_model(
    family: Family, instances: Sequence[Path], out: Path, threads: int = 1
) -> None:
    """Pre-train a tiny model with its own tokenizer, and save both in a folder.

    The folder is complete or does not exist.

    Args:
        family: model family.
        instances: folders with the cached instances of the datasets whose text is used. Only
            training text is read; the words of prompts are only added to the tokenizer.
        threads: number of CPU threads.

    Raises:
        DataError: the instances are missing or damaged, or ``out`` contains something else.
    """
    with replace_folder(out, MAKER) as folder:
        torch.set_num_threads(threads)
        torch.manual_seed(SEED)
        texts = collect_training_texts(instances)
        tokenizer = create_tokenizer(family, _collect_vocabulary_texts(instances))
        model = create_model(family, tokenizer)
        _train_model(family, model, tokenizer, texts)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        made_from = json.dumps(describe_recipe(family, instances), indent=1) + "\n"
        (folder / MAKER.file).write_text(made_from, encoding="utf-8")


def describe_recipe(family: Family, instances: Sequence[Path]) -> dict[str, Any]:
    """Describe everything that determines a tiny model, for its digest.

    Raises:
        DataError: the instances are missing or damaged.
    """
    manifests = [read_manifest(folder) for folder in instances]
    return {
        "recipe": TINY_RECIPE_VERSION,
        "family": family,
        "data": {
            manifest.dataset: [manifest.revision, manifest.few_sample] for manifest in manifests
        },
    }


def collect_training_texts(instances: Sequence[Path]) -> Texts:
    """Return the distinct contexts in the training splits, in a fixed order."""
    return sorted({row.context for row, _ in _iterate_rows(instances)})


def _iterate_rows(instances: Sequence[Path]) -> Iterator[tuple[Instance, Task]]:
    """Yield each training instance with its task, given the folders of instances."""
    for folder in instances:
        cached = read_manifest(folder)
        for name in cached.tasks:
            for row in read_instances(folder, name, "train"):
                yield row, get_task(cached.dataset, name)


def _collect_vocabulary_texts(instances: Sequence[Path]) -> Texts:
    """Return the prompts with contexts and the answers that the tokenizer must cover."""
    texts: set[str] = set()
    for row, task in _iterate_rows(instances):
        outputs: list[int | None] = list(range(len(task.outputs))) or [None]
        for output in outputs:
            texts.add("".join(build_prompt_parts(task, row, output)))
            texts.add(" " + build_answer_text(task, row, output))
    return sorted(texts)


# --- tokenizers and configurations --------------------------------------------------------------


def create_tokenizer(family: Family, texts: Texts) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    if family == "encoder":
        names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        core = _train_word_piece(texts, names)
        core.post_processor = processors.BertProcessing(
            ("[SEP]", names.index("[SEP]")), ("[CLS]", names.index("[CLS]"))
        )
        core.decoder = decoders.WordPiece()
        return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
            tokenizer_object=core,
            pad_token="[PAD]",
            unk_token="[UNK]",
            cls_token="[CLS]",
            sep_token="[SEP]",
            mask_token="[MASK]",
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        )
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    names = ["<pad>", "</s>"]
    if family == "encoder_decoder":
        names += [f"<extra_id_{i}>" for i in range(SENTINELS)]
    core.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=names,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if family == "encoder_decoder":
        core.post_processor = processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", core.token_to_id("</s>"))]
        )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core,
        pad_token="<pad>",
        eos_token="</s>",
        clean_up_tokenization_spaces=False,
    )


def _train_word_piece(texts: Texts, names: list[str]) -> Any:
    """Train a WordPiece tokenizer like BERT's, deterministically.

    The library's trainer numbers pieces such as ``##e`` in the word order of a randomly seeded hash
    table. It breaks ties between pairs by these numbers. The pieces are therefore numbered
    beforehand, as if they were special tokens. Only the resulting vocabulary is used.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    normalizer = normalizers.BertNormalizer()
    letters = sorted({letter for text in texts for letter in normalizer.normalize_str(text)})
    trained = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trained.normalizer = normalizer
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces = [f"##{letter}" for letter in letters if not letter.isspace()]
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, special_tokens=names + pieces, show_progress=False
    )
    trained.train_from_iterator(texts, trainer)
    core = Tokenizer(models.WordPiece(trained.get_vocab(), unk_token="[UNK]"))
    core.normalizer = normalizer
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.add_special_tokens(names)
    return core


def create_model(family: Family, tokenizer: Any) -> Any:
    if family == "encoder":
        from transformers import BertConfig, BertForMaskedLM

        return BertForMaskedLM(
            BertConfig(
                vocab_size=len(tokenizer),
                hidden_size=HIDDEN,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                intermediate_size=4 * HIDDEN,
                max_position_embeddings=POSITIONS,
                pad_token_id=tokenizer.pad_token_id,
                hidden_dropout_prob=0.0,  # a tiny model underfits; dropout would only cost time
                attention_probs_dropout_prob=0.0,
            )
        )
    if family == "decoder":
        from transformers import GPT2Config, GPT2LMHeadModel

        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=len(tokenizer),
                n_embd=HIDDEN,
                n_layer=LAYERS,
                n_head=HEADS,
                n_positions=POSITIONS,
                bos_token_id=tokenizer.eos_token_id,
                eos_token_id=tokenizer.eos_token_id,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
            )
        )
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=len(tokenizer),
            d_model=HIDDEN,
            d_kv=HIDDEN // HEADS,
            d_ff=4 * HIDDEN,
            num_layers=LAYERS,
            num_heads=HEADS,
            dropout_rate=0.0,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=tokenizer.pad_token_id,  # type: ignore[call-arg]
            tie_word_embeddings=True,
        )
    )


# --- pre-training -------------------------------------------------------------------------------


def _train_model(family: Family, model: Any, tokenizer: Any, texts: Texts) -> None:
    """Pre-train a model by masked LM (encoder), causal LM (decoder) or span corruption (T5)."""
    rows = [
        torch.tensor(tokenizer(text, truncation=True, max_length=LENGTH)["input_ids"])
        for text in texts
    ]
    objective = _OBJECTIVES[family]
    generator = torch.Generator().manual_seed(SEED)
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    steps = STEPS[family]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps)
    model.train()
    for step in range(steps):
        picked = torch.randint(len(rows), (BATCH,), generator=generator).tolist()
        loss = objective(model, tokenizer, [rows[i] for i in picked], generator)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
        if step % 100 == 0 or step == steps - 1:
            print(
                f"pre-training {family}: step {step + 1}/{steps}, loss {loss.item():.3f}",
                flush=True,
            )
    model.eval()


def _compute_masked_loss(
    model: Any, tokenizer: Any, rows: list[Tensor], generator: torch.Generator
) -> Tensor:
    ids, mask = _pad_rows(rows, tokenizer)
    special = torch.tensor(tokenizer.all_special_ids)
    hidden = (torch.rand(ids.shape, generator=generator) < MASKED) & ~torch.isin(ids, special)
    labels = ids.masked_fill(~hidden, -100)
    inputs = ids.masked_fill(hidden, tokenizer.mask_token_id)
    loss: Tensor = model(input_ids=inputs, attention_mask=mask, labels=labels).loss
    return loss


def _compute_causal_loss(
    model: Any, tokenizer: Any, rows: list[Tensor], generator: torch.Generator
) -> Tensor:
    ids, mask = _pad_rows(rows, tokenizer)
    labels = ids.masked_fill(mask == 0, -100)
    loss: Tensor = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    return loss


def _compute_span_loss(
    model: Any, tokenizer: Any, rows: list[Tensor], generator: torch.Generator
) -> Tensor:
    """Compute the loss of T5's span corruption.

    Sentinels replace spans of two tokens, and the target spells out the spans.
    """
    corrupted, targets = zip(
        *(_replace_spans(row, tokenizer, generator) for row in rows), strict=True
    )
    ids, mask = _pad_rows(list(corrupted), tokenizer)
    wanted, wanted_mask = _pad_rows(list(targets), tokenizer)
    labels = wanted.masked_fill(wanted_mask == 0, -100)
    loss: Tensor = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    return loss


def _replace_spans(
    row: Tensor, tokenizer: Any, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    sentinels = [tokenizer.convert_tokens_to_ids(f"<extra_id_{i}>") for i in range(SENTINELS)]
    body = row[:-1].tolist()
    count = max(1, min(SENTINELS, round(len(body) * MASKED / 2)))
    starts = sorted(torch.randperm(max(1, len(body) // 3), generator=generator)[:count].tolist())
    kept: list[int] = []
    spelled: list[int] = []
    at = 0
    for sentinel, start in zip(sentinels, (3 * s for s in starts), strict=False):
        kept += [*body[at:start], sentinel]
        spelled += [sentinel, *body[start : start + 2]]
        at = start + 2
    kept += body[at:]
    end = [tokenizer.eos_token_id]
    return torch.tensor(kept + end), torch.tensor(spelled + end)


def _pad_rows(rows: list[Tensor], tokenizer: Any) -> tuple[Tensor, Tensor]:
    return pad_to_tensors([r.numpy() for r in rows], tokenizer.pad_token_id, torch.device("cpu"))


Objective = Callable[[Any, Any, list[Tensor], torch.Generator], Tensor]

_OBJECTIVES: dict[Family, Objective] = {
    "encoder": _compute_masked_loss,
    "decoder": _compute_causal_loss,
    "encoder_decoder": _compute_span_loss,
}
