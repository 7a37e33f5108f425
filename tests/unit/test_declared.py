"""Declared datasets: twelve formats read to equal instances, kinds of tasks, splits, identities."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets as library
import pytest
from declared_files import (
    INTENTS,
    SHAPES,
    SIZES,
    TASKS,
    TURNS,
    WORLD,
    Json,
    as_jsonl,
    dialogue,
    written,
)

from outside_dataset import ERRANDS, PURCHASE, SHOP
from outside_dataset.release import write_release
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.datasets import DATASETS, find_dataset_problems, replace_declared_datasets
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.datasets.declared.reader import build_dataset
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.datasets.declared.source import open_source
from tasktransfer.datasets.file_digests import combine_digests
from tasktransfer.errors import DataError
from tasktransfer.files import compute_sha256
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.checks import find_instance_problem


@pytest.fixture(autouse=True)
def _no_declared_datasets() -> Iterator[None]:
    yield
    replace_declared_datasets(())


def made(declaration: Json, memory: Path | None = None) -> Dataset:
    dataset = build_dataset("Tickets", Declaration.model_validate(declaration), memory)
    assert list(find_dataset_problems(dataset)) == []
    return dataset


def instances(dataset: Dataset, *, few_sample: bool = False) -> dict[str, list[Instance]]:
    release = dataset.reader.open(Path(), few_sample)
    found = {}
    for task in release.tasks:
        for split in SPLITS:
            found[f"{task}-{split}"] = rows = list(release.instances(task, split))
            assert [find_instance_problem(dataset.tasks[task], row) for row in rows] == [
                None
            ] * len(rows)
    return found


def plain(found: dict[str, list[Instance]]) -> Any:
    """Return instances without their names, which contain file and row."""
    keys = ("dialogue_id", "context", "focus", "query", "options", "target", "starts", "turns")
    return {
        key: [[getattr(row, name) for name in keys] for row in rows] for key, rows in found.items()
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return plain(instances(made(written(tmp_path_factory.mktemp("lines"), "json lines"))))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_format_and_shape_gives_equal_instances(
    shape: str, tmp_path: Path, expected: Any
) -> None:
    dataset = made(written(tmp_path, shape))
    assert plain(instances(dataset)) == expected
    assert dataset.tasks["intent"].labels == INTENTS
    assert dataset.tasks["urgency"].labels == ("high", "low")


def test_instances_are_as_the_package_has_them(expected: Any) -> None:
    (_, context, focus, *_, turns) = expected["urgency-train"][1]
    assert context == 'agent: Hello, "friend";\nwhat is it? customer: my billing | 2020-01-01 é 好'
    assert context[focus:].startswith("customer: ") and turns == (0, focus)
    assert [row[5] for row in expected["urgency-train"][:3]] == [("low",), ("high",), ("low",)]


def test_a_folder_is_its_files(tmp_path: Path, expected: Any) -> None:
    declaration = written(tmp_path, "json lines") | {"files": str(tmp_path)}
    assert plain(instances(made(declaration))) == expected


CARD = """\
---
configs:
- config_name: plain
  data_files:
  - {split: train, path: train.jsonl}
  - {split: validation, path: dev.jsonl}
  - {split: test, path: test.jsonl}
