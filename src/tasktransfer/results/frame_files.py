"""The frames of a study: made from its records, written as Parquet, and read again.

    write_collected_frames(study, frames, metadata, about, complete=True)  # frames without needs
    write_statistic_frames(study, frames, about)                           # frames that need others
    read_frames(study, frames, about)["cells"]

No frame knows the order in which others are made: each is made on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tasktransfer.errors import RecordError
from tasktransfer.files.progress import show_progress
from tasktransfer.results.collect import Collected, gather_records
from tasktransfer.results.common_frames import build_common_frames
from tasktransfer.results.frames import (
    Columns,
    Frame,
    Frames,
    LazyFrames,
    find_planned_frames,
    list_column_names,
)
from tasktransfer.results.store import (
    Metadata,
    build_frame,
    read_frame,
    read_statistic_frame,
    write_frame,
    write_rows,
)
from tasktransfer.results.study import Study


def compute_frames(
    collected: Collected, frames: Iterable[Frame], metadata: Metadata, about: Sequence[str]
) -> Frames:
    """Return lazily computed frames from collected records.

    Args:
        collected: the study's records.
        frames: the design's frames.
        metadata: metadata of the tables.
        about: keys of ``Run.about`` that identify a run.
    """
    declared = _list_declared_frames(collected.study, frames, about)
    return _build_lazy_frames(collected.study, declared, metadata, collected, ())


def write_collected_frames(
    study: Study,
    frames: Iterable[Frame],
    metadata: Callable[[Collected], Metadata],
    about: Sequence[str],
    *,
    complete: bool,
) -> None:
    """Gather a study's records, and write the frames that depend on records only.

    Args:
        study: the study.
        frames: the design's frames.
        metadata: collected records → metadata of the tables.
        about: keys of ``Run.about`` that identify a run.
        complete: true to raise an error, and write nothing, if a result is missing.

    Raises:
        RecordError: no run has a usable record, records cannot be compared, or ``complete`` is true
            and a record is missing.
    """
    pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own allocator keeps what is freed
    collected = gather_records(study)
    collected.check_completeness(complete=complete)
    write_frames_from_records(collected, frames, metadata(collected), about)
    collected.print_summary()


def write_frames_from_records(
    collected: Collected, frames: Iterable[Frame], metadata: Metadata, about: Sequence[str]
) -> None:
    """Write the frames that depend on given records only. For arguments, see ``compute_frames``."""
    study = collected.study
    declared = _list_declared_frames(study, frames, about)
    made = _build_lazy_frames(study, declared, metadata, collected, ())
    Path(study.tables).mkdir(parents=True, exist_ok=True)
    for frame in declared.values():
        if not frame.needs and frame.make is not None:
            _write_from_records(study, frame, made)


def _write_from_records(study: Study, frame: Frame, frames: Frames) -> None:
    """Write a frame that depends on records only, without keeping it in memory."""
    assert frame.make is not None
    rows, path = frame.make(frames), _locate_table(study, frame.name)
    if isinstance(rows, pd.DataFrame):
        write_frame(path, rows, frame.columns, frames.metadata)
    else:
        write_rows(path, rows, frame.columns, frames.metadata)


def write_statistic_frames(study: Study, frames: Iterable[Frame], about: Sequence[str]) -> None:
    """Compute the frames that depend on other frames, and write each atomically.

    Raises:
        RecordError: a collected frame is missing or damaged, or rows of a record were changed since
            it was collected.
    """
    declared = _list_declared_frames(study, frames, about)
    collected = [frame.name for frame in declared.values() if not frame.needs]
    metadata = read_frame(
        _locate_table(study, "runs"), declared["runs"].columns, _describe_remedy(study)
    )[1]
    made = _build_lazy_frames(study, declared, metadata, None, collected)
    statistics = [frame for frame in declared.values() if frame.needs]
    for frame in show_progress(statistics, "computing statistics"):
        _write_table(study, frame, made)
        print(f"{_locate_table(study, frame.name)}: {len(made[frame.name]):,} rows")


def read_frames(study: Study, frames: Iterable[Frame], about: Sequence[str]) -> Frames:
    """Return a study's stored frames, each read on first use.

    Raises:
        RecordError: the frames were not written, or are damaged. Also on first use of a frame that
            was written in another call of ``write_collected_frames``.
    """
    declared = _list_declared_frames(study, frames, about)
    metadata = read_frame(
        _locate_table(study, "runs"), declared["runs"].columns, _describe_remedy(study)
    )[1]
    return _build_lazy_frames(study, declared, metadata, None, tuple(declared))


def _list_declared_frames(
    study: Study, frames: Iterable[Frame], about: Sequence[str]
) -> dict[str, Frame]:
    """Map names to a study's frames, in which a design may replace a common frame."""
    own = find_planned_frames(frames, study)
    return {frame.name: frame for frame in (*build_common_frames(about), *own)}


