"""Frames: the tables of a study, each declared once.

A frame declares its columns and a pure function that makes its rows from records or from other
frames. ``results.frame_files`` makes, writes and reads them for every design::

    records ── gather ──► frames without needs ──► frames with needs ──► tables, figures, page
               `collect`                           `statistics`

This module imports neither pandas nor pyarrow, because the Snakefile reads the declarations at
every start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tasktransfer.core.identity import compute_digest
from tasktransfer.core.runs import Run
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from tasktransfer.results.collect import Collected
    from tasktransfer.results.store import Metadata

TEXT, NUMBER, WHOLE, FLAG = "string", "double", "int64", "bool"
"""Types of columns, by their names in Arrow."""
TEXTS, NUMBERS, WHOLES = f"list<{TEXT}>", f"list<{NUMBER}>", f"list<{WHOLE}>"
"""Types of columns whose values are lists."""

Column = tuple[str, str, str]
"""Name, type, meaning."""
Columns = Sequence[Column]

COMMON = ("runs", "scores", "resources", "training_rounds", "missing", "problems")
"""Frames that every design has (``results.common_frames``)."""
COMMON_VERSION = 4
"""Version of the common frames' code; raise it when their numbers or columns change."""

Value = TypeVar("Value")


def is_always_planned(study: Study) -> bool:
    """Return True, for frames, tables and figures that every study of a design has."""
    return True


@dataclass(frozen=True, slots=True)
class Frame:
    """A table of a study.

    Args:
        name: name of the Parquet file in the study's folder of tables.
        columns: name, type and meaning of each column. Empty if they depend on the study.
        make: frames → a data frame or rows in the order of the columns. It is given only the frames
            in ``needs``. A frame without needs is made from ``Frames.collected``. None if another
            command writes the file; the frame is then empty if there is no file.
        needs: names of the frames that it is made from; empty if it is made from records.
        planned: returns whether a study has the frame, according to its plan.
        version: version of the code; raise it when the numbers change, so that tables are rebuilt.
        from_dialogues: true if the frame needs the study's dialogues. Packs include it, and earlier
            rows are kept if the dialogues are not available.
    """

    name: str
    columns: Columns
    make: Callable[[Frames], pd.DataFrame | Iterable[Sequence[Any]]] | None
    needs: tuple[str, ...] = ()
    planned: Callable[[Study], bool] = is_always_planned
    version: int = 1
    from_dialogues: bool = False

    @property
    def file(self) -> str:
        """Path of the file, relative to the results folder."""
        return f"tables/{self.name}.parquet"


class Frames(Mapping[str, "pd.DataFrame"]):
    """A study's data frames by name.

    Args:
        study: the study, with its config and plan.
        frames: name → data frame. A lazy mapping makes or reads each one on first use.
        metadata: metadata of the study's tables, with the facts for captions and the order of
            names.
        collected: the study's records; None if only tables are read.
        earlier: name → data frame of an earlier call, without those that cannot be used again.
    """

    def __init__(
        self,
        study: Study,
        frames: Mapping[str, pd.DataFrame],
        metadata: Metadata,
        collected: Collected | None = None,
        earlier: Mapping[str, pd.DataFrame] | None = None,
    ) -> None:
        self.study, self.metadata = study, metadata
        self.earlier = {} if earlier is None else earlier
        self._frames, self._collected = frames, collected
        self._shared: dict[Callable[[Frames], Any], Any] = {}

    @property
    def collected(self) -> Collected:
        """The study's records, for frames that are computed from them."""
        assert self._collected is not None, "the study's records were not read"
        return self._collected

    def gather_records(self, runs: Iterable[Run]) -> Collected:
        """Read the records of some runs, for frames that need both records and other frames."""
        from tasktransfer.results.collect import gather_records  # noqa: PLC0415 (imports pandas)

        return gather_records(self.study, runs)

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def select(self, names: Iterable[str]) -> Frames:
        """Return a view with only the named frames."""
        chosen = LazyFrames((n for n in names if n in self._frames), self._frames.__getitem__)
        selected = Frames(self.study, chosen, self.metadata, self._collected, self.earlier)
        selected._shared = self._shared
        return selected

    def replace(
        self, frames: Mapping[str, pd.DataFrame], metadata: Metadata | None = None
    ) -> Frames:
        """Return a copy with some frames or the metadata replaced."""
        changed = LazyFrames(
            dict.fromkeys([*self._frames, *frames]),
            lambda name: frames[name] if name in frames else self._frames[name],
        )
        return Frames(self.study, changed, metadata or self.metadata, self._collected, self.earlier)

    def compute_once(self, function: Callable[[Frames], Value]) -> Value:
        """Return the result of ``function(self)``, which is computed once and shared."""
        if function not in self._shared:
            self._shared[function] = function(self)
        value: Value = self._shared[function]
        return value


class LazyFrames(Mapping[str, "pd.DataFrame"]):
    """Data frames that are loaded on first use.

    Args:
        names: names of the frames.
        load: name → data frame.
    """

    def __init__(self, names: Iterable[str], load: Callable[[str], pd.DataFrame]) -> None:
        self._names, self._load = tuple(names), load
        self._loaded: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._loaded:
            if name not in self._names:
                raise KeyError(name)
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def find_planned_frames(frames: Iterable[Frame], study: Study) -> list[Frame]:
    """Return the frames that are planned for a study."""
    return [frame for frame in frames if frame.planned(study)]


def compute_frames_version(frames: Iterable[Frame]) -> str:
    """Return a digest of the frames' names, columns and versions, to detect outdated frames."""
    declared = [[frame.name, frame.version, [*map(list, frame.columns)]] for frame in frames]
    return compute_digest([COMMON_VERSION, *declared])


def list_column_names(columns: Columns) -> list[str]:
    """Return the names of columns, in order."""
    return [name for name, _, _ in columns]
