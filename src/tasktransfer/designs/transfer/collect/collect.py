"""Collection of records into the study's tables: runs, scores, deltas, sizes, missing, problems."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer import pairs
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.collect.results import Tables, frames_of
from tasktransfer.designs.transfer.collect.rows import (
    Values,
    missing_row,
    other_missing_rows,
    run_row,
    score_rows,
)
from tasktransfer.designs.transfer.config import transfer_config
from tasktransfer.designs.transfer.runs import BASELINE, is_control, is_transfer
from tasktransfer.results.collect import NO_RECORD, Collected, Missing, gather
from tasktransfer.results.common_frames import build_metadata, write_collected
from tasktransfer.results.metadata import Metadata
from tasktransfer.results.study import Study

ABOUT = ("dataset", "sources", "target")
"""Keys of ``Run.about``."""
NO_BASELINE = "its baseline is missing"
ALONE = "baseline missing"
"""Reason and state of a finished run without a baseline for comparison."""

SOURCES_CHOSEN_BY = "sources_chosen_by"
"""Key in the tables' facts for what chose the targets and sources of multi-source runs: the scores
of ``dev`` or ``test``, a selector (sources only), or ``config``. Absent without such runs."""
MORE_BASELINE_SEEDS = "more_baseline_seeds"
"""Key in the tables' facts for additional baseline seeds, beyond those of the runs."""


def collect(study: Study, *, complete: bool = False) -> tuple[Tables, Metadata]:
    """Collect a study's records into its tables.

    Args:
        complete: whether to raise an error, and write nothing, if a planned run is missing.

    Raises:
        RecordError: no record is usable, records cannot be compared, or ``complete`` and a planned
            run left no usable record.
    """
    collected = gather(study)
    collected.require(complete=complete)
    return write(collected)


def write(collected: Collected) -> tuple[Tables, Metadata]:
    """Write the tables of the collected records."""
    tables, metadata = tables_of(collected), metadata_in(collected)
    write_collected(collected, frames_of(tables), columns.TABLES, metadata, ABOUT)
    return tables, metadata


def tables_of(collected: Collected) -> Tables:
    """Return the collected records as frames in the order of the plan, with controls separate."""
    of_algorithms = [run for run in collected.runs if is_transfer(run)]
    of_controls = [run for run in collected.runs if is_control(run)]
    holes = [hole for hole in collected.missing if is_transfer(hole.run)]
    of_controls_missing = [hole for hole in collected.missing if is_control(hole.run)]
    runs = frame("runs", [run_row(collected, run) for run in of_algorithms])
    deltas = deltas_of(runs)
    alone = _list_unmatched_runs(runs, deltas, holes)
    return Tables(
        runs=runs,
        scores=frame("scores", [row for r in of_algorithms for row in score_rows(collected, r)]),
        deltas=deltas,
        sizes=_build_sizes(runs),
        missing=frame("missing", [*map(missing_row, holes), *alone]),
        problems=frame("problems", collected.problems),
        control_runs=frame("control_runs", [run_row(collected, run) for run in of_controls]),
        control_missing=frame("control_missing", map(missing_row, of_controls_missing)),
        other_missing=frame("other_missing", other_missing_rows(collected)),
    )


def _build_sizes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the sizes of every task that is a target of a run."""
    sizes = runs[["dataset", "target", "train_size", "dev_size", "test_size"]]
    rows = sizes.drop_duplicates(["dataset", "target"], keep="last")
    return frame("sizes", rows.itertuples(index=False, name=None))


def _list_unmatched_runs(
    runs: pd.DataFrame, deltas: pd.DataFrame, holes: Iterable[Missing]
) -> list[Values]:
    """Return rows of finished transfer runs that have no baseline for comparison."""
    baselines = {
        (run.about["dataset"], run.model, run.about["target"], run.seed): hole
        for hole in holes
        if (run := hole.run).method == BASELINE
    }
    paths = dict(zip(runs["digest"], runs["path"], strict=True))
    keys = columns.names("missing")[:8]
    alone = deltas[deltas["baseline_score"].isna()]
    rows: list[Values] = []
    for *key, digest in alone[[*keys, "digest"]].itertuples(index=False, name=None):
        dataset, model, *_, target, seed = key
        hole = baselines.get((dataset, model, target, seed))
        known = hole is not None and hole.reason != NO_RECORD
        error = f"the baseline: {hole.reason}" if hole is not None and known else None
        folder = hole.node.path if hole is not None else None
        rows.append((*key, paths[digest], NO_BASELINE, ALONE, folder, error))
    return rows


def deltas_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Join each transfer run with the baseline of its dataset, model, target and seed.

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
    named: pd.DataFrame = deltas[columns.names("deltas")]
    return named


# --- metadata of every table ----------------------------------------------------------------------


def shorts_of(study: Study) -> dict[str, str]:
    """Return short names by task, for all tasks of the study's datasets."""
    return dict(pairs.shorts_of(transfer_config(study).datasets))


def metadata_in(collected: Collected) -> Metadata:
    """Return the study's metadata for all tables."""
    config = transfer_config(collected.study)
    asked = config.multi_source
    facts = {
        SOURCES_CHOSEN_BY: {"off": "", "named": "config", "auto": asked.choose_by}[asked.mode],
        MORE_BASELINE_SEEDS: " ".join(map(str, config.more_baseline_seeds)),
    }
    return build_metadata(
        collected,
        order=_order(collected.planned),
        facts={key: value for key, value in facts.items() if value},
        shorts=shorts_of(collected.study),
    )


def _order(runs: Iterable[Run]) -> dict[str, list[str]]:
    """Return names in order of first appearance in the plan; targets come before sources."""
    listed = [run for run in runs if is_transfer(run) or is_control(run)]
    sources = [source for run in listed for source in run.about["sources"]]
    names = {
        "dataset": (run.about["dataset"] for run in listed),
        "model": (run.model for run in listed),
        "algorithm": (run.method for run in listed if is_transfer(run)),
        "task": [*(run.about["target"] for run in listed), *sources],
    }
    return {kind: list(dict.fromkeys(values)) for kind, values in names.items()}


def more_baseline_seeds(metadata: Metadata) -> tuple[int, ...]:
    """Return the study's additional baseline seeds, beyond those of its runs."""
    return tuple(map(int, metadata.facts.get(MORE_BASELINE_SEEDS, "").split()))
