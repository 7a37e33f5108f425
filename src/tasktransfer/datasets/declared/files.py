"""Which files a declaration reads, by split, and what each is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.config.places import on_disk
from tasktransfer.datasets.declared.section import FilesSection
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS

FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
"""Ending → format; ``.gz`` after the ending of a text is undone."""
SAVED = ("dataset_info.json", "state.json")
"""What a folder holds that ``Dataset.save_to_disk`` wrote."""
SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "test": "test",
    "testing": "test",
}
"""First word of a file's or folder's name → split."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file, or a folder that ``save_to_disk`` wrote (format ``saved``)."""

    path: Path
    format: str

    def parts(self) -> Mapping[str, Path]:
        """Name → file of all that its content is made of, for a digest."""
        if self.format != "saved":
            return {"": self.path}
        files = sorted(file for file in self.path.rglob("*") if file.is_file())
        return {str(f.relative_to(self.path)): f for f in files if not f.name.startswith("cache-")}


FilesBySplit = Mapping[str, tuple[DataFile, ...]]


def _matching(places: Iterable[str]) -> Iterator[str]:
    """The places, of a pattern the files that it names; one that names none stays."""
    for location in places:
        path = Path(on_disk(location))
        named = [] if path.exists() else Path(path.anchor).glob(str(path.relative_to(path.anchor)))
        yield from sorted(map(str, named)) or [location]


def files_of(files: FilesSection, key: str) -> FilesBySplit:
    """The files of a declaration; ``key`` names it in messages (``datasets.Tickets.files``).

    Raises:
        DataError: a file is missing, is of no format that is read, or a folder has no split.
    """
    if files.dev is None and files.test is None and len(files.train) == 1:
        folder = Path(on_disk(files.train[0]))
        if folder.is_dir() and not _is_saved(folder):
            return _in_folder(folder, f"{key}.train")
    return {
        split: tuple(_data_file(path, f"{key}.{split}") for path in _matching(places))
        for split in SPLITS
        if (places := getattr(files, split)) is not None
    }


def data_file(path: Path, key: str) -> DataFile:
    """A file by its name. Raises DataError as ``files_of``."""
    if path.is_dir():
        if _is_saved(path):
            return DataFile(path, "saved")
        raise DataError(
            f"{path}: is a folder, and {key} names it; give its files, or a folder that "
            "Dataset.save_to_disk wrote"
        )
    if not path.is_file():
        raise DataError(f"{path}: is missing, and {key} names it; put it there, or change {key}")
    endings = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    ending = endings[-1].lower() if endings else ""
    if ending not in FORMATS:
        raise DataError(
            f"{path}: {ending or 'no ending'} is no format that is read; save it as "
            f"{', '.join(FORMATS)}, and name it so"
        )
    return DataFile(path, FORMATS[ending])


def _data_file(path: str, key: str) -> DataFile:
    return data_file(Path(on_disk(path)), key)


def _is_saved(folder: Path) -> bool:
    return all((folder / name).is_file() for name in SAVED)


def _in_folder(folder: Path, key: str) -> FilesBySplit:
    """The splits in a folder, by the names of its files or folders."""
    found: dict[str, list[DataFile]] = {}
    for path in sorted(folder.iterdir()):
        split = SPLIT_WORDS.get(first_word(path.name))
        if split is None or path.name.startswith("."):
            continue
        inner = [path] if path.is_file() or _is_saved(path) else sorted(path.iterdir())
        found.setdefault(split, []).extend(data_file(file, key) for file in inner)
    if "train" not in found:
        raise DataError(
            f"{folder}: has no file whose name begins with train, and {key} names it; name its "
            "files train, dev and test, or give files by split"
        )
    return {split: tuple(found[split]) for split in SPLITS if split in found}


def first_word(name: str) -> str:
    """What a name begins with, as split words are looked up."""
    word = name.lower()
    for mark in ".-_ ":
        word = word.partition(mark)[0]
    return word
