"""Provenance of a heatmap cell.

``explain`` collects, as JSON-serialisable data, everything about one cell: its number, interval and
test, its seeds, their records and runs, and the commands that repeat these runs. Scores are read
from the current records, interval and test from the tables of statistics. A note says so if the
statistics are outdated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.collect.collect import tables_of
from tasktransfer.designs.transfer.collect.columns import frame
from tasktransfer.designs.transfer.collect.results import Tables, read_statistic, read_tables
from tasktransfer.designs.transfer.config import transfer_config
from tasktransfer.designs.transfer.explain.question import Cell, cell_of, cells_of, find_cell
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.statistics.cells import MARKED, inputs_of
from tasktransfer.errors import RecordError
from tasktransfer.operate.explain import collect_facts, format_snakemake_command, trace_ancestors
from tasktransfer.results.collect import gather
from tasktransfer.results.misplaced import list_records
from tasktransfer.results.study import Study

__all__ = ["Cell", "cell_of", "cells_of", "collected_tables", "explain", "find_cell"]

Facts = dict[str, Any]


@dataclass(frozen=True)
class _Evidence:
    """Inputs of a cell's explanation."""

    cell: Cell
    planned: list[Run]
    collected: pd.DataFrame
    study: Study
    now: Tables

    @property
    def results(self) -> Path:
        return Path(self.study.config.results)

    @property
    def tables(self) -> Path:
        """Folder of the study's tables, which may be empty."""
        return Path(self.study.tables)


def collected_tables(tables: Path) -> Tables | None:
    """Read the tables of the last ``collect``; None if no tables can be read."""
    try:
        return read_tables(tables)[0]
    except RecordError:
        return None


def explain(cell: Cell, plan: Iterable[Run], study: Study) -> Facts:
    """Return everything about a cell.

    Args:
        cell: see ``find_cell``.
        plan: the runs of the study's plan; empty if the paths of its records are unknown.
        study: source of the tables, the nodes and the commands.

    Returns:
        ``number`` (means over the seeds that have both scores), ``statistics`` (None without),
        ``seeds`` (each with its scores, its states, its ``trainings`` in order, and those of its
        baseline as ``baseline_trainings``), ``notes`` (warnings for the reader), and the names.

    Raises:
        RecordError: the cell's records must not be compared.
    """
    evidence = _gather_evidence(cell, list(plan), study)
    seeds = [_build_seed_facts(evidence, seed) for seed in _list_seeds(evidence)]
    number = _average_seeds(evidence, seeds)
    statistics, remarks = _read_statistics(evidence)
    return {
        "dataset": cell.dataset,
        "model": cell.model,
        "algorithm": cell.algorithm,
        "sources": list(cell.sources),
        "target": cell.target,
        "results": study.config.results,
        "config": study.config_file,
        "in_plan": bool(evidence.planned),
        "in_tables": bool(len(_select_rows(evidence.collected, cell))),
        "number": number,
        "statistics": statistics,
        "seeds": seeds,
        "notes": [*_list_notes(evidence, seeds), *remarks],
    }


def _gather_evidence(cell: Cell, plan: list[Run], study: Study) -> _Evidence:
    """Gather the current records; for a cell outside the plan, the last collected tables."""
    earlier = collected_tables(Path(study.tables))
    runs = frame("runs", []) if earlier is None else earlier.runs
    planned = [run for run in plan if cell_of(run) in (cell, cell.baseline)]
    if earlier is not None and all(cell_of(run) != cell for run in planned):
        return _Evidence(cell, [], runs, study, _select_cell_tables(earlier, cell))
    return _Evidence(cell, planned, runs, study, tables_of(gather(study, planned)))


def _select_cell_tables(tables: Tables, cell: Cell) -> Tables:
    """Return the tables of a cell and its baselines."""
    runs = pd.concat(
        [_select_rows(tables.runs, one) for one in dict.fromkeys((cell.baseline, cell))]
    )
    problems = tables.problems.iloc[:0]
    return replace(tables, runs=runs, deltas=_select_rows(tables.deltas, cell), problems=problems)


