"""Selectors of a transfer study: their tables, and the values that choose sources.

The methods are in ``selection``. This module is part of the design because it reads its config,
its tables and its race.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.collect.results import (
    Tables,
    frames_of,
    read_references,
    read_tables,
)
from tasktransfer.designs.transfer.config import TransferConfig, transfer_config
from tasktransfer.designs.transfer.racing import read_race
from tasktransfer.errors import RecordError
from tasktransfer.results.collect import Collected, gather
from tasktransfer.results.store import write_frame
from tasktransfer.results.study import Study
from tasktransfer.selection.methods import SELECTORS
from tasktransfer.selection.nodes import is_selector
from tasktransfer.selection.regret import COLUMNS as REGRET
from tasktransfer.selection.values import (
    NOT_THERE,
    VALUES,
    compute_study_regret,
    compute_values,
    leave_out_unlearned,
)


def write_selection(study: Study) -> None:
    """Write ``tables/selectors.parquet`` and ``tables/regret.parquet`` from the records."""
    tables, metadata = read_tables(Path(study.tables))
    config = transfer_config(study)
    if config.racing is not None:  # the seeds that every pair has
        first = read_race(config.racing, config.seeds, config.results).seeds[0]
        tables = replace(tables, deltas=tables.deltas[tables.deltas["seed"].isin(first)])
    runs = [run for run in study.plan.runs if is_selector(run)]
    collected = gather(study, runs) if runs else None
    values = compute_study_values(config, tables, collected)
    learned = replace(tables, deltas=leave_out_unlearned(tables.deltas, read_references(study)))
    regret = compute_study_regret(frames_of(learned), values)
    for name, frame, columns in (("selectors", values, VALUES), ("regret", regret, REGRET)):
        write_frame(Path(study.tables, f"{name}.parquet"), frame, columns, metadata)


def values_to_choose_by(study: Study, runs: Iterable[Run], tables: Tables) -> pd.DataFrame:
    """Return the values of the selector that ``multi_source.choose_by`` names.

    Args:
        runs: runs of the plan before the selection.
        tables: tables of the single-source transfers.

    Raises:
        RecordError: a value has not been computed yet.
    """
    config = transfer_config(study)
    chooser = config.model_copy(update={"selectors": (config.multi_source.choose_by,)})
    own = [run for run in runs if is_selector(run) and run.variant in chooser.selectors]
    values = compute_study_values(chooser, tables, gather(study, own) if own else None)
    absent = values[values["reason"] == NOT_THERE]
    if len(absent):
        first = absent.iloc[0]
        raise RecordError(
            f"{len(absent)} values of {first['selector']} are missing, the first: "
            f"{first['dataset']} {first['model']} {first['source']} -> {first['target']} seed "
            f"{first['seed']}; run them, because an incomplete table must not select sources"
        )
    return values


def compute_study_values(
    config: TransferConfig, tables: Tables, collected: Collected | None = None
) -> pd.DataFrame:
    """Compute the values of the config's selectors, see ``selection.values.compute_values``."""
    selectors = [SELECTORS[name] for name in config.selectors]
    families = {model.name: model.family for model in config.models}
    return compute_values(selectors, families, frames_of(tables), collected)
