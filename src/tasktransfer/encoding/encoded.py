"""Tokenized instances on disk: written once per model and dataset, memory-mapped by trainings.

An *example* is a row of a training batch, usually an instance. Text-to-text models predict the
outputs of a multi-output instance one by one, so each of its prompts with its answer is an example.
An example has one token sequence, or in an encoder one per option of a multiple choice.

Each task and split has two Arrow files: ``<task>-<split>.units.arrow`` (token ids and labels) and
``<task>-<split>.instances.arrow`` (data for scoring and naming predictions).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tasktransfer.data.samples import select_indices
from tasktransfer.errors import DataError
from tasktransfer.files import compute_sha256, json_text
from tasktransfer.layers.ragged import (
    Ints,
    Longs,
    Ragged,
    build_ragged,
    compute_starts,
    index_spans,
)

IGNORED_LABEL = -100
"""Label that losses ignore, for an answer lost by truncation."""


@dataclass(frozen=True, slots=True)
class Example:
    """One example before it is written.

    Attributes:
        second_starts: start of each sequence's second segment, or the sequence's length if it
            has none.
        labels: the class; 0/1 per label (multi-label); the answer of each output (multi-output);
            the option; first and last token of the span (0, 0 for no answer); or the answer's token
            ids (text-to-text).
        offsets: for an encoder's span tasks, each token's character range in the context as start,
            end, start, end, …; -1 for tokens outside of the context.
    """

    instance: int
    output: int
    sequences: list[list[int]]
    second_starts: list[int]
    labels: list[int]
    offsets: list[int]
    answers: list[list[int]] = field(default_factory=list)
    """Labels of every gold answer, if there are several from which one is sampled."""
    turn_starts: list[int] = field(default_factory=list)
    """For each sequence, the index of the first token of the labelled turn (always the last turn).
    Empty if the task does not label turns."""
    shortened: bool = False
    """True if a query or response was too long by itself and was truncated, too."""


TURNS_COLUMN = "turn_starts"
_EXAMPLE_SCHEMA = pa.schema(
    [
        ("instance", pa.int32()),
        ("output", pa.int32()),
        ("sequences", pa.list_(pa.list_(pa.int32()))),
        ("second_starts", pa.list_(pa.int32())),
        (TURNS_COLUMN, pa.list_(pa.int32())),
        ("labels", pa.list_(pa.int32())),
        ("offsets", pa.list_(pa.int32())),
    ]
)
ANSWERS_COLUMN = pa.field("answers", pa.list_(pa.list_(pa.int32())))
"""Column of splits whose examples have several gold answers to sample from."""
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
    """One task's split, ready for batching. Arrays are views of the memory-mapped file.

    Attributes:
        first_sequence: index of each example's first sequence; example u has the sequences from
            ``first_sequence[u]`` to ``first_sequence[u + 1]``.
        sequences: sequences of all examples, in order.
        dialogue_ids: dialogue ids; None in folders of older versions that did not store them.
        turn_starts: index of the first token of each sequence's labelled turn, or 0 without one.
            None in folders of older versions that did not store it.
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
    turn_starts: Ints | None = None
    answers: dict[int, list[list[int]]] = field(default_factory=dict)
    """Example → labels of its gold answers, if one of several is sampled."""

    def __len__(self) -> int:
        return len(self.instance)

    def get_sequence_rows(self, examples: Sequence[int]) -> Longs:
        """Return the indices of all sequences of the given examples, in order."""
        picked = np.asarray(examples, dtype=np.int64)
        return index_spans(self.first_sequence[picked], np.diff(self.first_sequence)[picked])

    def get_sequence_range(self, example: int) -> range:
        """Return the indices of an example's sequences."""
        return range(int(self.first_sequence[example]), int(self.first_sequence[example + 1]))

    def compute_longest_lengths(self) -> Ints:
        """Return the length of each example's longest sequence in tokens, shape (examples,)."""
        if not len(self):
            return np.zeros(0, np.int32)
        return np.maximum.reduceat(self.sequences.lengths(), self.first_sequence[:-1])

    def count_tokens(self) -> Ints:
        """Return the number of tokens of all sequences of each example, shape (examples,)."""
        if not len(self):
            return np.zeros(0, np.int32)
        return np.add.reduceat(self.sequences.lengths(), self.first_sequence[:-1])

    def sample_answers(self, seed: Sequence[int]) -> EncodedSplit:
        """Sample one gold answer per example, and return the split with these answers."""
        if not self.answers:
            return self
        generator = np.random.default_rng(list(seed))
        rows = [self.labels[example] for example in range(len(self))]
        for example, several in sorted(self.answers.items()):
            rows[example] = np.array(several[generator.integers(len(several))], np.int32)
        return replace(self, labels=build_ragged(rows))

    def limit_instances(self, limit: int | None) -> EncodedSplit:
        """Return the split limited to the first ``limit`` instances.

        They are the first of a fixed shuffle that does not depend on the training's seed. All
        instances are kept if there are not more, or if ``limit`` is None.
        """
        return self.select_instances(select_indices(len(self.ids), limit))

    def select_instances(self, kept: Longs) -> EncodedSplit:
        """Return the split with the instances at ``kept``, which are ascending indices."""
        count = len(self.ids)
        if len(kept) == count:
            return self
        renumber = np.full(count, -1, np.int32)
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        examples = np.flatnonzero(renumber[self.instance] >= 0)
        rows = [row for example in examples for row in self.get_sequence_range(int(example))]
        counts = np.diff(self.first_sequence)[examples]
        return EncodedSplit(
            task=self.task,
            instance=renumber[self.instance[examples]],
            output=self.output[examples],
            first_sequence=compute_starts(counts),
            sequences=self.sequences.take(rows),
            second_starts=self.second_starts[rows],
            turn_starts=None if self.turn_starts is None else self.turn_starts[rows],
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


def write_split(
    folder: Path,
    task: str,
    split: str,
    examples: Sequence[Example],
    instances: Sequence[tuple[str, str, tuple[str, ...], str]],
) -> None:
    """Write a split to its two files.

    Args:
        instances: (id, dialogue id, gold answers, context) of each instance.
    """
    several = any(u.answers for u in examples)
    schema = _EXAMPLE_SCHEMA.append(ANSWERS_COLUMN) if several else _EXAMPLE_SCHEMA
    table = pa.table(
        {
            "instance": [u.instance for u in examples],
            "output": [u.output for u in examples],
            "sequences": [u.sequences for u in examples],
            "second_starts": [u.second_starts for u in examples],
            TURNS_COLUMN: [u.turn_starts or [0] * len(u.sequences) for u in examples],
            "labels": [u.labels for u in examples],
            "offsets": [u.offsets for u in examples],
            **({ANSWERS_COLUMN.name: [u.answers for u in examples]} if several else {}),
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
    """Write a table in Arrow's stream format."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def read_split(folder: Path, task: str, split: str) -> EncodedSplit:
    """Read a split with memory-mapped arrays.

    Raises:
        DataError: its files are missing or damaged, or differ from the folder's manifest.
    """
    recorded = json_text.read_object(folder / "manifest.json").get("sha256") or {}
    names = [f"{task}-{split}.{what}.arrow" for what in ("units", "instances")]
    examples, rows = (_read_arrow(folder / name, recorded.get(name)) for name in names)
    nested = _read_column(examples, "sequences")
    ids = _read_column(rows, "id").to_pylist()
    has_dialogues = "dialogue_id" in rows.column_names
    return EncodedSplit(
        task=task,
        instance=_read_numbers(_read_column(examples, "instance")),
        output=_read_numbers(_read_column(examples, "output")),
        first_sequence=_list_starts(nested),
        sequences=_read_ragged(_flatten_lists(nested)),
        second_starts=_read_numbers(_flatten_lists(_read_column(examples, "second_starts"))),
        turn_starts=(
            _read_numbers(_flatten_lists(_read_column(examples, TURNS_COLUMN)))
            if TURNS_COLUMN in examples.column_names
            else None
        ),
        labels=_read_ragged(_read_column(examples, "labels")),
        offsets=_read_ragged(_read_column(examples, "offsets")),
        ids=ids,
        dialogue_ids=(
            _read_column(rows, "dialogue_id").to_pylist() if has_dialogues else [None] * len(ids)
        ),
        targets=_read_tuples(_read_column(rows, "target")),
        contexts=_read_column(rows, "context").to_pylist(),
        answers=_read_answers(examples),
    )


def _read_answers(examples: pa.Table) -> dict[int, list[list[int]]]:
    if ANSWERS_COLUMN.name not in examples.column_names:
        return {}
    rows = _read_column(examples, ANSWERS_COLUMN.name).to_pylist()
    return {example: several for example, several in enumerate(rows) if several}


def _read_arrow(path: Path, sha256: str | None) -> pa.Table:
    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_stream(source).read_all()
    except FileNotFoundError:
        raise DataError(
            f"{path}: The file is missing. Remove the folder of this file and run `tasktransfer "
            "encode` again."
        ) from None
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path}: The file is damaged ({error}). Remove the folder of this file and run "
            "`tasktransfer encode` again."
        ) from None
    if sha256 is not None and compute_sha256(path) != sha256:
        raise DataError(
            f"{path}: The SHA-256 of the file does not match manifest.json. Remove the folder of "
            "this file and run `tasktransfer encode` again."
        )
    return table


def _read_column(table: pa.Table, name: str) -> Any:
    column = table.column(name)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _read_ragged(array: Any) -> Ragged:
    return Ragged(_read_numbers(_flatten_lists(array)), _list_starts(array))


def _read_numbers(array: Any) -> Ints:
    """Return a column of numbers as a view without a copy.

    ``to_numpy`` would import pandas, which takes a tenth of the time to a training's first update.
    """
    view: Ints = np.from_dlpack(array) if len(array) else np.zeros(0, np.int32)  # type: ignore[assignment]
    return view


def _flatten_lists(lists: Any) -> Any:
    """Return the concatenated values of a column of lists.

    The method ``flatten`` would import pyarrow's compute functions.
    """
    first, last = (int(lists.offsets[i].as_py()) for i in (0, len(lists))) if len(lists) else (0, 0)
    return lists.values.slice(first, last - first)


def _read_tuples(lists: Any) -> list[tuple[str, ...]]:
    """Convert a column of lists of texts to tuples."""
    values, starts = _flatten_lists(lists).to_pylist(), _list_starts(lists).tolist()
    return [tuple(values[a:b]) for a, b in itertools.pairwise(starts)]


def _list_starts(array: Any) -> Ints:
    starts = _read_numbers(array.offsets)
    return starts - starts[0] if len(starts) else np.zeros(1, np.int32)


def check_same_instances(splits: Mapping[str, EncodedSplit]) -> None:
    """Raise an error unless all tasks have the same instances in the same order.

    Raises:
        DataError: two tasks differ; the message names them and the first difference.
    """
    (first, split), *others = sorted(splits.items())
    for task, other in others:
        counts = {first: len(split), task: len(other)}
        if len(split.ids) != len(other.ids) or len(split) != len(other):
            raise DataError(
                f"sampler together: The training split of {first} has {counts[first]} examples, "
                f"but the training split of {task} has {counts[task]}. Choose tasks that annotate "
                "the same instances, or use another sampler."
            )
        pairs = enumerate(zip(split.ids, other.ids, strict=True))
        different = next(((i, pair) for i, pair in pairs if pair[0] != pair[1]), None)
        if different:
            index, (ours, another) = different
            raise DataError(
                f"sampler together: The instance with the index {index} is {ours!r} in the task "
                f"{first}, but {another!r} in the task {task}. Choose tasks that annotate the "
                "same instances in the same order, or use another sampler."
            )
