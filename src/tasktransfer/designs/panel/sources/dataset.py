"""The study's datasets: all domains, the labeller's pairs and the rated sets, one task each.

They are one dataset, because one encoder is trained on them together. A release may have only some
of them; the config determines which ones a study needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tasktransfer.datasets.dataset import (
    Dataset,
    Reader,
    Release,
    TaskSize,
    describe_missing_splits,
)
from tasktransfer.datasets.disjoint_splits import check_disjoint_splits
from tasktransfer.datasets.file_digests import compute_files_digest
from tasktransfer.designs.panel.sources import tiny
from tasktransfer.designs.panel.sources.cards import (
    DIALOGUES,
    DOMAINS,
    EVERYTHING,
    GIVEN,
    LABELLER,
    RATED,
    SELECTION,
    TINY,
    TINY_DOMAINS,
    TINY_RATED,
    RatedSet,
    format_shared_task_name,
    list_cards,
)
from tasktransfer.designs.panel.sources.corpora import (
    CORPORA,
    Corpus,
    CorpusDialogue,
    Files,
    convert_for_split_check,
    make_folder_corpus,
)
from tasktransfer.designs.panel.sources.labeller_pairs import (
    OWN_LABELS,
    PLUS,
    read_own_labels,
    read_plus_pairs,
)
from tasktransfer.designs.panel.sources.pair_instances import FITS, make_instance, read_pair
from tasktransfer.designs.panel.sources.rated import (
    SOURCES,
    Item,
    make_lines_source,
    read_rated_set,
)
from tasktransfer.errors import DataError, format_quantity
from tasktransfer.files.data_files import read_json_lines
from tasktransfer.tasks.card import SPLITS, Instance

CONTEXT = 4
"""Maximum number of utterances of a context (section V)."""
LEAST_DIALOGUES = 2
"""Minimum number of dialogues of a corpus for training, and for validation.

Unfitting responses to one dialogue are sampled from another.
"""
SYNTHETIC = "synthetic.json"
GENERATED, PROBABILITIES = "generated", "probabilities"
"""Folders of a user's further responses, and of labels for pairs, with one file per domain."""


# --- files of a release -------------------------------------------------------------------------


def find_files(folder: Path, names: Sequence[str]) -> Files:
    """Find named files in ``folder``, in its ``dialogue`` or in its ``feta/full``.

    A name that ends in a slash stands for all CSV files below it.
    """
    files: Files = {}
    for place in (folder, folder / "dialogue", folder / "feta" / "full"):
        for name in names:
            if name.endswith("/"):
                below = sorted((place / name).glob("*.csv")) if (place / name).is_dir() else []
                files |= {f"{name}{f.name}": f for f in below if f"{name}{f.name}" not in files}
            elif name not in files and (place / name).is_file():
                files[name] = place / name
    return files


def _has_files(files: Files, names: Sequence[str]) -> bool:
    return all(any(f.startswith(name) for f in files) for name in names)


