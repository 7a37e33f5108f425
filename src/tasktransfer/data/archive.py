"""Find and open a dataset's release: a folder or a zip with the official file names.

Members of a zip are read in memory and never unpacked to disk, so no path can leave a folder; the
zip is still checked before anything is read (paths, links, duplicates) and while it is read
(real size and compression ratio, not the header's word). Standard library only: the revision of
a release is asked for each time the workflow is parsed.
"""

from __future__ import annotations

import posixpath
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from tasktransfer.errors import DataError

SPLITS = ("train", "dev", "test")
ID_FILES = {split: f"TTiDB_{split}_ids.txt" for split in SPLITS}
"""The ids of a split's dialogues, one a line."""
FEW_SAMPLE_ID_FILES = {
    split: f"TTiDB_0.1_percent_few_shot_{split}_ids.txt" for split in ("train", "dev")
}
"""The 10 % of train and dev of the few-sample setting (the official name says percent, the number
is a fraction)."""

MAX_TOTAL_BYTES = 4 * 2**30
"""Most bytes that a release may hold once unpacked; the largest official one holds 0.14 GB."""
MAX_RATIO = 200
"""Most bytes that one compressed byte may become; dialogues in JSON come to about 20."""
RATIO_FREE_BYTES = 2**20
"""A member no larger than this is no bomb, whatever its ratio."""
CHUNK_BYTES = 2**20

SourceKind = Literal["folder", "zip"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a dataset's release was found: ``path`` is the folder or the zip itself."""

    dataset: str
    path: Path
    kind: SourceKind

    def place(self, name: str) -> str:
        """How messages name the file ``name`` of this release."""
        return f"{self.path}/{name}" if self.kind == "folder" else f"{self.path} ({name})"


def json_file(dataset: str) -> str:
    """The official name of the file that holds the dialogues of ``dataset``."""
    return f"TLiDB_{dataset}.json"


def official_files(dataset: str) -> tuple[str, ...]:
    """The six files that a release is made of, in one fixed order."""
    return (json_file(dataset), *ID_FILES.values(), *FEW_SAMPLE_ID_FILES.values())


def find_source(path: Path | str, dataset: str) -> Source:
    """The release of ``dataset`` under ``path``, without opening it.

    Looked for, in this order: ``<path>/TLiDB_<dataset>/``, ``<path>/TLiDB_<dataset>.zip``, and
    ``path`` itself as such a folder or zip. Raises DataError, which says where was looked.
    """
    path = Path(path).expanduser()
    folder, packed = path / f"TLiDB_{dataset}", path / f"TLiDB_{dataset}.zip"
    if folder.is_dir():
        return Source(dataset, folder, "folder")
    if packed.is_file():
        return Source(dataset, packed, "zip")
    if (path / json_file(dataset)).is_file() or (path.name == folder.name and path.is_dir()):
        return Source(dataset, path, "folder")
    if path.is_file():
        if path.suffix.lower() == ".zip" or zipfile.is_zipfile(path):
            return Source(dataset, path, "zip")
        raise DataError(
            f"{path}: is neither a folder nor a zip; configure the folder that holds "
            f"TLiDB_{dataset}/ or TLiDB_{dataset}.zip"
        )
    state = "does not exist" if not path.exists() else f"holds no release of {dataset}"
    raise DataError(
        f"{path}: {state}; looked for {folder}/, {packed} and {path / json_file(dataset)}. "
        f"Put the release there, or configure the path where it is"
    )


def read_file(source: Source, name: str) -> bytes:
    """All bytes of the official file ``name``. Raises DataError if it is missing or unsafe."""
    return b"".join(stream_files(source, (name,))[name])


def read_files(source: Source) -> dict[str, bytes]:
    """All official files of the release, by name. Raises DataError as read_file does."""
    streams = stream_files(source, official_files(source.dataset))
    return {name: b"".join(stream) for name, stream in streams.items()}


def stream_files(source: Source, names: tuple[str, ...]) -> dict[str, Iterator[bytes]]:
    """For each of ``names`` an iterator over the chunks of its bytes.

    That every name is there is checked first. The limits on size hold over all iterators of one
    call together.
    """
    if source.kind == "folder":
        return {name: _folder_chunks(_folder_member(source, name)) for name in names}
    members = _zip_members(source)
    absent = [name for name in names if name not in members]
    if absent:
        raise _missing(source, absent)
    budget = _Budget(source)
    return {name: _zip_chunks(source, name, members[name], budget) for name in names}


def folder_files(source: Source) -> dict[str, Path]:
    """The paths of a folder release's official files, checked to lie inside the folder."""
    return {name: _folder_member(source, name) for name in official_files(source.dataset)}


def _missing(source: Source, names: list[str]) -> DataError:
    needed = ", ".join(official_files(source.dataset))
    return DataError(
        f"{source.path}: {', '.join(names)} not found in this {source.kind}; a release of "
        f"{source.dataset} holds {needed} (in a zip: at the top or in TLiDB_{source.dataset}/)"
    )


def _folder_member(source: Source, name: str) -> Path:
    file = source.path / name
    try:
        real = file.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        raise _missing(source, [name]) from None
    except (OSError, RuntimeError) as error:
        raise DataError(f"{file}: cannot be opened ({error})") from error
    if not real.is_relative_to(source.path.resolve()):
        raise DataError(
            f"{file}: is a link that leads out of its folder, to {real}; put the file itself "
            f"there, or configure the folder that it lies in"
        )
    if not real.is_file():
        raise DataError(f"{file}: is not a regular file")
    return file


def _folder_chunks(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error})") from error


