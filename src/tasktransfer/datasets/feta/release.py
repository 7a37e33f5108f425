"""Datasets with releases in FETA's format, defined by one row per task.

``parse_release`` parses and checks the files once. ``read_instances`` yields a task's instances on
a split, in the order of the release's dialogues. Instances are cached elsewhere (``data.cache``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets.dataset import (
    Dataset,
    Reader,
    Release,
    TinyPart,
    TurnLength,
    describe_missing_splits,
)
from tasktransfer.datasets.disjoint_splits import SplitDialogue, check_disjoint_splits
from tasktransfer.datasets.feta.annotations import (
    AnnotatedDialogue,
    AnnotatedTask,
    parse_dialogues,
    parse_json_object,
)
from tasktransfer.datasets.feta.archive import (
    Source,
    SplitIds,
    check_dialogues_present,
    compute_release_revision,
    find_source,
    get_id_file_name,
    get_json_file_name,
    map_dialogues_to_splits,
    parse_split_ids,
    read_files,
)
from tasktransfer.datasets.file_digests import combine_digests
from tasktransfer.errors import DataError, describe_wrong_value
from tasktransfer.files.fields import (
    Location,
    Table,
    as_table,
    get_table,
    get_text,
    get_texts,
)
from tasktransfer.tasks.card import SPLITS, Instance, Task


@dataclass(frozen=True, slots=True)
class ParsedRelease:
    """A parsed release.

    Args:
        source: folder or zip of the release.
        revision: digest of its files.
        synthetic: whether its dialogues are generated, according to its metadata.
        tasks: name → annotated task.
        dialogues: name → dialogue.
        ids: dialogues of each split.
    """

    source: Source
    revision: str
    synthetic: bool
    tasks: dict[str, AnnotatedTask]
    dialogues: dict[str, AnnotatedDialogue]
    ids: SplitIds

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return self.source.dataset


def parse_release(path: Path | str, dataset: str, tasks: Iterable[AnnotatedTask]) -> ParsedRelease:
    """Parse and check the release of ``dataset`` at ``path``.

    This checks files, JSON, dataset name, labels, dialogues, turns and splits. Annotations are
    checked when ``read_instances`` reads them.

    Raises:
        DataError: the release is absent or not valid.
    """
    source = find_source(path, dataset)
    files = read_files(source)
    revision = combine_digests(
        {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    )
    ids = parse_split_ids(source, files)
    name = get_json_file_name(dataset)
    table = parse_json_object(files[name], source.get_location(name))
    metadata = get_table(table, "metadata", Location(source.get_location(name)))
    location = Location(source.get_location(name), path="metadata")
    _check_dataset_name(metadata, dataset, location)
    return ParsedRelease(
        source=source,
        revision=revision,
        synthetic=_is_synthetic(metadata, location),
        tasks=_select_listed_tasks(metadata, tasks, location),
        dialogues=parse_dialogues(table, source.get_location(name)),
        ids=ids,
    )


def read_instances(
    release: ParsedRelease, task: str, split: str, few_sample: bool
) -> Iterator[Instance]:
    """Yield the instances of ``task`` in ``split``, in the release's order of dialogues.

    Instances are read from dialogues whose ``dialogue_metadata`` contains the task.

    Raises:
        DataError: the release does not annotate the task, dialogues of the split are missing, or an
            annotation is not valid.
    """
    if split not in SPLITS:
        raise ValueError(f"The value {split!r} is not a split. Choose one of {', '.join(SPLITS)}.")
    check_dialogues_present(release.source, release.ids, split, few_sample, release.dialogues)
    if task not in release.tasks:
        raise DataError(
            f"{release.source.path}: The release of {release.dataset} does not contain "
            f"annotations of the task {task!r}. Choose one of {', '.join(release.tasks)}."
        )
    card, layout = release.tasks[task][:2]
    ids = set(release.ids.get_ids(split, few_sample))
    for dialogue in release.dialogues.values():
        if dialogue.id in ids and task in dialogue.metadata:
            yield from layout(dialogue, card)


def _check_dataset_name(metadata: Table, dataset: str, location: Location) -> None:
    name = get_text(metadata, "dataset_name", location)
    if name != dataset:
        raise location.at("dataset_name").error(
            describe_wrong_value(name, repr(dataset)),
            "use the file of this dataset",
        )


def _is_synthetic(metadata: Table, location: Location) -> bool:
    """Return whether the release's metadata marks its dialogues as generated.

    The official release does not have the key. Values other than true and false raise an error,
    because generated dialogues must not be mistaken for real ones.
    """
    synthetic = metadata.get("synthetic", False)
    if isinstance(synthetic, bool):
        return synthetic
    raise location.at("synthetic").error(
        describe_wrong_value(synthetic, "true or false"),
        "write true if the dialogues are generated, and remove the key if they are real",
    )


def _select_listed_tasks(
    metadata: Table, tasks: Iterable[AnnotatedTask], location: Location
) -> dict[str, AnnotatedTask]:
    """Map the names of those tasks that the release's metadata lists to their cards."""
    listed = get_texts(metadata, "tasks", location)
    details = get_table(metadata, "task_metadata", location)
    by_name = {task.card.name: task for task in tasks}
    annotated = {name: task for name, task in by_name.items() if name in listed}
    if not annotated:
        raise location.at("tasks").error(
            f"the list contains none of the tasks {', '.join(by_name)}"
        )
    for name, task in annotated.items():
        task_place = location.at("task_metadata").at(name)
        _check_labels(as_table(details.get(name, {}), task_place), task.card, task_place)
    return annotated


