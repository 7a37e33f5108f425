"""Frames of a transfer study in memory, for tests of code that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd

from tasktransfer.designs.transfer.collect import build_study_metadata
from tasktransfer.designs.transfer.frames import ABOUT, FRAMES
from tasktransfer.results import frame_files
from tasktransfer.results.collect import Collected
from tasktransfer.results.common_frames import build_common_columns
from tasktransfer.results.frames import COMMON, Frames, is_always_planned
from tasktransfer.results.store import Metadata, build_frame
from tasktransfer.results.study import Study

COLUMNS = {**build_common_columns(ABOUT), **{frame.name: frame.columns for frame in FRAMES}}
"""Name of a frame → its columns."""
ALWAYS = (*COMMON, *(frame.name for frame in FRAMES if frame.planned is is_always_planned))
"""Names of the frames that every transfer study has."""


def compute_frames(collected: Collected) -> Frames:
    """Return the frames of collected records; each is made on first use."""
    return frame_files.compute_frames(collected, FRAMES, build_study_metadata(collected), ABOUT)


def read_frames(study: Study) -> Frames:
    """Return the frames that ``write_collected_frames`` and ``statistics`` wrote."""
    return frame_files.read_frames(study, FRAMES, ABOUT)


def write_collected_tables(study: Study, *, complete: bool = False) -> Frames:
    """Run ``write_collected_frames`` for a study, and read the frames."""
    frame_files.write_collected_frames(
        study, FRAMES, build_study_metadata, ABOUT, complete=complete
    )
    return read_frames(study)


def write_constructed(collected: Collected) -> Frames:
    """Write the collected frames of constructed records, and read them."""
    frame_files.write_frames_from_records(collected, FRAMES, build_study_metadata(collected), ABOUT)
    return read_frames(collected.study)


def write_statistics(study: Study) -> Frames:
    """Run ``statistics`` for a collected study, and read the frames."""
    frame_files.write_statistic_frames(study, FRAMES, ABOUT)
    return read_frames(study)


def construct_frames(
    frames: Mapping[str, pd.DataFrame], metadata: Metadata, study: Any = None
) -> Frames:
    """Return frames with the given rows; those that are not given are empty.

    Args:
        frames: name → data frame.
        metadata: metadata of the study.
        study: the study, or an object with the attributes that are needed.
    """
    empty = {name: build_frame([], COLUMNS[name]) for name in ALWAYS if COLUMNS[name]}
    brought = {name: pd.DataFrame() for name in ALWAYS if not COLUMNS[name]}
    given = study or SimpleNamespace(
        config=SimpleNamespace(results=str(Path())), plan=SimpleNamespace(runs=(), stages=())
    )
    return Frames(cast(Study, given), {**empty, **brought, **frames}, metadata)
