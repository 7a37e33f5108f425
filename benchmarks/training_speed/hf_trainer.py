"""Measure Hugging Face's Trainer on the same instances and weights, with typical options.

Three micro-batches of 20 per update (an encoder on a GPU: one of 60); dynamic padding;
``group_by_length`` in training and evaluation; fused AdamW without decay, constant rate; bfloat16
on a GPU; its own attention kernels, clipping and metrics loop. Text-to-text models answer with
greedy ``generate`` and its cache: ``Seq2SeqTrainer`` for encoder-decoders, batches of similar
length for decoders, which Trainer does not support.

Equal for all contestants: token ids (prepared, as in a ``datasets`` cache), the set of training
instances, number of updates, loss on answers. Different: the instances that share an update, since
users typically enable grouping by length; and the heads, which are those of transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorForMultipleChoice,
    DataCollatorForSeq2Seq,
    DataCollatorWithPadding,
    GenerationConfig,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    set_seed,
)

from benchmarks.training_speed.cases import BATCH, DATASET, SEED, Measured, Work
from benchmarks.training_speed.clock import FirstUpdate, measure_seconds, read_memory
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import IGNORED_LABEL, EncodedSplit, read_split
from tasktransfer.encoding.manifest import read_manifest
from tasktransfer.models.family import pad_to_tensors
from tasktransfer.tasks.card import Task

PARTS = {"cpu": 3, "cuda": 1}
"""Micro-batches per update.

On a CPU smaller ones are faster, and 60 long sequences take gigabytes. Text-to-text models use
three on a GPU too, because of the memory of their logits.
"""


def run(work: Work, started: float) -> Measured:
    """Measure one case."""
    first = FirstUpdate(started)
    first.watch()
    torch.set_num_threads(work["threads"])
    set_seed(SEED)
    task = get_task(DATASET, work["task"])
    tokenizer = AutoTokenizer.from_pretrained(work["checkpoint"])
    model, collate = _load_model(work, task, tokenizer)

    def build_trainer(part: str) -> Any:
        volume = work[part]  # type: ignore[literal-required]
        rows = _build_rows(work, task, "train", volume["instances"])
        return Seq2SeqTrainer(
            model=model,
            args=_build_arguments(work, model, volume["epochs"]),
            train_dataset=rows,
            data_collator=collate,
            processing_class=tokenizer,
            compute_metrics=None if task.kind == "span" else _compute_metrics,
        )

    build_trainer("warm_up").train()
    measured = build_trainer("measured")
    train_seconds = measure_seconds(measured.train)
    limit = work["measured"]["evaluate"]
    dev, test = (_build_rows(work, task, name, limit) for name in ("dev", "test"))
    evaluate = _build_evaluation(work, measured, tokenizer)
    dev_seconds, test_seconds = (
        measure_seconds(partial(evaluate, dev)),
        measure_seconds(partial(evaluate, test)),
    )
    own, gpu = read_memory()
    volume = work["measured"]
    return Measured(
        start_up=first.required_seconds,
        train=train_seconds,
        train_samples=volume["instances"] * volume["epochs"],
        updates=volume["instances"] // BATCH * volume["epochs"],
        dev=dev_seconds,
        dev_samples=len(dev),
        test=test_seconds,
        test_samples=len(test),
        memory_mb=own,
        gpu_memory_mb=gpu,
        device=measured.args.device.type,
        precision="bfloat16" if measured.args.bf16 else "float32",
        score=None,
    )


def _build_arguments(work: Work, model: Any, epochs: int) -> Any:
    cuda, answers = torch.cuda.is_available(), work["family"] == "encoder_decoder"
    parts = PARTS["cuda" if cuda and work["family"] == "encoder" else "cpu"]
    return Seq2SeqTrainingArguments(
        output_dir=work["scratch"],
        per_device_train_batch_size=BATCH // parts,
        gradient_accumulation_steps=parts,
        per_device_eval_batch_size=BATCH,
        num_train_epochs=epochs,
        learning_rate=3e-5,
        lr_scheduler_type="constant",
        max_grad_norm=1.0,
        bf16=cuda,
        train_sampling_strategy="group_by_length",
        predict_with_generate=answers,
        generation_config=_build_decoding(work, model) if answers else None,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=SEED,
    )


def _build_decoding(work: Work, model: Any) -> Any:
    """Return greedy decoding with this trainer's maximum answer length."""
    longest = read_manifest(Path(work["encoded"]))["max_answer_tokens"][work["task"]]
    return GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=longest,
        do_sample=False,
        num_beams=1,
        pad_token_id=model.config.pad_token_id,
        eos_token_id=model.config.eos_token_id,
        decoder_start_token_id=getattr(model.config, "decoder_start_token_id", None),
    )


# --- models and data ----------------------------------------------------------------------------


