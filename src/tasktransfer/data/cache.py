"""Instances as Arrow files, written once per dataset and setting and read by every training run.

A cache folder holds ``<task>-<split>.arrow`` (one row per instance), ``dialogues.arrow`` (one row
per turn) and ``manifest.json``. The manifest is written last and has the checksums of the other
files, which are verified on reading. The Arrow files are IPC streams, so they can be loaded with
``datasets.Dataset.from_file``. Here pyarrow alone reads them, memory-mapped, because importing
``datasets`` takes half a second in each training process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa

from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.dataset import Dataset, Release
from tasktransfer.errors import DataError
from tasktransfer.files import Maker, compute_sha256, json_text, replace_folder
from tasktransfer.files.progress import show_progress
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.checks import find_instance_problem

MANIFEST = "manifest.json"
MAKER = Maker("cache of instances", MANIFEST, "reader_version")
DIALOGUES = "dialogues.arrow"
BATCH_ROWS = 4096
QUERY_PREFIX = "query_"

DIALOGUE_SCHEMA = pa.schema(
    [
        ("dialogue_id", pa.string()),
        ("split", pa.string()),
        ("used", pa.bool_()),
        ("turn_id", pa.string()),
        ("speakers", pa.list_(pa.string())),
        ("words", pa.int32()),
    ]
)
"""Schema with one row per turn of all dialogues of the release (``datasets.dataset.TurnLength``).
There are no rows if the dataset's reader gives no turns."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of a task's instances on a split and of their dialogues."""

    samples: int
    dialogues: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a cache folder.

    Args:
        reader_version: version of the dataset's reader.
        dataset: name of the dataset.
        revision: revision of the release.
        few_sample: whether it is the few-sample setting.
        synthetic: whether the dialogues are generated.
        source_kind: folder or zip.
        tasks: task → split → counts.
        dialogues: split → number of dialogues, annotated or not.
        sha256: file → checksum. Empty in folders from before checksums were introduced.
        told: notes about the release for the user, one per line.
    """

    reader_version: int
    dataset: str
    revision: str
    few_sample: bool
    synthetic: bool
    source_kind: str
    tasks: dict[str, dict[str, Counts]]
    dialogues: dict[str, int]
    sha256: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)


def cache_dataset(
    dataset: str, source_path: Path | str, few_sample: bool, out_folder: Path | str
) -> Manifest:
    """Read, check and cache all tasks and splits of a dataset, and return the manifest.

    The folder appears only when it is complete. An existing cache is replaced.

    Raises:
        DataError: the release cannot be read, or ``out_folder`` is neither empty nor a cache. The
            folder is then unchanged.
    """
    with replace_folder(Path(out_folder), MAKER) as folder:
        release = DATASETS[dataset].reader.open(Path(source_path), few_sample)
        return write_release(folder, DATASETS[dataset], release, few_sample)


def write_release(folder: Path, dataset: Dataset, release: Release, few_sample: bool) -> Manifest:
    """Write a release as a cache into ``folder`` (manifest last), and return the manifest."""
    counts: dict[str, dict[str, Counts]] = {}
    for task in show_progress(release.tasks, f"reading {dataset.name}"):
        counts[task] = {}
        for split in SPLITS:
            file = folder / get_instance_file_name(task, split)
            checker = _InstanceChecker(dataset, task, split)
            instances = checker.iterate_checked_instances(release)
            if release.query is None:
                write_instances(file, list(instances))
            else:
                write_instances(file, instances, release.query[task])
            counts[task][split] = checker.counts
    _write_stream(folder / DIALOGUES, DIALOGUE_SCHEMA, (turn._asdict() for turn in release.turns))
    files = [get_instance_file_name(task, split) for task in counts for split in SPLITS] + [
        DIALOGUES
    ]
    manifest = Manifest(
        reader_version=dataset.reader.version,
        dataset=dataset.name,
        revision=release.revision,
        few_sample=few_sample,
        synthetic=release.synthetic,
        source_kind=release.source_kind,
        tasks=counts,
        dialogues=dict(release.dialogues),
        sha256={name: compute_sha256(folder / name) for name in files},
        told=list(release.notes),
    )
    text = json.dumps(asdict(manifest), indent=2) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return manifest


class _InstanceChecker:
    """A checker and counter of a task's instances on a split while they are read.

    Instances that do not fit the card raise an error here instead of in a training run.
    """

    def __init__(self, dataset: Dataset, task: str, split: str) -> None:
        self._card, self._split = dataset.tasks[task], split
        self._samples, self._dialogues = 0, set[str]()

    @property
    def counts(self) -> Counts:
        return Counts(self._samples, len(self._dialogues))

    def iterate_checked_instances(self, release: Release) -> Iterator[Instance]:
        card = self._card
        for instance in release.instances(card.name, self._split):
            problem = find_instance_problem(card, instance)
            if problem:
                raise DataError(
                    f"{release.location}, {card.name}, {self._split}, instance {instance.id!r}: "
                    f"{problem} Fix the release, or the reader or task card of the dataset "
                    f"{card.dataset}."
                )
            self._samples += 1
            self._dialogues.add(instance.dialogue_id)
            yield instance


def get_instance_file_name(task: str, split: str) -> str:
    """Return the name of the Arrow file with the instances of ``task`` on ``split``."""
    return f"{task}-{split}.arrow"


