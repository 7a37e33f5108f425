"""Runs of the table ``transfer_runs``, with their predictions and the units to resample.

Units are dialogues if the prediction rows name them, and instances otherwise.
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
from tasktransfer.results.tallies import TallyReader
from tasktransfer.stats.draws import Units, build_dialogue_units, build_instance_units


@dataclass(frozen=True, slots=True)
class PredictionsFile:
    """File with a run's predictions on a test set, relative to the results folder."""

    file: str
    rows: int
    sha256: str

    @property
    def recorded(self) -> RowsFile:
        """The file as records describe it."""
        return {"file": Path(self.file).name, "rows": self.rows, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the table, for statistics; ``file`` is None if it has no predictions."""

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
    def predictions(self) -> PredictionsFile:
        """File with the predictions of the run, which must have one."""
        assert self.file is not None
        assert self.rows is not None
        assert self.sha256 is not None
        return PredictionsFile(self.file, int(self.rows), self.sha256)


def map_runs(table: pd.DataFrame) -> dict[tuple[str, str, str], Run]:
    """Return a mapping from (model, digest of the stage, target) to run.

    Two models of a study may have the same weights and therefore the same stages. A stage may be
    tested on several targets.
    """
    names = ["model", "digest", "seed", "score", "fidelity", "predictions", "predictions_rows"]
    names += ["predictions_sha256", "test_set", "test_size"]
    plain = table[names].astype(object).where(table[names].notna(), None)
    targets = table["target"]
    rows = zip(plain.itertuples(index=False, name=None), targets, strict=True)
    return {(row[0], row[1], target): Run(*row) for row, target in rows}


def read_tally(run: Run, root: Path, tallies: TallyReader) -> metrics.Sums:
    """Return each instance's contribution to the sums of the run's score, (instances, columns).

    Raises:
        RecordError: the predictions are not those that were collected; names the file.
    """
    tested = run.predictions
    try:
        return tallies.read(root / tested.file, tested.recorded)
    except TaskTransferError as error:
        raise RecordError(
            f"{error} (the file changed after it was collected). Run `tasktransfer collect` again."
        ) from error


def build_resampling_units(
    root: Path, target: str, instances: int, tested: Sequence[PredictionsFile]
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
        rows = read_columns(root / first.file, first.recorded, ["task", "cluster"])
    except RecordError as error:
        raise RecordError(
            f"{error} (the file changed after it was collected). Run `tasktransfer collect` again."
        ) from error
    names = select_task_rows(rows, target)["cluster"]
    if names.null_count or len(names) != instances:
        return build_instance_units(instances)
    return build_dialogue_units(names.to_pylist())