def _load_model(work: Work, task: Task, tokenizer: Any) -> tuple[Any, Callable[..., Any]]:
    folder = work["checkpoint"]
    if work["family"] == "decoder":
        model = AutoModelForCausalLM.from_pretrained(folder)
        return model, DataCollatorForSeq2Seq(tokenizer, padding=True)
    if work["family"] == "encoder_decoder":
        model = AutoModelForSeq2SeqLM.from_pretrained(folder)
        return model, DataCollatorForSeq2Seq(tokenizer, model=model, padding=True)
    if task.kind == "multiple_choice":
        model = AutoModelForMultipleChoice.from_pretrained(folder)
        return model, DataCollatorForMultipleChoice(tokenizer)
    if task.kind == "span":
        model = AutoModelForQuestionAnswering.from_pretrained(folder)
        return model, DataCollatorWithPadding(tokenizer)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=task.classes)
    return model, DataCollatorWithPadding(tokenizer)


def _build_rows(work: Work, task: Task, name: str, limit: int | None) -> Dataset:
    """Return token ids in the form of a ``datasets`` dataset."""
    split = read_split(Path(work["encoded"]), work["task"], name).limit_instances(limit)
    rows = [
        _build_row(work, task, split, example, training=name == "train")
        for example in range(len(split))
    ]
    return Dataset.from_list(rows)


def _build_row(
    work: Work, task: Task, split: EncodedSplit, example: int, *, training: bool
) -> dict[str, Any]:
    sequences = [split.sequences[i].tolist() for i in split.get_sequence_range(example)]
    labels = split.labels[example].tolist()
    longest = max(map(len, sequences))
    if work["family"] == "encoder_decoder":
        return {"input_ids": sequences[0], "labels": labels, "length": longest}
    if work["family"] == "decoder":
        if not training:  # what is to be continued
            return {"input_ids": sequences[0], "length": longest}
        hidden = [IGNORED_LABEL] * len(sequences[0])
        both = sequences[0] + labels
        return {"input_ids": both, "labels": hidden + labels, "length": len(both)}
    starts = [int(split.second_starts[i]) for i in split.get_sequence_range(example)]
    types = [[int(i >= b) for i in range(len(s))] for s, b in zip(sequences, starts, strict=True)]
    if task.kind == "multiple_choice":
        masks = [[1] * len(s) for s in sequences]
        return {
            "input_ids": sequences, "token_type_ids": types, "attention_mask": masks,
            "labels": labels[0], "length": longest,
        }  # fmt: skip
    row = {"input_ids": sequences[0], "token_type_ids": types[0], "length": longest}
    if task.kind == "span":
        return row | {"start_positions": labels[0], "end_positions": labels[1]}
    return row | {"labels": labels[0]}


# --- evaluation ---------------------------------------------------------------------------------


def _compute_metrics(predicted: Any) -> dict[str, float]:
    """Return the accuracy of labels. Answers are only decoded, see ``_build_evaluation``."""
    scores = predicted.predictions
    if isinstance(scores, tuple):
        scores = scores[0]
    if scores.ndim != 2 or predicted.label_ids.ndim != 1:
        return {}
    return {"accuracy": float((scores.argmax(-1) == predicted.label_ids).mean())}


def _build_evaluation(work: Work, trainer: Any, tokenizer: Any) -> Callable[[Dataset], Any]:
    """Return a function that predicts labels, span boundaries or texts of a split."""
    if work["family"] == "encoder":

        def predict_classes(rows: Dataset) -> Any:
            scores = trainer.predict(rows).predictions
            scores = scores if isinstance(scores, tuple) else (scores,)
            return [edge.argmax(-1) for edge in scores]

        return predict_classes
    if work["family"] == "encoder_decoder":

        def predict_answers(rows: Dataset) -> Any:
            made = trainer.predict(rows).predictions
            made = np.where(made < 0, tokenizer.pad_token_id, made)
            return tokenizer.batch_decode(made, skip_special_tokens=True)

        return predict_answers
    decoding = _build_decoding(work, trainer.model)

    def predict_continuations(rows: Dataset) -> list[str]:
        prompts = sorted(rows["input_ids"], key=len, reverse=True)
        groups = [prompts[i : i + BATCH] for i in range(0, len(prompts), BATCH)]
        return [
            text
            for group in groups
            for text in _continue_prompts(trainer, tokenizer, group, decoding)
        ]

    return predict_continuations


def _continue_prompts(
    trainer: Any, tokenizer: Any, prompts: Sequence[Sequence[int]], decoding: Any
) -> list[str]:
    model, device = trainer.model, trainer.args.device
    model.eval()
    rows = [np.array(prompt, np.int32) for prompt in prompts]
    ids, mask = pad_to_tensors(rows, tokenizer.pad_token_id, device, left=True)
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, trainer.args.bf16):
        made = model.generate(input_ids=ids, attention_mask=mask, generation_config=decoding)
    texts: list[str] = tokenizer.batch_decode(made[:, ids.shape[1] :], skip_special_tokens=True)
    return texts
