"""Search, reading, splits and revision of a dataset's release: a folder or zip with official names.

``safe_zip`` decides whether a zip is safe. This module uses the standard library only, because the
revision of a release is computed each time the workflow is parsed.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tasktransfer.datasets.file_digests import (
    Digests,
    cache_digests,
    combine_digests,
    compute_files_digest,
)
from tasktransfer.errors import DataError, format_location
from tasktransfer.files.safe_zip import (
    CHUNK_BYTES,
    Limits,
    SafeZip,
    UnsafeZipError,
    check_zip,
    describe_flaw,
)
from tasktransfer.tasks.card import SPLITS

ID_FILES = {split: f"TTiDB_{split}_ids.txt" for split in SPLITS}
"""Split → file with the ids of its dialogues, one per line."""
FEW_SAMPLE_ID_FILES = {
    split: f"TTiDB_0.1_percent_few_shot_{split}_ids.txt" for split in ("train", "dev")
}
"""Split → file with the few-sample setting's 10 % of train and dev. The official name says percent,
but the number is a fraction."""

MAX_TOTAL_BYTES = 4 * 2**30
"""Maximum unpacked size of a release. The largest official one has 0.14 GB."""
MAX_RATIO = 200
"""Maximum compression ratio. Dialogues in JSON have a ratio of about 20."""

SourceKind = Literal["folder", "zip"]


@dataclass(frozen=True, slots=True)
class Source:
    """Location of a dataset's release. ``path`` is the folder or the zip."""

    dataset: str
    path: Path
    kind: SourceKind

    def get_location(self, name: str) -> str:
        """Return the location of a release's file ``name`` for messages."""
        return f"{self.path}/{name}" if self.kind == "folder" else f"{self.path} ({name})"


def get_json_file_name(dataset: str) -> str:
    """Return the official name of the JSON file with a dataset's dialogues."""
    return f"TLiDB_{dataset}.json"


def list_official_files(dataset: str) -> tuple[str, ...]:
    """Return the names of a release's six files in a fixed order."""
    return (get_json_file_name(dataset), *ID_FILES.values(), *FEW_SAMPLE_ID_FILES.values())


def find_source(path: Path | str, dataset: str) -> Source:
    """Find the release of ``dataset`` at ``path``, without opening it.

    The search order is ``<path>/TLiDB_<dataset>/``, ``<path>/TLiDB_<dataset>.zip``, and ``path``
    itself as such a folder or zip.

    Raises:
        DataError: there is no release. The message lists the searched paths.
    """
    path = Path(path).expanduser()
    folder, packed = path / f"TLiDB_{dataset}", path / f"TLiDB_{dataset}.zip"
    if folder.is_dir():
        return Source(dataset, folder, "folder")
    if packed.is_file():
        return Source(dataset, packed, "zip")
    if (path / get_json_file_name(dataset)).is_file() or (
        path.name == folder.name and path.is_dir()
    ):
        return Source(dataset, path, "folder")
    if path.is_file():
        if path.suffix.lower() == ".zip" or zipfile.is_zipfile(path):
            return Source(dataset, path, "zip")
        raise DataError(
            f"{path}: The path is neither a folder nor a zip file. Set data.release to the folder "
            f"that contains TLiDB_{dataset}/ or TLiDB_{dataset}.zip."
        )
    state = "The path does not exist" if not path.exists() else f"There is no release of {dataset}"
    raise DataError(
        f"{path}: {state}. The tested paths are {folder}/, {packed} and "
        f"{path / get_json_file_name(dataset)}. Put the release into this folder, or set "
        "data.release to the release's folder."
    )


def read_file(source: Source, name: str) -> bytes:
    """Read an official file. Raises DataError if it is missing or unsafe."""
    return b"".join(stream_files(source, (name,))[name])


def read_files(source: Source) -> dict[str, bytes]:
    """Read all official files, as a mapping from name to content.

    Raises:
        DataError: a file is missing or unsafe.
    """
    streams = stream_files(source, list_official_files(source.dataset))
    return {name: b"".join(stream) for name, stream in streams.items()}


