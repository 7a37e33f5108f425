"""Instances to token ids, for each family, once per model and dataset.

The rule of truncation, for all families: what is cut is the context, its oldest turns. The target
utterance ends the context and stays, as do question, options and prompt. (The paper's toolkit cuts
BERT's inputs at the end, which loses the target utterance.) A task whose card says ``keeps:
beginning`` has no target utterance, and loses its latest turns.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasktransfer.core.architecture import is_recipe, of_weights
from tasktransfer.core.fidelity import DEFAULT, Fidelity
from tasktransfer.core.specs import Family
from tasktransfer.data.cache import Manifest, read_instances, read_manifest
from tasktransfer.datasets import DATASETS
from tasktransfer.encoding import ENCODING_VERSION, toolkit
from tasktransfer.encoding.encoded import IGNORED, Example, write_split
from tasktransfer.encoding.replies import encoded_apart, with_beside
from tasktransfer.encoding.text import longest_answer, text_to_text_examples
from tasktransfer.encoding.tokenizer import check_words, load_tokenizer
from tasktransfer.encoding.word_tokenizer import word_tokenizer
from tasktransfer.files import Maker, replacing_folder
from tasktransfer.tasks.card import SPLITS, Instance, Task
from tasktransfer.tasks.compose import (
    encoder_option_texts,
    encoder_text,
)
from tasktransfer.tasks.ratings import STEPS, share_of
from tasktransfer.tasks.spans import right_spans
from tasktransfer.tasks.toolkit_texts import encoder_texts

TOKENIZED_TOGETHER = 512

MAKER = Maker("folder of token ids", "manifest.json", "encoding")

Tokenizer = Any
"""A fast tokenizer of transformers; its classes carry no useful static types."""


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
    """Tokenise every task and split of a dataset into ``out``, all or nothing.

    Args:
        instances: folder that ``data.cache.prepare`` wrote.
        tasks: names; None for all of the dataset.
        max_length: tokens of an input at most, special tokens included.
        out: the folder to make; it appears when it is complete.
        max_unknown_words: the largest share (0 to 1) of the words in the training instances'
            contexts that the tokenizer may not know.
        model: the identity of the model (``ModelSpec``), noted in the manifest.
        fidelity: whose inputs, answers and lengths these are.
        beside: name or folder, and revision, of the encoder that reads beside the model.

    Raises:
        ModelError: the tokenizer cannot be loaded, lacks what the family needs, or does not know
            the words.
        DataError: the instances are missing or damaged, hold nothing of a task, or ``out`` holds
            something else.
    """
    cached = read_manifest(instances)
    cards = cards_of(dataset, tasks or cached.tasks, family)
    others = [load_tokenizer(*beside, "encoder")] if beside else []
    if is_recipe(checkpoint):  # its words are those of the training instances
        texts = _training_texts(instances, cached, cards)
        tokenizer = word_tokenizer(texts, of_weights(checkpoint).least_count)
    else:
        tokenizer = load_tokenizer(checkpoint, revision, family)
        words = _words(instances, cached, cards, list(tokenizer.get_added_vocab()))
        check_words(tokenizer, words, max_unknown_words, checkpoint)
    with replacing_folder(out, MAKER) as building:
        manifest: dict[str, Any] = {
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
            # Right spans that truncation cut away, and answers longer than a model generates.
            "lost_answers": {},
            "longer_answers": {},
            # What a training's time is estimated from.
            "examples": {},
            "tokens": {},
            **({"beside_pad_token_ids": [o.pad_token_id for o in others]} if others else {}),
            **made_from(cached, model, fidelity),
        }
        for card in cards:
            limit = 0
            if family in ("decoder", "encoder_decoder") and not card.by_head:
                limit = _answer_limit(tokenizer, card, family, fidelity)
            manifest["max_answer_tokens"][card.name] = limit
            for split in SPLITS:
                rows = _instances(instances, cached, card.name, split)
                kept_free = 0 if split == "train" and fidelity.inputs == "tlidb" else limit
                examples = list(
                    _encode(tokenizer, card, rows, family, max_length, kept_free, fidelity, others)
                )
                if family == "encoder" and card.kind == "span" and split == "train":
                    manifest["max_answer_tokens"][card.name] = longest_span(examples)
                lengths = [len(s) for u in examples for s in u.sequences]
                key = f"{card.name}-{split}"
                manifest["lost_answers"][key] = lost_answers(card, family, examples)
                if limit:
                    longer = longer_answers(examples, limit, tokenizer.eos_token_id)
                    manifest["longer_answers"][key] = longer
                manifest["truncated"][key] = sum(length >= max_length for length in lengths)
                manifest["examples"][key] = len(examples)
                manifest["tokens"][key] = sum(lengths)
                scoring = [
                    _scoring_row(card, row, family, fidelity.inputs, tokenizer) for row in rows
                ]
                write_split(building, card.name, split, examples, scoring)
        tokenizer.save_pretrained(building / "tokenizer")
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
    """Tokenise instances of one task into the files of a split, in a folder that is there."""
    limit = 0 if family == "encoder" else _answer_limit(tokenizer, card, family, fidelity)
    examples = list(_encode(tokenizer, card, rows, family, max_length, limit, fidelity))
    scoring = [_scoring_row(card, row, family, fidelity.inputs, tokenizer) for row in rows]
    write_split(out, card.name, split, examples, scoring)


def cards_of(dataset: str, tasks: Iterable[str], family: Family) -> list[Task]:
    """The tasks that a family can answer: a dataset may have replies beside labels, and an encoder
    has no way to give them."""
    cards = [DATASETS[dataset].tasks[name] for name in tasks]
    return [card for card in cards if family != "encoder" or card.kind != "reply"]


def _answer_limit(tokenizer: Tokenizer, task: Task, family: Family, fidelity: Fidelity) -> int:
    """Tokens that generation may take."""
    if fidelity.generation_length == "tlidb" and task.toolkit:
        return toolkit.answer_limit(task.toolkit, family)
    return longest_answer(tokenizer, task, family)


def made_from(
    cached: Manifest, model: Mapping[str, Any] | None, fidelity: Fidelity = DEFAULT
) -> dict[str, Any]:
    """What tells one folder of token ids from another, as its manifest notes it."""
    data = {"revision": cached.revision, "few_sample": cached.few_sample}
    switches = {"fidelity": fidelity.of_encoding} if fidelity.of_encoding else {}
    return {
        "model": dict(model) if model else None,
        "data": {"dataset": cached.dataset, **data},
        **switches,
    }


def _words(
    folder: Path, cached: Manifest, cards: Sequence[Task], marks: Sequence[str] = ()
) -> Counter[str]:
    """The words (runs of letters and digits) of the distinct contexts that are trained on, without
    ``marks``, a tokenizer's own, such as what stands between turns."""
    contexts = {
        row.context for card in cards for row in _instances(folder, cached, card.name, "train")
    }
    apart = re.compile("|".join(map(re.escape, marks)) or "(?!)")
    plain = (apart.sub(" ", context) for context in contexts)
    return Counter(word for context in plain for word in re.findall(r"\w+", context))


