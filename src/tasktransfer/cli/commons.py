"""Commands for sharing results: import the shards of other labs, and export records."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json,
    add_option,
    add_out,
    open_design,
    parse_overrides,
    show,
)
from tasktransfer.errors import ConfigError


def add_commands(commands: Any) -> None:
    """Add ``import`` and ``export``."""
    command = add_command(commands, "import", import_shards)
    add_option(command, "folder", "DIR", "folder of shards written by `pack --by`", type=Path)
    add_flag(command, "--dry-run", "report what would be copied, and copy nothing")
    add_flag(command, "--figures", "then write tables, figures and report of the available results")
    add_json(command)
    command = add_command(commands, "export", export)
    add_flag(command, "--eee", "use the schema of Every Eval Ever (the default and only schema)")
    add_out(command, "folder to write; files are written under its data/")
    add_option(
        command, "--by", "NAME", "name of the lab or person who made the runs", required=True
    )
    what = "name of the collection in data/ (default: the study's name)"
    add_option(command, "--collection", "NAME", what)
    add_flag(
        command, "--with-text", "export answers that quote the dialogues as text, not as codes"
    )
    add_json(command)


def import_shards(chosen: argparse.Namespace) -> None:
    """Import the results of other labs from a folder of shards, and list who made them."""
    from tasktransfer.designs import load_config
    from tasktransfer.designs.outputs import list_dialogue_tables
    from tasktransfer.operate.commons import shards
    from tasktransfer.operate.commons.isolated import PackReader

    config = load_config(chosen.config, parse_overrides(chosen))
    with PackReader(follow_links=False) as reader:
        files = shards.find_shards(chosen.folder, reader)
        shards.cache_inputs(config, files)
        study, design = open_design(chosen, need_inputs=False)
        seen = shards.import_shards(
            study,
            chosen.folder,
            files,
            reader,
            tables=list_dialogue_tables(design, study),
            dry_run=chosen.dry_run,
        )
    show(seen, shards.as_text, as_json=chosen.json)
    if chosen.figures and not chosen.dry_run:
        _draw(chosen)
    if problem := shards.find_error(seen):
        raise problem


def _draw(chosen: argparse.Namespace) -> None:
    """Write tables, statistics, figures and report; missing results are marked as missing."""
    from contextlib import redirect_stdout

    from tasktransfer.designs.commands import (
        write_collected,
        write_figures,
        write_report,
        write_statistics,
    )

    study, design = open_design(chosen, need_inputs=False)
    with redirect_stdout(sys.stderr):  # standard output is for the summary of the import
        write_collected(design, study)
        write_statistics(design, study)
        write_figures(design, study)
        write_report(design, study)


def export(chosen: argparse.Namespace) -> None:
    """Export finished runs with their test instances in the schema of Every Eval Ever."""
    from tasktransfer.operate.commons import every_eval_ever

    if not chosen.by.strip() or not chosen.by.isprintable():
        raise ConfigError(
            f"--by {chosen.by!r}: This is not a name. Write the name of a lab or a person."
        )
    study, _ = open_design(chosen, need_inputs=False)
    seen = every_eval_ever.export(
        study,
        chosen.out,
        by=chosen.by.strip(),
        collection=chosen.collection or study.config.study,
        with_text=chosen.with_text,
    )
    show(seen, every_eval_ever.as_text, as_json=chosen.json)
