"""Resampling units of a study's test sets: dialogues, if the prediction rows name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.errors import RecordError
from tasktransfer.results.rows import read_columns, select_task_rows
from tasktransfer.results.schema import RowsFile
from tasktransfer.stats.draws import Units, make_dialogue_units, make_instance_units


@dataclass(frozen=True, slots=True)
class Tested:
    """A run's rows on a test set; ``file`` is relative to the results folder."""

    file: str
    rows: int
    sha256: str

    @property
    def expected(self) -> RowsFile:
        """Expected file according to the record."""
        return {"file": Path(self.file).name, "rows": self.rows, "sha256": self.sha256}


def units_of(root: Path, target: str, instances: int, tested: Sequence[Tested]) -> Units:
    """Return the resampling units of one test set.

    Args:
        root: the results folder that files are relative to.
        target: the evaluated task.
        instances: size of the test set.
        tested: runs on it; they answer the same instances, so one file gives the dialogues of all.

    Returns:
        Dialogues named in the first run's rows; single instances if the rows name none.

    Raises:
        RecordError: a file of rows is not the one that was collected; names it.
    """
    first = tested[0]
    try:
        rows = read_columns(root / first.file, first.expected, ["task", "cluster"])
    except RecordError as error:
        remedy = "run `tasktransfer collect` again"
        raise RecordError(f"{error} (changed since it was collected; {remedy})") from error
    names = select_task_rows(rows, target)["cluster"]
    if names.null_count or len(names) != instances:
        return make_instance_units(instances)
    return make_dialogue_units(names.to_pylist())