@contextmanager
def _open_zip(source: Source) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(source.path) as archive:
            yield archive
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, struct.error) as error:
        raise DataError(
            f"{source.path}: cannot be read as a zip ({error}); fetch it again"
        ) from error


def _zip_members(source: Source) -> dict[str, zipfile.ZipInfo]:
    """The official files among the members; every member's path and kind is checked."""
    with _open_zip(source) as archive:
        infos = archive.infolist()
    seen: set[str] = set()
    for info in infos:
        _check_member(source, info)
        plain = posixpath.normpath(info.filename)
        if plain in seen:
            raise DataError(f"{source.path}: member {info.filename!r} is there twice; refused")
        seen.add(plain)
    packed = sum(info.compress_size for info in infos)
    if packed > source.path.stat().st_size:
        raise DataError(f"{source.path}: its members claim more bytes than the file has; refused")
    by_path = {posixpath.normpath(info.filename): info for info in infos}
    found = {}
    for name in official_files(source.dataset):
        member = by_path.get(f"TLiDB_{source.dataset}/{name}", by_path.get(name))
        if member is not None and not member.is_dir():
            found[name] = member
    return found


def _check_member(source: Source, info: zipfile.ZipInfo) -> None:
    name = info.filename
    if name.startswith("/") or "\\" in name or re.match(r"[A-Za-z]:", name):
        raise DataError(f"{source.path}: member {name!r} has an absolute or foreign path; refused")
    if ".." in name.split("/"):
        raise DataError(f"{source.path}: member {name!r} leads out of its folder; refused")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        raise DataError(f"{source.path}: member {name!r} is a symbolic link; refused")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise DataError(f"{source.path}: member {name!r} is not a regular file; refused")
    if info.flag_bits & 0x1:
        raise DataError(f"{source.path}: member {name!r} is encrypted; give it unencrypted")


class _Budget:
    """Counts the bytes really read from one zip, over all its members."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.total = 0

    def spend(self, count: int) -> None:
        self.total += count
        if self.total > MAX_TOTAL_BYTES:
            raise DataError(
                f"{self.source.path}: unpacks to more than {MAX_TOTAL_BYTES:,} bytes; refused"
            )


def _zip_chunks(
    source: Source, name: str, info: zipfile.ZipInfo, budget: _Budget
) -> Iterator[bytes]:
    place = source.place(name)
    read = 0
    with _open_zip(source) as archive:
        try:
            with archive.open(info) as stream:
                while chunk := _next_chunk(stream):
                    read += len(chunk)
                    budget.spend(len(chunk))
                    if read > RATIO_FREE_BYTES and read > MAX_RATIO * info.compress_size:
                        raise DataError(
                            f"{place}: one packed byte becomes more than {MAX_RATIO}; refused"
                        )
                    yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise DataError(
                f"{place}: is damaged in the zip ({error}); fetch the zip again"
            ) from error
        except (NotImplementedError, RuntimeError) as error:
            raise DataError(
                f"{place}: is packed in a way that cannot be read ({error}); pack it with deflate"
            ) from error
    if read != info.file_size:
        raise DataError(f"{place}: ends after {read:,} of {info.file_size:,} bytes")


def _next_chunk(stream: IO[bytes]) -> bytes:
    return stream.read(CHUNK_BYTES)
