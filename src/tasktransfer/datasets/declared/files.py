"""Files of a declaration by split, and their formats."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.config.places import expand_path
from tasktransfer.datasets.declared.section import FilesSection
from tasktransfer.errors import DataError
from tasktransfer.files.untrusted import open_regular
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
"""File name extension → format. Text files may have ``.gz`` after it."""
_AS_JSON_LINES = (
    "Convert it to JSON lines (.jsonl), with one dialogue per line, such as "
    '{"messages": [{"speaker": "Ann", "text": "My parcel is late."}], "label": "delivery"}'
)
REMEDIES = {
    ".txt": _AS_JSON_LINES,
    ".yml": _AS_JSON_LINES,
    ".yaml": _AS_JSON_LINES,
    ".xml": _AS_JSON_LINES,
    ".html": _AS_JSON_LINES,
    ".xls": "Save the sheet as CSV UTF-8 (.csv)",
    ".xlsx": "Save the sheet as CSV UTF-8 (.csv)",
    ".ods": "Save the sheet as CSV in UTF-8 (.csv)",
    ".zip": "Extract the archive",
}
"""Extension of a file that cannot be read → remedy."""
SAVED_DATASET_FILES = ("dataset_info.json", "state.json")
"""Files that mark a folder written by ``Dataset.save_to_disk``."""
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
"""First word in the name of a file or folder → split."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file, or a folder written by ``save_to_disk`` (format ``saved``)."""

    path: Path
    format: str

    def list_parts(self) -> Mapping[str, Path]:
        """Map names to the paths of the files whose content goes into a digest."""
        if self.format != "saved":
            return {"": self.path}
        files = sorted(file for file in self.path.rglob("*") if file.is_file())
        return {str(f.relative_to(self.path)): f for f in files if not f.name.startswith("cache-")}


FilesBySplit = Mapping[str, tuple[DataFile, ...]]


def _expand_pattern(location: str, key: str) -> list[Path]:
    """Return the file at a path, or the files that match a pattern with ``*`` or ``?``.

    A path that exists is not a pattern, and neither are the existing folders of a pattern.

    Raises:
        DataError: no file matches a pattern.
    """
    path = Path(expand_path(location))
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
            f"{location}: No file matches the pattern in {key}. Add the files, or change the key "
            f"{key}."
        )
    return sorted(files, key=str)


def find_files(files: FilesSection, key: str) -> FilesBySplit:
    """Find the files of a declaration, by split.

    Args:
        files: files, patterns or a folder.
        key: their config key, which messages name, such as ``datasets.Tickets.files``.

    Raises:
        DataError: a file is missing or has an unsupported format, or a folder has no train files.
    """
    if files.dev is None and files.test is None and len(files.train) == 1:
        folder = Path(expand_path(files.train[0]))
        if folder.is_dir() and not _is_saved_dataset(folder):
            return _find_split_files(folder, f"{key}.train")
    found: dict[str, tuple[DataFile, ...]] = {}
    keys: dict[Path, str] = {}
    for split in SPLITS:
        own = f"{key}.{split}"
        places = getattr(files, split)
        if places is None:
            continue
        found[split] = tuple(
            check_file(path, own) for place in places for path in _expand_pattern(place, own)
        )
        for file in found[split]:
            if (other := keys.setdefault(file.path.resolve(), own)) != own:
                raise DataError(
                    f"{file.path}: The file is listed under both {other} and {own}. List "
                    "different files for each split."
                )
    return found


def check_file(path: Path, key: str) -> DataFile:
    """Return a file with its detected format.

    Raises:
        DataError: the file is missing, cannot be read or has an unsupported format.
    """
    if os.path.isdir(path):  # noqa: PTH112  # Path.is_dir raises for a name that is too long
        if _is_saved_dataset(path):
            return DataFile(path, "saved")
        raise DataError(
            f"{path}: The path is a folder, but the key {key} needs files. List the files in the "
            "folder, or specify a folder that Dataset.save_to_disk wrote."
        )
    try:
        open_regular(path).close()
    except FileNotFoundError:
        start = "" if path.is_absolute() else f" Relative paths begin at {Path.cwd()}."
        raise DataError(
            f"{path}: The file is missing, but the key {key} lists it. Add the file, or change "
            f"the key {key}.{start}"
        ) from None
    except OSError as error:
        raise DataError(
            f"{path}: The file cannot be read ({error.strerror}), but the key {key} lists it. "
            f"Make the file readable, or change the key {key}."
        ) from None
    ending = _get_extension(path)
    if ending not in FORMATS:
        problem = f"The extension {ending!r} is not a supported format"
        raise DataError(
            f"{path}: {problem if ending else 'The file name has no extension'}. "
            f"{REMEDIES.get(ending, 'Save the file as one of ' + ', '.join(FORMATS))}."
        )
    return DataFile(path, FORMATS[ending])