class _DatasetReader:
    """Reader of one of the two datasets, which knows the files of its corpora and rated sets."""

    def __init__(
        self,
        name: str,
        corpora: Mapping[str, Corpus],
        rated: Mapping[str, RatedSet],
        files: Mapping[str, str],
        labels: tuple[str, ...],
    ) -> None:
        self.name, self.corpora, self.rated, self.labels = name, corpora, rated, labels
        self.labeller, self.given = (
            format_shared_task_name(LABELLER, name),
            format_shared_task_name(GIVEN, name),
        )
        self.rated_files = dict(files)
        wanted = [f for corpus in corpora.values() for f in (*corpus.files, *corpus.more)]
        wanted += [*files.values(), *labels, SYNTHETIC]
        wanted += [f"{folder}/{d}.jsonl" for d in corpora for folder in (GENERATED, PROBABILITIES)]
        self.names = tuple(dict.fromkeys(wanted))

    def find_release_files(self, folder: Path) -> Files:
        """Return the dataset's files in a release.

        Raises:
            DataError: there are none.
        """
        found = find_files(folder, self.names)
        if not {*found} - {SYNTHETIC}:
            raise DataError(
                f"{folder}: The folder is not a release of {self.name}, because neither the "
                f"folder nor its subfolder dialogue contains {', '.join(self.names[:6])}, ... Put "
                "these files into the folder, or set data.release to the folder that contains "
                "them."
            )
        return found

    def find_folder(self, folder: Path) -> str:
        """Return the folder as text. Raises DataError if it has no files of the dataset."""
        self.find_release_files(folder)
        return str(folder)

    def list_tasks(self, files: Files) -> tuple[str, ...]:
        """Return the tasks that a release annotates, without derived tasks."""
        domains = [name for name, corpus in self.corpora.items() if _has_files(files, corpus.files)]
        labels = [self.labeller] if _has_files(files, self.labels) else []
        rated = [name for name, file in self.rated_files.items() if file in files]
        given = [self.given] if any(f.startswith(f"{PROBABILITIES}/") for f in files) else []
        return (*domains, *labels, *given, *rated)

    def describe_missing(self, task: str, splits: tuple[str, ...] | None, few_sample: bool) -> str:
        """Describe the splits in which a task has no instances, and the task's files."""
        files = (
            self.corpora[task].files
            if task in self.corpora
            else self.labels
            if task == self.labeller
            else (self.rated_files.get(task, f"{PROBABILITIES}/"),)
        )
        absent = describe_missing_splits(task, splits, few_sample)
        return f"{absent}, which is read from {', '.join(files)}"

    def compute_revision(self, folder: Path, memo: Path | None) -> str:
        """Return a digest of the dataset's files, which is cached in ``memo``."""
        return compute_files_digest(self.find_release_files(folder), memo)

    def open(self, folder: Path, few_sample: bool) -> Release:
        """Open a release. ``few_sample`` has no effect: the data have no few-sample split."""
        files = self.find_release_files(folder)
        notes: list[str] = []

        @lru_cache(1)  # splits of a task are read one after the other, and corpora are large
        def instances(task: str) -> dict[str, list[Instance]]:
            by_split: dict[str, list[Instance]] = {split: [] for split in SPLITS}
            for split, instance in self._read_instances(task, files, notes):
                by_split[split].append(instance)
            return by_split

        return Release(
            location=str(folder),
            revision=self.compute_revision(folder, None),
            tasks=self.list_tasks(files),
            dialogues={},
            instances=lambda task, split: instances(task)[split],
            synthetic=SYNTHETIC in files,
            notes=notes,
        )

    def _read_instances(
        self, task: str, files: Files, notes: list[str]
    ) -> Iterator[tuple[str, Instance]]:
        if task in self.rated:
            for index, item in enumerate(read_rated_set(self.rated[task], files)):
                yield "test", _convert_item(task, index, item)
        elif task == self.labeller:
            read = read_own_labels if self.labels == OWN_LABELS else read_plus_pairs
            yield from read(files, notes)
        elif task == self.given:
            yield from (
                ("train", instance)
                for d in self.corpora
                for instance in _read_probabilities(task, d, files)
            )
        else:
            dialogues = list(self.corpora[task].read(files))
            self._check_dialogues(task, dialogues, files)
            for dialogue in dialogues:
                yield from (
                    (dialogue.split, instance) for instance in _convert_dialogue(task, dialogue)
                )
            yield from _read_generated_responses(task, files)

    def _check_dialogues(
        self, task: str, dialogues: Sequence[CorpusDialogue], files: Files
    ) -> None:
        """Raise DataError if a dialogue is in two splits, or if a corpus has too few dialogues."""
        check_disjoint_splits(
            convert_for_split_check(dialogues),
            "Keep the dialogue in one of them, and give each dialogue its own ID",
            generated=SYNTHETIC in files,
        )
        path = files[next(f for f in files if f.startswith(self.corpora[task].files[0]))]
        for split in ("train", "dev"):
            count = sum(dialogue.split == split for dialogue in dialogues)
            if count < LEAST_DIALOGUES:
                raise DataError(
                    f"{path}: The domain {task} has {format_quantity(count, 'dialogue')} in the "
                    f"split {split}, which is too few to sample unfitting responses from other "
                    f"dialogues. Provide at least {LEAST_DIALOGUES} dialogues, or remove {task} "
                    "from domains."
                )


