"""Sources of declared dialogues: files on disk, or a dataset on the hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tasktransfer.core.digests import compute_digest
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue, read_dialogues
from tasktransfer.datasets.declared.files import DataFile, FilesBySplit, find_files
from tasktransfer.datasets.declared.rows import read_rows
from tasktransfer.datasets.declared.section import Declaration, DialogueSection, HubSplits
from tasktransfer.datasets.declared.source_row import SourceRow
from tasktransfer.datasets.file_digests import Digests, cache_digests, combine_digests
from tasktransfer.errors import DataError
from tasktransfer.files import json_text, replace_file
from tasktransfer.files.csv_file import open_csv
from tasktransfer.tasks.card import SPLITS

PLAIN = "0" * 64
"""Placeholder digest for files whose reading follows from their content alone."""


class Source(Protocol):
    """Source of dialogues.

    Args:
        splits: splits that have dialogues of their own, train first.
        location: files or hub name, for errors.
    """

    @property
    def splits(self) -> Sequence[str]: ...

    @property
    def location(self) -> str: ...

    def digest(self, memo: Path | None) -> str:
        """Return a digest of the content, independent of paths."""

    def dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        """Yield the dialogues of a split in their order."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files on disk."""

    files: FilesBySplit
    section: DialogueSection

    @property
    def splits(self) -> Sequence[str]:
        return tuple(self.files)

    @property
    def location(self) -> str:
        return ", ".join(str(file.path) for some in self.files.values() for file in some)

    def digest(self, memo: Path | None) -> str:
        with cache_digests(memo) as digests:
            return combine_digests(
                {
                    f"{split}/{number}/{name}": digest
                    for split, some in self.files.items()
                    for number, file in enumerate(some)
                    for name, digest in _digest_file(file, digests).items()
                }
            )

    def dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        several = len(self.files[split]) > 1
        for number, file in enumerate(self.files[split], start=1):
            name = f"{split}{number}" if several else split
            yield from read_dialogues(read_rows(file), self.section, name, split)


def _digest_file(file: DataFile, digests: Digests) -> dict[str, str]:
    """Return the digests of a file's parts, and of the way it is read if its bytes do not tell.

    Examples are a CSV file whose rows differ from its header, and labels of a table that are read
    by name. Another reading gives other instances.
    """
    found = {name: digests.get_digest(part) for name, part in file.parts().items()}
    if file.format in ("csv", "parquet", "arrow", "saved"):
        head = file.path / "state.json" if file.format == "saved" else file.path
        key, state = f"{file.path.absolute()} as {file.format}", head.stat()
        reading = digests.recall(key, state)
        if reading is None:
            reading = _hash_reading(file)
            digests.remember(key, state, reading)
        if reading != PLAIN:
            found["reading"] = reading
    return found


def _hash_reading(file: DataFile) -> str:
    try:
        if file.format != "csv":
            from tasktransfer.datasets.declared import table_rows  # noqa: PLC0415  # pyarrow is slow

            named = table_rows.find_named_labels(file.path, file.format)
            return compute_digest(named) if named else PLAIN
        csv = open_csv(file.path)
    except DataError:
        return PLAIN  # reading the file reports the problem
    return (
        PLAIN
        if csv.is_plain
        else compute_digest([csv.dialect.separator, csv.dialect.has_quotes, *csv.places])
    )


@dataclass(frozen=True, slots=True)
class Hub:
    """A dataset on the hub, as in the library's cache."""

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

    def digest(self, memo: Path | None) -> str:
        """Return the digest of the rows, cached in ``memo``'s folder.

        A branch may move, and the study keeps the digest of its first start.
        """
        known = json_text.read_object(memo.with_name("hub.json")) if memo else {}
        key = f"{self.name} {self.config} {self.revision} {self.names!r}"
        if memo is not None and key not in known:
            memo.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(memo.with_name("hub.json")) as part:
                known[key] = self._hash_rows()
                part.write_text(json.dumps(known, indent=1) + "\n")
        return str(known[key]) if memo is not None else self._hash_rows()

    def _hash_rows(self) -> str:
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

    def dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        return read_dialogues(self._read_rows(split), self.section, split, split)


def open_source(declaration: Declaration, key: str) -> Source:
    """Return the source of a declaration.

    Args:
        declaration: the declaration.
        key: its config key for messages, such as ``datasets.Tickets``.

    Raises:
        DataError: as ``find_files``; or there is neither a test split nor a fraction of train for
            it.
    """
    source: Source
    if declaration.files is not None:
        source = Files(find_files(declaration.files, f"{key}.files"), declaration.dialogue)
    else:
        assert declaration.hub is not None
        source = Hub(
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
