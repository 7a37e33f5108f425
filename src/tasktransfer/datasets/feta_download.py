"""FETA's two archives at the addresses that its authors publish.

The addresses are those of TLiDB (``tlidb/TLiDB/datasets/{DailyDialog,Friends}_dataset.py``). The
authors publish no checksums, so the first download of an archive records its SHA-256.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tasktransfer.datasets.download import Archive
from tasktransfer.datasets.feta.archive import find_source, list_official_files, stream_files

_DRIVE = "https://drive.google.com/uc?export=download&id="


def _check_official_files(dataset: str, path: Path) -> None:
    """Raise DataError if a file is not a zip with a dataset's official files."""
    source = find_source(path, dataset)
    for chunks in stream_files(source, list_official_files(dataset)).values():
        for _ in chunks:
            pass


def _build_archive(dataset: str, drive_id: str, licences: tuple[str, ...]) -> Archive:
    name = f"TLiDB_{dataset}.zip"  # data.release finds the archive under this name.
    check = partial(_check_official_files, dataset)
    return Archive(name, _DRIVE + drive_id, licences, check=check)


ARCHIVES = (
    _build_archive(
        "DailyDialog",
        "1c88IN_ZHpRvkkgQxmN4sfGmqN2DurQx2",
        (
            "dialogues (DailyDialog): CC BY-NC-SA 4.0, for non-commercial use",
            "annotations: DailyDialog CC BY-NC-SA 4.0; CIDER MIT; RECCON and DailyDialog++ as "
            "their authors state",
        ),
    ),
    _build_archive(
        "Friends",
        "1QK_XX-d38fKeJlcTcoMT9ku3VZn6bv6H",
        (
            "dialogues: transcripts of a television series, whose rights are with their owners",
            "annotations: emorynlp Apache-2.0; MELD GPL-3.0; DialogRE for non-commercial research; "
            "personality-detection states none",
        ),
    ),
)
