"""Data and config of the empathetic study: reading, leaks, and messages about refusals."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tasktransfer import datasets
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.data.recipes import Ingredients
from tasktransfer.designs import load_config
from tasktransfer.designs.empathetic.collect import make_labels, make_shared
from tasktransfer.designs.empathetic.frames import FRAMES
from tasktransfer.designs.empathetic.recipes import prepend_labels, split_label
from tasktransfer.designs.empathetic.sources import tiny
from tasktransfer.designs.empathetic.sources.additional_datasets import (
    ADDITIONAL_DATASETS,
    DAILY_REPLIES,
    REPLY_PAIRS,
)
from tasktransfer.designs.empathetic.sources.dialogues import EMPATHETIC_DIALOGUES, read_dialogues
from tasktransfer.errors import ConfigError, DataError, TrainingError
from tasktransfer.fits import fast_text, get_learner, load_classifier
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata, build_frame, write_frame
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.checks import find_instance_problem

PRESETS = Path(__file__).resolve().parents[2] / "workflow" / "presets"
OPEN = EMPATHETIC_DIALOGUES.reader.open


@pytest.fixture(scope="module", autouse=True)
def known() -> None:
    for dataset in (EMPATHETIC_DIALOGUES, *ADDITIONAL_DATASETS):
        datasets.add_dataset(dataset)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    tiny.write_release(tmp_path, 0, 200)
    return tmp_path


def afraid(world: Path) -> Path:
    return world / "empathetic_dialogues" / "by_emotion" / "afraid.csv"


def changed(file: Path, change: Callable[[list[list[str]]], object]) -> None:
    with file.open(newline="") as lines:
        rows = list(csv.reader(lines))
    change(rows)
    with file.open("w", newline="") as lines:
        csv.writer(lines).writerows(rows)


# --- reading ------------------------------------------------------------------------------------


def test_instances_have_up_to_four_utterances_and_the_speaker_begins(world: Path) -> None:
    release = OPEN(world, False)
    for task in release.tasks:
        card = EMPATHETIC_DIALOGUES.tasks[task]
        for split in SPLITS:
            rows = list(release.instances(task, split))
            assert rows
            assert [find_instance_problem(card, row) for row in rows] == [None] * len(rows)
    both = list(release.instances("next_utterance", "train"))
    listener = list(release.instances("listener_reply", "train"))
    assert [row.id for row in both if row.query["side"] == "listener"] == [r.id for r in listener]
    assert [row.id for row in release.instances("emotion_of_context", "train")] == [
        row.id for row in both
    ]
    assert max(row.context.count("<SOC>") for row in both) <= 3


def test_splits_share_no_dialogue(world: Path) -> None:
    release = OPEN(world, False)
    names = [{row.dialogue_id for row in release.instances("next_utterance", s)} for s in SPLITS]
    assert not names[0] & names[2]
    assert not names[0] & names[1]


def test_contexts_hold_neither_situation_nor_label(world: Path) -> None:
    """Both contain a marker word that occurs nowhere else."""
    for file in afraid(world).parent.glob("*.csv"):

        def poison(rows: list[list[str]]) -> None:
            for row in rows:
                row[3] = f"{row[3]} POISON" if row[1] == "situation" else row[3]

        changed(file, poison)
    release = OPEN(world, False)
    assert any("POISON" in row.context for row in release.instances("emotion", "train"))
    for task in ("next_utterance", "listener_reply", "emotion_of_context"):
        for split in SPLITS:
            for row in release.instances(task, split):
                assert "POISON" not in row.context
                assert "POISON" not in row.target[0]
                assert row.query["emotion"] not in row.context.split()


def test_a_situation_in_two_splits_is_in_no_classifier_data(world: Path) -> None:
    dialogues = read_dialogues(world / "empathetic_dialogues")
    train = next(d for d in dialogues if d.split == "train" and d.emotion == "afraid")
    test = next(d for d in dialogues if d.split == "test" and d.emotion == "afraid")

    def copy(rows: list[list[str]]) -> None:
        for row in rows:
            if row[0] == test.name and row[1] == "situation":
                row[3] = train.situation.upper()

    changed(afraid(world), copy)
    release = OPEN(world, False)
    for split in SPLITS:
        ids = {row.id for row in release.instances("emotion", split)}
        assert not ids & {train.name, test.name}


def test_replies_of_other_dialogues(tmp_path: Path) -> None:
    assert DAILY_REPLIES.tiny and DAILY_REPLIES.tiny.write
    DAILY_REPLIES.tiny.write(tmp_path, 0, 120)
    release = DAILY_REPLIES.reader.open(tmp_path, False)
    assert release.synthetic
    rows = list(release.instances("daily_next_utterance", "train"))
    assert rows and all(row.context and row.target[0] for row in rows)


# --- labels before ------------------------------------------------------------------------------


def ingredients(world: Path, out: Path, **settings: object) -> Ingredients:
    cache_dataset("EmpatheticDialogues", world, False, out)

    def rank(task: str, instances: list[Instance]) -> list[tuple[str, ...]]:
        return [("best", "second one", "third") for _ in instances]

    chosen = {"k": 2, "task": "emotion", **settings}
    return Ingredients((out,), (rank,), (), ("listener_reply",), chosen)


def test_the_best_label_stands_first_and_last_in_the_papers_code(
    world: Path, tmp_path: Path
) -> None:
    out = tmp_path / "cache"
    cache_dataset("EmpatheticDialogues", world, False, out)
    plain = read_instances(out, "listener_reply", "test")[0]
    for settings, words in (({}, "best second one"), ({"best_last": True}, "second one best")):
        row = prepend_labels(ingredients(world, out, **settings))["listener_reply", "test"][0]
        assert row.context == f"{words} {plain.context}"
        assert row.target == plain.target
    both = prepend_labels(ingredients(world, out, candidates=True))["listener_reply", "test"][0]
    assert both.target == (f"best second one {plain.target[0]}",)
    assert both.query["prefix"] == "best second one"


def test_more_labels_than_there_are_are_refused(world: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"labels is 4, but emotion has only 3 labels"):
        prepend_labels(ingredients(world, tmp_path / "cache", k=4))


def test_names_of_newsgroups_become_words() -> None:
    assert split_label("comp.sys.mac.hardware") == "sys mac hardware"
    assert split_label("School Life") == "school life"


# --- bad input ----------------------------------------------------------------------------------


def edited(change: Callable[[list[list[str]]], object]) -> Callable[[Path], object]:
    """Return a damage of the rows about the emotion afraid."""
    return lambda world: changed(afraid(world), change)


def in_two_splits(world: Path) -> None:
    with (world / "empathetic_dialogues" / "split.csv").open("a") as lines:
        lines.write("tiny:0,test\n")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (
            lambda world: afraid(world).unlink(),
            r"afraid\.csv: The file is missing. Copy the whole release again",
        ),
        (
            lambda world: afraid(world).with_name("bored.csv").write_text("x"),
            r"bored\.csv: The file's name 'bored' is not one of the 32 emotions",
        ),
        (in_two_splits, r"split\.csv:202: .* dialogue tiny:0 to the split test, .*\. Keep one of"),
        (
            edited(lambda rows: rows[1].append("more")),
            r"afraid\.csv:2: The line has 5 columns, .* names 4",
        ),
        (
            edited(lambda rows: rows[2].__setitem__(3, "  ")),
            r"afraid\.csv:3: The text is empty. Write the utterance",
        ),
        (
            edited(lambda rows: rows[2].__setitem__(2, "listener")),
            r":3: The actor is 'listener', but it must be 'speaker'",
        ),
    ],
)
def test_a_damaged_release_is_refused(
    world: Path, damage: Callable[[Path], object], told: str
) -> None:
    damage(world)
    with pytest.raises(DataError, match=told):
        OPEN(world, False)


def test_tables_of_dialogues_are_kept_where_they_are_gone_and_not_where_they_are_damaged(
    world: Path, tmp_path: Path
) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()

    metadata = Metadata("s", "0", True, 1)

    def make(release: Path) -> dict[str, list[Any]]:
        study: Any = SimpleNamespace(tables=str(tables), get_release=lambda _: str(release))
        frames = Frames(study, {}, metadata)
        return {"labels": make_labels(frames), "shared": make_shared(frames)}

    told = make(world)
    assert sum(dialogues for _, dialogues, _ in told["labels"]) == 200
    for frame in (frame for frame in FRAMES if frame.name in told):
        rows = build_frame(told[frame.name], frame.columns)
        write_frame(tables / f"{frame.name}.parquet", rows, frame.columns, metadata)
    assert make(tmp_path / "elsewhere") == told
    shutil.copy(afraid(world), afraid(world).with_name("angry.csv"))  # doubled
    with pytest.raises(DataError, match=r"angry\.csv: Dialogue tiny:0 is also in .*afraid\.csv"):
        make(world)


def test_a_folder_of_pairs_without_its_files(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"train\.tsv: The file is missing. Add train\.tsv, dev\.tsv"
    ):
        REPLY_PAIRS.reader.open(tmp_path, False)
    for split in SPLITS:
        (tmp_path / f"{split}.tsv").write_text("hello\thi\nonly one\n")
    with pytest.raises(DataError, match=r":2: The line 'only one' does not consist of"):
        REPLY_PAIRS.reader.open(tmp_path, False)


DEMO = PRESETS / "empathetic-demo.yaml"


def changed_model(name: str, **changes: object) -> list[dict[str, object]]:
    """Return the demo's models, one of them with other values of its own or of its architecture."""
    models = yaml.safe_load(DEMO.read_text())["models"]
    models.append({**next(m for m in models if m["name"] == "reader"), "name": "reader2"})
    (model,) = (m for m in models if m["name"] == name)
    for key, value in changes.items():
        (model if key in model else model["architecture"])[key] = value
    return models


