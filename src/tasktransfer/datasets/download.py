"""Download of published archives from their authors' addresses, and their conversion.

An interrupted download resumes. It is checked, and gets its name only when it is complete. An
archive has a known SHA-256, or its first download records one, which later downloads must have.
If a reader expects other files than the archive contains, a function of the corpus converts them.
This module uses the standard library only.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.errors import DataError
from tasktransfer.files import (
    Maker,
    compute_sha256,
    remove_partial_files,
    replace_file,
    replace_folder,
)
from tasktransfer.files.locks import lock_path
from tasktransfer.files.progress import StatusLine

MAX_BYTES = 2**30
"""Maximum size of an archive. The largest official one has 0.02 GB."""
TIMEOUT_SECONDS = 60.0
"""Maximum wait for the next bytes."""
CHUNK_BYTES = 2**18
CHECKSUMS = "SHA256SUMS"
"""File of the folder that records checksums, in the format of ``sha256sum``."""
_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")


@dataclass(frozen=True, slots=True)
class Archive:
    """A published archive.

    Attributes:
        name: file name in the folder of downloads and on mirrors.
        address: address that the authors publish.
        licences: licences of the contents, one line each.
        sha256: known checksum. None if the first download determines it.
        check: function that raises DataError for a file that is not the archive. None if the
            checksum suffices.
    """

    name: str
    address: str
    licences: tuple[str, ...]
    sha256: str | None = None
    check: Callable[[Path], None] | None = None


@dataclass(frozen=True, slots=True)
class Conversion:
    """The files that a reader expects, and the function that writes them from an archive.

    Attributes:
        archive: the archive.
        folder: name of the folder of the files.
        version: version of ``write``. Increase it when ``write`` writes other files.
        write: function that writes an archive's files into an empty folder, and returns notes.
    """

    archive: Archive
    folder: str
    version: int
    write: Callable[[Path, Path], tuple[str, ...]]


CONVERSION_MAKER = Maker("folder that data fetch writes", "fetched.json", "archive_sha256")


def fetch_converted_files(
    conversion: Conversion, folder: Path, mirror: str | None = None
) -> tuple[str, ...] | None:
    """Download an archive, and convert it to the files that its reader expects.

    Returns:
        Notes for the user. None if the files exist already.

    Raises:
        DataError: the archive cannot be downloaded, has unexpected contents or a wrong checksum, or
            the folder exists and was not written by this function, or was changed since.
    """
    target = folder / conversion.folder
    with lock_path(target, lambda line: print(line, file=sys.stderr, flush=True)):
        if (manifest := CONVERSION_MAKER.read_object(target)) is not None:
            _check_unchanged(target, manifest, conversion)
            return None
        remove_partial_files(target.parent, target.name)
        with replace_folder(target, CONVERSION_MAKER) as fresh:
            download_archive(conversion.archive, folder, mirror)
            path = folder / conversion.archive.name
            notes = conversion.write(path, fresh)
            files = sorted(file for file in fresh.rglob("*") if file.is_file())
            manifest = {
                "archive": conversion.archive.name,
                CONVERSION_MAKER.key: compute_sha256(path),
                "conversion": conversion.version,
                "files": {
                    file.relative_to(fresh).as_posix(): compute_sha256(file) for file in files
                },
                "notes": notes,
            }
            (fresh / CONVERSION_MAKER.file).write_text(
                json.dumps(manifest, indent=1) + "\n", "utf-8"
            )
    return notes


def _check_unchanged(target: Path, manifest: Mapping[str, Any], conversion: Conversion) -> None:
    """Raise DataError if a folder does not contain exactly the files of this version."""
    files = manifest.get("files")
    remedy = f"Remove {target} and run the command again"
    if manifest.get("conversion") != conversion.version or not isinstance(files, dict):
        raise DataError(
            f"{target}: The folder was written by another version of tasktransfer. {remedy}."
        )
    for name, digest in files.items():
        file = target / name
        if not file.is_file() or compute_sha256(file) != digest:
            raise DataError(f"{file}: The file is missing or was changed. {remedy}.")


def download_archive(archive: Archive, folder: Path, mirror: str | None = None) -> bool:
    """Download an archive into a folder, and check its content.

    An interrupted download resumes. The archive gets its name only when it is complete and valid.

    Args:
        mirror: address of a folder with the archives by name. None for the authors' address.

    Returns:
        Whether the archive was downloaded. False if it existed already.

    Raises:
        DataError: the address cannot be reached, the response is not the archive, or its checksum
            is wrong. The message names the address.
    """
    path = folder / archive.name
    expected = archive.sha256 or read_checksums(folder).get(archive.name)
    if path.is_file():
        _check_checksum(path, archive, expected)
        return False
    address = archive.address if mirror is None else f"{mirror.rstrip('/')}/{archive.name}"
    part = folder / f".{archive.name}.download"
    folder.mkdir(parents=True, exist_ok=True)
    with _report_network_errors(address, archive.name, folder):
        try:
            _download_rest(address, part)
        except urllib.error.HTTPError as error:
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            part.unlink()  # It is not shorter than the archive, so it is damaged.
            _download_rest(address, part)
    _check_archive(part, archive, address)
    digest = compute_sha256(part)
    if expected is not None and digest != expected:
        part.unlink()
        if archive.sha256:
            source = "from the published archive"
            remedy = "Run the command again, or give --mirror an address with the published archive"
        else:
            source = f"from {folder / CHECKSUMS}"
            remedy = f"Remove the line of {archive.name} there if the authors changed their archive"
        raise DataError(
            f"{address}: The SHA-256 of the download is {digest}, but the expected value is "
            f"{expected} ({source}). {remedy}."
        )
    part.replace(path)
    _record_checksum(folder, archive.name, digest)
    return True


def read_checksums(folder: Path) -> Mapping[str, str]:
    """Read the SHA-256 of each file from a folder's checksum file, or return {} without one."""
    path = folder / CHECKSUMS
    if not path.is_file():
        return {}
    lines = (line.split(maxsplit=1) for line in path.read_text("utf-8").splitlines())
    return {words[1].strip("*"): words[0] for words in lines if len(words) == 2}