def stream_files(source: Source, names: tuple[str, ...]) -> dict[str, Iterator[bytes]]:
    """Map each official file to an iterator over the chunks of its content.

    Missing files are detected first. The size limits apply to all files of a call together.

    Raises:
        DataError: a file is missing or unsafe.
    """
    if source.kind == "folder":
        return {name: _read_file_chunks(_find_folder_file(source, name)) for name in names}
    packed = _open_checked_zip(source)
    members = {name: _find_member(source, packed, name) for name in names}
    absent = [name for name, member in members.items() if member is None]
    if absent:
        raise _build_missing_error(source, absent)
    return {
        name: _read_zip_chunks(source, packed, member) for name, member in members.items() if member
    }


def find_folder_files(source: Source) -> dict[str, Path]:
    """Return the official files of a folder, and refuse files outside the folder."""
    return {name: _find_folder_file(source, name) for name in list_official_files(source.dataset)}


def _build_missing_error(source: Source, names: list[str]) -> DataError:
    needed = ", ".join(list_official_files(source.dataset))
    return DataError(
        f"{source.path}: The {source.kind} does not contain {', '.join(names)}. A release of "
        f"{source.dataset} contains {needed}, which a zip has at the top or in "
        f"TLiDB_{source.dataset}/. Copy the release again."
    )


def _find_folder_file(source: Source, name: str) -> Path:
    file = source.path / name
    try:
        real = file.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        raise _build_missing_error(source, [name]) from None
    except (OSError, RuntimeError) as error:
        raise DataError(
            f"{file}: The file cannot be opened ({error}). Check the permissions of the file, or "
            "copy the release again."
        ) from error
    if not real.is_relative_to(source.path.resolve()):
        raise DataError(
            f"{file}: The file is a link to {real}, which is outside the folder of the file. Copy "
            "the linked file into the folder, or set data.release to the folder that contains "
            "the linked file."
        )
    if not real.is_file():
        raise DataError(f"{file}: The path is not a regular file. Put a regular file at this path.")
    return file


