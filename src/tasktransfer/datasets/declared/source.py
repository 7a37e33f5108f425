"""Sources of declared dialogues: files on disk, or a dataset on the hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tasktransfer.core.identity import compute_digest
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue, read_dialogues
from tasktransfer.datasets.declared.files import DataFile, FilesBySplit, find_files
from tasktransfer.datasets.declared.row_fields import SourceRow
from tasktransfer.datasets.declared.rows import read_rows
from tasktransfer.datasets.declared.section import Declaration, DialogueSection, HubSplits
from tasktransfer.datasets.file_digests import Digests, cache_digests, combine_digests
from tasktransfer.errors import DataError
from tasktransfer.files import json_text, replace_file
from tasktransfer.files.csv_file import open_csv
from tasktransfer.tasks.card import SPLITS

PLAIN_DIGEST = "0" * 64
"""Placeholder digest for files whose reading follows from their content alone."""


class Source(Protocol):
    """Source of dialogues.

    Args:
        splits: splits that have their own dialogues, train first.
        location: files or name on the hub, which messages name.
    """

    @property
    def splits(self) -> Sequence[str]: ...

    @property
    def location(self) -> str: ...

    def compute_digest(self, memo: Path | None) -> str:
        """Return the digest of the content, independent of paths."""

    def read_dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        """Yield the dialogues of a split, in the source's order."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files on disk."""

    files: FilesBySplit
    section: DialogueSection

    @property
    def splits(self) -> Sequence[str]:
        return tuple(self.files)

    @property
    def location(self) -> str:
        return ", ".join(str(file.path) for some in self.files.values() for file in some)

    def compute_digest(self, memo: Path | None) -> str:
        with cache_digests(memo) as digests:
            return combine_digests(
                {
                    f"{split}/{number}/{name}": digest
                    for split, some in self.files.items()
                    for number, file in enumerate(some)
                    for name, digest in _compute_file_digests(file, digests).items()
                }
            )

    def read_dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        several = len(self.files[split]) > 1
        for number, file in enumerate(self.files[split], start=1):
            name = f"{split}{number}" if several else split
            yield from read_dialogues(read_rows(file), self.section, name, split)


def _compute_file_digests(file: DataFile, digests: Digests) -> dict[str, str]:
    """Return the digests of a file's parts, and of its parsing where that may differ.

    Examples are a CSV file whose rows differ from its header, and labels of a table that are read
    by name. Another interpretation gives other instances.
    """
    found = {name: digests.get_digest(part) for name, part in file.list_parts().items()}
    if file.format in ("csv", "parquet", "arrow", "saved"):
        head = file.path / "state.json" if file.format == "saved" else file.path
        key, state = f"{file.path.absolute()} as {file.format}", head.stat()
        reading = digests.get_cached_digest(key, state)
        if reading is None:
            reading = _compute_reading_digest(file)
            digests.cache_digest(key, state, reading)
        if reading != PLAIN_DIGEST:
            found["reading"] = reading
    return found


def _compute_reading_digest(file: DataFile) -> str:
    try:
        if file.format != "csv":
            from tasktransfer.datasets.declared import table_rows  # noqa: PLC0415  # pyarrow is slow

            named = table_rows.find_named_labels(file.path, file.format)
            return compute_digest(named) if named else PLAIN_DIGEST
        csv = open_csv(file.path)
    except DataError:
        return PLAIN_DIGEST  # The problem is reported when the file is read.
    return (
        PLAIN_DIGEST
        if csv.is_plain
        else compute_digest([csv.dialect.separator, csv.dialect.has_quotes, *csv.places])
    )


@dataclass(frozen=True, slots=True)
class HubSource:
    """A dataset on the hub, which is read from the library's cache."""

    name: str
    config: str | None
    revision: str | None
    names: HubSplits
    section: DialogueSection

    @property
    def splits(self) -> Sequence[str]:
        return tuple(split for split in SPLITS if getattr(self.names, split) is not None)

    @property
    def location(self) -> str:
        return f"{self.name} on the hub"

    def compute_digest(self, memo: Path | None) -> str:
        """Return the digest of the rows, cached in the folder of ``memo``.

        A study keeps the digest of its first start, even if the branch moves.
        """
        known = json_text.read_object(memo.with_name("hub.json")) if memo else {}
        key = f"{self.name} {self.config} {self.revision} {self.names!r}"
        if memo is not None and key not in known:
            memo.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(memo.with_name("hub.json")) as part:
                known[key] = self._compute_rows_digest()
                part.write_text(json.dumps(known, indent=1) + "\n")
        return str(known[key]) if memo is not None else self._compute_rows_digest()

    def _compute_rows_digest(self) -> str:
        digest = hashlib.sha256()
        for split in self.splits:
            for row in self._read_rows(split):
                digest.update(repr((split, row.values)).encode("utf-8", "replace"))
        return digest.hexdigest()

    def _read_rows(self, split: str) -> Iterator[SourceRow]:
        from tasktransfer.datasets.declared.table_rows import (  # noqa: PLC0415  # pyarrow is slow
            read_hub_rows,
        )

        named = getattr(self.names, split)
        return read_hub_rows(self.name, self.config, named, self.revision)

    def read_dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        return read_dialogues(self._read_rows(split), self.section, split, split)


def open_source(declaration: Declaration, key: str) -> Source:
    """Open the source of a declared dataset.

    Args:
        declaration: the declaration.
        key: its config key, which messages name, such as ``datasets.Tickets``.

    Raises:
        DataError: a file is missing or has an unsupported format, or there is neither a test split
            nor a fraction of train for it.
    """
    source: Source
    if declaration.files is not None:
        source = FileSource(find_files(declaration.files, f"{key}.files"), declaration.dialogue)
    else:
        assert declaration.hub is not None
        source = HubSource(
            declaration.hub,
            declaration.config,
            declaration.revision,
            declaration.splits,
            declaration.dialogue,
        )
    if "test" not in source.splits and declaration.shares.test is None:
        raise DataError(
            f"{source.location}: The dataset has no test split. Set {key}.files.test, or set "
            f"{key}.shares.test to 0.2 to hold out a fifth of the training dialogues."
        )
    return source
