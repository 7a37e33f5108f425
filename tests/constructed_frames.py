"""Frames of a design that are made from constructed frames, without records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from tasktransfer.results.frames import Frame, Frames, LazyFrames
from tasktransfer.results.store import Metadata, build_frame

NO_STUDY: Any = None


def make_frames(
    declared: Iterable[Frame],
    order: dict[str, tuple[str, ...]] | None = None,
    **constructed: pd.DataFrame,
) -> Frames:
    """Return constructed frames, and the frames that need others, made on first use."""
    by_name = {frame.name: frame for frame in declared if frame.needs}

    def load(name: str) -> pd.DataFrame:
        if name in constructed:
            return constructed[name]
        frame = by_name[name]
        assert frame.make is not None
        rows = frame.make(frames.select(frame.needs))
        return rows if isinstance(rows, pd.DataFrame) else build_frame(rows, frame.columns)

    metadata = Metadata("s", "0" * 64, False, 1, order=order or {})
    frames = Frames(NO_STUDY, LazyFrames([*constructed, *by_name], load), metadata)
    return frames
