"""Run records to data frames: runs, scores, deltas, sizes, missing, problems.

Every row comes from a record that passed all checks. A damaged record is named and left out; runs
that were planned and left nothing are listed; records that must not be compared are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.collect.loading import Loaded, load
from tasktransfer.designs.transfer.collect.missing import Holes, missing
from tasktransfer.designs.transfer.collect.planned import Expected
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.results.tallies import Checks

__all__ = ["BASELINE", "Expected", "Origin", "Tables", "collect_runs", "deltas_of"]


@dataclass(frozen=True)
class Tables:
    """What a study's records say. The columns of each frame are in ``columns.TABLES``."""

    runs: pd.DataFrame
    scores: pd.DataFrame
    deltas: pd.DataFrame
    sizes: pd.DataFrame
    missing: pd.DataFrame
    problems: pd.DataFrame
    control_runs: pd.DataFrame
    """Runs of controls; ``runs``, ``scores`` and ``deltas`` have none of them."""
    control_missing: pd.DataFrame
    """Planned runs of controls without a usable record; ``missing`` has none of them."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What the records behind ``runs`` say of the studies that they were made for."""

    studies: tuple[str, ...]
    config_digests: tuple[str, ...]
    synthetic: bool
    """Whether dialogues of any dataset are generated."""
    real: tuple[str, ...]
    """Datasets whose dialogues are real though those of another are generated."""
    records: int


def collect_runs(
    results: Path, expected: Sequence[Expected], checks: Checks | None = None
) -> tuple[Tables, Origin]:
    """Read records into frames.

    Args:
        results: the results folder; paths in the tables are relative to it.
        expected: the planned runs, in the order that the tables shall keep. Those without a usable
            record are listed in ``missing``, with the state of their trainings; a record at a
            planned path that holds another stage is a problem, and so is a second record of a
            planned stage.
        checks: predictions that were held against their records before; those of this call are
            added. None: all are checked.

    Returns:
        The frames, and where their records come from.

    Raises:
        RecordError: records of synthetic and real data of one dataset, or of several data
            revisions, recipes, sample settings, task sizes, weights or hyperparameters came
            together where numbers are compared; names what differs and two of the files.
    """
    loaded, problems = load(results, expected, checks)
    of_algorithms = [item for item in loaded if not _of_control(item)]
    of_controls = [item for item in loaded if _of_control(item)]
    runs, control_runs = _runs(of_algorithms), _runs(of_controls)
    deltas = deltas_of(runs)
    algorithms = [plan for plan in expected if not plan.is_control]
    controls = [plan for plan in expected if plan.is_control]
    holes = Holes(results, problems)
    tables = Tables(
        runs=runs,
        scores=frame("scores", [row for item in of_algorithms for row in item.scores]),
        deltas=deltas,
        sizes=_sizes(runs),
        missing=missing(algorithms, runs, deltas, holes),
        problems=frame("problems", [(problem.path, problem.error) for problem in problems]),
        control_runs=control_runs,
        control_missing=missing(controls, control_runs, deltas.iloc[:0], holes),
    )
    return tables, _origin(loaded)


def _runs(loaded: list[Loaded]) -> pd.DataFrame:
    return frame("runs", [item.run for item in loaded if item.run is not None])


def _of_control(item: Loaded) -> bool:
    return item.key is not None and item.key[2] in CONTROLS


def _origin(loaded: list[Loaded]) -> Origin:
    generated = any(item.synthetic for item in loaded)
    real = {item.dataset for item in loaded if not item.synthetic}
    return Origin(
        studies=tuple(sorted({item.study for item in loaded})),
        config_digests=tuple(sorted({item.config_digest for item in loaded})),
        synthetic=generated,
        real=tuple(sorted(real)) if generated else (),
        records=len(loaded),
    )


def _sizes(runs: pd.DataFrame) -> pd.DataFrame:
    """Sizes of every task that is a target of some run."""
    sizes = runs[["dataset", "target", "train_size", "dev_size", "test_size"]]
    rows = sizes.drop_duplicates(["dataset", "target"], keep="last")
    return frame("sizes", rows.itertuples(index=False, name=None))


def deltas_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Each transfer run beside the baseline of its dataset, model, target and seed.

    Args:
        runs: columns of ``columns.RUNS``.

    Returns:
        Columns of ``columns.DELTAS``, in the order of ``runs``.
    """
    on = ["dataset", "model", "target", "seed"]
    baselines = runs.loc[runs["algorithm"] == BASELINE, [*on, "score", "digest"]].rename(
        columns={"score": "baseline_score", "digest": "baseline_digest"}
    )
    transfers = runs[runs["algorithm"] != BASELINE]
    deltas = transfers.merge(baselines, on=on, how="left", validate="many_to_one")
    deltas["delta"] = deltas["score"] - deltas["baseline_score"]
    above_zero = deltas["baseline_score"].where(deltas["baseline_score"] > 0, np.nan)
    deltas["improvement"] = 100 * deltas["delta"] / above_zero
    return deltas[columns.names("deltas")]
