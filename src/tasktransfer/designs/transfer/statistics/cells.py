"""The cells of the heatmaps: mean delta over seeds, how sure it is, and whether it survives.

What a cell depends on is digested into its ``inputs``; a row of a previous table with the same
inputs is taken over, so that one new record costs the cells that it belongs to and no others.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasktransfer import metrics
from tasktransfer.core.digests import digest_of
from tasktransfer.core.fidelity import Scoring
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.collect import Tables
from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.collect.rows import Row
from tasktransfer.errors import RecordError, TaskTransferError
from tasktransfer.results.records import PredictionsFile
from tasktransfer.results.tallies import Tallies
from tasktransfer.stats import bootstrap
from tasktransfer.stats.bootstrap import Confidence, Estimate, Floats
from tasktransfer.stats.false_discovery import false_discovery

MARKED = 0.05
"""Cells with a q up to this are marked: at most this share of the marked ones is expected to be
no effect."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A run as its cells need it; ``file`` is None where it left no predictions."""

    model: str
    digest: str
    score: float
    fidelity: Scoring
    file: str | None
    rows: int | None
    sha256: str | None
    test_set: str | None
    instances: int


@dataclass(frozen=True, slots=True)
class _Cell:
    """A transfer run set: its names (dataset ... target) and, for each seed, ascending, the
    transfer run and its baseline."""

    names: Row
    seeds: tuple[int, ...]
    transfers: tuple[_Run, ...]
    baselines: tuple[_Run, ...]

    @property
    def dataset(self) -> str:
        return str(self.names[0])

    @property
    def target(self) -> str:
        return str(self.names[6])

    @property
    def deltas(self) -> Floats:
        """Score - baseline score of each seed, (seeds,)."""
        return _scores(self.transfers) - _scores(self.baselines)

    @property
    def tested_on(self) -> tuple[str, int, Scoring] | None:
        """Test set, its size and how it is scored; None where a run has no predictions, or where
        these differ between the runs, so that instances cannot be paired."""
        test_sets = {(run.test_set, run.instances, run.fidelity) for run in self.runs}
        test_set, instances, fidelity = min(test_sets, key=str)
        if len(test_sets) > 1 or test_set is None:
            return None
        return test_set, instances, fidelity

    @property
    def runs(self) -> tuple[_Run, ...]:
        return (*self.transfers, *self.baselines)


def cells(tables: Tables, root: Path, previous: pd.DataFrame | None = None) -> pd.DataFrame:
    """The table ``cells``: one row for every model, algorithm, sources and target with at least
    one seed that has both the transfer run and its baseline.

    Mean delta, interval and test are those of ``bootstrap``. A cell in which some run has no
    predictions is judged by its seeds alone (``instances`` 0). ``q`` is Benjamini-Hochberg over
    all single-source cells of a dataset, of all models and algorithms, because its heatmaps are
    drawn as one figure and read as one: a reader looks for what stands out anywhere in it.
    Multi-source cells, which another figure shows, are adjusted among themselves.

    Args:
        tables: what ``collect`` gave.
        root: the results folder that the paths in the tables are relative to.
        previous: an earlier result; its rows are taken over where nothing that they depend on has
            changed. ``q`` is always computed anew.

    Returns:
        Columns ``columns.CELLS``, in the order of ``tables.deltas``.

    Raises:
        RecordError: a predictions file is not the one that was collected; names it.
    """
    run_sets = _run_sets(tables)
    digests = [_inputs(cell) for cell in run_sets]
    kept = _rows_by_inputs(previous)
    changed = [cell for cell, digest in zip(run_sets, digests, strict=True) if digest not in kept]
    fresh = _fresh(changed, root)
    rows = [
        (*cell.names, *(kept.get(digest) or fresh[cell.names]), np.nan, False, digest)
        for cell, digest in zip(run_sets, digests, strict=True)
    ]
    return _with_q(frame("cells", rows))


def _with_q(table: pd.DataFrame) -> pd.DataFrame:
    """``q`` and ``significant`` from the ``p`` of all rows."""
    families = [table["dataset"], table["n_sources"] > 1]
    table["q"] = table.groupby(families, sort=False)["p"].transform(false_discovery)
    table["significant"] = table["q"] <= MARKED
    return table


# --- what belongs together ------------------------------------------------------------------------

_NAMES = columns.names("cells")[:7]
_NUMBERS = columns.names("cells")[7:-3]


def _run_sets(tables: Tables) -> list[_Cell]:
    runs = _runs(tables.runs)
    paired = tables.deltas[tables.deltas["baseline_digest"].notna()]
    sets: dict[Row, list[tuple[int, _Run, _Run]]] = defaultdict(list)
    for *names, seed, digest, baseline in paired[
        [*_NAMES, "seed", "digest", "baseline_digest"]
    ].itertuples(index=False, name=None):
        model = names[1]
        members = sets[(*names[:3], tuple(names[3]), *names[4:])]
        members.append((seed, runs[model, digest], runs[model, baseline]))
    return [_cell(names, members) for names, members in sets.items()]


def _cell(names: Row, members: list[tuple[int, _Run, _Run]]) -> _Cell:
    members.sort(key=lambda member: member[0])
    seeds, transfers, baselines = zip(*members, strict=True)
    return _Cell(names, seeds, transfers, baselines)


