"""Which files a declaration reads, by split, and what each is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.config.places import on_disk
from tasktransfer.datasets.declared.section import FilesSection
from tasktransfer.errors import DataError
from tasktransfer.files.regular import open_regular
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
_WILDCARD = re.compile(r"[*?]")
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


def _expand(location: str, key: str) -> list[Path]:
    """The file at a place, or the files that a pattern with * or ? names. A path that exists is no
    pattern, and neither are the folders of a pattern that exist.

    Raises:
        DataError: no file matches a pattern.
    """
    path = Path(on_disk(location))
    folder = path
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    pattern = str(path.relative_to(folder))
    if path == folder or not _WILDCARD.search(pattern):
        return [path]
    is_hidden = path.name.startswith(".")
    found = folder.glob(pattern.replace("[", "[[]"))
    files = [file for file in found if is_hidden or not file.name.startswith(".")]
    if not files:
        raise DataError(
            f"{location}: no file matches this pattern, and {key} names it; put files there, or "
            f"change {key}"
        )
    return sorted(files, key=str)


def files_of(files: FilesSection, key: str) -> FilesBySplit:
    """The files of a declaration; ``key`` names it in messages (``datasets.Tickets.files``).

    Raises:
        DataError: a file is missing, is of no format that is read, or a folder has no split.
    """
    if files.dev is None and files.test is None and len(files.train) == 1:
        folder = Path(on_disk(files.train[0]))
        if folder.is_dir() and not _is_saved(folder):
            return _in_folder(folder, f"{key}.train")
    found: dict[str, tuple[DataFile, ...]] = {}
    keys: dict[Path, str] = {}
    for split in SPLITS:
        own = f"{key}.{split}"
        places = getattr(files, split)
        if places is None:
            continue
        found[split] = tuple(
            data_file(path, own) for place in places for path in _expand(place, own)
        )
        for file in found[split]:
            if (other := keys.setdefault(file.path.resolve(), own)) != own:
                raise DataError(
                    f"{file.path}: {other} and {own} both name it; give each split its own files"
                )
    return found


def data_file(path: Path, key: str) -> DataFile:
    """A file by its name. Raises DataError as ``files_of``."""
    if os.path.isdir(path):  # noqa: PTH112  # Path.is_dir raises for a name that is too long
        if _is_saved(path):
            return DataFile(path, "saved")
        raise DataError(
            f"{path}: is a folder, and {key} names it; give its files, or a folder that "
            "Dataset.save_to_disk wrote"
        )
    try:
        open_regular(path).close()
    except FileNotFoundError:
        raise DataError(
            f"{path}: is missing, and {key} names it; put it there, or change {key}"
        ) from None
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}), and {key} names it; give a readable file"
        ) from None
    endings = path.suffixes[:-1] if path.suffix.lower() == ".gz" else path.suffixes
    ending = endings[-1].lower() if endings else ""
    if ending not in FORMATS:
        raise DataError(
            f"{path}: {ending or 'no ending'} is no format that is read; save it as "
            f"{', '.join(FORMATS)}, and name it so"
        )
    return DataFile(path, FORMATS[ending])


def _is_saved(folder: Path) -> bool:
    return all((folder / name).is_file() for name in SAVED)


def _in_folder(folder: Path, key: str) -> FilesBySplit:
    """The splits in a folder, by the names of its files or folders."""
    found: dict[str, list[DataFile]] = {}
    for path in sorted(folder.iterdir()):
        split = SPLIT_WORDS.get(first_word(path.name))
        if split is None or path.name.startswith("."):
            continue
        inner = sorted(path.iterdir()) if path.is_dir() and not _is_saved(path) else [path]
        files = [file for file in inner if not file.name.startswith(".")] or inner
        found.setdefault(split, []).extend(data_file(file, key) for file in files)
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