---
"""


def test_a_name_on_the_hub_is_loaded_by_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: Any
) -> None:
    """A folder with that name represents the hub.

    The library looks for one first and reads its card.
    """
    folder = tmp_path / "shop" / "tickets"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    declaration = written(folder, "json lines")
    del declaration["files"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(library.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    named = declaration | {"hub": "shop/tickets", "config": "plain"}
    dataset = made(named, tmp_path / "memory")
    assert plain(instances(dataset)) == expected
    first = next(iter(dataset.reader.open(Path(), False).instances("intent", "dev")))
    assert first.id == "tickets (validation):1"
    with pytest.raises(
        DataError, match=r"shop/nothing: The data cannot be read .*HF_HUB_OFFLINE=0"
    ):
        made(named | {"hub": "shop/nothing"})


def test_names_say_file_and_line(tmp_path: Path) -> None:
    rows = instances(made(written(tmp_path, "csv of utterances")))["urgency-train"]
    # The first line names the columns, and the first turn has a line end in its text.
    assert [row.id for row in rows[:4]] == [f"train.csv:2#{n}" for n in range(3)] + [
        "train.csv:6#0"
    ]


def test_the_cache_has_them(tmp_path: Path, expected: Any) -> None:
    replace_declared_datasets([made(written(tmp_path, "json lines"))])
    manifest = cache_dataset("Tickets", tmp_path, False, tmp_path / "out")
    read = {f"{t}-{s}": read_instances(tmp_path / "out", t, s) for t in TASKS for s in SPLITS}
    assert plain(read) == expected
    assert manifest.dialogues == SIZES


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
    assert "emotion: 18 items without an answer are skipped (missing: skip)" in dataset.notes


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


# --- paths and patterns ---------------------------------------------------------------------------


def test_a_path_that_exists_is_no_pattern(tmp_path: Path, expected: Any) -> None:
    """Names of files and folders have brackets, quotes, blanks, braces and wildcards."""
    folder = tmp_path / "Ann's [1] {x} $data*"
    folder.mkdir()
    declaration = written(folder, "json lines")
    for split, place in list(declaration["files"].items()):
        declaration["files"][split] = str(Path(place).rename(folder / f"{split}[0]*.jsonl"))
        as_jsonl(folder / f"{split}0.jsonl", [])  # what a pattern of that name would find
    assert plain(instances(made(declaration))) == expected


def test_a_pattern_is_the_files_that_it_names(tmp_path: Path, expected: Any) -> None:
    folder = tmp_path / "a [1]"
    folder.mkdir()
    declaration = written(folder, "json lines")
    for number in range(3):
        as_jsonl(folder / f"train-{number}-of-3.jsonl", WORLD["train"][3 * number : 3 * number + 3])
    (folder / "._train-0-of-3.jsonl").write_bytes(b"\0of a Mac")
    declaration["files"]["train"] = f"{folder}/*train-?-of-*.jsonl"
    assert plain(instances(made(declaration))) == expected
    for pattern in ("train-?.jsonl", "nothing-*.jsonl", "b [1]/train-*.jsonl"):
        declaration["files"]["train"] = f"{folder}/{pattern}"
        with pytest.raises(DataError, match=r"No file matches the pattern in .*files\.train"):
            made(declaration)
    declaration["files"]["train"] = f"{folder}/train-[01]-of-3.jsonl"
    with pytest.raises(DataError, match=r"train-\[01\]-of-3\.jsonl: The file is missing"):
        made(declaration)


def test_a_file_is_of_one_split(tmp_path: Path) -> None:
    declaration = written(tmp_path, "json lines")
    (tmp_path / "copy.jsonl").symlink_to(declaration["files"]["train"])
    declaration["files"]["dev"] = str(tmp_path / "copy.jsonl")
    with pytest.raises(DataError, match=r"both .*files\.train and .*files\.dev"):
        made(declaration)
    declaration["files"]["dev"] = str(tmp_path / ("x" * 300))
    with pytest.raises(ValueError, match="a name of 300 bytes"):
        made(declaration)


# --- reading of files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "is_plain"),
    [
        (("text\tlabel", "this is SPLIT\tx", "that is SPLIT\ty"), True),
        (("text\tlabel", '"this" is SPLIT\tx', "that is SPLIT\ty"), False),
        (("\ttext\tlabel", "0\tthis is SPLIT\tx", "1\tthat is SPLIT\ty"), False),
        (("a, b, c, text\tlabel", "this is SPLIT\tx", "that is SPLIT\ty"), False),
    ],
    ids=["plain", "quotation marks", "index", "separator"],
)
def test_a_reading_that_the_header_does_not_tell_is_in_the_digest(
    lines: tuple[str, ...], is_plain: bool, tmp_path: Path
) -> None:
    """Earlier versions read such a file differently and had other instances."""
    files = {}
    for split in SPLITS:
        files[split] = tmp_path / f"{split}.tsv"
        files[split].write_text("".join(f"{line.replace('SPLIT', split)}\n" for line in lines))
    tasks = {"x": {"kind": "dialogue_classification", "label": "label"}}
    declaration = {
        "files": {split: str(file) for split, file in files.items()},
        "dialogue": {"text": lines[0].split("\t")[-2]},
        "tasks": tasks,
    }
    source = open_source(Declaration.model_validate(declaration), "datasets.Own")
    content = combine_digests(
        {f"{split}/0/": compute_sha256(file) for split, file in files.items()}
    )
    for memo in (None, tmp_path / "memo.json", tmp_path / "memo.json"):
        assert (source.compute_digest(memo) == content) == is_plain
    assert made(declaration).tasks["x"].labels == ("x", "y")


def test_labels_of_parquet_have_their_names(tmp_path: Path) -> None:
    names = library.ClassLabel(names=["no", "yes"])
    turns = library.List({"said": library.Value("string"), "polite": names})
    features = library.Features({"turns": turns, "label": names, "all": library.Sequence(names)})
    files = {}
    for split in SPLITS:
        rows = [
            {
                "turns": [{"said": f"{split} {n}", "polite": n % 2}, {"said": "ok", "polite": -1}],
                "label": n % 2,
                "all": [0, 1][: 1 + n % 2],
            }
            for n in range(6)
        ]
        files[split] = str(tmp_path / f"{split}.parquet")
        library.Dataset.from_list(rows, features=features).to_parquet(files[split])
    tasks = {
        "label": {"kind": "dialogue_classification", "label": "label"},
        "polite": {"kind": "utterance_classification", "label": "turns[].polite"},
        "all": {"kind": "multi_label", "label": "all"},
    }
    dialogue_section = {"turns": "turns", "text": "said"}
    dataset = made({"files": files, "dialogue": dialogue_section, "tasks": tasks})
    assert all(dataset.tasks[task].labels == ("no", "yes") for task in tasks)
    assert [row.target for row in instances(dataset)["polite-train"]] == [("no",), ("yes",)] * 3


@pytest.mark.parametrize("form", ["parquet", "saved"])
@pytest.mark.parametrize("named", [True, False])
def test_names_of_labels_are_in_the_digest(form: str, named: bool, tmp_path: Path) -> None:
    """Earlier versions read the numbers and had other labels."""
    label = library.ClassLabel(names=["no", "yes"]) if named else library.Value("int64")
    features = library.Features({"text": library.Value("string"), "label": label})
    rows = [{"text": f"text {n}", "label": n % 2} for n in range(4)]
    table = library.Dataset.from_list(rows, features=features)
    file = tmp_path / ("own.parquet" if form == "parquet" else "own")
    table.to_parquet(str(file)) if form == "parquet" else table.save_to_disk(str(file))
    task = {"kind": "dialogue_classification", "label": "label"}
    section = {"files": {"train": str(file)}, "shares": {"test": 0.2}}
    declaration = section | {"dialogue": {"text": "text"}, "tasks": {"x": task}}
    source = open_source(Declaration.model_validate(declaration), "datasets.Own")
    parts = sorted(f for f in file.rglob("*") if f.is_file()) if file.is_dir() else [file]
    names = {f: str(f.relative_to(file)) if file.is_dir() else "" for f in parts}
    content = combine_digests({f"train/0/{names[f]}": compute_sha256(f) for f in parts})
    for memo in (None, tmp_path / "memo.json", tmp_path / "memo.json"):
        assert (source.compute_digest(memo) == content) == (not named)


def test_lists_of_labels_in_cells_are_in_the_revision(tmp_path: Path) -> None:
    revisions = []
    for label in ("['glad', 'calm']", "glad;calm"):
        file = tmp_path / f"{len(revisions)}.csv"
        lines = [f'text {n},"{label if n % 2 else "calm"}"' for n in range(20)]
        file.write_text("\n".join(["text,moods", *lines]) + "\n")
        task = {"kind": "multi_label", "label": "moods"}
        section = {"files": {"train": str(file)}, "shares": {"test": 0.2}}
        dataset = made(section | {"dialogue": {"text": "text"}, "tasks": {"moods": task}})
        assert dataset.tasks["moods"].labels == ("calm", "glad")
        survey = dataset.reader.find.__self__.survey  # type: ignore[attr-defined]
        revisions.append(survey.cells)
    assert revisions == [["moods"], []]


def test_a_name_on_the_hub_needs_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    declaration = written(tmp_path, "json lines") | {"hub": "shop/nothing"}
    del declaration["files"]
    with pytest.raises(DataError, match="is not installed, but datasets on the hub"):
        made(declaration)


def test_a_cache_that_cannot_be_written_is_named_and_not_the_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(library.config, "HF_DATASETS_CACHE", tmp_path / "file" / "cache")
    declaration = written(tmp_path, "json lines") | {"hub": "shop/nothing"}
    del declaration["files"]
    with pytest.raises(
        DataError, match=r"file/cache: The cache of the package datasets cannot be .*HF_HOME"
    ):
        made(declaration)