def _get_extension(path: Path) -> str:
    """Return a file's extension in lower case, ignoring ``.gz``."""
    endings = path.suffixes[:-1] if path.suffix.lower() == ".gz" else path.suffixes
    return endings[-1].lower() if endings else ""


def _is_saved_dataset(folder: Path) -> bool:
    return all((folder / name).is_file() for name in SAVED_DATASET_FILES)


def _find_split_files(folder: Path, key: str) -> FilesBySplit:
    """Return the files in a folder by split, as file or folder names indicate.

    The only readable file of a folder is train, whatever its name.
    """
    found: dict[str, list[Path]] = {}
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    for path in paths:
        split = SPLIT_WORDS.get(get_first_word(path.name))
        if split is None:
            continue
        inner = sorted(path.iterdir()) if path.is_dir() and not _is_saved_dataset(path) else [path]
        files = [file for file in inner if not file.name.startswith(".")] or inner
        found.setdefault(split, []).extend(files)
    readable = [path for path in paths if _is_readable(path)]
    if not found and len(readable) == 1:
        found["train"] = readable
    if "train" not in found:
        raise DataError(_describe_unassigned_files(folder, key, paths, readable))
    return {
        split: tuple(check_file(file, key) for file in _select_readable_files(found[split]))
        for split in SPLITS
        if split in found
    }


def _is_readable(path: Path) -> bool:
    return _get_extension(path) in FORMATS if path.is_file() else _is_saved_dataset(path)


def _select_readable_files(paths: Sequence[Path]) -> Sequence[Path]:
    """Return the files that can be read, or all files if there are none.

    A folder may contain ``train.py`` beside ``train.csv``.
    """
    return [path for path in paths if _is_readable(path)] or paths


def _describe_unassigned_files(
    folder: Path, key: str, paths: Sequence[Path], readable: Sequence[Path]
) -> str:
    """Return the error for a folder without a file for the training split."""
    start = f"{folder}: The folder is specified by {key}, but contains no "
    if not readable:
        contents = sorted({f"{path.name}/" if path.is_dir() else path.suffix for path in paths})
        others = f" (it contains {', '.join(contents[:5])})" if contents else ""
        return (
            f"{start}file that can be read{others}. Save the dialogues as one of "
            f"{', '.join(FORMATS)}."
        )
    example = f"{folder}/*{_get_extension(readable[0])}"
    number = "1 readable file" if len(readable) == 1 else f"{len(readable):,} readable files"
    return (
        f"{start}file whose name begins with train (found {number}, such as {readable[0].name}). "
        "Rename the files to train, dev and test. If all of them are training data, list the "
        f"files instead of the folder: {example}"
    )


def assign_splits(paths: Sequence[Path]) -> dict[Path, str]:
    """Map each file to the split that its name indicates.

    A folder is replaced by its files. The first file is train if no name contains train.

    Raises:
        DataError: a folder has no train files.
    """
    splits: dict[Path, str] = {}
    for path in paths:
        if os.path.isdir(path) and not _is_saved_dataset(path):  # noqa: PTH112  # as in check_file
            by_split = _find_split_files(path, "the command line")
            splits |= {file.path: split for split, files in by_split.items() for file in files}
            continue
        words = re.split(r"[^a-z]+", path.name.lower())
        splits[path] = next((SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS), "train")
    if "train" not in splits.values():
        splits[next(iter(splits))] = "train"
    return splits


def get_first_word(name: str) -> str:
    """Return the first word of a name in lower case."""
    word = name.lower()
    for mark in ".-_ ":
        word = word.partition(mark)[0]
    return word
