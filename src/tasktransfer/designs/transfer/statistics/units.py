"""What is drawn of a study's test sets: their dialogues, where anything says which they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.errors import RecordError
from tasktransfer.results.dialogues import (
    instance_ids,
    names_dialogues,
    of_predictions,
    of_prepared,
)
from tasktransfer.results.records import PredictionsFile
from tasktransfer.stats.draws import Units, dialogues, single_instances


@dataclass(frozen=True, slots=True)
class Tested:
    """A run's predictions on a test set. ``data_revision`` and ``few_sample``: of the prepared data
    that the test set is from."""

    file: str
    rows: int
    sha256: str
    data_revision: str
    few_sample: bool

    @property
    def expected(self) -> PredictionsFile:
        """What the record says of the file."""
        return {"file": Path(self.file).name, "rows": self.rows, "sha256": self.sha256}


def units_of(
    root: Path, dataset: str, target: str, instances: int, tested: Sequence[Tested]
) -> Units:
    """What is drawn of one test set.

    Args:
        root: the results folder that files are relative to.
        dataset, target: the task that is tested.
        instances: size of the test set.
        tested: runs on it; they answer the same instances, so that what one file says of their
            dialogues holds for all.

    Returns:
        Dialogues as the predictions name them. Predictions of schema 1 do not: then as the
        prepared data has them, and single instances where that is not there either.

    Raises:
        RecordError: a predictions file is not the one that was collected; names it.
    """
    for ids in _said(root, dataset, target, tested):
        if ids is not None and len(ids) == instances:
            return dialogues(ids)
    return single_instances(instances)


def _said(
    root: Path, dataset: str, target: str, tested: Sequence[Tested]
) -> Iterator[list[str] | None]:
    """What the first run's file says, then the prepared data, then another run's file."""
    first = tested[0]
    try:
        yield of_predictions(root / first.file, first.expected, target)
        ids = instance_ids(root / first.file, first.expected, target)
        yield of_prepared(root, dataset, first.data_revision, first.few_sample, target, ids)
        other = next((run for run in tested[1:] if names_dialogues(root / run.file)), None)
        if other is not None:
            yield of_predictions(root / other.file, other.expected, target)
    except RecordError as error:
        raise RecordError(f"{error} (it was right when it was collected: collect again)") from error
