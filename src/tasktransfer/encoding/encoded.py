"""Tokenised instances on disk: written once per model and dataset, memory-mapped by trainings.

An *example* is a row of a training batch: an instance, or for text-to-text models, which are asked
the traits of a multi-output instance one by one, one of these prompts with its answer. It holds one
token sequence, except that an encoder reads one per option of a multiple choice.

Two Arrow files per task and split: ``<task>-<split>.units.arrow`` (token ids and labels) and
``<task>-<split>.instances.arrow`` (what is needed to score and to name predictions).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tasktransfer.data.prepared import instances_of_encoded, says_synthetic
from tasktransfer.errors import DataError
from tasktransfer.files import json_text, sha256_of
from tasktransfer.layers.ragged import Ints, Longs, Ragged, ragged, spans, starts_of

T = TypeVar("T")

IGNORED = -100
"""A label that no loss counts (an answer that truncation cut away)."""


@dataclass(frozen=True, slots=True)
class Example:
    """One example before it is written.

    ``second_starts``: per sequence, where its second segment begins (its length: there is none).
    ``labels``: the class; 0/1 per label (multi-label); the answer of each output (multi-output);
    the option; first and last token of the span (0, 0: no answer); or the answer's token ids
    (text-to-text). ``offsets``: for an encoder's span tasks the context's character range of each
    token as start, end, start, end, …; -1 for tokens outside the context.
    """

    instance: int
    output: int
    sequences: list[list[int]]
    second_starts: list[int]
    labels: list[int]
    offsets: list[int]
    answers: list[list[int]] = field(default_factory=list)
    """Labels of every right answer, where there are several and each may be trained on."""
    shortened: bool = False
    """Whether a query or response alone was too long, so that it lost an end too."""


_EXAMPLE_SCHEMA = pa.schema(
    [
        ("instance", pa.int32()),
        ("output", pa.int32()),
        ("sequences", pa.list_(pa.list_(pa.int32()))),
        ("second_starts", pa.list_(pa.int32())),
        ("labels", pa.list_(pa.int32())),
        ("offsets", pa.list_(pa.int32())),
    ]
)
ANSWERS = pa.field("answers", pa.list_(pa.list_(pa.int32())))
"""A column of splits in which an example has several right answers to draw from."""
_INSTANCE_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("dialogue_id", pa.string()),
        ("target", pa.list_(pa.string())),
        ("context", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class EncodedSplit:
    """One task's split, ready to be batched. Arrays are views of the memory-mapped file.

    ``sequences`` are those of all examples after each other; example u owns those from
    ``first_sequence[u]`` to ``first_sequence[u + 1]``. ``dialogue_ids``: None in folders that were
    encoded before they were kept.
    """

    task: str
    instance: Ints
    output: Ints
    first_sequence: Ints
    sequences: Ragged
    second_starts: Ints
    labels: Ragged
    offsets: Ragged
    ids: list[str]
    dialogue_ids: list[str | None]
    targets: list[tuple[str, ...]]
    contexts: list[str]
    answers: dict[int, list[list[int]]] = field(default_factory=dict)
    """Example → the labels of its right answers, where one of several is drawn."""

    def __len__(self) -> int:
        return len(self.instance)

    def sequence_rows(self, examples: Sequence[int]) -> Longs:
        """The sequences of some examples, one after the other."""
        picked = np.asarray(examples, dtype=np.int64)
        return spans(self.first_sequence[picked], np.diff(self.first_sequence)[picked])

    def sequence_range(self, example: int) -> range:
        """The sequences of an example."""
        return range(int(self.first_sequence[example]), int(self.first_sequence[example + 1]))

    def longest(self) -> Ints:
        """Tokens in the longest sequence of each example, shape (examples,)."""
        if not len(self):
            return np.zeros(0, np.int32)
        return np.maximum.reduceat(self.sequences.lengths(), self.first_sequence[:-1])

    def tokens(self) -> Ints:
        """Tokens of all sequences of each example, shape (examples,)."""
        if not len(self):
            return np.zeros(0, np.int32)
        return np.add.reduceat(self.sequences.lengths(), self.first_sequence[:-1])

    def with_drawn_answers(self, seed: Sequence[int]) -> EncodedSplit:
        """The split with one of its right answers, drawn from the seed, in the place of the first
        for each example that has several."""
        if not self.answers:
            return self
        generator = np.random.default_rng(list(seed))
        rows = [self.labels[example] for example in range(len(self))]
        for example, several in sorted(self.answers.items()):
            rows[example] = np.array(several[generator.integers(len(several))], np.int32)
        return replace(self, labels=ragged(rows))

    def limited(self, limit: int | None) -> EncodedSplit:
        """The first ``limit`` instances of a fixed shuffle (not of the training's seed), in the
        split's order; all of them if there are no more, or if ``limit`` is None."""
        return self.taken(kept_instances(len(self.ids), limit))

    def taken(self, kept: Longs) -> EncodedSplit:
        """The split with these of its instances, numbers that rise."""
        count = len(self.ids)
        if len(kept) == count:
            return self
        renumber = np.full(count, -1, np.int32)
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        examples = np.flatnonzero(renumber[self.instance] >= 0)
        rows = [row for example in examples for row in self.sequence_range(int(example))]
        counts = np.diff(self.first_sequence)[examples]
        return EncodedSplit(
            task=self.task,
            instance=renumber[self.instance[examples]],
            output=self.output[examples],
            first_sequence=starts_of(counts),
            sequences=self.sequences.take(rows),
            second_starts=self.second_starts[rows],
            labels=self.labels.take(examples),
            offsets=self.offsets.take(examples),
            ids=[self.ids[i] for i in kept],
            dialogue_ids=[self.dialogue_ids[i] for i in kept],
            targets=[self.targets[i] for i in kept],
            contexts=[self.contexts[i] for i in kept],
            answers={
                index: self.answers[example]
                for index, example in enumerate(examples.tolist())
                if example in self.answers
            },
        )


def kept_instances(count: int, limit: int | None) -> Longs:
    """The numbers of the instances that a limit leaves of so many: the first of a fixed shuffle, in
    the split's order."""
    return np.sort(np.random.default_rng(0).permutation(count)[:limit])


def kept(instances: Sequence[T], limit: int | None) -> list[T]:
    """The instances themselves that a limit leaves: those that every training under it reads."""
    return [instances[number] for number in kept_instances(len(instances), limit)]


def write_split(
    folder: Path,
    task: str,
    split: str,
    examples: Sequence[Example],
    instances: Sequence[tuple[str, str, tuple[str, ...], str]],
) -> None:
    """Write the two files of a split. ``instances``: (id, dialogue's id, right answers, context)
    each."""
    several = any(u.answers for u in examples)
    schema = _EXAMPLE_SCHEMA.append(ANSWERS) if several else _EXAMPLE_SCHEMA
    table = pa.table(
        {
            "instance": [u.instance for u in examples],
            "output": [u.output for u in examples],
            "sequences": [u.sequences for u in examples],
            "second_starts": [u.second_starts for u in examples],
            "labels": [u.labels for u in examples],
            "offsets": [u.offsets for u in examples],
            **({ANSWERS.name: [u.answers for u in examples]} if several else {}),
        },
        schema=schema,
    )
    _write_arrow(folder / f"{task}-{split}.units.arrow", table)
    ids, dialogues, targets, contexts = zip(*instances, strict=True) if instances else ((),) * 4
    columns = {"id": list(ids), "dialogue_id": list(dialogues)}
    columns |= {"target": [list(t) for t in targets], "context": list(contexts)}
    rows = pa.table(columns, schema=_INSTANCE_SCHEMA)
    _write_arrow(folder / f"{task}-{split}.instances.arrow", rows)


def _write_arrow(path: Path, table: pa.Table) -> None:
    """The stream format, which ``datasets.Dataset.from_file`` reads as well."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the folder's writer said of it.

    Raises:
        DataError: the folder is not a finished encoding.
    """
    path = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json_text.read(path)
    except FileNotFoundError:
        raise DataError(f"{path} is missing: run `tasktransfer encode` for this folder") from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} is damaged ({error}): remove the folder and encode again"
        ) from None
    return manifest


