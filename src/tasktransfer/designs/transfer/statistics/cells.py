"""Cells of the heatmaps: mean delta over seeds, its interval and its significance.

``inputs`` is a digest of everything that a cell depends on. A row of a previous table with the same
inputs is reused, so that a new record only recomputes its own cells.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.core.identity import compute_digest
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.collect import Values, parse_more_baseline_seeds
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.statistics.by_dialogue import (
    PredictionsFile,
    Run,
    build_resampling_units,
    map_runs,
    read_tally,
)
from tasktransfer.designs.transfer.statistics.deltas import (
    drop_intervals,
    read_study_race,
    select_fresh_deltas,
)
from tasktransfer.files.progress import show_progress
from tasktransfer.results.frames import Frames, list_column_names
from tasktransfer.results.store import build_frame
from tasktransfer.results.tallies import TallyReader
from tasktransfer.stats import bootstrap, draws
from tasktransfer.stats.bootstrap import Confidence, Estimate, Trainings, compute_q_values
from tasktransfer.stats.draws import Floats, Units

_STATE = "baseline_state"
_TARGET = ["dataset", "model", "target"]
MARKED = 0.05
"""Largest q of a significant cell, which is the expected fraction of false discoveries among the
significant cells."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """Runs of a cell: its names (dataset ... target), its transfer runs and their baselines.

    Runs are sorted by ascending seed.
    """

    names: Values
    transfers: tuple[Run, ...]
    baselines: tuple[Run, ...]

    @property
    def dataset(self) -> str:
        return str(self.names[0])

    @property
    def target(self) -> str:
        return str(self.names[6])

    @property
    def tested_on(self) -> tuple[str, int, Scoring] | None:
        """Test set of a cell, with its size and its scoring rules.

        None if a run has no predictions, or if these differ between the runs, because instances
        cannot be paired then.
        """
        test_sets = {(run.test_set, run.instances, run.fidelity) for run in self.runs}
        test_set, instances, fidelity = min(test_sets, key=str)
        if len(test_sets) > 1 or test_set is None:
            return None
        return test_set, instances, fidelity

    @property
    def runs(self) -> tuple[Run, ...]:
        return (*self.transfers, *self.baselines)


def make_cells(frames: Frames) -> pd.DataFrame:
    """Return the frame ``cells``, reusing unchanged rows of the earlier frame."""
    table = compute_cells(
        frames["transfer_runs"],
        frames.compute_once(select_fresh_deltas),
        Path(frames.study.config.results),
        frames.earlier.get("cells"),
        parse_more_baseline_seeds(frames.metadata),
    )
    race = read_study_race(frames.study)
    table = table if race is None else drop_intervals(table, race)
    return add_baseline_states(table, frames.get("references"))


def add_baseline_states(cells: pd.DataFrame, references: pd.DataFrame | None) -> pd.DataFrame:
    """Add the column ``baseline_state``, which is null for targets without references.

    Args:
        cells: columns of ``columns.CELL_STATISTICS``.
        references: columns of ``frames.REFERENCES``; None if the study has no references.
    """
    if references is None:
        return cells.assign(**{_STATE: None})
    states = references.drop_duplicates(_TARGET).set_index(_TARGET)["state"].to_dict()
    places = cells[_TARGET].itertuples(index=False, name=None)
    values = pd.Series([states.get(place) for place in places], cells.index, dtype=object)
    return cells.assign(**{_STATE: values})


def compute_cells(
    runs: pd.DataFrame,
    deltas: pd.DataFrame,
    root: Path,
    previous: pd.DataFrame | None = None,
    more_baseline_seeds: Collection[int] = (),
) -> pd.DataFrame:
    """Compute the table ``cells``, with one row per model, algorithm, sources and target.

    A row needs at least one seed with both the transfer run and its baseline. Mean delta, interval
    and test are those of ``bootstrap``: runs are compared with the baselines of their seeds and of
    ``more_baseline_seeds``, and the dialogues of the test set are resampled. A cell in which any
    run lacks predictions is tested over its seeds alone (``instances`` 0).

    ``q`` is the Benjamini-Hochberg adjustment over all single-source cells of a dataset, for all
    models and algorithms, because readers scan its heatmaps as one figure for outstanding cells.
    Multi-source cells, which another figure shows, are adjusted among themselves. A cell with one
    seed has no ``q`` and is never ``significant``: its p does not cover other seeds, and including
    it would make the q of other cells too small.

    Args:
        runs: columns of ``columns.RUNS``.
        deltas: columns of ``columns.DELTAS``, of the same study.
        root: the results folder that the paths in the tables are relative to.
        previous: an earlier result; its rows are reused if their inputs are unchanged. ``q`` is
            always recomputed.
        more_baseline_seeds: seeds of additional baselines, beyond those of the runs.

    Returns:
        Columns ``columns.CELL_STATISTICS``, in the order of ``deltas``.

    Raises:
        RecordError: a predictions file has changed since it was collected.
    """
    run_sets = _group_runs(runs, deltas, more_baseline_seeds)
    resampling = _ResamplingUnits(root, run_sets)
    progress = show_progress(run_sets, "checking cells for changes")
    digests = [_hash_inputs(cell, resampling) for cell in progress]
    earlier = _index_rows(previous)
    changed = [
        cell for cell, digest in zip(run_sets, digests, strict=True) if digest not in earlier
    ]
    fresh = _compute_rows(changed, root, resampling)
    rows = [
        (*cell.names, *(earlier.get(digest) or fresh[cell.names]), np.nan, False, digest)
        for cell, digest in zip(run_sets, digests, strict=True)
    ]
    return _add_q(build_frame(rows, columns.CELL_STATISTICS))


def _add_q(table: pd.DataFrame) -> pd.DataFrame:
    """Add the columns ``q`` and ``significant`` from the ``p`` of rows with several seeds."""
    families = [table["dataset"], table["n_sources"] > 1]
    several = table["p"].where(table["n_seeds"] > 1)
    table["q"] = several.groupby(families, sort=False).transform(compute_q_values)
    table["significant"] = table["q"] <= MARKED
    return table


# --- runs of a cell -------------------------------------------------------------------------------

_NAMES = list_column_names(columns.CELL_STATISTICS)[:7]
_NUMBERS = list_column_names(columns.CELL_STATISTICS)[7:-3]


def _group_runs(
    table: pd.DataFrame, deltas: pd.DataFrame, more_baseline_seeds: Collection[int]
) -> list[_Cell]:
    runs = map_runs(table)
    baselines: dict[Values, list[Run]] = defaultdict(list)
    alone = table[table["algorithm"] == BASELINE]
    for *task, digest in alone[["dataset", "model", "target", "digest"]].itertuples(
        index=False, name=None
    ):
        baselines[tuple(task)].append(runs[task[1], digest, task[2]])
    sets: dict[Values, list[Run]] = defaultdict(list)
    compared = deltas[deltas["delta"].notna()]
    for *names, digest in compared[[*_NAMES, "digest"]].itertuples(index=False, name=None):
        sets[(*names[:3], tuple(names[3]), *names[4:])].append(runs[names[1], digest, names[6]])
    result = []
    for cell, members in sets.items():
        seeds = {run.seed for run in members}.union(more_baseline_seeds)
        beside = [run for run in baselines[cell[0], cell[1], cell[6]] if run.seed in seeds]
        result.append(_Cell(cell, _sort_by_seed(members), _sort_by_seed(beside)))
    return result


def _sort_by_seed(runs: Iterable[Run]) -> tuple[Run, ...]:
    return tuple(sorted(runs, key=lambda run: run.seed))


def _list_scores(runs: Sequence[Run]) -> Floats:
    return np.asarray([run.score for run in runs], np.float64)


class _ResamplingUnits:
    """Resampling units of the cells' test sets, each read once."""

    def __init__(self, root: Path, cells: Iterable[_Cell]) -> None:
        self.root = root
        self.predictions: dict[Values, list[PredictionsFile]] = defaultdict(list)
        self.units: dict[Values, Units] = {}
        on_test_sets = {
            (self._build_key(cell), run.digest): run
            for cell in cells
            if cell.tested_on
            for run in cell.runs
        }
        for (key, _), run in on_test_sets.items():
            self.predictions[key].append(run.predictions)

    def find_resampling_units(self, cell: _Cell) -> Units | None:
        """Return a cell's resampling units, or None if its runs cannot be resampled together."""
        if cell.tested_on is None:
            return None
        key = self._build_key(cell)
        if key not in self.units:
            instances = cell.tested_on[1]
            self.units[key] = build_resampling_units(
                self.root, cell.target, instances, self.predictions[key]
            )
        return self.units[key]

    @staticmethod
    def _build_key(cell: _Cell) -> Values:
        assert cell.tested_on is not None
        return cell.dataset, cell.target, *cell.tested_on[:2]