def _check_labels(details: Table, card: Task, location: Location) -> None:
    """Raise DataError if the release's labels differ from the card's.

    The order matters as well, because metrics refer to classes by index.
    """
    if not card.labels or "labels" not in details:
        return
    labels = get_texts(details, "labels", location)
    if labels == card.labels:
        return
    missing = [label for label in card.labels if label not in labels]
    extra = [label for label in labels if label not in card.labels]
    how = "has them in another order"
    if missing or extra:
        absent, added = (", ".join(map(repr, some)) or "no label" for some in (missing, extra))
        how = f"lacks {absent} and adds {added}"
    raise location.at("labels").error(
        f"the labels of the task {card.name} differ from the labels of its card: the release {how}",
        "use the official release, or change the card",
    )


READER_VERSION = 1
FEW_SAMPLE_FRACTION = 0.1
"""Fraction of the train and dev dialogues in the few-sample setting (paper, section 3.2)."""

SPLIT_SHARES = {
    True: {"train": 0.5, "dev": 0.125, "test": 0.25},
    False: {"train": 0.6, "dev": 0.15, "test": 0.25},
}
"""Fractions for forecasts: whether few-sample → split → fraction of the dialogues."""


def build_feta_dataset(name: str, tasks: tuple[AnnotatedTask, ...], shared: float = 0.0) -> Dataset:
    """Return a dataset whose releases have FETA's format.

    Args:
        name: name of the dataset.
        tasks: tasks, in the order of the release's metadata.
        shared: maximum fraction of a split's texts that are also in another split
            (``disjoint_splits``).
    """
    release_format = _FetaFormat(name, tasks, shared)
    return Dataset(
        name=name,
        cards=tuple(task.card for task in tasks),
        reader=Reader(
            version=READER_VERSION,
            find=release_format.find,
            revision=lambda folder, memo: compute_release_revision(folder, name, memo),
            open=release_format.open,
            missing=_describe_missing_task,
        ),
        sizes={task.card.name: task.size for task in tasks},
        sizes_from="Table 1 of the paper",
        few_sample_share=FEW_SAMPLE_FRACTION,
        tiny=TinyPart({task.card.name: task.tiny for task in tasks if task.tiny}, SPLIT_SHARES),
    )


@dataclass(frozen=True, slots=True)
class _FetaFormat:
    """The functions of a reader of releases in FETA's format."""

    dataset: str
    tasks: tuple[AnnotatedTask, ...]
    shared: float

    def find(self, folder: Path) -> str:
        return find_source(folder, self.dataset).get_location(get_json_file_name(self.dataset))

    def open(self, folder: Path, few_sample: bool) -> Release:
        parsed = parse_release(folder, self.dataset, self.tasks)
        full = map_dialogues_to_splits(parsed.ids)
        location = parsed.source.get_location(get_json_file_name(self.dataset))
        notes = check_disjoint_splits(
            (
                SplitDialogue(
                    dialogue.id,
                    full[dialogue.id],
                    " ".join(turn.utterance for turn in dialogue.turns),
                    location,
                )
                for dialogue in parsed.dialogues.values()
                if dialogue.id in full
            ),
            "Fetch the release again, or list the dialogue in only one of the ID files",
            allowed=self.shared,
            generated=parsed.synthetic,
        )
        return Release(
            location=str(parsed.source.path),
            revision=parsed.revision,
            tasks=tuple(parsed.tasks),
            dialogues={split: len(parsed.ids.get_ids(split, few_sample)) for split in SPLITS},
            instances=lambda task, split: read_instances(parsed, task, split, few_sample),
            turns=_measure_turn_lengths(parsed, few_sample),
            synthetic=parsed.synthetic,
            source_kind=parsed.source.kind,
            notes=notes,
        )


def _measure_turn_lengths(release: ParsedRelease, few_sample: bool) -> Iterator[TurnLength]:
    full = map_dialogues_to_splits(release.ids)
    used = {name for split in SPLITS for name in release.ids.get_ids(split, few_sample)}
    for dialogue in release.dialogues.values():
        for turn in dialogue.turns:
            yield TurnLength(
                dialogue.id,
                full.get(dialogue.id, ""),
                dialogue.id in used,
                str(turn.id),
                turn.speakers,
                len(turn.utterance.split()),
            )


def _describe_missing_task(task: str, splits: tuple[str, ...] | None, few_sample: bool) -> str:
    plain = describe_missing_splits(task, splits, few_sample)
    if splits is None:
        return f"metadata.tasks does not list {task!r}: {plain.replace(repr(task), 'it')}"
    return f"{plain} ({', '.join(get_id_file_name(split, few_sample) for split in splits)})"