def _runs(table: pd.DataFrame) -> dict[tuple[str, str], _Run]:
    """(model, digest of the stage) → run. Two models of a study may have the same weights, and
    with them the same stages."""
    wanted = ["model", "digest", "score", "fidelity", "predictions", "predictions_rows"]
    wanted += ["predictions_sha256", "test_set", "test_size"]
    plain = table[wanted].astype(object).where(table[wanted].notna(), None)
    return {(row[0], row[1]): _Run(*row) for row in plain.itertuples(index=False, name=None)}


def _scores(runs: Sequence[_Run]) -> Floats:
    return np.asarray([run.score for run in runs], np.float64)


# --- what has changed -----------------------------------------------------------------------------


def _inputs(cell: _Cell) -> str:
    """Digest of everything that a row depends on, the code by its version."""
    card = get_task(cell.dataset, cell.target) if cell.tested_on else None
    scored_by = repr((card.labels, card.metrics, card.paper_metrics)) if card else ""
    members = [
        (seed, *_depends_on(transfer), *_depends_on(baseline))
        for seed, transfer, baseline in zip(cell.seeds, cell.transfers, cell.baselines, strict=True)
    ]
    settings = [bootstrap.VERSION, bootstrap.RESAMPLES, bootstrap.LEVEL]
    return digest_of([settings, scored_by, cell.tested_on, cell.names, members])


def _depends_on(run: _Run) -> Row:
    return run.digest, run.score, run.sha256, run.test_set


def inputs_of(tables: Tables) -> list[str]:
    """The column ``inputs`` that ``cells`` gives these tables: rows with another are outdated."""
    return [_inputs(cell) for cell in _run_sets(tables)]


def _rows_by_inputs(previous: pd.DataFrame | None) -> dict[str, Row]:
    """The numbers of earlier rows, without what depends on other rows."""
    if previous is None or list(previous.columns) != columns.names("cells"):
        return {}
    rows = previous[["inputs", *_NUMBERS]].itertuples(index=False, name=None)
    return {digest: tuple(row) for digest, *row in rows}


# --- numbers --------------------------------------------------------------------------------------


def _fresh(cells: Iterable[_Cell], root: Path) -> dict[Row, Row]:
    """Names of a cell → its row's columns between these and what depends on other rows."""
    estimated = list(_estimates(cells, root))
    sure = bootstrap.confidences([estimate for _, estimate in estimated])
    return {
        cell.names: _numbers(cell, estimate, confidence)
        for (cell, estimate), confidence in zip(estimated, sure, strict=True)
    }


def _estimates(cells: Iterable[_Cell], root: Path) -> Iterator[tuple[_Cell, Estimate]]:
    """Each cell with its estimate, grouped by test set, so that a test set is drawn once and only
    the resampled scores of one are held."""
    groups: dict[Row, list[_Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.dataset, cell.target, cell.tested_on].append(cell)
    for (*_, tested_on), members in groups.items():
        if tested_on is None:
            yield from ((cell, bootstrap.estimate(cell.deltas, None)) for cell in members)
        else:
            yield from _resampled(members, root, tested_on[1], tested_on[2])


def _resampled(
    cells: list[_Cell], root: Path, instances: int, fidelity: Scoring
) -> Iterator[tuple[_Cell, Estimate]]:
    """Cells of one test set. A baseline is read once for all the cells that it belongs to."""
    dataset, target = cells[0].dataset, cells[0].target
    task = get_task(dataset, target)
    weights = bootstrap.instance_weights(dataset, target, instances)
    tallies = Tallies(task, fidelity, instances)

    score_of = functools.partial(metrics.score_of_sums, task, fidelity=fidelity)

    def scores(*runs: _Run) -> Floats:
        read = [_tally(run, root, tallies) for run in runs]
        return bootstrap.resampled_scores(np.stack(read), weights, score_of)

    baseline = functools.cache(scores)
    for cell in cells:
        with_transfer = scores(*cell.transfers)
        without = np.concatenate([baseline(run) for run in cell.baselines])
        yield cell, bootstrap.estimate(cell.deltas, with_transfer - without, instances)


def _tally(run: _Run, root: Path, tallies: Tallies) -> metrics.Sums:
    assert run.file is not None
    assert run.rows is not None
    assert run.sha256 is not None
    path = root / run.file
    expected: PredictionsFile = {"file": path.name, "rows": int(run.rows), "sha256": run.sha256}
    try:
        return tallies.read(path, expected)
    except TaskTransferError as error:
        raise RecordError(f"{error} (it was right when it was collected: collect again)") from error


def _numbers(cell: _Cell, estimate: Estimate, sure: Confidence) -> Row:
    score, baseline = _scores(cell.transfers).mean(), _scores(cell.baselines).mean()
    return (
        estimate.seeds,
        list(cell.seeds),
        score,
        baseline,
        estimate.delta,
        100 * estimate.delta / baseline if baseline > 0 else np.nan,
        cell.tested_on[1] if cell.tested_on else 0,
        estimate.standard_error,
        sure.degrees,
        sure.low,
        sure.high,
        sure.p,
    )