def write_instances(
    file: Path, instances: Iterable[Instance], fields: Iterable[str] | None = None
) -> None:
    """Write instances of one task as an Arrow stream. Query fields become columns ``query_*``.

    Args:
        file: output file.
        instances: instances of one task.
        fields: fields of the queries. None to collect them from the instances, which must then be
            a collection.
    """
    if fields is None:
        fields = {name for instance in instances for name in instance.query}
    texts = pa.list_(pa.string())
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("dialogue_id", pa.string()),
            ("task", pa.string()),
            ("context", pa.string()),
            ("focus", pa.int32()),
            *((f"{QUERY_PREFIX}{name}", pa.string()) for name in sorted(fields)),
            ("options", texts),
            ("target", texts),
            ("starts", pa.list_(pa.int32())),
            ("turns", pa.list_(pa.int32())),
        ]
    )
    _write_stream(file, schema, map(_make_row, instances))


def read_manifest(folder: Path | str) -> Manifest:
    """Read the manifest of a cache folder. Raises DataError if it is missing, damaged or old."""
    file = Path(folder) / MANIFEST
    try:
        content = json_text.read(file)
        version = content["reader_version"]
        expected = DATASETS[content["dataset"]].reader.version
        if version == expected:
            return _parse_manifest(content)
    except FileNotFoundError:
        raise DataError(
            f"{file}: The file does not exist, because the data is not prepared in this folder. "
            f"{_describe_remedy(folder)}."
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file}: The file is damaged ({error!r}). {_describe_remedy(folder)}."
        ) from error
    raise DataError(
        f"{file}: The data has reader_version {version!r}, but this version of tasktransfer "
        f"requires {expected}. {_describe_remedy(folder)}."
    )


def read_instances(folder: Path | str, task: str, split: str) -> list[Instance]:
    """Read the cached instances of ``task`` on ``split``, in the release's order.

    Raises:
        DataError: the task or split is absent, a file is damaged, or the split has no instances, so
            that no model can be trained or evaluated on it.
    """
    manifest = read_manifest(folder)
    if task not in manifest.tasks or split not in manifest.tasks[task]:
        raise DataError(
            f"{folder}: The cache contains no instances of task {task!r} in split {split!r}. "
            f"Choose one of the splits {', '.join(SPLITS)} and one of the tasks "
            f"{', '.join(manifest.tasks)}."
        )
    expected = manifest.tasks[task][split].samples
    if expected == 0:
        raise DataError(
            f"{folder}: The {split} split of this release of {manifest.dataset} contains no "
            f"instances of {task}. Remove the task from the study."
        )
    file = Path(folder) / get_instance_file_name(task, split)
    rows = read_checked_table(folder, manifest, file.name).to_pylist()
    if len(rows) != expected:
        raise DataError(
            f"{file}: The file contains {len(rows)} instances, but {MANIFEST} lists {expected}. "
            f"{_describe_remedy(folder)}."
        )
    try:
        return [_make_instance(row) for row in rows]
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{file}: The file's columns do not match this version of tasktransfer ({error}). "
            f"{_describe_remedy(folder)}."
        ) from error


def read_checked_table(folder: Path | str, manifest: Manifest, name: str) -> pa.Table:
    """Read a table of a cache after verifying its checksum.

    Raises:
        DataError: the file is absent or damaged, or its checksum differs from the manifest.
    """
    file = Path(folder) / name
    table, recorded = read_table(file), manifest.sha256.get(name)
    if recorded is not None and compute_sha256(file) != recorded:
        raise DataError(
            f"{file}: The SHA-256 of the file differs from the SHA-256 in {MANIFEST}. "
            f"{_describe_remedy(folder)}."
        )
    return table


def read_table(file: Path) -> pa.Table:
    """Read an Arrow stream of a cache as a memory-mapped table.

    Raises:
        DataError: the file is absent or damaged.
    """
    try:
        with pa.memory_map(str(file)) as source, pa.ipc.open_stream(source) as reader:
            return reader.read_all()
    except FileNotFoundError:
        raise DataError(
            f"{file}: The file does not exist. {_describe_remedy(file.parent)}."
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{file}: The file is damaged ({error}). {_describe_remedy(file.parent)}."
        ) from error


def _describe_remedy(folder: Path | str) -> str:
    return f"Delete {folder} and prepare the data again"


def _make_row(instance: Instance) -> dict[str, object]:
    return {
        "id": instance.id,
        "dialogue_id": instance.dialogue_id,
        "task": instance.task,
        "context": instance.context,
        "focus": instance.focus,
        **{f"{QUERY_PREFIX}{name}": text for name, text in instance.query.items()},
        "options": instance.options,
        "target": instance.target,
        "starts": instance.starts,
        "turns": instance.turns,
    }


def _make_instance(row: Mapping[str, object]) -> Instance:
    values: dict[str, object] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in row.items()
        if not key.startswith(QUERY_PREFIX)
    }
    query = {
        key.removeprefix(QUERY_PREFIX): value
        for key, value in row.items()
        if key.startswith(QUERY_PREFIX) and value is not None
    }
    return Instance(query=query, **values)  # type: ignore[arg-type]


def _write_stream(file: Path, schema: pa.Schema, rows: Iterable[Mapping[str, object]]) -> None:
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        left = iter(rows)
        while batch := list(islice(left, BATCH_ROWS)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))


def _parse_manifest(content: dict[str, object]) -> Manifest:
    tasks = content["tasks"]
    counts = {
        task: {split: Counts(**count) for split, count in by_split.items()}
        for task, by_split in tasks.items()  # type: ignore[attr-defined]
    }
    sums = dict(content.get("sha256", {}))  # type: ignore[call-overload]
    return Manifest(**{**content, "tasks": counts, "sha256": sums})
