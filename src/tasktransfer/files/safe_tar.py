"""Checked reading of text files in untrusted tar archives that gzip compresses.

Members are read in the archive's order and never unpacked to disk, so a path cannot escape. Unsafe
paths are still refused, because other tools would follow them. The bytes that are decompressed are
limited, so that a bomb costs no more than the limits allow. Standard library only.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from tasktransfer.errors import DataError
from tasktransfer.files.safe_zip import CHUNK_BYTES, RATIO_FREE_BYTES, Limits, find_path_flaw
from tasktransfer.files.untrusted import MAX_LENGTH, open_regular

_AGAIN = "Fetch it again"


def read_tar_lines(
    path: Path, names: Collection[str], limits: Limits
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield each file in a tar.gz that has one of the names, with its lines.

    The caller reads the lines before it takes the next file. Files have the archive's order.

    Raises:
        DataError: the archive is damaged or unsafe, exceeds a limit, or does not hold exactly one
            file of each name.
    """
    missing = set(names)
    with _report_damage(path), open_regular(path) as packed:
        reader = cast(BinaryIO, _LimitedReader(path, packed, limits))
        with tarfile.open(fileobj=reader, mode="r|") as archive:
            for number, member in enumerate(archive, 1):
                _refuse_member(path, number, member, limits)
                name = PurePosixPath(member.name).name
                if not member.isfile() or name not in names:
                    continue
                if name not in missing:
                    raise DataError(
                        f"{path}: The archive contains {name} more than once. {_AGAIN}."
                    )
                missing.discard(name)
                if content := archive.extractfile(member):
                    yield name, _read_lines(path, name, content)
        while reader.read(CHUNK_BYTES):  # to the end, where gzip has a checksum
            pass
    if missing:
        raise DataError(
            f"{path}: The archive does not contain {', '.join(sorted(missing))}. {_AGAIN}."
        )


def _read_lines(path: Path, name: str, content: IO[bytes]) -> Iterator[bytes]:
    with _report_damage(path):
        while line := content.readline(MAX_LENGTH + 1):
            if len(line) > MAX_LENGTH:
                raise DataError(
                    f"{path}: A line of {name} is longer than {MAX_LENGTH:,} bytes. {_AGAIN}."
                )
            yield line


@contextmanager
def _report_damage(path: Path) -> Iterator[None]:
    """Convert errors of a damaged archive to DataErrors."""
    try:
        yield
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError) as error:
        what = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{path}: The archive cannot be read ({what}). {_AGAIN}.") from None


class _LimitedReader:
    """A decompressed archive. Reading beyond a limit raises DataError."""

    def __init__(self, path: Path, packed: BinaryIO, limits: Limits) -> None:
        self._path, self._content = path, gzip.GzipFile(fileobj=packed)
        ratio = (limits.ratio or 0) * path.stat().st_size
        self._most = min(limits.total, max(RATIO_FREE_BYTES, ratio) if ratio else limits.total)
        self._size = 0

    def read(self, size: int) -> bytes:
        content = self._content.read(size)
        self._size += len(content)
        if self._size > self._most:
            raise DataError(
                f"{self._path}: The archive unpacks to more than {self._most:,} bytes. {_AGAIN}."
            )
        return content


def _refuse_member(path: Path, number: int, member: tarfile.TarInfo, limits: Limits) -> None:
    """Raise DataError for a member that is unsafe or too large according to its header."""
    path_name = f"{member.name}/" if member.isdir() else member.name
    flaw = find_path_flaw(path_name, "tar")
    if flaw is None and (member.issparse() or not (member.isfile() or member.isdir())):
        flaw = "This is a link, a device or a sparse file. Pack the file itself."
    if flaw is None and member.size > min(limits.file, limits.total):
        flaw = f"The file claims {member.size:,} bytes, more than the limit. {_AGAIN}."
    if flaw is not None:
        raise DataError(f"{path}, member {member.name!r}: {flaw}")
    if number > limits.members:
        raise DataError(f"{path}: The archive has more than {limits.members:,} members. {_AGAIN}.")
