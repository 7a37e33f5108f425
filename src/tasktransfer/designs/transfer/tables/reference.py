"""Writer of the table ``reference``, the scores of simple predictors on each task.

It is written next to the tables of ``data stats`` and, like them, needs the dialogues. It is
computed once, because the path of the prepared instances contains their revision.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tasktransfer.files import replace_file


def write_reference_table(frame: pd.DataFrame, path: Path) -> None:
    """Write the table of references as Parquet, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as part:
        frame.to_parquet(part, index=False)
