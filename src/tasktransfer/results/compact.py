"""Records in little memory, for studies with thousands of them.

Most of a training's record are the numbers of its rounds, of which few are read. The same texts and
keys occur in every record.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any, cast, overload

from tasktransfer.results.schema import Record, Round


class PackedRounds(Sequence[Round]):
    """Rounds of a training as bytes, which are unpacked when they are read."""

    __slots__ = ("_content", "_count")

    def __init__(self, rounds: Sequence[Round]) -> None:
        self._count = len(rounds)
        self._content = pickle.dumps([*rounds], pickle.HIGHEST_PROTOCOL)

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
        return cast("list[Round]", pickle.loads(self._content))


def compact_record(record: Record, texts: dict[str, str]) -> Record:
    """Return an equal record with packed rounds, and with the texts that other records share.

    Args:
        record: the record.
        texts: every text of earlier records → itself, to which those of this record are added.
    """
    sections: dict[str, Any] = dict(record)
    if training := sections.get("training"):
        sections["training"] = {**training, "rounds": PackedRounds(training["rounds"])}
    shared: Record = _share_texts(sections, texts)
    return shared


def _share_texts(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, str):
        return texts.setdefault(value, value)
    if isinstance(value, dict):
        return {texts.setdefault(k, k): _share_texts(v, texts) for k, v in value.items()}
    return [_share_texts(item, texts) for item in value] if isinstance(value, list) else value