def _read_file_chunks(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise DataError(
            f"{file}: The file cannot be read ({error}). Copy the release again."
        ) from error


def _open_checked_zip(source: Source) -> SafeZip:
    try:
        packed = check_zip(source.path, Limits(total=MAX_TOTAL_BYTES, ratio=MAX_RATIO))
    except OSError as error:
        raise DataError(
            f"{source.path}: The file cannot be read ({error}). Copy the release again."
        ) from error
    if packed.flaws:
        raise DataError(describe_flaw(source.path, packed.flaws[0]))
    return packed


def _find_member(source: Source, packed: SafeZip, name: str) -> str | None:
    """Find the path of an official file in a zip, or return None if it is missing."""
    paths = (f"TLiDB_{source.dataset}/{name}", name)
    return next((path for path in paths if path in packed.members), None)


def _read_zip_chunks(source: Source, packed: SafeZip, member: str) -> Iterator[bytes]:
    try:
        yield from packed.read_chunks(member)
    except UnsafeZipError as error:
        raise DataError(describe_flaw(source.path, error.flaw)) from error


def compute_release_revision(path: Path | str, dataset: str, memo: Path | None = None) -> str:
    """Return the digest (SHA-256, hex) of the release of ``dataset`` at ``path``.

    It covers the official file names and their contents, so a folder and a zip with the same files
    have the same revision.

    Args:
        path: folder or zip, see ``find_source``.
        dataset: name of the dataset.
        memo: cache file for digests. None to hash all files.

    Raises:
        DataError: the release or one of its files is missing.
    """
    source = find_source(path, dataset)
    if source.kind == "folder":
        return compute_files_digest(find_folder_files(source), memo)
    with cache_digests(memo) as digests:
        return combine_digests(_compute_member_digests(source, digests))


def _compute_member_digests(source: Source, digests: Digests) -> dict[str, str]:
    """Return the digests of the official files in a zip by name, cached by the zip's state."""
    state = source.path.stat()
    names = list_official_files(source.dataset)
    keys = {name: f"{source.path.absolute()}::{name}" for name in names}
    recalled = {name: digests.get_cached_digest(keys[name], state) for name in names}
    if all(recalled.values()):
        return {name: digest for name, digest in recalled.items() if digest}
    members = {}
    for name, chunks in stream_files(source, names).items():
        members[name] = _compute_digest(chunks)
        digests.cache_digest(keys[name], state, members[name])
    return members


def _compute_digest(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class SplitIds:
    """Dialogue ids per split, in the order of the id files.

    Args:
        full: ids of train, dev and test.
        few_sample: ids of train and dev, since the few-sample setting uses the whole test split.
    """

    full: dict[str, tuple[str, ...]]
    few_sample: dict[str, tuple[str, ...]]

    def get_ids(self, split: str, few_sample: bool) -> tuple[str, ...]:
        """Return the dialogue IDs of ``split`` in the few-sample or the full-data setting."""
        return self.few_sample.get(split, self.full[split]) if few_sample else self.full[split]


def get_id_file_name(split: str, few_sample: bool) -> str:
    """Return the official name of the file with the dialogue IDs of ``split``."""
    return FEW_SAMPLE_ID_FILES.get(split, ID_FILES[split]) if few_sample else ID_FILES[split]


def parse_split_ids(source: Source, files: Mapping[str, bytes]) -> SplitIds:
    """Parse the splits of a release from the bytes of its ID files.

    Raises:
        DataError: a file is empty, an id is repeated, a dialogue is in two splits, or a few-sample
            id is not in its full split.
    """
    full = {split: _parse_ids(source, name, files[name]) for split, name in ID_FILES.items()}
    few = {
        split: _parse_ids(source, name, files[name]) for split, name in FEW_SAMPLE_ID_FILES.items()
    }
    _check_disjoint(source, {ID_FILES[split]: ids for split, ids in full.items()})
    _check_disjoint(source, {FEW_SAMPLE_ID_FILES[split]: ids for split, ids in few.items()})
    for split, ids in few.items():
        outsiders = sorted(set(ids) - set(full[split]))
        if outsiders:
            raise DataError(
                f"{source.get_location(FEW_SAMPLE_ID_FILES[split])}: The few-sample {split} split "
                f"must be a subset of the full split, but its dialogue {outsiders[0]!r} "
                f"({len(outsiders)} in all) is not in {ID_FILES[split]}. Use the official files."
            )
    return SplitIds(full=full, few_sample=few)


def check_dialogues_present(
    source: Source, ids: SplitIds, split: str, few_sample: bool, known: Collection[str]
) -> None:
    """Raise DataError if dialogues of ``split`` are not among the release's IDs (``known``)."""
    wanted = ids.get_ids(split, few_sample)
    absent = [dialogue for dialogue in wanted if dialogue not in known]
    if not absent:
        return
    where, data = (
        source.get_location(get_id_file_name(split, few_sample)),
        get_json_file_name(source.dataset),
    )
    if few_sample or split == "test":
        raise DataError(
            f"{where}: The file {data} lacks {len(absent)} of the {len(wanted)} listed dialogues, "
            f"for example {absent[0]!r}, so the two files are from different releases. Copy the "
            "release again."
        )
    raise DataError(
        f"{where}: {len(absent):,} of the {len(wanted):,} dialogues of the {split} split, such as "
        f"{absent[0]!r}, are not in the file {data}, so the release does not contain the full "
        "data. Use the full release, or set data.few_sample: true."
    )


def map_dialogues_to_splits(ids: SplitIds) -> dict[str, str]:
    """Map each dialogue ID to its split in the full-data setting."""
    return {dialogue: split for split in SPLITS for dialogue in ids.full[split]}


def _parse_ids(source: Source, name: str, content: bytes) -> tuple[str, ...]:
    where = source.get_location(name)
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: The text is not valid UTF-8 ({error}). Copy the release again."
        ) from error
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        dialogue = line.strip()
        if not dialogue:
            continue
        if dialogue in seen:
            raise DataError(
                f"{format_location(where, number)}: Dialogue {dialogue!r} is already on line "
                f"{seen[dialogue]}. Remove one of the two lines."
            )
        seen[dialogue] = number
    if not seen:
        raise DataError(f"{where}: The file lists no dialogues. Write one dialogue ID per line.")
    return tuple(seen)


def _check_disjoint(source: Source, lists: Mapping[str, tuple[str, ...]]) -> None:
    where: dict[str, str] = {}
    for name, ids in lists.items():
        for dialogue in ids:
            if dialogue in where:
                raise DataError(
                    f"{source.path}: Dialogue {dialogue!r} is in both files {where[dialogue]} and "
                    f"{name}. Keep the dialogue in one split."
                )
            where[dialogue] = name