CONFIGS: list[tuple[dict[str, object], str]] = [
    ({"evaluation": {"pools": ["R"]}}, r"pools\[0\]: 'R' needs reply pairs, but data\.releases\.R"),
    ({"retrieval": {"methods": ["emoprepend-33"]}}, r"methods\[0\]: .* 33 labels, .* only 32"),
    ({"retrieval": {"methods": ["topicprepend-11"]}}, r"'topicprepend-11' prepends 11 .* only 10"),
    ({"retrieval": {"methods": ["bsae"]}}, r"The method 'bsae' is unknown\. Did you mean 'base'\?"),
    ({"retrieval": {"model": "writer"}}, r"retrieval\.model: 'writer' has family encoder_dec"),
    ({"classifier": None}, r"'ensemble-tuned' needs the section classifier"),
    ({"generation": {"methods": ["base-large"]}}, r"'base-large' needs generation\.large_model"),
    (
        {"evaluation": {"limit": 19}},
        r"limit: .* 19, which is less than evaluation\.block \(20\)",
    ),
    (
        {"retrieval": {"methods": ["base"]}, "generation": {"methods": ["base"]}},
        r"controls: gold is a control for emoprepend-1, which no setting has",
    ),
    ({"retrieval": None, "controls": ["words"]}, r"controls: words is a control for retrieval"),
    (
        {"models": changed_model("retriever-beside-reader", second_encoder="reader2")},
        r"retrieval\.ensemble: 'retriever-beside-reader' has the second_encoder 'reader2'",
    ),
    (
        {"models": changed_model("retriever-beside-reader", layers=2)},
        r"retrieval\.ensemble: 'retriever-beside-reader' is Base .* its architecture differs",
    ),
    (
        {"models": changed_model("retriever", positions=64)},
        r"'emoprepend-1' reads 64 tokens and 1 labels, but retriever has 64 positions\. Raise",
    ),
]


