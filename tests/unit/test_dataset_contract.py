"""The contract of every dataset, tested for the package's and for an external one.

To test your own dataset, add a function to ``WRITERS`` that writes a small release of it. Those of
the package are read from their part of the tiny world.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from outside_dataset import ERRANDS
from outside_dataset.release import write_release
from tasktransfer import metrics
from tasktransfer.data import stats
from tasktransfer.data.cache import cache_dataset, read_instances, read_manifest
from tasktransfer.datasets import DATASETS, PACKAGE_DATASETS, find_dataset_problems
from tasktransfer.datasets.dataset import Dataset, Release
from tasktransfer.datasets.tiny_world import GENERATORS, MINIMUM_DIALOGUES
from tasktransfer.designs.empathetic.sources.dialogues import EMPATHETIC_DIALOGUES
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance, Task
from tasktransfer.tasks.checks import find_instance_problem
from tasktransfer.tasks.compose import (
    build_answer_text,
    build_encoder_text,
    build_option_texts,
    build_prompt_parts,
    parse_answer,
)

Write = Callable[[Path], object]


@dataclass(frozen=True)
class Case:
    """A dataset, the writer of a small release of it, its folder, and the release's tasks."""

    dataset: Dataset
    write: Write
    folder: Path
    tasks: tuple[str, ...]

    def open(self, few_sample: bool) -> Release:
        return self.dataset.reader.open(self.folder, few_sample)


def in_tiny_world(dataset: Dataset) -> tuple[Dataset, Write, tuple[str, ...]]:
    """Return a case of a dataset with a part in the tiny world."""
    tiny = dataset.tiny
    assert tiny is not None
    tasks = tuple(task for task in dataset.tasks if task in tiny.sizes)
    write = tiny.write or GENERATORS[dataset.name]
    return dataset, lambda folder: write(folder, 0, MINIMUM_DIALOGUES), tasks


WRITERS: dict[str, tuple[Dataset, Write, tuple[str, ...]]] = {
    **{dataset.name: in_tiny_world(dataset) for dataset in PACKAGE_DATASETS},
    EMPATHETIC_DIALOGUES.name: in_tiny_world(EMPATHETIC_DIALOGUES),
    ERRANDS.name: (ERRANDS, write_release, tuple(ERRANDS.tasks)),
}


@pytest.fixture(scope="module", params=list(WRITERS))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    dataset, write, tasks = WRITERS[request.param]
    folder = tmp_path_factory.mktemp(dataset.name)
    write(folder)
    return Case(dataset, write, folder, tasks)


# --- cards and sizes ----------------------------------------------------------------------------


def test_name_cards_and_sizes_fit_together(case: Case) -> None:
    others = [other for other in DATASETS.values() if other is not case.dataset]
    assert list(find_dataset_problems(case.dataset, others)) == []


def test_every_task_has_a_size(case: Case) -> None:
    assert case.dataset.sizes.keys() == case.dataset.tasks.keys()
    for task, size in case.dataset.sizes.items():
        assert min(size.train, size.dev, size.test, size.tokens) > 0
        card = case.dataset.tasks[task]
        assert size.sequences == (card.classes if card.kind == "multiple_choice" else 1)


def test_cards_say_where_the_task_comes_from(case: Case) -> None:
    for card in case.dataset.cards:
        assert re.search(r"\b(19|20)\d\d\b", card.citation)
        assert card.licence and card.description.endswith(".")


def test_generated_answers_can_be_read_back(case: Case) -> None:
    """Two subwords per word and the end token; a lower limit would truncate gold answers."""
    for card in case.dataset.cards:
        words = [card.prompt.label_words.get(label, label) for label in card.labels]
        longest = max((len(word.split()) for word in words), default=1)
        assert card.prompt.max_answer_tokens >= 2 * longest + 1
        if card.kind == "multi_label":
            assert not any(card.prompt.joiner.strip() in word.split() for word in words)


# --- the reader ---------------------------------------------------------------------------------


def test_an_absent_release_is_reported_with_where_was_looked(case: Case, tmp_path: Path) -> None:
    for ask in (
        case.dataset.reader.find,
        lambda folder: case.dataset.reader.revision(folder, None),
        lambda folder: case.dataset.reader.open(folder, True),
    ):
        with pytest.raises(DataError, match=re.escape(str(tmp_path))):
            ask(tmp_path)


