"""The tiny world: equal bytes everywhere, the release's format, and the documented truth."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from releases import load_release, read_instances
from tasktransfer.datasets import ALL_TASKS, TINY_PARTS
from tasktransfer.datasets.dailydialog import tiny_words as daily_words
from tasktransfer.datasets.feta.tiny_world import Claim, compute_portion_sizes
from tasktransfer.datasets.friends import tiny_words as friends_words
from tasktransfer.datasets.tiny_world import (
    DEFAULT_DIALOGUES,
    GENERATOR_VERSION,
    HELPFUL,
    MINIMUM_DIALOGUES,
    UNRELATED,
    format_revision,
    generate_releases,
)
from tasktransfer.errors import ConfigError, DataError

DATASETS = ("DailyDialog", "Friends")
SPLITS = ("train", "dev", "test")

# The default world's bytes. A change here needs a higher GENERATOR_VERSION: results of the old
# world would otherwise be taken for results of the new one.
PINNED_VERSION = 1
PINNED_DIGEST = "e396fbc1550b43633f55d751a6078cf82ed6efcde2acccb32a624dfa862d5d24"


def digest(folder: Path) -> str:
    """Return a digest of every file's name and bytes under ``folder``."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            total.update(f"{path.relative_to(folder).as_posix()}\n".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "tiny"
    generate_releases(folder)
    return folder


def raw(world: Path, dataset: str) -> dict[str, Any]:
    path = world / f"TLiDB_{dataset}" / f"TLiDB_{dataset}.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def ids(world: Path, dataset: str, name: str) -> list[str]:
    return (world / f"TLiDB_{dataset}" / f"TTiDB_{name}_ids.txt").read_text().splitlines()


def spoken(instances: list[Any]) -> set[str]:
    """Return the words of the instances' contexts, without punctuation."""
    return {word.strip(".,?") for item in instances for word in item.context.split()}


# --- identity -------------------------------------------------------------------------------------


def test_bytes_are_pinned_to_the_version(world: Path) -> None:
    assert (GENERATOR_VERSION, digest(world)) == (PINNED_VERSION, PINNED_DIGEST)


def test_same_bytes_in_another_process_with_another_hash_seed(world: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; "
        "from tasktransfer.datasets.tiny_world import generate_releases; "
        "generate_releases(Path(sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "LC_ALL": "C"}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "again")], check=True, env=environment
    )
    assert digest(tmp_path / "again") == digest(world)


def test_seed_and_size_change_bytes_and_revision(world: Path, tmp_path: Path) -> None:
    generate_releases(tmp_path / "seed", seed=1)
    generate_releases(tmp_path / "size", dialogues=150)
    folders = (world, tmp_path / "seed", tmp_path / "size")
    assert len({digest(folder) for folder in folders}) == 3
    assert (
        len(
            {
                format_revision(0, DEFAULT_DIALOGUES),
                format_revision(1, DEFAULT_DIALOGUES),
                format_revision(0, 150),
            }
        )
        == 3
    )
    assert json.loads((world / "tiny_world.json").read_text())["revision"] == format_revision(
        0, DEFAULT_DIALOGUES
    )


@pytest.mark.parametrize(
    ("seed", "dialogues"),
    [(-1, 240), (True, 240), (0.5, 240), (0, MINIMUM_DIALOGUES - 1), (0, 240.0)],
)
def test_impossible_parameters_are_refused(tmp_path: Path, seed: Any, dialogues: Any) -> None:
    with pytest.raises(ConfigError, match="tiny world"):
        format_revision(seed, dialogues)
    with pytest.raises(ConfigError, match="tiny world"):
        generate_releases(tmp_path / "world", seed=seed, dialogues=dialogues)
    assert not list(tmp_path.iterdir())


# --- writing --------------------------------------------------------------------------------------


def test_replaces_its_own_folder_and_no_other(tmp_path: Path) -> None:
    mine, other, empty = tmp_path / "mine", tmp_path / "other", tmp_path / "empty"
    generate_releases(mine, seed=3)
    generate_releases(mine, seed=4)
    generate_releases(tmp_path / "fresh", seed=4)
    assert digest(mine) == digest(tmp_path / "fresh")
    empty.mkdir()
    generate_releases(empty)
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="other"):
        generate_releases(other)
    assert (other / "thesis.txt").read_text() == "years of work"
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "fresh", "empty", "other"}


