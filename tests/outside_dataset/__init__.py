"""Errands: a whole dataset outside the package, two tasks in a format of its own.

A release is a folder ``Errands`` with two files of JSON lines a split, ``<split>.turns.jsonl``
(a dialogue a line) and ``<split>.answers.jsonl`` (an annotation a line); ``release.py`` makes one.
A config names this folder under ``plugins``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasktransfer.datasets.dataset import Dataset, Reader, Release, TaskSize, TurnLength
from tasktransfer.datasets.file_digests import compute_files_digest
from tasktransfer.errors import DataError
from tasktransfer.files import json_text
from tasktransfer.tasks.card import SPLITS, Instance, MetricSpec, Prompt, Task

SHOPS = ("bakery", "chemist", "market")

SHOP = Task(
    name="shop_classification",
    short="SHOP",
    dataset="Errands",
    kind="dialogue_classification",
    labels=SHOPS,
    metrics=(MetricSpec("accuracy"), MetricSpec("f1", "macro")),
    query="",
    prompt=Prompt("shop:", max_answer_tokens=8),
    description="Which shop the customer is in.",
    citation="Nobody 2024, Errands, made up for the tests",
    licence="as the project",
)
PURCHASE = Task(
    name="purchase_extraction",
    short="BUY",
    dataset="Errands",
    kind="span",
    labels=(),
    metrics=(MetricSpec("exact_match"), MetricSpec("token_f1", "macro")),
    query="{question}",
    prompt=Prompt("question: {question} answer:", max_answer_tokens=16),
    description="What the customer buys.",
    citation="Nobody 2024, Errands, made up for the tests",
    licence="as the project",
)


def find(folder: Path) -> str:
    place = folder / "Errands"
    if not place.is_dir():
        raise DataError(f"{place}: no release of Errands; put it there, or change data.release")
    return str(place)


def revision(folder: Path, memo: Path | None) -> str:
    return compute_files_digest({f"{s}.{kind}": _file(folder, s, kind) for s, kind in _PARTS}, memo)


def open_release(folder: Path, few_sample: bool) -> Release:
    """It has no few-sample setting, so it is read whole either way."""
    place = find(folder)
    dialogues = {split: dict(_dialogues(folder, split)) for split in SPLITS}

    def instances(task: str, split: str) -> Iterator[Instance]:
        for row in _rows(_file(folder, split, "answers")):
            if row["task"] == task:
                yield _instance(row, " ".join(map(": ".join, dialogues[split][row["dialogue"]])))

    return Release(
        location=place,
        revision=revision(folder, None),
        tasks=(SHOP.name, PURCHASE.name),
        dialogues={split: len(dialogues[split]) for split in SPLITS},
        instances=instances,
        turns=[
            TurnLength(name, split, True, str(number), (speaker,), len(text.split()))
            for split in SPLITS
            for name, turns in dialogues[split].items()
            for number, (speaker, text) in enumerate(turns)
        ],
        synthetic=True,
    )


def _instance(row: dict[str, Any], context: str) -> Instance:
    return Instance(
        id=row["id"],
        dialogue_id=row["dialogue"],
        task=row["task"],
        context=context,
        focus=len(context),
        query={"question": row["question"]},
        options=(),
        target=(row["answer"],),
        starts=(context.index(row["answer"]),) if row["task"] == PURCHASE.name else (),
    )


_PARTS = [(split, kind) for split in SPLITS for kind in ("turns", "answers")]


def _file(folder: Path, split: str, kind: str) -> Path:
    return folder / "Errands" / f"{split}.{kind}.jsonl"


def _dialogues(folder: Path, split: str) -> Iterator[tuple[str, list[list[str]]]]:
    for row in _rows(_file(folder, split, "turns")):
        yield row["id"], row["turns"]


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        try:
            row = json_text.loads(line)
        except ValueError as error:
            raise DataError(f"{file}:{number}: broken JSON ({error}); mend it") from error
        yield row


ERRANDS = Dataset(
    name="Errands",
    cards=(SHOP, PURCHASE),
    reader=Reader(version=1, find=find, revision=revision, open=open_release),
    sizes={SHOP.name: TaskSize(48, 12, 18, 24), PURCHASE.name: TaskSize(48, 12, 18, 34)},
)
DATASETS = (ERRANDS,)