def test_the_revision_is_of_every_file_and_of_no_place(case: Case, tmp_path: Path) -> None:
    reader = case.dataset.reader
    case.write(tmp_path)
    before = reader.revision(tmp_path, None)
    assert before == reader.revision(case.folder, None) == case.open(few_sample=True).revision
    files = sorted(file for file in tmp_path.rglob("*") if file.is_file())
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        assert reader.revision(tmp_path, None) != before, f"{file} does not count"
        file.write_bytes(content)
    files[0].unlink()
    with pytest.raises(DataError, match=re.escape(files[0].name)):
        reader.revision(tmp_path, None)


@pytest.mark.parametrize("few_sample", [True, False])
def test_every_instance_fits_its_card_and_comes_twice_the_same(
    case: Case, few_sample: bool
) -> None:
    first, second = case.open(few_sample), case.open(few_sample)
    assert first.tasks == case.tasks
    assert first.dialogues.keys() == set(SPLITS)
    for card, split, instances in each_split(case, first):
        assert instances, f"{card.name} has no instance on {split}"
        assert list(second.instances(card.name, split)) == instances
        assert [find_instance_problem(card, row) for row in instances] == [None] * len(instances)
        assert len({row.dialogue_id for row in instances}) <= first.dialogues[split]


def test_splits_share_no_dialogue_and_few_samples_are_part_of_the_whole(case: Case) -> None:
    few, full = case.open(few_sample=True), case.open(few_sample=False)
    for task in case.tasks:
        ids = {s: {row.dialogue_id for row in full.instances(task, s)} for s in SPLITS}
        assert len(set().union(*ids.values())) == sum(map(len, ids.values()))
        assert list(few.instances(task, "test")) == list(full.instances(task, "test"))
        for split in ("train", "dev"):
            assert {row.dialogue_id for row in few.instances(task, split)} <= ids[split]


def test_what_is_missing_is_named(case: Case) -> None:
    task = case.dataset.cards[0].name
    assert repr(task) in case.dataset.reader.missing(task, None, True)
    text = case.dataset.reader.missing(task, ("dev", "test"), True)
    assert repr(task) in text and "in the dev and test split" in text


# --- texts from the instances -------------------------------------------------------------------


def test_the_cache_gives_the_instances_back(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DATASETS, case.dataset.name, case.dataset)
    release, out = case.open(few_sample=True), tmp_path / "out"
    assert cache_dataset(case.dataset.name, case.folder, True, out) == read_manifest(out)
    for card, split, instances in each_split(case, release):
        assert read_instances(out, card.name, split) == instances
    assert len(stats.count_instances_by_split([out])) == 3 * len(case.tasks)
    turns = len(list(release.turns))
    counted = [
        row for row in stats.compute_length_distributions([out]) if row["unit"] == "utterance_words"
    ]
    assert sum(int(row["count"]) for row in counted) == turns


def test_every_instance_can_be_put_to_every_family_and_scored(case: Case) -> None:
    for card, _, instances in each_split(case, case.open(few_sample=True)):
        for row in instances:
            if card.kind == "multiple_choice":
                assert len(build_option_texts(card, row)) == card.classes
            else:
                assert build_encoder_text(card, row)[1] == row.context
            for output in list(range(len(card.outputs))) or [None]:
                assert build_prompt_parts(card, row, output)[1] == row.context
                read_back = parse_answer(card, build_answer_text(card, row, output))
                assert set(read_back) <= set(row.target)
        answers = [row.target[:1] if card.kind == "span" else row.target for row in instances]
        right = [row.target for row in instances]
        assert (
            metrics.compute_task_score(card, metrics.evaluate_predictions(card, answers, right)) > 0
        )


def test_a_part_of_the_tiny_world_is_as_large_as_it_says(case: Case) -> None:
    tiny = case.dataset.tiny
    if tiny is None:
        pytest.skip(f"{case.dataset.name} has no part in the tiny world")
    for few_sample in (True, False):
        release = case.open(few_sample)
        assert release.synthetic and set(release.tasks) == tiny.sizes.keys()
        for task in release.tasks:
            forecast = case.dataset.count_tiny_instances(
                task, "train", MINIMUM_DIALOGUES, few_sample=few_sample
            )
            assert forecast == pytest.approx(len(list(release.instances(task, "train"))), rel=0.25)


def each_split(case: Case, release: Release) -> list[tuple[Task, str, list[Instance]]]:
    """Yield (card, split, instances) for everything in a release."""
    return [
        (case.dataset.tasks[task], split, list(release.instances(task, split)))
        for task in release.tasks
        for split in SPLITS
    ]
