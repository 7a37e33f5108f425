"""Published values beside a study's own: the one rule where they may stand."""

from __future__ import annotations

import pandas as pd

from tasktransfer.tables.metadata import Metadata

PUBLISHED, DIFFERENCE = "published", "difference"
"""What columns of published values, and of differences to them, begin with."""


def beside(frame: pd.DataFrame, metadata: Metadata) -> pd.DataFrame:
    """A printed table with its published values where they may stand: never beside numbers of
    generated dialogues, which no paper had. Of such a study the columns are emptied, and rows that
    have published values alone are left out.

    Args:
        frame: the table; columns of published values begin with ``published``, those of differences
            to them with ``difference``. One without any is returned as it is.
    """
    theirs = [str(name) for name in frame if str(name).startswith(PUBLISHED)]
    if not metadata.synthetic or not theirs:
        return frame
    emptied = [*theirs, *(str(name) for name in frame if str(name).startswith(DIFFERENCE))]
    numbers = [name for name in frame.select_dtypes("number") if name not in emptied]
    kept = frame[frame[numbers].notna().any(axis=1)] if numbers else frame.iloc[:0]
    return kept.assign(**dict.fromkeys(emptied)).reset_index(drop=True)


def caption(frame: pd.DataFrame, text: str, of_published: str) -> str:
    """A caption without the sentence on published values where the table has none."""
    theirs = [name for name in frame if str(name).startswith(PUBLISHED)]
    shown = bool(theirs) and bool(frame[theirs].notna().any(axis=None))
    return text if shown else text.replace(of_published, "").replace("  ", " ").strip()