def _select_rows(runs: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    """Return the rows of a cell in any table that has its columns."""
    for column in ("dataset", "model", "algorithm", "source", "target"):
        runs = runs[runs[column] == getattr(cell, column)]
    return runs


# --- seeds ----------------------------------------------------------------------------------------


def _list_seeds(evidence: _Evidence) -> list[int]:
    planned = {run.seed for run in evidence.planned if cell_of(run) == evidence.cell}
    if planned:
        return sorted(planned)
    return sorted(int(seed) for seed in _select_rows(evidence.collected, evidence.cell)["seed"])


def _build_seed_facts(evidence: _Evidence, seed: int) -> Facts:
    """Return the facts of one seed: its scores, the states of its runs, and their trainings."""
    cell = evidence.cell
    run = _run(evidence, cell, seed)
    facts: Facts = {"seed": seed, **run}
    if cell.algorithm == BASELINE:
        return facts
    baseline = _run(evidence, cell.baseline, seed)
    delta = _subtract_baseline(run["score"], baseline["score"])
    return {
        **facts,
        "baseline_score": baseline["score"],
        "delta": delta,
        "improvement": _compute_percent(delta, baseline["score"]),
        "baseline_state": baseline["state"],
        "baseline_reason": baseline["reason"],
        "baseline_trainings": baseline["trainings"],
    }


def _run(evidence: _Evidence, cell: Cell, seed: int) -> Facts:
    """Return the facts of a cell's run: score, state, and trainings, first to last."""
    finished, absent = (
        rows[rows["seed"] == seed]
        for rows in (
            _select_rows(evidence.now.runs, cell),
            _select_rows(evidence.now.missing, cell),
        )
    )
    score = float(finished["score"].iloc[0]) if len(finished) else None
    state, reason = "done", None
    if score is None:
        state, reason = "waiting", "not planned and not collected"
        if len(absent):
            state, reason = absent["state"].iloc[0], absent["reason"].iloc[0]
            if state == "damaged":
                reason = f"damaged: {absent['error'].iloc[0]}"
    return {
        "score": score,
        "state": state,
        "reason": reason,
        "trainings": _list_trainings(evidence, cell, seed),
    }


def _list_trainings(evidence: _Evidence, cell: Cell, seed: int) -> list[Facts]:
    for run in evidence.planned:
        if cell_of(run) == cell and run.seed == seed:
            return [collect_facts(evidence.study, stage) for stage in run.stages]
    rows = _select_rows(evidence.collected, cell)
    folders = [str(Path(path).parent) for path in rows.loc[rows["seed"] == seed, "path"]]
    if not folders:
        return []
    results = evidence.results
    parents = (
        path.parent.relative_to(results).as_posix() for path in list_records(results / "stages")
    )
    return trace_ancestors(results, folders[0], parents)


# --- numbers --------------------------------------------------------------------------------------


def _subtract_baseline(score: float | None, baseline: float | None) -> float | None:
    return None if score is None or baseline is None else score - baseline


def _compute_percent(delta: float | None, baseline: float | None) -> float | None:
    return 100 * delta / baseline if delta is not None and baseline else None


def _average_seeds(evidence: _Evidence, seeds: Sequence[Facts]) -> Facts:
    """Return means over the seeds with both scores; for a baseline, over the seeds with a score.

    The baselines include the study's additional baseline seeds, as in the table of cells.
    """
    cell = evidence.cell
    wanted = ["score"] if cell.algorithm == BASELINE else ["score", "baseline_score"]
    used = [seed for seed in seeds if all(seed[key] is not None for key in wanted)]
    means = {key: sum(s[key] for s in used) / len(used) if used else None for key in wanted}
    facts: Facts = {"seeds": [seed["seed"] for seed in used], "of_seeds": len(seeds)}
    if used and cell.algorithm != BASELINE:
        more = transfer_config(evidence.study).more_baseline_seeds
        of_target = _select_rows(evidence.now.runs, cell.baseline)
        baselines = of_target.loc[of_target["seed"].isin([*facts["seeds"], *more]), "score"]
        means["baseline_score"], facts["baselines"] = float(baselines.mean()), len(baselines)
    facts |= means
    if cell.algorithm != BASELINE:
        facts["delta"] = _subtract_baseline(means["score"], means["baseline_score"])
        facts["improvement"] = _compute_percent(facts["delta"], means["baseline_score"])
    return facts


def _read_statistics(evidence: _Evidence) -> tuple[Facts | None, list[str]]:
    """Return interval and test of the cell, and notes about them for the reader."""
    cell, file = evidence.cell, evidence.tables / "cells.parquet"
    if cell.algorithm == BASELINE:
        return None, []
    try:
        table = read_statistic(evidence.tables, "cells")
    except RecordError as error:
        remedy = format_snakemake_command(evidence.study, "figures_now")
        return None, [f"no interval and no test: {error}", f"compute the statistics: {remedy}"]
    rows = _select_rows(table, cell)
    if rows.empty:
        return None, [f"no interval and no test: {file} does not contain this cell"]
    (row,) = rows.to_dict("records")
    family = table[
        (table["dataset"] == cell.dataset) & ((table["n_sources"] > 1) == (len(cell.sources) > 1))
    ]
    current = _list_current_inputs(evidence) == [row["inputs"]]
    keys = ("low", "high", "standard_error", "degrees", "p", "q")
    facts: Facts = {
        "file": str(file),
        "delta": float(row["delta"]),
        **{key: None if pd.isna(row[key]) else float(row[key]) for key in keys},
        "significant": bool(row["significant"]),
        "level": MARKED,
        "seeds": [int(seed) for seed in row["seeds"]],
        "instances": int(row["instances"]),
        "dialogues": int(row["dialogues"]),
        "resampled_by": row["resampled_by"],
        "no_interval": None if pd.isna(row["no_interval"]) else row["no_interval"],
        "family": {
            "what": f"{'multi' if len(cell.sources) > 1 else 'single'}-source cells of "
            f"{cell.dataset}, all models and algorithms",
            "tests": int(family["q"].notna().sum()),
            "significant": int(family["significant"].sum()),
        },
        "up_to_date": current,
    }
    stale = (
        f"the statistics were computed from other records than the current ones ({file}: delta "
        f"{row['delta']:+.2f} of seeds {', '.join(map(str, row['seeds']))}); recompute them: "
        f"{format_snakemake_command(evidence.study, 'figures_now')}"
    )
    return facts, [] if current else [stale]


def _list_current_inputs(evidence: _Evidence) -> list[str]:
    """Return the cell's current input digests; empty if its predictions have changed."""
    try:
        more = transfer_config(evidence.study).more_baseline_seeds
        return inputs_of(evidence.now, evidence.results, more)
    except RecordError:
        return []


# --- notes for the reader -------------------------------------------------------------------------


def _list_notes(evidence: _Evidence, seeds: Sequence[Facts]) -> list[str]:
    notes = []
    collected = _select_rows(evidence.collected, evidence.cell)
    trainings = [
        training
        for seed in seeds
        for training in (*seed["trainings"], *seed.get("baseline_trainings", ()))
    ]
    if any(training.get("synthetic") for training in trainings):
        notes.append("SYNTHETIC: trained on generated dialogues, not on real data")
    if not evidence.planned:
        notes.append(
            "the study's current plan does not contain this cell (the config has changed, or its "
            "data or models are not on this disk): the output shows earlier results, and no "
            "command of this study trains it again"
        )
    elif collected.empty:
        notes.append(
            f"the tables in {evidence.tables} do not contain it; run `tasktransfer collect` again"
        )
    elif _has_other_trainings(evidence, collected):
        notes.append(
            f"the tables in {evidence.tables} contain other runs of this cell than the current "
            "plan (the config, the data or a model has changed); run `tasktransfer collect` again"
        )
    kept = {str(Path(training["record"])) for training in trainings}
    for path, error in evidence.now.problems[["path", "error"]].itertuples(index=False, name=None):
        if str(evidence.results / path) not in kept:
            notes.append(f"left out: {error}")
    return [*notes, *_list_differences(trainings)]


def _has_other_trainings(evidence: _Evidence, collected: pd.DataFrame) -> bool:
    planned = {run.stages[-1].digest for run in evidence.planned if cell_of(run) == evidence.cell}
    return not planned.issuperset(collected["digest"])


def _list_differences(trainings: Sequence[Facts]) -> list[str]:
    """Return notes on differences between the trainings: commits, devices and versions."""
    done = [training for training in trainings if "commit" in training]
    facts = {
        "commits": [training["commit"] for training in done],
        "devices": [training["host"]["gpu"] or training["host"]["device"] for training in done],
        "precisions": [training["host"]["precision"] for training in done],
        **{
            f"versions of {package}": [training["versions"].get(package) for training in done]
            for package in dict.fromkeys(p for training in done for p in training["versions"])
        },
    }
    notes = []
    for what, values in facts.items():
        distinct = list(dict.fromkeys(str(value) for value in values))
        if len(distinct) > 1:
            notes.append(f"the runs used {len(distinct)} {what}: {', '.join(distinct)}")
    if any(training["dirty"] for training in done):
        notes.append("some runs had uncommitted changes: their commit does not fully describe them")
    return notes