def _record_checksum(folder: Path, name: str, digest: str) -> None:
    checksums = {**read_checksums(folder), name: digest}
    with replace_file(folder / CHECKSUMS) as path:
        path.write_text("".join(f"{d}  {n}\n" for n, d in sorted(checksums.items())), "utf-8")


def _check_checksum(path: Path, archive: Archive, expected: str | None) -> None:
    """Compare an archive's checksum with the expected one, and record it."""
    digest = compute_sha256(path)
    if expected is not None and digest != expected:
        source = "from the published archive"
        if archive.sha256 is None:
            source = f"from {path.parent / CHECKSUMS}"
        raise DataError(
            f"{path}: The SHA-256 of the file is {digest}, but the expected value is {expected} "
            f"({source}). Remove the file and download it again."
        )
    if read_checksums(path.parent).get(path.name) != digest:
        _record_checksum(path.parent, path.name, digest)


def _download_rest(address: str, part: Path) -> None:
    """Resume the download of a file, or start again if the server cannot resume.

    The whole file is written if the server ignores the requested range.

    Raises:
        DataError: the response is a web page or too large, or the address is not http or https.
        OSError: the network fails.
    """
    if not address.startswith(("http://", "https://")):
        raise DataError(
            f"{address}: The address must begin with http:// or https://. Correct --mirror."
        )
    received = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(
        address, headers={"Range": f"bytes={received}-"} if received else {}
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        if "text/html" in response.headers.get("Content-Type", ""):
            raise DataError(
                f"{address}: The response is a web page, not an archive. Open the address in a "
                "browser, download the archive, and save it as "
                f"{part.with_name(part.name[1:].removesuffix('.download'))}."
            )
        place = _RANGE.match(response.headers.get("Content-Range", ""))
        if not place or int(place[1]) != received:
            received = 0  # The server sends the whole file.
        size = received + int(response.headers.get("Content-Length") or 0)
        _append_response(response, part, received, size)


def _append_response(response: Any, part: Path, received: int, size: int) -> None:
    name, line = part.name[1:].removesuffix(".download"), StatusLine("downloading")
    with part.open("r+b" if received else "wb") as out:
        out.truncate(received)
        out.seek(received)
        while chunk := response.read(CHUNK_BYTES):
            received += len(chunk)
            if received > MAX_BYTES:
                raise DataError(
                    f"{response.url}: The file has more than {MAX_BYTES / 2**30:.0f} GiB. Check "
                    "the address."
                )
            out.write(chunk)
            of = f" of {size / 2**20:.1f}" if size else ""
            line.show(f"{name}: {received / 2**20:.1f}{of} MiB")
    line.end("")
    if size and received < size:
        raise http.client.IncompleteRead(b"", size - received)


def _check_archive(part: Path, archive: Archive, address: str) -> None:
    """Check a downloaded archive, and remove it if the check fails."""
    if archive.check is None:
        return
    try:
        archive.check(part)
    except DataError as error:
        part.unlink()
        what = str(error).replace(str(part), archive.name)
        raise DataError(
            f"{address}: The response is not the expected archive ({what:.300}). Check the "
            "address, and run the command again."
        ) from None


@contextmanager
def _report_network_errors(address: str, name: str, folder: Path) -> Iterator[None]:
    """Convert network errors and invalid addresses to DataErrors with a remedy."""
    remedy = (
        f"Run the command again to resume, or download {name} in a browser and put it into {folder}"
    )
    try:
        yield
    except urllib.error.HTTPError as error:
        what = f"The server returned the error {error.code} {error.reason}"
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
        what = (
            f"The archive cannot be downloaded ({getattr(error, 'reason', None) or error!s:.200})"
        )
    except ConnectionError as error:
        what = f"The archive cannot be downloaded ({error!s:.200})"
    except ValueError as error:
        raise DataError(
            f"{address}: The address is not valid ({error}). Correct the address."
        ) from None
    else:
        return
    raise DataError(f"{address}: {what}. {remedy}.")