# --- change detection -----------------------------------------------------------------------------


def _hash_inputs(cell: _Cell, resampling: _ResamplingUnits) -> str:
    """Return the digest of all inputs of a row, including the code's version."""
    card = get_task(cell.dataset, cell.target) if cell.tested_on else None
    scored_by = repr((card.labels, card.metrics, card.paper_metrics)) if card else ""
    members = [[_list_run_inputs(run) for run in runs] for runs in (cell.transfers, cell.baselines)]
    units = resampling.find_resampling_units(cell)
    settings = [draws.VERSION, bootstrap.VERSION, bootstrap.LEVEL]
    of_test_set = [cell.tested_on, units.digest if units else None]
    return compute_digest([settings, scored_by, of_test_set, cell.names, members])


def _list_run_inputs(run: Run) -> Values:
    return run.seed, run.digest, run.score, run.sha256, run.test_set


def digest_inputs(
    runs: pd.DataFrame, deltas: pd.DataFrame, root: Path, more_baseline_seeds: Collection[int] = ()
) -> list[str]:
    """Return the value of the column ``inputs`` for the current records.

    A row of an earlier table with another digest is outdated.

    Raises:
        RecordError: a predictions file has changed since it was collected.
    """
    run_sets = _group_runs(runs, deltas, more_baseline_seeds)
    resampling = _ResamplingUnits(root, run_sets)
    return [_hash_inputs(cell, resampling) for cell in run_sets]


