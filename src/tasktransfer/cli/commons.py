"""Commands for results that are shared: shards of other labs, and records for everybody."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_json,
    add_out,
    flag,
    open_design,
    option,
    overrides,
    show,
)
from tasktransfer.errors import ConfigError


def add_commands(commands: Any) -> None:
    """``import`` and ``export``."""
    command = add_command(commands, "import", import_shards)
    option(command, "folder", "DIR", "folder of shards, as `pack --by` writes them", type=Path)
    flag(command, "--dry-run", "tell, and copy nothing")
    flag(command, "--figures", "make tables, figures and report of what is there then")
    add_json(command)
    command = add_command(commands, "export", export)
    flag(command, "--eee", "in the schema of Every Eval Ever (the only one, and the default)")
    add_out(command, "folder to write; files belong under its data/")
    option(command, "--by", "NAME", "who made the runs, a lab or a person", required=True)
    what = "name of the collection in data/ (default: the study's name)"
    option(command, "--collection", "NAME", what)
    flag(command, "--with-text", "answers that are pieces of the dialogues, not in codes")
    add_json(command)


def import_shards(chosen: argparse.Namespace) -> None:
    """Take the results of other labs from a folder of shards, and say who made what."""
    from tasktransfer.designs import load_config
    from tasktransfer.operate.commons import shards
    from tasktransfer.operate.commons.isolated import PackReader

    config = load_config(chosen.config, overrides(chosen))
    with PackReader(follow_links=False) as reader:
        files = shards.find_shards(chosen.folder, reader)
        shards.remember_inputs(config, files)
        study, design = open_design(chosen, need_inputs=False)
        seen = shards.import_shards(
            study,
            chosen.folder,
            files,
            reader,
            tables=design.of_dialogues,
            dry_run=chosen.dry_run,
        )
    show(seen, shards.as_text, as_json=chosen.json)
    if chosen.figures and not chosen.dry_run:
        _draw(chosen)
    if problem := shards.failure(seen):
        raise problem


def _draw(chosen: argparse.Namespace) -> None:
    """Tables, statistics, figures and report of what is there; what is missing is shown as such."""
    from contextlib import redirect_stdout

    from tasktransfer.designs.shown import write_figures, write_report

    study, design = open_design(chosen, need_inputs=False)
    with redirect_stdout(sys.stderr):  # what is printed is of the import
        design.collect(study, False)
        design.statistics(study)
        write_figures(design, study)
        write_report(design, study)


def export(chosen: argparse.Namespace) -> None:
    """Write the finished runs in the schema of Every Eval Ever, each with its test instances."""
    from tasktransfer.operate.commons import every_eval_ever

    if not chosen.by.strip() or not chosen.by.isprintable():
        raise ConfigError(f"--by {chosen.by!r}: give the name of a lab or a person")
    study, _ = open_design(chosen, need_inputs=False)
    seen = every_eval_ever.export(
        study,
        chosen.out,
        by=chosen.by.strip(),
        collection=chosen.collection or study.config.study,
        with_text=chosen.with_text,
    )
    show(seen, every_eval_ever.as_text, as_json=chosen.json)