def _build_lazy_frames(
    study: Study,
    declared: dict[str, Frame],
    metadata: Metadata,
    collected: Collected | None,
    stored: Sequence[str],
) -> Frames:
    """Return frames that are read if they are in ``stored``, and computed otherwise."""

    def load(name: str) -> pd.DataFrame:
        frame = declared[name]
        if frame.make is None or name in stored:
            return _read_table(study, frame, metadata)
        rows = frame.make(frames.select(frame.needs) if frame.needs else frames)
        return rows if isinstance(rows, pd.DataFrame) else build_frame(rows, frame.columns)

    def load_earlier(name: str) -> pd.DataFrame:
        try:
            return read_frame(_locate_table(study, name), declared[name].columns)[0]
        except RecordError as error:  # absent, damaged, or of another version: made again
            raise KeyError(name) from error

    earlier = LazyFrames(declared, load_earlier)
    frames = Frames(study, LazyFrames(declared, load), metadata, collected, earlier)
    return frames


def _read_table(study: Study, frame: Frame, metadata: Metadata) -> pd.DataFrame:
    path = _locate_table(study, frame.name)
    if frame.make is None:
        return read_brought_frame(path, frame)
    found, written = read_frame(path, frame.columns, _describe_remedy(study))
    if written != metadata:
        raise RecordError(
            f"{path}: The tables were not all collected at the same time. "
            f"{_describe_remedy(study)}."
        )
    return found


def read_brought_frame(path: Path, frame: Frame) -> pd.DataFrame:
    """Read a frame that another command writes, or return an empty frame without a file.

    Raises:
        RecordError: the file is damaged, or was written by another version.
    """
    if not path.exists():
        return build_frame([], frame.columns) if frame.columns else pd.DataFrame()
    remedy = "Run `tasktransfer data stats` again, or delete the file"
    found = read_statistic_frame(path, remedy)
    if frame.columns and list(found) != list_column_names(frame.columns):
        raise RecordError(
            f"{path}: The table was written by another version of tasktransfer. Delete the file "
            "to create it again."
        )
    return found


def _write_table(study: Study, frame: Frame, frames: Frames) -> None:
    write_frame(
        _locate_table(study, frame.name), frames[frame.name], frame.columns, frames.metadata
    )


def _locate_table(study: Study, name: str) -> Path:
    return Path(study.tables, f"{name}.parquet")


def _describe_remedy(study: Study) -> str:
    steps = (
        f"`tasktransfer {step} {study.format_arguments()}`" for step in ("collect", "statistics")
    )
    return f"Run {' and '.join(steps)} again"


def read_earlier_rows(study: Study, name: str, columns: Columns) -> list[tuple[Any, ...]]:
    """Read the stored rows of a frame whose dialogues are not available now.

    Raises:
        RecordError: the earlier table is missing or damaged.
    """
    remedy = "Provide the dialogues, or merge a pack that has the table"
    found, _ = read_frame(_locate_table(study, name), columns, remedy)
    return list(found.itertuples(index=False, name=None))