def _training_texts(folder: Path, cached: Manifest, cards: Sequence[Task]) -> list[str]:
    """Every turn of the training dialogues once: the last context of each, which holds those
    before, and the answer to it."""
    rows = [row for card in cards for row in _instances(folder, cached, card.name, "train")]
    last = {row.dialogue_id: row for row in rows}
    return [text for row in last.values() for text in (row.context, row.target[0])]


def _instances(folder: Path, cached: Manifest, task: str, split: str) -> list[Instance]:
    """A split that a partial release leaves empty is encoded as empty: a study that does not use
    the task must not stumble over it, and a training that does says so."""
    counts = cached.tasks.get(task, {}).get(split)
    if counts is not None and not counts.samples:
        return []
    return read_instances(folder, task, split)


def _scoring_row(
    task: Task, row: Instance, family: Family, inputs: str, tokenizer: Tokenizer
) -> tuple[str, str, tuple[str, ...], str]:
    """Only span answers are read off the text: off the context, or off all that the toolkit's
    encoder reads."""
    text = row.context if task.kind == "span" else ""
    if text and inputs == "tlidb" and family == "encoder" and task.toolkit:
        separator: str = tokenizer.sep_token
        # An answer across it is read without it; the offsets of all else stay.
        text = encoder_texts(task.toolkit, task, row, separator)[0].text
        text = text.replace(separator, " " * len(separator))
    return row.id, row.dialogue_id, row.target, text


