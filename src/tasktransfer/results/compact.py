"""Compact records, since a study may hold thousands of them in memory.

The metrics of epochs are four fifths of a training's record, and most steps do not read them.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast, overload

from tasktransfer.results.schema import Record, Round


class PackedRounds(Sequence[Round]):
    """Rounds of a training as compressed bytes, which are unpacked when they are read."""

    __slots__ = ("_content", "_count")

    def __init__(self, rounds: Sequence[Round]) -> None:
        self._count = len(rounds)
        self._content = zlib.compress(pickle.dumps([*rounds], pickle.HIGHEST_PROTOCOL), level=1)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Round]:
        return iter(self._unpack())

    @overload
    def __getitem__(self, index: int) -> Round: ...
    @overload
    def __getitem__(self, index: slice) -> list[Round]: ...
    def __getitem__(self, index: int | slice) -> Round | list[Round]:
        return self._unpack()[index]

    def _unpack(self) -> list[Round]:
        return cast("list[Round]", pickle.loads(zlib.decompress(self._content)))


class SharedParts:
    """Texts and sections of records, each stored once for all records that have it."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._sections: dict[str, object] = {}

    def share_texts(self, value: Any) -> Any:
        """Return a copy of a JSON value in which equal texts are one object, to save memory."""
        if isinstance(value, str):
            return self._texts.setdefault(value, value)
        if isinstance(value, dict):
            return {
                self._texts.setdefault(key, key): self.share_texts(item)
                for key, item in value.items()
            }
        return [self.share_texts(item) for item in value] if isinstance(value, list) else value

    def share_sections(self, owner: dict[str, Any], names: Iterable[str]) -> None:
        """Replace sections of a record by equal sections of earlier records, to save memory."""
        for name in names:
            if name in owner:
                # Unlike ==, repr tells 1 from 1.0, and differs between orders of keys.
                owner[name] = self._sections.setdefault(repr(owner[name]), owner[name])


def compact_record(record: Record, parts: SharedParts) -> Record:
    """Return a record in compact form, which shares equal parts with other records.

    Args:
        record: the record.
        parts: parts of earlier records, to which those of this record are added.
    """
    sections: dict[str, Any] = dict(record)
    if training := sections.get("training"):
        sections["training"] = {**training, "rounds": PackedRounds(training["rounds"])}
    shared: Record = parts.share_texts(sections)
    identity: dict[str, Any] = shared["node"]["identity"]
    parts.share_sections(identity, ("cards", "model", "training"))
    parts.share_sections(cast("dict[str, Any]", shared["provenance"]), ("host", "versions"))
    parts.share_sections(cast("dict[str, Any]", shared), ("sizes",))
    return shared
