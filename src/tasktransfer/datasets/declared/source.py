"""Where the dialogues of a declaration come from: files on this disk, or a dataset of the hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tasktransfer.datasets.declared.dialogues import DeclaredDialogue, dialogues_of
from tasktransfer.datasets.declared.files import FilesBySplit, files_of
from tasktransfer.datasets.declared.rows import hub_rows, read_rows
from tasktransfer.datasets.declared.section import Declaration, DialogueSection, HubSplits
from tasktransfer.datasets.file_digests import combined, remembering
from tasktransfer.errors import DataError
from tasktransfer.files import json_text, replacing
from tasktransfer.tasks.card import SPLITS


class Source(Protocol):
    """``splits``: those that have dialogues of their own, train first. ``location``: for errors."""

    @property
    def splits(self) -> Sequence[str]: ...

    @property
    def location(self) -> str: ...

    def digest(self, memo: Path | None) -> str:
        """A digest of all content, and of no path."""

    def dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        """The dialogues of a split in their order."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files on this disk."""

    files: FilesBySplit
    section: DialogueSection

    @property
    def splits(self) -> Sequence[str]:
        return tuple(self.files)

    @property
    def location(self) -> str:
        return ", ".join(str(file.path) for some in self.files.values() for file in some)

    def digest(self, memo: Path | None) -> str:
        with remembering(memo) as digests:
            return combined(
                {
                    f"{split}/{number}/{name}": digests.of_file(part)
                    for split, some in self.files.items()
                    for number, file in enumerate(some)
                    for name, part in file.parts().items()
                }
            )

    def dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        several = len(self.files[split]) > 1
        for number, file in enumerate(self.files[split], start=1):
            name = f"{split}{number}" if several else split
            yield from dialogues_of(read_rows(file), self.section, name, split)


@dataclass(frozen=True, slots=True)
class Hub:
    """A dataset of the hub, as the library's cache has it."""

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
        """Of the rows themselves, remembered: a branch moves, and the study keeps what it was at
        its first start."""
        known = json_text.read_object(memo.with_name("hub.json")) if memo else {}
        key = f"{self.name} {self.config} {self.revision} {self.names!r}"
        if memo is not None and key not in known:
            memo.parent.mkdir(parents=True, exist_ok=True)
            with replacing(memo.with_name("hub.json")) as part:
                known[key] = self._hashed()
                part.write_text(json.dumps(known, indent=1) + "\n")
        return str(known[key]) if memo is not None else self._hashed()

    def _hashed(self) -> str:
        digest = hashlib.sha256()
        for split in self.splits:
            for row in self._rows(split):
                digest.update(repr((split, row)).encode("utf-8", "replace"))
        return digest.hexdigest()

    def _rows(self, split: str) -> Iterator[Mapping[str, object]]:
        named = getattr(self.names, split)
        return (row.values for row in hub_rows(self.name, self.config, named, self.revision))

    def dialogues(self, split: str) -> Iterator[DeclaredDialogue]:
        named = getattr(self.names, split)
        rows = hub_rows(self.name, self.config, named, self.revision)
        return dialogues_of(rows, self.section, split, split)


def source_of(declaration: Declaration, key: str) -> Source:
    """The source of a declaration; ``key`` names it in messages (``datasets.Tickets``).

    Raises:
        DataError: as ``files_of``; or there is no test split and no share of train that becomes
            one.
    """
    source: Source
    if declaration.files is not None:
        source = Files(files_of(declaration.files, f"{key}.files"), declaration.dialogue)
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
            f"{source.location}: no test split, and {key} names none: give {key}.files.test, or "
            f"set {key}.shares.test to 0.2, and a fifth of the training dialogues is kept for it"
        )
    return source