def _index_rows(previous: pd.DataFrame | None) -> dict[str, Values]:
    """Map each row's ``inputs`` to the numbers that do not depend on other rows."""
    if previous is None:
        return {}
    names = [name for name in previous.columns if name != _STATE]
    if names != list_column_names(columns.CELL_STATISTICS):
        return {}
    reasons = previous["no_interval"].astype(object).where(previous["no_interval"].notna(), None)
    table = previous.assign(no_interval=reasons)[["inputs", *_NUMBERS]]
    rows = table.itertuples(index=False, name=None)
    return {digest: tuple(row) for digest, *row in rows}


# --- numbers --------------------------------------------------------------------------------------


def _compute_rows(
    cells: Iterable[_Cell], root: Path, resampling: _ResamplingUnits
) -> dict[Values, Values]:
    """Compute each row's numbers that do not depend on other rows, by cell."""
    estimated = list(_estimate_cells(cells, root, resampling))
    sure = bootstrap.compute_confidences([estimate for _, estimate in estimated])
    return {
        cell.names: _build_row(cell, resampling.find_resampling_units(cell), estimate, confidence)
        for (cell, estimate), confidence in zip(estimated, sure, strict=True)
    }


def _estimate_cells(
    cells: Iterable[_Cell], root: Path, resampling: _ResamplingUnits
) -> Iterator[tuple[_Cell, Estimate]]:
    """Yield each cell with its estimate, grouped by test set.

    Grouping keeps the leave-one-dialogue-out scores of only one test set in memory.
    """
    groups: dict[Values, list[_Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.dataset, cell.target, cell.tested_on].append(cell)
    for members in show_progress(groups.values(), "intervals of test sets"):
        units = resampling.find_resampling_units(members[0])
        if units is None:
            for cell in members:
                runs = (_build_trainings(cell.transfers), _build_trainings(cell.baselines))
                yield cell, bootstrap.estimate_delta(*runs, more_baselines=True)
        else:
            yield from _estimate_resampled_cells(members, root, units)


def _estimate_resampled_cells(
    cells: list[_Cell], root: Path, units: Units
) -> Iterator[tuple[_Cell, Estimate]]:
    """Yield the cells of one test set with their estimates, reading each baseline only once."""
    dataset, target, tested_on = cells[0].dataset, cells[0].target, cells[0].tested_on
    assert tested_on is not None
    _, instances, fidelity = tested_on
    task = get_task(dataset, target)
    tallies = TallyReader(task, fidelity, instances)

    score_of = functools.partial(metrics.compute_score_from_sums, task, fidelity=fidelity)

    def resample_runs(*runs: Run) -> Floats:
        read = [units.sum_tally(read_tally(run, root, tallies)) for run in runs]
        return draws.compute_jackknife_scores(np.stack(read), score_of)

    resample_baseline = functools.cache(resample_runs)
    for cell in cells:
        without = np.concatenate([resample_baseline(run) for run in cell.baselines])
        yield (
            cell,
            bootstrap.estimate_delta(
                _build_trainings(cell.transfers, resample_runs(*cell.transfers)),
                _build_trainings(cell.baselines, without),
                units,
                more_baselines=True,
            ),
        )


def _build_trainings(runs: Sequence[Run], resampled: Floats | None = None) -> Trainings:
    return Trainings(tuple(run.seed for run in runs), _list_scores(runs), resampled)


def _build_row(cell: _Cell, units: Units | None, estimate: Estimate, sure: Confidence) -> Values:
    baseline = _list_scores(cell.baselines).mean()
    return (
        len(cell.transfers),
        [run.seed for run in cell.transfers],
        len(cell.baselines),
        _list_scores(cell.transfers).mean(),
        baseline,
        estimate.delta,
        100 * estimate.delta / baseline if baseline > 0 else np.nan,
        units.instances if units else 0,
        units.count if units and units.kind == "dialogue" else 0,
        units.kind if units else "",
        estimate.standard_error,
        estimate.of_test_set**0.5,
        units.degrees if units else np.nan,
        sure.degrees,
        sure.low,
        sure.high,
        sure.p,
        _explain_missing_interval(units, estimate, sure),
    )


def _explain_missing_interval(
    units: Units | None, estimate: Estimate, sure: Confidence
) -> str | None:
    """Return the reason why a cell has no interval, or None if it has one."""
    if not np.isnan(sure.low):
        return None
    if units is not None and units.count < 2:
        return f"all {units.instances} test instances are from one dialogue"
    if estimate.seeds < 2:
        return "there is one seed and no predictions"
    return "every seed has the same delta, in every resample"
