"""Commands that read records: tables, statistics, figures."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import add_command, open_study
from tasktransfer.errors import ConfigError

if TYPE_CHECKING:
    from tasktransfer.study import Study


def add_commands(commands: Any) -> None:
    """``collect``, ``select-sources`` and ``figures``."""
    command = add_command(commands, "collect", collect)
    command.add_argument(
        "--complete", action="store_true", help="fail if a planned run has no usable record"
    )
    add_command(commands, "select-sources", select_sources)
    add_command(commands, "figures", figures)


def collect(chosen: argparse.Namespace) -> None:
    """Make the Parquet tables from the records that are there."""
    from tasktransfer.analysis.tables import collect as collect_tables

    study = open_study(chosen)
    tables = Path(study.tables)
    plan_file = _write_plan_file(study, tables, single_source=False)
    frames, _ = collect_tables(Path(study.config.results), plan_file, tables)
    print(f"{tables}: {len(frames.runs):,} runs, {len(frames.missing):,} missing")
    if chosen.complete and len(frames.missing):
        first = frames.missing.iloc[0]
        raise ConfigError(
            f"{tables}: {len(frames.missing)} planned runs have no usable record, the first: "
            f"{first['path']} ({first['reason']}); run snakemake, or collect without --complete"
        )


def select_sources(chosen: argparse.Namespace) -> None:
    """Pick the multi-source targets and their sources from the single-source results."""
    from tasktransfer.analysis.select_sources import select_from_tables
    from tasktransfer.analysis.tables import collect as collect_tables

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


def figures(chosen: argparse.Namespace) -> None:
    """Draw figures and Table 2 from the tables."""
    from tasktransfer.analysis.figures import draw

    study = open_study(chosen, need_inputs=False)
    for path in draw(Path(study.tables), Path(study.figures)):
        print(path)


def _write_plan_file(study: Study, folder: Path, *, single_source: bool) -> Path:
    from tasktransfer.records import replacing

    path = folder / "plan.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = study.single_source_plan if single_source else study.plan
    with replacing(path) as part:
        part.write_text(json.dumps(study.plan_file(wanted)), encoding="utf-8")
    return path
