"""Declared datasets: kinds of tasks, sampled splits, and identities."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from declared_files import (
    TASKS,
    TURNS,
    WORLD,
    Json,
    as_jsonl,
    dialogue,
    instances,
    made,
    plain,
    written,
)

from outside_dataset import ERRANDS, PURCHASE, SHOP
from outside_dataset.release import write_release
from tasktransfer.datasets import DATASETS, replace_declared_datasets
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS


@pytest.fixture(autouse=True)
def _no_declared_datasets() -> Iterator[None]:
    yield
    replace_declared_datasets(())


# --- kinds of task --------------------------------------------------------------------------------

EVERY_KIND: Json = {
    "topics": {"kind": "multi_label", "label": "topics"},
    "relation": {
        "kind": "relations",
        "label": "pairs[].how",
        "fields": {"head": "pairs[].x", "tail": "pairs[].y"},
        "query": "{head} ; {tail}",
    },
    "span": {"kind": "question_answering", "question": "asked.question", "label": "asked.answer"},
    "choice": {"kind": "multiple_choice", "options": "options", "label": "right"},
    "summary": {"kind": "free_text", "label": "summary"},
    "next": {"kind": "reply"},
    "stars": {"kind": "rating", "label": "stars", "scale": [1, 5]},
    "traits": {"kind": "multi_output", "outputs": {"polite": "is.polite", "calm": "is.calm"}},
    "emotion": {"kind": "utterance_classification", "label": "emotions[]"},
}


def row_of_every_kind(number: int) -> Json:
    return {
        "said": ["I was in Rome", f"when in year {1900 + number}", "long ago"],
        "topics": [["travel"], ["travel", "time"]][number % 2],
        "pairs": [{"x": "I", "y": "Rome", "how": ["visits", "likes"][number % 2]}] * 2,
        "asked": {"question": "where?", "answer": ["Rome"]},
        "options": ["yes", "no", "maybe"],
        "right": ["no", 2, "0"][number % 3],
        "summary": "a trip",
        "stars": 1 + number % 5,
        "is": {"polite": number % 2 == 0, "calm": True},
        "emotions": [0, 1, None],
    }


def test_all_kinds_of_task(tmp_path: Path) -> None:
    files = {}
    for part, split in enumerate(SPLITS):
        file = tmp_path / f"{split}.jsonl"
        # Numbers and texts may be mixed under one key, because types are not guessed.
        as_jsonl(file, [row_of_every_kind(6 * part + n) for n in range(6)])
        files[split] = str(file)
    dataset = made({"files": files, "dialogue": {"turns": "said"}, "tasks": EVERY_KIND})
    found = instances(dataset)
    targets = {task: [row.target for row in found[f"{task}-train"][:3]] for task in EVERY_KIND}
    assert targets == {
        "topics": [("travel",), ("travel", "time"), ("travel",)],
        "relation": [("visits",), ("visits",), ("likes",)],
        "span": [("Rome",)] * 3,
        "choice": [("1",), ("2",), ("0",)],
        "summary": [("a trip",)] * 3,
        "next": [("when in year 1900",), ("long ago",), ("when in year 1901",)],
        "stars": [("1",), ("2",), ("3",)],
        "traits": [("true", "true"), ("false", "true"), ("true", "true")],
        "emotion": [("0",), ("1",), ("0",)],
    }
    assert found["span-train"][0].starts == (9,)
    assert found["relation-train"][0].query == {"head": "I", "tail": "Rome"}
    assert found["next-train"][0].context == "I was in Rome"
    assert dataset.tasks["choice"].labels == ("0", "1", "2")
    assert dataset.tasks["emotion"].labels == ("0", "1")
    assert (
        "emotion: 18 turns without an answer are skipped by default. Set missing: refuse to report "
        "missing answers as errors."
    ) in dataset.notes


# --- draws ----------------------------------------------------------------------------------------


def one_file(folder: Path, size: int = 50, **more: Any) -> Json:
    as_jsonl(folder / "all.jsonl", [dialogue("all", n) for n in range(size)])
    return {"files": str(folder / "all.jsonl"), "dialogue": TURNS, "tasks": TASKS, **more}


def test_splits_that_are_missing_are_drawn_by_dialogue(tmp_path: Path) -> None:
    dataset = made(one_file(tmp_path, shares={"dev": 0.1, "test": 0.2}))
    found = instances(dataset)
    by_split = {s: {row.dialogue_id for row in found[f"urgency-{s}"]} for s in SPLITS}
    assert [len(by_split[split]) for split in SPLITS] == [35, 5, 10]
    assert len(set().union(*by_split.values())) == 50
    assert dataset.notes == (
        "no dev split: 5 of the 50 training dialogues are dev, sampled with seed 0",
        "no test split: 10 of the 50 training dialogues are test, sampled with seed 0",
    )
    other = instances(made(one_file(tmp_path, shares={"dev": 0.1, "test": 0.2, "seed": 1})))
    assert plain(other) != plain(found)


def test_a_missing_test_split_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"all.jsonl: The dataset has no test split.*set datasets.Tickets.shares"
    ):
        made(one_file(tmp_path))


@pytest.mark.parametrize(
    ("few_sample", "sizes"), [({"instances": 20}, (20, 18)), ({"share": 0.2}, (7, 21))]
)
def test_few_samples_are_whole_dialogues(
    few_sample: Json, sizes: tuple[int, int], tmp_path: Path
) -> None:
    declaration = one_file(tmp_path, few_sample=few_sample, shares={"dev": 0.1, "test": 0.2})
    dataset = made(declaration)
    few, full = instances(dataset, few_sample=True), instances(dataset)
    assert (len(few["intent-train"]), len(few["urgency-train"])) == sizes
    assert dataset.sizes["urgency"].train == sizes[1] and dataset.sizes["intent"].train == sizes[0]
    assert few["intent-test"] == full["intent-test"]
    for split in ("train", "dev"):
        of_few = {row.dialogue_id for row in few[f"urgency-{split}"]}
        assert of_few < {row.dialogue_id for row in full[f"urgency-{split}"]}
        assert len(few[f"urgency-{split}"]) == 3 * len(of_few)


# --- identities ---------------------------------------------------------------------------------


def test_the_revision_is_of_content_and_the_card_of_where_answers_are(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = written(tmp_path / "a", "json lines")
    second = written(tmp_path / "b", "json lines")
    revisions = [made(one).reader.revision(Path(), None) for one in (first, second)]
    assert revisions[0] == revisions[1]
    fewer = {"intent": TASKS["intent"]}
    assert made(first | {"tasks": fewer}).reader.revision(Path(), None) == revisions[0]
    other = {"intent": {"kind": "dialogue_classification", "label": "ticket_id"}}
    cards = [
        made(first | {"tasks": tasks}).card_digests["intent"]
        for tasks in (fewer, other | {"intent": other["intent"] | {"labels": list(all_ids())}})
    ]
    assert cards[0] != cards[1] and cards[0] == made(first).card_digests["intent"]
    edited = WORLD | {"test": WORLD["test"][:3]}
    third = written(tmp_path / "b", "json lines", edited)
    assert made(third).reader.revision(Path(), None) != revisions[0]


def all_ids() -> Iterator[str]:
    return (row["ticket_id"] for rows in WORLD.values() for row in rows)


def test_a_survey_is_remembered_by_content(tmp_path: Path) -> None:
    declaration = written(tmp_path, "json lines")
    memory = tmp_path / "memory"
    first = made(declaration, memory)
    (file,) = memory.glob("Tickets-*.json")
    before = file.read_bytes()
    assert made(declaration, memory).cards == first.cards and file.read_bytes() == before
    for place in declaration["files"].values():
        Path(place).unlink()
    gone = made(declaration, memory)  # tables are drawn without the data
    assert gone.cards == first.cards
    with pytest.raises(DataError, match="is missing"):
        gone.reader.find(Path())


def test_declared_datasets_are_those_of_the_study_that_is_open(tmp_path: Path) -> None:
    declaration = written(tmp_path, "json lines")
    replace_declared_datasets([made(declaration)])
    fewer = made(declaration | {"tasks": {"intent": TASKS["intent"]}})
    replace_declared_datasets([fewer])
    assert DATASETS["Tickets"] is fewer
    replace_declared_datasets([])
    assert "Tickets" not in DATASETS


def test_the_outside_dataset_as_a_declaration(tmp_path: Path) -> None:
    """Its answers are in separate files, which a declaration cannot join.

    Once joined, they are declared to equal instances.
    """
    write_release(tmp_path)
    files = {}
    for split in SPLITS:
        answers = read_lines(tmp_path / "Errands" / f"{split}.answers.jsonl")
        of = {(row["dialogue"], row["task"]): row for row in answers}
        rows = [
            {
                "id": row["id"],
                "turns": [{"who": who, "what": what} for who, what in row["turns"]],
                "shop": of[row["id"], SHOP.name]["answer"],
                "bought": of[row["id"], PURCHASE.name],
            }
            for row in read_lines(tmp_path / "Errands" / f"{split}.turns.jsonl")
        ]
        files[split] = str(tmp_path / f"{split}.jsonl")
        as_jsonl(Path(files[split]), rows)
    asked = {"question": "bought.question", "label": "bought.answer"}
    declared = instances(
        made(
            {
                "files": files,
                "dialogue": {"turns": "turns", "text": "what", "speaker": "who", "id": "id"},
                "tasks": {
                    SHOP.name: {"kind": "dialogue_classification", "label": "shop"},
                    PURCHASE.name: {"kind": "question_answering", **asked},
                },
            }
        )
    )
    outside = ERRANDS.reader.open(tmp_path, False)
    keys = ("dialogue_id", "task", "context", "focus", "target", "starts", "options")
    for task in (SHOP.name, PURCHASE.name):
        for split in SPLITS:
            both = (declared[f"{task}-{split}"], list(outside.instances(task, split)))
            first, second = ([[getattr(r, k) for k in keys] for r in rows] for rows in both)
            assert first == second


def read_lines(file: Path) -> list[Json]:
    return [json.loads(line) for line in file.read_text().splitlines()]
