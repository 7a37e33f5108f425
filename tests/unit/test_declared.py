"""Declared datasets: sixteen formats and structures read to equal instances, and their files."""

from __future__ import annotations

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
    WORLD,
    as_jsonl,
    instances,
    made,
    plain,
    written,
)

from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.datasets import replace_declared_datasets
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.datasets.declared.source import open_source
from tasktransfer.datasets.file_digests import combine_digests
from tasktransfer.errors import DataError
from tasktransfer.files import compute_sha256
from tasktransfer.tasks.card import SPLITS


@pytest.fixture(autouse=True)
def _no_declared_datasets() -> Iterator[None]:
    yield
    replace_declared_datasets(())


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
