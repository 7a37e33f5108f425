"""Runs of the table ``runs``, with their predictions on the test sets and the resampled units.

These are dialogues if the prediction rows name them, and instances otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.errors import RecordError, TaskTransferError
from tasktransfer.results.rows import read_columns, select_task_rows
from tasktransfer.results.schema import RowsFile
from tasktransfer.results.tallies import Tallies
from tasktransfer.stats.draws import Units, build_dialogue_units, build_instance_units


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


@dataclass(frozen=True, slots=True)
class Run:
    """A run as statistics need it; ``file`` is None if it has no predictions."""

    model: str
    digest: str
    seed: int
    score: float
    fidelity: Scoring
    file: str | None
    rows: int | None
    sha256: str | None
    test_set: str | None
    instances: int

    @property
    def tested(self) -> Tested:
        """Predictions of the run."""
        assert self.file is not None
        assert self.rows is not None
        assert self.sha256 is not None
        return Tested(self.file, int(self.rows), self.sha256)


def map_runs(table: pd.DataFrame) -> dict[tuple[str, str, str], Run]:
    """Return runs by (model, digest of the stage, target).

    Two models of a study may have the same weights and therefore the same stages. A stage may be
    tested on several targets.
    """
    wanted = ["model", "digest", "seed", "score", "fidelity", "predictions", "predictions_rows"]
    wanted += ["predictions_sha256", "test_set", "test_size"]
    plain = table[wanted].astype(object).where(table[wanted].notna(), None)
    targets = table["target"]
    rows = zip(plain.itertuples(index=False, name=None), targets, strict=True)
    return {(row[0], row[1], target): Run(*row) for row, target in rows}


def read_tally(run: Run, root: Path, tallies: Tallies) -> metrics.Sums:
    """Return each instance's contribution to the sums of the run's score, (instances, columns).

    Raises:
        RecordError: the predictions are not those that were collected; names the file.
    """
    tested = run.tested
    try:
        return tallies.read(root / tested.file, tested.expected)
    except TaskTransferError as error:
        raise RecordError(
            f"{error} (the file changed after it was collected). Run `tasktransfer collect` again."
        ) from error


def build_resampling_units(
    root: Path, target: str, instances: int, tested: Sequence[Tested]
) -> Units:
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
        raise RecordError(
            f"{error} (the file changed after it was collected). Run `tasktransfer collect` again."
        ) from error
    names = select_task_rows(rows, target)["cluster"]
    if names.null_count or len(names) != instances:
        return build_instance_units(instances)
    return build_dialogue_units(names.to_pylist())