@pytest.mark.parametrize(("change", "said"), CONFIGS)
def test_configs_that_cannot_be(change: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config(DEMO, change)


EMOTION = EMPATHETIC_DIALOGUES.tasks["emotion"]


def labelled(count: int, words: int, labels: int, more: str = "") -> list[Instance]:
    """Return texts of one of ``words`` words, which have one of ``labels`` emotions."""
    return [
        Instance(f"{i}", f"{i}", "emotion", f"w{i % words}{more}", 0, {}, (),
                 (EMOTION.labels[i % labels],))
        for i in range(count)
    ]  # fmt: skip


def test_a_classifier_that_diverges_writes_nothing() -> None:
    rows = labelled(60, words=7, labels=3)
    with pytest.raises(TrainingError, match=r"loss of fastText is NaN with lr 1e\+30.*Reduce lr"):
        fast_text.fit_fasttext(EMOTION, rows, None, {"lr": 1e30}, 0)


def test_a_classifier_survives_its_folder(tmp_path: Path) -> None:
    rows = labelled(60, words=3, labels=3, more=" <SOC> x")
    first = fast_text.fit_fasttext(EMOTION, rows, None, {}, 0)
    first.save(tmp_path)
    again = fast_text.load_fasttext(tmp_path)
    probable = first.predict_probabilities(rows, None)
    assert (again.predict_probabilities(rows, None) == probable).all()
    assert [EMOTION.labels[i] for i in probable.argmax(1)] == [row.target[0] for row in rows]
    assert (fast_text.fit_fasttext(EMOTION, rows, None, {}, 0).output == first.output).all()
    (tmp_path / fast_text.SETTINGS).write_text("{")
    with pytest.raises(DataError, match="The classifier cannot be read"):
        fast_text.load_fasttext(tmp_path)


def test_a_classifier_of_other_labels_is_refused(tmp_path: Path) -> None:
    rows = labelled(20, words=2, labels=2)
    fast_text.fit_fasttext(EMOTION, rows, None, {}, 0).save(tmp_path)
    learner = get_learner("fasttext", {})
    assert load_classifier(learner, tmp_path, EMOTION)
    other = replace(EMOTION, labels=("glad", *EMOTION.labels[1:]))
    told = rf"{tmp_path}: The classifier's 32 labels differ from .*'glad' is in one"
    with pytest.raises(DataError, match=told):
        load_classifier(learner, tmp_path, other)
