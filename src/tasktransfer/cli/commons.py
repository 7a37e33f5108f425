"""Commands for sharing results: import the shards of other labs, and export records."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json_option,
    add_option,
    add_out_option,
    open_design,
    parse_overrides,
    print_result,
)
from tasktransfer.errors import ConfigError


def add_commands(commands: Any) -> None:
    """Add the commands ``import`` and ``export``."""
    command = add_command(commands, "import", import_shards)
    add_option(
        command,
        "folder",
        "DIR",
        "import the shards in this folder, which `pack --by` wrote",
        type=Path,
    )
    add_flag(command, "--dry-run", "report what would be copied without copying it")
    add_flag(
        command,
        "--figures",
        "write tables, figures and report of the available results after the import",
    )
    add_json_option(command)
    command = add_command(commands, "export", export_runs)
    add_flag(command, "--eee", "use the schema of Every Eval Ever (the default and only schema)")
    add_out_option(command, "write the files below data/ in this folder")
    add_option(command, "--by", "NAME", "name the lab or person who made the runs", required=True)
    what = "write the runs to this collection, a folder in data/ (default: the study's name)"
    add_option(command, "--collection", "NAME", what)
    add_flag(
        command, "--with-text", "export answers that quote the dialogues as text, not as codes"
    )
    add_json_option(command)


def import_shards(args: argparse.Namespace) -> None:
    """Import the results of other labs from a folder of shards, and list who made them."""
    from tasktransfer.designs import load_config
    from tasktransfer.designs.outputs import list_dialogue_tables
    from tasktransfer.operate.commons import shards
    from tasktransfer.operate.commons.isolated import PackReader

    config = load_config(args.config, parse_overrides(args))
    with PackReader(follow_links=False) as reader:
        files = shards.find_shards(args.folder, reader)
        shards.cache_inputs(config, files)
        study, design = open_design(args, need_inputs=False)
        result = shards.import_shards(
            study,
            args.folder,
            files,
            reader,
            tables=list_dialogue_tables(design, study),
            dry_run=args.dry_run,
        )
    print_result(result, shards.as_text, as_json=args.json)
    if args.figures and not args.dry_run:
        _write_analysis(args)
    if problem := shards.find_error(result):
        raise problem


def _write_analysis(args: argparse.Namespace) -> None:
    """Write tables, statistics, figures and report, in which missing results are marked."""
    from contextlib import redirect_stdout

    from tasktransfer.designs.commands import (
        write_collected_tables,
        write_figures,
        write_report,
        write_statistics,
    )

    study, design = open_design(args, need_inputs=False)
    with redirect_stdout(sys.stderr):  # standard output is for the summary of the import
        write_collected_tables(design, study)
        write_statistics(design, study)
        write_figures(design, study)
        write_report(design, study)


def export_runs(args: argparse.Namespace) -> None:
    """Export finished runs with their test instances in the schema of Every Eval Ever."""
    from tasktransfer.operate.commons import every_eval_ever

    if not args.by.strip() or not args.by.isprintable():
        raise ConfigError(
            f"--by {args.by!r}: The value is not a printable name. Pass the name of a lab or a "
            "person."
        )
    study, _ = open_design(args, need_inputs=False)
    result = every_eval_ever.export_runs(
        study,
        args.out,
        by=args.by.strip(),
        collection=args.collection or study.config.study,
        with_text=args.with_text,
    )
    print_result(result, every_eval_ever.as_text, as_json=args.json)