def _convert_dialogue(task: str, dialogue: CorpusDialogue) -> Iterator[Instance]:
    """Yield one instance per utterance except the first, as the true response to its context."""
    turns = dialogue.utterances
    for index in range(1, len(turns)):
        before = turns[max(0, index - CONTEXT) : index]
        # The speaker with the persona says every second utterance, beginning with the second.
        query = {"persona": dialogue.persona, "revised": dialogue.revised} if index % 2 else {}
        name = f"{dialogue.name}#{index}"
        yield make_instance(
            task, name, dialogue.name, before, turns[index], FITS, how="true", **query
        )


def _convert_item(task: str, index: int, item: Item) -> Instance:
    """Convert a rated item to an instance, with the mean rating as its gold answer."""
    ratings = " ".join(f"{rating:g}" for rating in item.ratings)
    name, mean = f"{task}-{index}", f"{item.mean:.12g}"
    query = {"ratings": ratings, "system": item.system}
    return make_instance(task, name, item.group, item.context, item.response, mean, **query)


def _read_generated_responses(task: str, files: Files) -> Iterator[tuple[str, Instance]]:
    """Yield additional positive responses by the user, from ``generated/<domain>.jsonl``.

    Each line is an object with ``context`` (texts) and ``response``. They are used for training
    only.
    """
    name = f"{GENERATED}/{task}.jsonl"
    for line, row, location in read_json_lines(files[name]) if name in files else ():
        context, response = read_pair(row, location)
        group = f"generated-{line}"
        instance = make_instance(
            task, group, group, context[-CONTEXT:], response, FITS, how="generated"
        )
        yield "train", instance


def _read_probabilities(task: str, domain: str, files: Files) -> Iterator[Instance]:
    """Yield label probabilities from the user's own model, in ``probabilities/<domain>.jsonl``.

    Each line is an object with ``context`` (texts), ``response`` and ``probability`` (that the
    response fits).
    """
    name = f"{PROBABILITIES}/{domain}.jsonl"
    for line, row, location in read_json_lines(files[name]) if name in files else ():
        context, response = read_pair(row, location)
        probability = row.get("probability")
        number = isinstance(probability, int | float) and not isinstance(probability, bool)
        if not number or not 0 <= float(str(probability)) <= 1:
            problem = f"the probability is {probability!r:.60}"
            raise location.error(problem, "write a number from 0 to 1")
        target = f"{float(str(probability)):.12g}"
        yield make_instance(task, f"{domain}-{line}", domain, context, response, target)


# --- the two datasets ---------------------------------------------------------------------------

REAL = _DatasetReader(
    DIALOGUES, CORPORA, RATED, {name: source.file for name, source in SOURCES.items()}, PLUS
)
TINY_WORLD = _DatasetReader(
    TINY,
    {name: make_folder_corpus(name) for name in TINY_DOMAINS},
    TINY_RATED,
    {name: make_lines_source(name).file for name in TINY_RATED},
    OWN_LABELS,
)


def _build_reader(dataset: _DatasetReader) -> Reader:
    return Reader(
        version=1,
        find=dataset.find_folder,
        revision=dataset.compute_revision,
        open=dataset.open,
        missing=dataset.describe_missing,
        splits={
            **dict.fromkeys(dataset.corpora, ("train", "dev")),
            dataset.labeller: SPLITS,
            dataset.given: ("train",),
            **dict.fromkeys(dataset.rated, ("test",)),
        },
    )


PANEL_DIALOGUES = Dataset(
    name=DIALOGUES,
    cards=list_cards(DIALOGUES),
    reader=_build_reader(REAL),
    sizes={
        **dict.fromkeys(DOMAINS, TaskSize(400_000, 40_000, 1, 60)),
        LABELLER: TaskSize(76_000, 15_000, 17_000, 60),
        EVERYTHING: TaskSize(2_000_000, 200_000, 1, 60),
        SELECTION: TaskSize(12_000, 1_500, 15_000, 60),
        **dict.fromkeys(RATED, TaskSize(100, 100, 1_000, 80)),
    },
    sizes_from="the paper",
)
PANEL_TINY = Dataset(
    name=TINY,
    cards=list_cards(TINY),
    reader=_build_reader(TINY_WORLD),
    sizes_from="the tiny world",
    tiny=tiny.TINY,
)
