"""Runs of the table ``runs``, with their predictions on the test sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.designs.transfer.statistics.units import Tested
from tasktransfer.errors import RecordError, TaskTransferError
from tasktransfer.results.tallies import Tallies


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


def runs_of(table: pd.DataFrame) -> dict[tuple[str, str, str], Run]:
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


def tally_of(run: Run, root: Path, tallies: Tallies) -> metrics.Sums:
    """Return each instance's contribution to the sums of the run's score, (instances, columns).

    Raises:
        RecordError: the predictions are not those that were collected; names the file.
    """
    tested = run.tested
    try:
        return tallies.read(root / tested.file, tested.expected)
    except TaskTransferError as error:
        remedy = "run `tasktransfer collect` again"
        raise RecordError(f"{error} (changed since it was collected; {remedy})") from error
