"""The frame ``learning_curve``, which the command of this name computes from the dialogues."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa

from tasktransfer.designs.transfer.collect.method_columns import LEARNING_CURVE
from tasktransfer.designs.transfer.runs import NO_MODEL
from tasktransfer.jobs.learning_curve import compute_learning_curves, describe_curve
from tasktransfer.results.frame_files import read_brought_frame
from tasktransfer.results.frames import Frame
from tasktransfer.results.store import build_frame, build_schema, write_arrow
from tasktransfer.results.study import Study

FILE = "learning_curve.parquet"


def write_learning_curve(
    study: Study, task: str | None, seeds: int
) -> tuple[pd.DataFrame, list[str]]:
    """Compute the learning curves of a task, and add them to the study's tables.

    Returns:
        The rows of the task, and one sentence per method.

    Raises:
        ConfigError, DataError, RecordError: as ``compute_learning_curves``.
    """
    rows = compute_learning_curves(study, task, seeds, NO_MODEL)
    frame, path = build_frame(rows, LEARNING_CURVE), Path(study.tables, FILE)
    earlier = read_brought_frame(path, Frame("learning_curve", LEARNING_CURVE, None))
    dataset, _, name, *_ = rows[0]
    others = earlier[(earlier["dataset"] != dataset) | (earlier["target"] != name)]
    path.parent.mkdir(parents=True, exist_ok=True)
    both = build_frame([*others.itertuples(index=False, name=None), *rows], LEARNING_CURVE)
    schema = build_schema(LEARNING_CURVE)
    write_arrow(path, pa.Table.from_pandas(both, schema=schema, preserve_index=False), None)
    return frame, describe_curve(rows)