def _encode(
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
        return encoded_apart([tokenizer, *beside], task, rows, max_length, candidates=True)
    if task.by_head and family != "encoder":
        return encoded_apart([tokenizer, *beside], task, rows, max_length, candidates=False)
    if fidelity.inputs == "tlidb" and task.toolkit:
        if family == "encoder":
            return toolkit.encoder_examples(
                task.toolkit, tokenizer, task, rows, max_length, fidelity
            )
        return toolkit.text_to_text_examples(
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
        return _encoder_examples(tokenizer, task, rows, max_length, fidelity.lost_spans)
    examples = text_to_text_examples(tokenizer, task, rows, max_length, family, answer_limit)
    for other in beside:
        examples = with_beside(examples, other, task, rows, max_length)
    return examples


# --- encoders -----------------------------------------------------------------------------------


def _encoder_examples(
    tokenizer: Tokenizer,
    task: Task,
    rows: Sequence[Instance],
    max_length: int,
    lost_spans: str = "skipped",
) -> Iterator[Example]:
    pairs = [_encoder_pairs(task, row) for row in rows]
    tokenizer.truncation_side = "left" if task.keeps == "end" else "right"
    shortened = "only_second" if task.first == "query" else "only_first"
    flat = [pair for row in pairs for pair in row]
    encoded = _encode_pairs(tokenizer, flat, max_length, shortened)
    for position, (row, its_pairs) in enumerate(zip(rows, pairs, strict=True)):
        mine = [next(encoded) for _ in its_pairs]
        offsets = _context_offsets(mine[0], bool(its_pairs[0][0])) if task.kind == "span" else []
        yield Example(
            instance=position,
            output=0,
            sequences=[e.ids for e in mine],
            second_starts=[_second_start(e) for e in mine],
            labels=_encoder_labels(task, row, offsets, lost_spans),
            offsets=[edge for pair in offsets for edge in pair],
        )


def _encoder_pairs(task: Task, row: Instance) -> list[tuple[str, str]]:
    """(first, second segment) of each sequence that an encoder reads for an instance: query and
    context, or the other way round."""
    if task.kind == "multiple_choice":
        return [(query, row.context) for query in encoder_option_texts(task, row)]
    query, context = encoder_text(task, row)
    return [(query, context) if task.first == "query" else (context, query)]


def _encode_pairs(
    tokenizer: Tokenizer,
    pairs: Sequence[tuple[str, str]],
    max_length: int,
    shortened: str = "only_second",
) -> Iterator[Any]:
    """[CLS] query [SEP] context [SEP], or the context alone; the context, which ``shortened`` says
    the place of, loses an end.

    Many at a time, since the tokenizers work on a batch in parallel. All pairs of a task have a
    query, or none has.
    """
    for begin in range(0, len(pairs), TOKENIZED_TOGETHER):
        some = pairs[begin : begin + TOKENIZED_TOGETHER]
        try:
            yield from _tokenized(tokenizer, some, max_length, shortened)
        except Exception as error:
            # The fast tokenizers raise a bare Exception when a query alone is too long. Then, and
            # only then, the query loses an end too.
            if "Truncation error" not in str(error):
                raise
            for pair in some:
                yield from _one_by_one(tokenizer, pair, max_length, shortened)


def _one_by_one(
    tokenizer: Tokenizer, pair: tuple[str, str], max_length: int, shortened: str
) -> list[Any]:
    try:
        return _tokenized(tokenizer, [pair], max_length, shortened)
    except Exception as error:
        if "Truncation error" not in str(error):
            raise
        return _tokenized(tokenizer, [pair], max_length, "longest_first")


def _tokenized(
    tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], max_length: int, strategy: str
) -> list[Any]:
    queries, contexts = [query for query, _ in pairs], [context for _, context in pairs]
    if any(queries):
        encoded = tokenizer(queries, contexts, truncation=strategy, max_length=max_length)
    else:
        encoded = tokenizer(contexts, truncation=True, max_length=max_length)
    encodings: list[Any] = encoded.encodings
    return encodings


def _second_start(encoded: Any) -> int:
    """Index of the first token of the second segment, for models with token types."""
    types: list[int] = encoded.type_ids
    return types.index(1) if 1 in types else len(types)


def _context_offsets(encoded: Any, has_query: bool) -> list[tuple[int, int]]:
    """Character range in the context of each token; (-1, -1) for tokens outside it."""
    wanted = 1 if has_query else 0
    return [
        edges if segment == wanted else (-1, -1)
        for edges, segment in zip(encoded.offsets, encoded.sequence_ids, strict=True)
    ]


def _encoder_labels(
    task: Task, row: Instance, offsets: list[tuple[int, int]], lost_spans: str
) -> list[int]:
    if task.kind == "span":
        return _span_labels(task, row, offsets, lost_spans)
    if task.kind == "multi_label":
        return [int(label in row.target) for label in task.labels]
    if task.kind == "rating":
        return [round(share_of(task, row.target[0]) * STEPS)]
    return [task.labels.index(label) for label in row.target]


def _span_labels(task: Task, row: Instance, offsets: list[tuple[int, int]], lost: str) -> list[int]:
    """First and last token of the first right answer that the input still holds.

    (0, 0), the first token, stands for "no answer" and is given to unanswerable instances only;
    an answer that truncation cut away is not counted in the loss, unless ``lost`` says so.
    """
    if all(start < 0 for start in row.starts) and _is_unanswerable(row):
        return [0, 0]
    for start, end in right_spans(task, row):
        inside = [i for i, (a, b) in enumerate(offsets) if a >= 0 and a < end and b > start]
        if inside and offsets[inside[0]][0] <= start and offsets[inside[-1]][1] >= end:
            return [inside[0], inside[-1]]
    return [0, 0] if lost == "first_token" else [IGNORED, IGNORED]


def longest_span(examples: Sequence[Example]) -> int:
    """Tokens of the longest span among labels: what a prediction may have at most."""
    return max((last - first + 1 for first, last in (e.labels for e in examples)), default=1)


def lost_answers(task: Task, family: Family, examples: Sequence[Example]) -> int:
    """How many answers an encoder cannot be shown, since truncation cut them away."""
    if family != "encoder" or task.kind != "span":
        return 0
    return sum(example.labels[0] == IGNORED for example in examples)


def longer_answers(examples: Sequence[Example], limit: int, eos: int) -> int:
    """How many right answers have more tokens than are generated. One that was cut to what is
    free in a decoder's input does not end with the end-of-sequence token."""
    return sum(len(one.labels) > limit or one.labels[-1:] != [eos] for one in examples)


def told(manifest: Mapping[str, Any]) -> list[str]:
    """A line for each split in which right answers do not fit, from a folder's manifest."""
    longest, examples = manifest["max_answer_tokens"], manifest["examples"]
    lines = [
        f"{key}: {count:,} of {examples[key]:,} right answers were cut away with their context "
        f"at max_length {manifest['max_length']}, and cannot be learnt or found"
        for key, count in manifest["lost_answers"].items()
        if count
    ]
    return lines + [
        f"{key}: {count:,} of {examples[key]:,} right answers are longer than the "
        f"{longest[key.rpartition('-')[0]]} tokens that are generated at most, and cannot come "
        "out whole"
        for key, count in manifest["longer_answers"].items()
        if count
    ]


def _is_unanswerable(row: Instance) -> bool:
    return "impossible" in row.target[0].lower() if row.target else True
