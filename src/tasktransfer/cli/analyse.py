"""Commands that read records: tables, statistics, figures."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import add_command, open_study

if TYPE_CHECKING:
    from tasktransfer.results.study import Study


def add_commands(commands: Any) -> None:
    """``collect``, ``select-sources``, ``statistics``, ``figures``, ``report`` and ``explain``."""
    command = add_command(commands, "collect", collect)
    command.add_argument(
        "--complete", action="store_true", help="fail if a planned run has no usable record"
    )
    add_command(commands, "select-sources", select_sources)
    add_command(commands, "statistics", statistics)
    add_command(commands, "figures", figures)
    add_command(commands, "report", report)
    _add_explain(commands)


def _add_explain(commands: Any) -> None:
    command = add_command(commands, "explain", explain)
    command.add_argument("dataset", metavar="DATASET", help="DailyDialog or Friends")
    command.add_argument("model", metavar="MODEL", help="a model of the study")
    command.add_argument("algorithm", metavar="ALGORITHM", help="for example multitask, baseline")
    command.add_argument(
        "tasks",
        metavar="TASK",
        nargs="+",
        help="source (several joined by +) and target, full or short names; a baseline: the target",
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def collect(chosen: argparse.Namespace) -> None:
    """Make the Parquet tables from the records that are there."""
    import time

    from tasktransfer.designs.transfer.collect.planned import read_plan
    from tasktransfer.designs.transfer.collect.store import collect as collect_tables
    from tasktransfer.designs.transfer.collect.store import holes_of
    from tasktransfer.files import replacing

    study = open_study(chosen)
    tables = Path(study.tables)
    plan_file = _write_plan_file(study, tables, single_source=False)
    results = Path(study.config.results)
    frames, _ = collect_tables(results, plan_file, tables, complete=chosen.complete)
    states = frames.missing["state"].value_counts(sort=False)
    counted = ", ".join(f"{count:,} {state}" for state, count in states.items())
    print(
        f"{tables}: {len(frames.runs):,} runs, {len(frames.missing):,} missing"
        + (f" ({counted})" if counted else "")
    )
    for error in frames.problems["error"]:
        print(f"left out: {error}")
    holes = holes_of(frames, read_plan(plan_file).runs)
    if holes:
        with replacing(Path(study.holes)) as part:
            part.write_text("\n".join([time.ctime(), *holes, ""]), encoding="utf-8")


def select_sources(chosen: argparse.Namespace) -> None:
    """Pick the multi-source targets and their sources from the single-source results."""
    from tasktransfer.designs.transfer.collect.store import collect as collect_tables
    from tasktransfer.designs.transfer.statistics.select_sources import select_from_tables

    study = open_study(chosen)
    tables = Path(study.tables) / "single-source"
    plan_file = _write_plan_file(study, tables, single_source=True)
    collect_tables(Path(study.config.results), plan_file, tables)
    asked = study.config.multi_source
    out = Path(study.selection_file)
    for item in select_from_tables(
        tables, out, asked.targets_per_dataset, asked.sources_per_target
    ):
        print(f"{item['dataset']}: {' + '.join(item['sources'])} -> {item['target']}")


def statistics(chosen: argparse.Namespace) -> None:
    """Compute how sure the collected numbers are: intervals, tests, ranks, variance, agreement."""
    import time

    from tasktransfer.designs.transfer.statistics.study_statistics import compute

    study = open_study(chosen, need_inputs=False)
    tables = Path(study.tables)
    start = time.perf_counter()
    found = compute(tables, study.config.results, progress=lambda text: print(text, flush=True))
    for name, frame in vars(found).items():
        print(f"{tables / name}.parquet: {len(frame):,} rows")
    print(f"{time.perf_counter() - start:.1f} seconds")


def figures(chosen: argparse.Namespace) -> None:
    """Draw the figures whose data changed, and print the paper's tables."""
    from tasktransfer.designs.transfer.figures.draw import draw

    study = open_study(chosen, need_inputs=False)
    for path in draw(Path(study.tables), Path(study.figures)):
        print(path)


def report(chosen: argparse.Namespace) -> None:
    """Write everything into one HTML file: tables, statistics, figures, an interactive heatmap."""
    from tasktransfer.designs.transfer.collect.results import read_results
    from tasktransfer.designs.transfer.report.page import write_report

    study = open_study(chosen, need_inputs=False)
    results = read_results(study.tables)
    print(
        write_report(results, Path(study.figures), Path(study.report), arguments=study.arguments())
    )


def explain(chosen: argparse.Namespace) -> None:
    """Trace a cell of a heatmap: its number, seeds, interval, records, trainings and commands."""
    from tasktransfer.designs.transfer import explain as explaining
    from tasktransfer.designs.transfer.explain.text import as_text

    study = open_study(chosen, need_inputs=False)
    tables = Path(study.tables)
    collected = explaining.collected_runs(tables)
    known = [explaining.cell_of(run) for run in study.plan.runs]
    known += explaining.cells_of(collected) if collected is not None else []
    shorts = {task: short for dataset in study.config.datasets for task, short in dataset.shorts}
    asked = (chosen.dataset, chosen.model, chosen.algorithm, chosen.tasks)
    cell = explaining.find_cell(known, shorts, *asked)
    workflow = explaining.Workflow(Path(study.config.results), study.config_file, study.overrides)
    # Places of results are named after their inputs: with these unknown, only the tables know them.
    runs = () if study.unknown else study.plan.runs
    facts = explaining.explain(cell, runs, tables, workflow)
    facts["notes"] += study.absent
    print(json.dumps(facts, indent=2) if chosen.json else as_text(facts), end="\n" * chosen.json)


def _write_plan_file(study: Study, folder: Path, *, single_source: bool) -> Path:
    from tasktransfer.files import replacing

    path = folder / "plan.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = study.single_source_plan if single_source else study.plan
    with replacing(path) as part:
        part.write_text(json.dumps(study.plan_file(wanted)), encoding="utf-8")
    return path