def is_synthetic(folder: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether the dialogues behind a folder's token ids are generated.

    Token ids did not always say it; the instances that they were made of do.

    Raises:
        DataError: neither says it.
    """
    instances = instances_of_encoded(folder)
    synthetic = manifest.get("synthetic", says_synthetic(instances))
    if isinstance(synthetic, bool):
        return synthetic
    raise DataError(
        f"{folder / 'manifest.json'}: synthetic is {synthetic!r}: whether its dialogues are "
        f"generated cannot be told, from {instances} neither; remove the folder and encode again"
    )


def read_split(folder: Path, task: str, split: str) -> EncodedSplit:
    """Memory-map a split.

    Raises:
        DataError: its files are missing, or others than the folder's manifest was written with.
    """
    recorded = json_text.read_object(folder / "manifest.json").get("sha256") or {}
    names = [f"{task}-{split}.{what}.arrow" for what in ("units", "instances")]
    examples, rows = (_read_arrow(folder / name, recorded.get(name)) for name in names)
    nested = _column(examples, "sequences")
    ids = _column(rows, "id").to_pylist()
    has_dialogues = "dialogue_id" in rows.column_names
    return EncodedSplit(
        task=task,
        instance=_numbers(_column(examples, "instance")),
        output=_numbers(_column(examples, "output")),
        first_sequence=_list_starts(nested),
        sequences=_ragged(_flat(nested)),
        second_starts=_numbers(_flat(_column(examples, "second_starts"))),
        labels=_ragged(_column(examples, "labels")),
        offsets=_ragged(_column(examples, "offsets")),
        ids=ids,
        dialogue_ids=(
            _column(rows, "dialogue_id").to_pylist() if has_dialogues else [None] * len(ids)
        ),
        targets=_tuples(_column(rows, "target")),
        contexts=_column(rows, "context").to_pylist(),
        answers=_answers(examples),
    )


def _answers(examples: pa.Table) -> dict[int, list[list[int]]]:
    if ANSWERS.name not in examples.column_names:
        return {}
    rows = _column(examples, ANSWERS.name).to_pylist()
    return {example: several for example, several in enumerate(rows) if several}


def _read_arrow(path: Path, sha256: str | None) -> pa.Table:
    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_stream(source).read_all()
    except FileNotFoundError:
        raise DataError(f"{path} is missing: remove its folder and encode again") from None
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path} is damaged ({error}): remove its folder and encode again"
        ) from None
    if sha256 is not None and sha256_of(path) != sha256:
        raise DataError(
            f"{path}: its SHA-256 is not the one in manifest.json: remove its folder and encode "
            "again"
        )
    return table


def _column(table: pa.Table, name: str) -> Any:
    column = table.column(name)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _ragged(array: Any) -> Ragged:
    return Ragged(_numbers(_flat(array)), _list_starts(array))


def _numbers(array: Any) -> Ints:
    """A view of a column of numbers. (``to_numpy`` would import pandas, a tenth of the time to a
    training's first update, and ``flatten`` below pyarrow's compute functions.)"""
    view: Ints = np.from_dlpack(array) if len(array) else np.zeros(0, np.int32)  # type: ignore[assignment]
    return view


def _flat(lists: Any) -> Any:
    """The values of a column of lists, one after the other."""
    first, last = (int(lists.offsets[i].as_py()) for i in (0, len(lists))) if len(lists) else (0, 0)
    return lists.values.slice(first, last - first)


def _tuples(lists: Any) -> list[tuple[str, ...]]:
    """A column of lists of text, a tuple each; one by one they would be slow to take out."""
    values, starts = _flat(lists).to_pylist(), _list_starts(lists).tolist()
    return [tuple(values[a:b]) for a, b in itertools.pairwise(starts)]


def _list_starts(array: Any) -> Ints:
    starts = _numbers(array.offsets)
    return starts - starts[0] if len(starts) else np.zeros(1, np.int32)