def test_failure_leaves_the_old_world_and_no_scraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "world"
    generate_releases(folder, seed=3)
    before = digest(folder)

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("tasktransfer.datasets.feta.tiny_world._write_text", broken)
    with pytest.raises(OSError, match="disk full"):
        generate_releases(folder, seed=4)
    assert digest(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["world"]


# --- format ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialogues", [MINIMUM_DIALOGUES, DEFAULT_DIALOGUES, 360])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reader_accepts_every_task_and_split(tmp_path: Path, seed: int, dialogues: int) -> None:
    generate_releases(tmp_path / "world", seed=seed, dialogues=dialogues)
    for dataset in DATASETS:
        release = load_release(tmp_path / "world", dataset)
        assert release.synthetic
        assert set(release.tasks) == set(TINY_PARTS[dataset].sizes)
        for task in release.tasks:
            for split in SPLITS:
                few = read_instances(release, task, split, True)
                full = read_instances(release, task, split, False)
                assert few and len(few) <= len(full)
                assert len({item.id for item in full}) == len(full)


def test_metadata_is_the_release_s(world: Path, shared: Path) -> None:
    for dataset in DATASETS:
        tasks = raw(world, dataset)["metadata"]["task_metadata"]
        path = shared / "feta" / f"TLiDB_{dataset}" / f"TLiDB_{dataset}.json"
        with path.open(encoding="utf-8") as file:
            metadata = json.load(file)["metadata"]
        assert metadata["task_metadata"] == tasks
        assert metadata["tasks"] == list(tasks)


def fields(value: Any, path: str = "") -> set[str]:
    """Yield the paths and types of everything in a JSON value."""
    if isinstance(value, dict):
        return set().union(*(fields(item, f"{path}.{key}") for key, item in value.items()))
    if isinstance(value, list):
        return set().union(*(fields(item, f"{path}[]") for item in value))
    return {f"{path}:{type(value).__name__}"}


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_field_is_one_of_the_release(world: Path, shared: Path, dataset: str) -> None:
    path = shared / "feta" / f"TLiDB_{dataset}" / f"TLiDB_{dataset}.json"
    with path.open(encoding="utf-8") as file:
        real = fields(json.load(file)["data"])
    assert fields(raw(world, dataset)["data"]) == real


@pytest.mark.parametrize("dataset", DATASETS)
def test_splits_part_the_dialogues(world: Path, dataset: str) -> None:
    everything = [item["dialogue_id"] for item in raw(world, dataset)["data"]]
    train, dev, test = (ids(world, dataset, split) for split in SPLITS)
    assert sorted(train + dev + test) == sorted(everything)
    assert len(set(everything)) == DEFAULT_DIALOGUES
    for split, full in (("train", train), ("dev", dev)):
        few = ids(world, dataset, f"0.1_percent_few_shot_{split}")
        assert set(few) < set(full)
    assert compute_portion_sizes(240) == {
        "few_train": 120, "rest_train": 24, "few_dev": 30, "rest_dev": 6, "test": 60,
    }  # fmt: skip


@pytest.mark.parametrize("dataset", DATASETS)
def test_dialogues_are_short(world: Path, dataset: str) -> None:
    vocabulary: set[str] = set()
    for dialogue in raw(world, dataset)["data"]:
        assert 4 <= len(dialogue["dialogue"]) <= 6
        for turn in dialogue["dialogue"]:
            words = turn["utterance"].strip(".?").split()
            assert 3 <= len(words) <= 7, turn
            vocabulary.update(words)
    assert len(vocabulary) < 350


def test_details_that_readers_trip_over(world: Path) -> None:
    daily, friends = raw(world, "DailyDialog")["data"], raw(world, "Friends")["data"]
    assert all(item["dialogue"][0]["turn_id"] == "1" for item in daily)
    assert all(item["dialogue"][0]["turn_id"] == 0 for item in friends)
    assert any(not turn["speakers"] for item in friends for turn in item["dialogue"])
    questions = [
        q for item in friends for b in item.get("question_answering", ()) for q in b["qas"]
    ]
    assert any(answer["is_speaker"] for q in questions for answer in q["answers"])
    assert any(len(q["answers"]) > 1 for q in questions)
    partitions = {item["dialogue_metadata"]["original_data_partition"] for item in daily}
    assert partitions == set(SPLITS)
    impossible = [
        q["answers"][0] == {"text": "Impossible answer", "answer_start": -1}
        for item in daily
        for b in item.get("causal_emotion_span_extraction", ())
        for q in b["qas"]
    ]
    assert 0.3 < sum(impossible) / len(impossible) < 0.8
    triples = [
        tuple(t["relations"])
        for item in friends
        for b in item.get("relation_extraction", ())
        for t in b["relation_triples"]
    ]
    assert ("unanswerable",) in triples and any(len(relations) > 1 for relations in triples)


# --- the planted truth ----------------------------------------------------------------------------

FEW_TRAIN_LEAST = {"personality_detection": 40, "topic_classification": 60}


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_task_has_samples_to_learn_from(world: Path, dataset: str) -> None:
    release = load_release(world, dataset)
    for task in release.tasks:
        sizes = [len(read_instances(release, task, split, True)) for split in SPLITS]
        assert FEW_TRAIN_LEAST.get(task, 80) <= sizes[0] <= 250, (task, sizes)
        assert sizes[1] >= 10 and sizes[2] >= 20, (task, sizes)


@pytest.mark.parametrize("dataset", DATASETS)
def test_no_label_is_nearly_always_right(world: Path, dataset: str) -> None:
    release = load_release(world, dataset)
    for task in release.tasks:
        targets = Counter(item.target for item in read_instances(release, task, "test", True))
        assert targets.most_common(1)[0][1] / targets.total() < 0.7, (task, targets)


def words_of(pair: Claim) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """Return mood words with their labels as source and as target of a helpful pair."""
    if pair.dataset == "DailyDialog":
        return daily_words.MOOD_WORDS, daily_words.EMOTION_OF, daily_words.TOPIC_OF
    return friends_words.MOOD_WORDS, friends_words.MELD_OF, friends_words.EMORY_OF


@pytest.mark.parametrize("pair", HELPFUL, ids=lambda pair: pair.target)
def test_helpful_source_holds_the_words_that_the_target_lacks(world: Path, pair: Claim) -> None:
    release = load_release(world, pair.dataset)
    moods = words_of(pair)[0]
    rare = {word for known in moods.values() for word in known.rare}
    common = {word for known in moods.values() for word in known.common}
    source = spoken(read_instances(release, pair.source, "train", True))
    target = spoken(read_instances(release, pair.target, "train", True))
    tested = spoken(read_instances(release, pair.target, "test", True))
    assert rare | common <= source
    assert common <= target and not rare & target
    assert len(rare & tested) >= 0.6 * len(rare)


@pytest.mark.parametrize("pair", HELPFUL, ids=lambda pair: pair.target)
def test_one_mapping_decides_both_labels(world: Path, pair: Claim) -> None:
    release = load_release(world, pair.dataset)
    moods, source_names, target_names = words_of(pair)
    mood_of = {w: mood for mood, known in moods.items() for w in known.common + known.rare}
    for task, names in ((pair.source, source_names), (pair.target, target_names)):
        for split in SPLITS:
            for item in read_instances(release, task, split, False):
                said = spoken([item]) & set(mood_of)
                assert len(said) <= 1, "two mood words in one dialogue would tell moods apart"
                right = names[mood_of[said.pop()]] if said else "neutral"
                assert item.target == (right,)


@pytest.mark.parametrize("pair", UNRELATED, ids=lambda pair: pair.source)
def test_unrelated_source_shares_no_cue_with_the_target(world: Path, pair: Claim) -> None:
    release = load_release(world, pair.dataset)
    helpful = next(known for known in HELPFUL if known.target == pair.target)
    moods = words_of(helpful)[0]
    mood_of = {w: mood for mood, known in moods.items() for w in known.common + known.rare}
    seen = Counter(
        (item.target[0], mood_of[word])
        for item in read_instances(release, pair.source, "train", False)
        for word in spoken([item]) & set(mood_of)
    )
    labels, total = Counter[str](), sum(seen.values())
    counted = Counter[str]()
    for (label, mood), count in seen.items():
        labels[label] += count
        counted[mood] += count
    # Mean square contingency of label and mood: near 0 when they are drawn apart, 1 when tied.
    phi = sum(
        (seen[label, mood] - labels[label] * counted[mood] / total) ** 2
        / (labels[label] * counted[mood] / total)
        for label in labels
        for mood in counted
    ) / (total * (min(len(labels), len(counted)) - 1))
    assert phi < 0.15


def test_word_lists_are_disjoint() -> None:
    def of(moods: dict[str, Any]) -> list[tuple[str, ...]]:
        return [group for known in moods.values() for group in (known.common, known.rare)]

    daily = [
        *of(daily_words.MOOD_WORDS),
        *daily_words.ACT_WORDS.values(),
        *daily_words.TAILS.values(),
        daily_words.COURTESY_WORDS,
        daily_words.THINGS,
        daily_words.TROUBLE_VERBS,
        daily_words.CALM_VERBS,
        daily_words.OBJECTS,
        daily_words.HEADS,
    ]
    friends = [
        *of(friends_words.MOOD_WORDS),
        *friends_words.NICKNAMES.values(),
        *friends_words.TRAITS.values(),
        friends_words.PURCHASES,
        tuple(friends_words.KINSHIP),
        friends_words.FRIENDS + friends_words.PASSERS_BY,
    ]
    for lists in (daily, friends):
        assert all(len(set(words)) == len(words) for words in lists)
        assert not [a for a, b in combinations(lists, 2) if set(a) & set(b)]


def test_pairs_name_tasks_of_their_dataset() -> None:
    known = {(task.dataset, task.name) for task in ALL_TASKS}
    for pair in (*HELPFUL, *UNRELATED):
        assert (pair.dataset, pair.source) in known and (pair.dataset, pair.target) in known
        assert pair.why.endswith(".")
    assert {pair.dataset for pair in HELPFUL} == set(DATASETS)
    assert {pair.target for pair in HELPFUL} == {pair.target for pair in UNRELATED}
