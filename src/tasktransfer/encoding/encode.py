"""Conversion of instances to token ids for each family, once per model and dataset.

Truncation removes the oldest turns of the context in all families. The target utterance at the end
of the context is kept, as are question, options and prompt. (The paper's toolkit truncates BERT's
inputs at the end, which loses the target utterance.) Tasks whose card has ``keeps: beginning`` have
no target utterance, and lose their latest turns.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasktransfer.core.architecture import is_recipe, parse_weights
from tasktransfer.core.fidelity import DEFAULT, Fidelity
from tasktransfer.core.identity import ENCODING_VERSION
from tasktransfer.core.specs import Family
from tasktransfer.data.cache import Manifest, read_instances, read_manifest
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.declared.lengths import MAX_TRUNCATED_FRACTION
from tasktransfer.encoding import toolkit
from tasktransfer.encoding.encoded import Example, write_split
from tasktransfer.encoding.encoder_examples import (
    build_encoder_examples,
    count_lost_answers,
    measure_longest_span,
)
from tasktransfer.encoding.manifest import EncodedIdentity, EncodedManifest
from tasktransfer.encoding.replies import add_second_encoding, encode_contexts_separately
from tasktransfer.encoding.text import build_text_to_text_examples, get_answer_limit
from tasktransfer.encoding.tokenizer import Tokenizer, check_known_words, load_tokenizer
from tasktransfer.encoding.word_tokenizer import build_word_tokenizer
from tasktransfer.files import Maker, compute_sha256, replace_folder
from tasktransfer.files.progress import show_progress
from tasktransfer.tasks.card import SPLITS, Instance, Task
from tasktransfer.tasks.toolkit_texts import build_encoder_texts

MAKER = Maker("folder of token ids", "manifest.json", "encoding")


def encode_dataset(
    instances: Path,
    dataset: str,
    tasks: Sequence[str] | None,
    checkpoint: str,
    revision: str | None,
    family: Family,
    max_length: int,
    out: Path,
    max_unknown_words: float = 1.0,
    model: Mapping[str, Any] | None = None,
    fidelity: Fidelity = DEFAULT,
    beside: tuple[str, str | None] | None = None,
) -> None:
    """Tokenize every task and split of a dataset into a new folder.

    Args:
        instances: folder that ``data.cache.cache_dataset`` wrote.
        tasks: names of the tasks. None for all tasks of the dataset.
        max_length: maximum sequence length in tokens, including special tokens.
        out: folder to create. It appears when it is complete.
        max_unknown_words: largest fraction (0 to 1) of the words in the training instances'
            contexts that may be unknown to the tokenizer.
        model: identity of the model (``ModelSpec``), stored in the manifest.
        fidelity: choice between this package's and the toolkit's inputs, answers and lengths.
        beside: name or folder, and revision, of the second encoder. None if the model has none.

    Raises:
        ModelError: the tokenizer cannot be loaded, does not meet the family's requirements, or too
            many words are unknown to it.
        DataError: the instances are missing or damaged, a task has none, or ``out`` contains
            other files.
    """
    cached = read_manifest(instances)
    cards = select_answerable_tasks(dataset, tasks or cached.tasks, family)
    others = [load_tokenizer(*beside, "encoder")] if beside else []
    if is_recipe(checkpoint):  # Its vocabulary comes from the training instances.
        texts = _read_training_texts(instances, cached, cards)
        tokenizer = build_word_tokenizer(texts, parse_weights(checkpoint).least_count)
    else:
        tokenizer = load_tokenizer(checkpoint, revision, family)
        words = _count_words(instances, cached, cards, list(tokenizer.get_added_vocab()))
        check_known_words(tokenizer, words, max_unknown_words, checkpoint)
    with replace_folder(out, MAKER) as building:
        identity = build_identity(cached, model, fidelity)
        manifest: EncodedManifest = {
            "encoding": ENCODING_VERSION,
            "dataset": dataset,
            "synthetic": cached.synthetic,
            "family": family,
            "max_length": max_length,
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "token_types": "token_type_ids" in tokenizer.model_input_names,
            "max_answer_tokens": {},
            "truncated": {},
            "lost_answers": {},
            "longer_answers": {},
            "shortened": {},
            "examples": {},
            "tokens": {},
            "sha256": {},
            "model": identity["model"],
            "data": identity["data"],
        }
        if "fidelity" in identity:
            manifest["fidelity"] = identity["fidelity"]
        if others:
            manifest["beside_pad_token_ids"] = [other.pad_token_id for other in others]
        for card in show_progress(cards, f"encoding {dataset}"):
            limit = 0
            if family in ("decoder", "encoder_decoder") and not card.by_head:
                limit = _compute_answer_limit(tokenizer, card, family, fidelity)
            manifest["max_answer_tokens"][card.name] = limit
            for split in SPLITS:
                rows = _read_instances(instances, cached, card.name, split)
                reserved = 0 if split == "train" and fidelity.inputs == "tlidb" else limit
                examples = list(
                    _encode_examples(
                        tokenizer, card, rows, family, max_length, reserved, fidelity, others
                    )
                )
                if family == "encoder" and card.kind == "span" and split == "train":
                    manifest["max_answer_tokens"][card.name] = measure_longest_span(examples)
                lengths = [len(s) for u in examples for s in u.sequences]
                key = f"{card.name}-{split}"
                manifest["shortened"][key] = sum(example.shortened for example in examples)
                manifest["lost_answers"][key] = count_lost_answers(card, family, examples)
                if limit:
                    longer = count_long_answers(examples, limit, tokenizer.eos_token_id)
                    manifest["longer_answers"][key] = longer
                manifest["truncated"][key] = sum(length >= max_length for length in lengths)
                manifest["examples"][key] = len(examples)
                manifest["tokens"][key] = sum(lengths)
                scoring = [
                    _build_scoring_row(card, row, family, fidelity.inputs, tokenizer)
                    for row in rows
                ]
                write_split(building, card.name, split, examples, scoring)
        tokenizer.save_pretrained(building / "tokenizer")
        manifest["sha256"] = {f.name: compute_sha256(f) for f in sorted(building.glob("*.arrow"))}
        (building / "manifest.json").write_text(json.dumps(manifest, indent=1))


def encode_instances(
    out: Path,
    tokenizer: Tokenizer,
    card: Task,
    split: str,
    rows: Sequence[Instance],
    family: Family,
    max_length: int,
    fidelity: Fidelity = DEFAULT,
) -> None:
    """Tokenize instances of one task, and write the files of a split into an existing folder."""
    limit = 0 if family == "encoder" else _compute_answer_limit(tokenizer, card, family, fidelity)
    examples = list(_encode_examples(tokenizer, card, rows, family, max_length, limit, fidelity))
    scoring = [_build_scoring_row(card, row, family, fidelity.inputs, tokenizer) for row in rows]
    write_split(out, card.name, split, examples, scoring)


def select_answerable_tasks(dataset: str, tasks: Iterable[str], family: Family) -> list[Task]:
    """Select the tasks that models of a family can answer: encoders cannot generate replies."""
    cards = [DATASETS[dataset].tasks[name] for name in tasks]
    return [card for card in cards if family != "encoder" or card.kind != "reply"]


def _compute_answer_limit(
    tokenizer: Tokenizer, task: Task, family: Family, fidelity: Fidelity
) -> int:
    """Return the maximum number of tokens in generated answers to a task."""
    if fidelity.generation_length == "tlidb" and task.toolkit:
        return toolkit.get_answer_limit(task.toolkit, family)
    return get_answer_limit(tokenizer, task, family)


def build_identity(
    cached: Manifest, model: Mapping[str, Any] | None, fidelity: Fidelity = DEFAULT
) -> EncodedIdentity:
    """Return the model, data and settings that identify a folder of token ids in its manifest."""
    identity: EncodedIdentity = {
        "model": dict(model) if model else None,
        "data": {
            "dataset": cached.dataset,
            "revision": cached.revision,
            "few_sample": cached.few_sample,
        },
    }
    if fidelity.encoding_switches:
        identity["fidelity"] = fidelity.encoding_switches
    return identity


def _count_words(
    folder: Path, cached: Manifest, cards: Sequence[Task], marks: Sequence[str] = ()
) -> Counter[str]:
    """Count the words (runs of letters and digits) in the distinct training contexts.

    Args:
        marks: special strings of the tokenizer that are not words, such as turn separators.
    """
    contexts = {
        row.context for card in cards for row in _read_instances(folder, cached, card.name, "train")
    }
    separators = re.compile("|".join(map(re.escape, marks)) or "(?!)")
    plain = (separators.sub(" ", context) for context in contexts)
    return Counter(word for context in plain for word in re.findall(r"\w+", context))


def _read_training_texts(folder: Path, cached: Manifest, cards: Sequence[Task]) -> list[str]:
    """Read texts in which every turn of the training dialogues occurs once.

    These are the last context of each dialogue, which includes all earlier turns, and its answer.
    """
    rows = [row for card in cards for row in _read_instances(folder, cached, card.name, "train")]
    last = {row.dialogue_id: row for row in rows}
    return [text for row in last.values() for text in (row.context, row.target[0])]


def _read_instances(folder: Path, cached: Manifest, task: str, split: str) -> list[Instance]:
    """Read the instances of a split, or return an empty list if a release lacks the split.

    A study that does not use the task must not fail because of it. A training that uses the task
    reports the empty split.
    """
    counts = cached.tasks.get(task, {}).get(split)
    if counts is not None and not counts.samples:
        return []
    return read_instances(folder, task, split)


def _build_scoring_row(
    task: Task, row: Instance, family: Family, inputs: str, tokenizer: Tokenizer
) -> tuple[str, str, tuple[str, ...], str]:
    """Return an instance's id, dialogue id, gold answers and text for scoring.

    The text is needed only for spans. It is the context, or the toolkit's whole encoder input.
    """
    text = row.context if task.kind == "span" else ""
    if text and inputs == "tlidb" and family == "encoder" and task.toolkit:
        separator: str = tokenizer.sep_token
        # Answers that cross the separator are read without it; offsets do not change.
        text = build_encoder_texts(task.toolkit, task, row, separator)[0].text
        text = text.replace(separator, " " * len(separator))
    return row.id, row.dialogue_id, row.target, text


def _encode_examples(
    tokenizer: Tokenizer,
    task: Task,
    rows: Sequence[Instance],
    family: Family,
    max_length: int,
    answer_limit: int,
    fidelity: Fidelity,
    beside: Sequence[Tokenizer] = (),
) -> Iterator[Example]:
    if family == "dual_encoder":
        return encode_contexts_separately(
            [tokenizer, *beside], task, rows, max_length, candidates=True
        )
    if task.by_head and family != "encoder":
        return encode_contexts_separately(
            [tokenizer, *beside], task, rows, max_length, candidates=False
        )
    if fidelity.inputs == "tlidb" and task.toolkit:
        if family == "encoder":
            return toolkit.build_encoder_examples(
                task.toolkit, tokenizer, task, rows, max_length, fidelity
            )
        return toolkit.build_text_to_text_examples(
            task.toolkit,
            tokenizer,
            task,
            rows,
            max_length,
            family,
            fidelity,
            answer_limit,
        )
    if family == "encoder":
        return build_encoder_examples(tokenizer, task, rows, max_length, fidelity.lost_spans)
    examples = build_text_to_text_examples(tokenizer, task, rows, max_length, family, answer_limit)
    for other in beside:
        examples = add_second_encoding(examples, other, task, rows, max_length)
    return examples


def count_long_answers(examples: Sequence[Example], limit: int, eos: int) -> int:
    """Count the gold answers that exceed the maximum number of generated tokens.

    An answer that was truncated to the free space in a decoder's input does not end with the
    end-of-sequence token.
    """
    return sum(len(example.labels) > limit or example.labels[-1:] != [eos] for example in examples)


def list_truncation_warnings(manifest: EncodedManifest) -> list[str]:
    """Return one warning per truncated split from a manifest.

    They concern gold answers that do not fit, and splits with more than ``MAX_TRUNCATED_FRACTION``
    truncated inputs.
    """
    longest, examples = manifest["max_answer_tokens"], manifest["examples"]
    lines = [
        f"{key}: {min(count, examples[key]):,} of {examples[key]:,} inputs are truncated at "
        f"max_length {manifest['max_length']}. Raise max_length, or set keeps of a declared task "
        "to the part of a dialogue that determines its label."
        for key, count in manifest.get("truncated", {}).items()
        if count > MAX_TRUNCATED_FRACTION * examples[key]
    ]
    lines += [
        f"{key}: {count:,} of {examples[key]:,} questions or responses are longer than max_length "
        f"{manifest['max_length']} allows, and are truncated. Raise max_length."
        for key, count in manifest.get("shortened", {}).items()
        if count
    ]
    lines += [
        f"{key}: {count:,} of {examples[key]:,} gold answers are removed by the truncation of "
        f"their context to max_length {manifest['max_length']}, so they cannot be learnt or "
        "predicted. Raise max_length."
        for key, count in manifest["lost_answers"].items()
        if count
    ]
    return lines + [
        f"{key}: {count:,} of {examples[key]:,} gold answers are longer than the limit of "
        f"{longest[key.rpartition('-')[0]]} generated tokens, and cannot be generated completely."
        for key, count in manifest["longer_answers"].items()
        if count
    ]
