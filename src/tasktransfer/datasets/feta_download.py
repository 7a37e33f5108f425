"""Download FETA's two archives from the addresses that its authors publish.

The addresses are those of TLiDB (``tlidb/TLiDB/datasets/{DailyDialog,Friends}_dataset.py``). The
authors publish no checksums, so the first download of an archive records its SHA-256, and later
downloads must have the same. Standard library only.
"""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.datasets.feta.archive import find_source, official_files, stream_files
from tasktransfer.errors import DataError
from tasktransfer.files import compute_sha256, replace_file
from tasktransfer.files.progress import StatusLine

MAX_BYTES = 2**30
"""Most bytes of an archive; the larger official one has 0.02 GB."""
SECONDS = 60.0
"""Longest wait for the next bytes."""
CHUNK_BYTES = 2**18
CHECKSUMS = "SHA256SUMS"
"""File of the folder that records checksums, in the format of ``sha256sum``."""
_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")


@dataclass(frozen=True, slots=True)
class Archive:
    """A published archive: its dataset, its address, and the licences of what it holds."""

    dataset: str
    address: str
    licences: tuple[str, ...]

    @property
    def name(self) -> str:
        """File name, under which ``data.release`` finds the archive."""
        return f"TLiDB_{self.dataset}.zip"


_DRIVE = "https://drive.google.com/uc?export=download&id="
ARCHIVES = (
    Archive(
        "DailyDialog",
        f"{_DRIVE}1c88IN_ZHpRvkkgQxmN4sfGmqN2DurQx2",
        (
            "dialogues (DailyDialog): CC BY-NC-SA 4.0, for non-commercial use",
            "annotations: DailyDialog CC BY-NC-SA 4.0; CIDER MIT; RECCON and DailyDialog++ as "
            "their authors state",
        ),
    ),
    Archive(
        "Friends",
        f"{_DRIVE}1QK_XX-d38fKeJlcTcoMT9ku3VZn6bv6H",
        (
            "dialogues: transcripts of a television series, whose rights are with their owners",
            "annotations: emorynlp Apache-2.0; MELD GPL-3.0; DialogRE for non-commercial research; "
            "personality-detection states none",
        ),
    ),
)


def download(archive: Archive, folder: Path, mirror: str | None = None) -> bool:
    """Download an archive into a folder and check it; return whether it had to be downloaded.

    A download that was interrupted resumes. The archive appears under its name only when it is
    complete and sound.

    Args:
        mirror: address of a folder that holds the archives by name; None for the authors' own.

    Raises:
        DataError: the address cannot be reached, what arrives is not the archive, or its checksum
            is not the recorded one; names the address and the remedy.
    """
    path = folder / archive.name
    recorded = read_checksums(folder).get(archive.name)
    if path.is_file():
        _compare(path, recorded)
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
            part.unlink()  # as long as the archive or longer, and not sound
            _download_rest(address, part)
    _check(part, archive, address)
    digest = compute_sha256(part)
    if recorded is not None and digest != recorded:
        part.unlink()
        raise DataError(
            f"{address}: its SHA-256 is {digest}, and {folder / CHECKSUMS} records {recorded}. "
            f"Remove the line of {archive.name} there if the authors changed their archive"
        )
    part.replace(path)
    _record_checksum(folder, archive.name, digest)
    return True


def read_checksums(folder: Path) -> Mapping[str, str]:
    """Return file name → SHA-256 as the folder records them; empty if it records none."""
    path = folder / CHECKSUMS
    if not path.is_file():
        return {}
    lines = (line.split(maxsplit=1) for line in path.read_text("utf-8").splitlines())
    return {words[1].strip("*"): words[0] for words in lines if len(words) == 2}


def _record_checksum(folder: Path, name: str, digest: str) -> None:
    checksums = {**read_checksums(folder), name: digest}
    with replace_file(folder / CHECKSUMS) as path:
        path.write_text("".join(f"{d}  {n}\n" for n, d in sorted(checksums.items())), "utf-8")


def _compare(path: Path, recorded: str | None) -> None:
    digest = compute_sha256(path)
    if recorded is None:
        _record_checksum(path.parent, path.name, digest)
    elif digest != recorded:
        raise DataError(
            f"{path}: its SHA-256 is {digest}, and {path.parent / CHECKSUMS} records {recorded}. "
            "Remove the file and download it again"
        )


def _download_rest(address: str, part: Path) -> None:
    """Append what the server has beyond the bytes of ``part``.

    Raises:
        DataError: the answer is a web page or too large, or the address is not http or https.
        OSError: the network fails.
    """
    if not address.startswith(("http://", "https://")):
        raise DataError(f"{address}: is not an address. Give --mirror one with http or https")
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        if "text/html" in answer.headers.get("Content-Type", ""):
            raise DataError(
                f"{address}: is a web page, not an archive. Open it in a browser, download the "
                f"archive, and put it at {part.with_name(part.name[1:].removesuffix('.download'))}"
            )
        place = _RANGE.match(answer.headers.get("Content-Range", ""))
        if not place or int(place[1]) != have:
            have = 0  # the server sends the whole file
        size = have + int(answer.headers.get("Content-Length") or 0)
        _append(answer, part, have, size)


def _append(answer: Any, part: Path, have: int, size: int) -> None:
    name, line = part.name[1:].removesuffix(".download"), StatusLine("downloading")
    with part.open("r+b" if have else "wb") as out:
        out.truncate(have)
        out.seek(have)
        while chunk := answer.read(CHUNK_BYTES):
            have += len(chunk)
            if have > MAX_BYTES:
                raise DataError(f"{answer.url}: sends more than {MAX_BYTES / 2**30:.0f} GiB")
            out.write(chunk)
            of = f" of {size / 2**20:.1f}" if size else ""
            line.show(f"{name}: {have / 2**20:.1f}{of} MiB")
    line.end("")
    if size and have < size:
        raise http.client.IncompleteRead(b"", size - have)


def _check(part: Path, archive: Archive, address: str) -> None:
    """Raise DataError unless a download is a zip with the official files; remove it then."""
    try:
        source = find_source(part, archive.dataset)
        for chunks in stream_files(source, official_files(archive.dataset)).values():
            for _ in chunks:
                pass
    except DataError as error:
        part.unlink()
        what = str(error).replace(str(part), archive.name)
        raise DataError(f"{address}: what it sends is not the archive ({what:.300})") from None


@contextmanager
def _report_network_errors(address: str, name: str, folder: Path) -> Iterator[None]:
    """Report errors of the network as DataErrors that say how to go on without it."""
    remedy = (
        f"Run the command again, which resumes; or download {name} in a browser and put it into "
        f"{folder}"
    )
    try:
        yield
    except urllib.error.HTTPError as error:
        what = f"the server answers {error.code} {error.reason}"
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
        what = f"cannot be downloaded ({getattr(error, 'reason', None) or error!s:.200})"
    except ConnectionError as error:
        what = f"cannot be downloaded ({error!s:.200})"
    except ValueError as error:
        raise DataError(f"{address}: is not an address ({error})") from None
    else:
        return
    raise DataError(f"{address}: {what}. {remedy}")
