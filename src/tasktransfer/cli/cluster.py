"""Commands for clusters with a batch system."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json_option,
    add_number,
    add_option,
    add_out_option,
    add_repeated,
    open_study,
    print_result,
)
from tasktransfer.errors import ConfigError

if TYPE_CHECKING:
    from tasktransfer.operate.pilot import Shard
    from tasktransfer.results.study import Study


NOTHING_LEFT = "All requested nodes are finished, so no job was written."
NOT_SUBMITTED = (
    "The scripts were not submitted. Add --submit, or call sbatch for prepare, then for the "
    "shards, "
    "then for finish."
)


def add_commands(commands: Any) -> None:
    """Add the commands ``pilot`` and ``records``."""
    command = add_command(commands, "pilot", write_pilot_jobs, light=True)
    add_number(command, "--gpus", "request N GPUs per job (default: 1)", default=1)
    add_number(
        command, "--slots", "run N training runs at a time on each GPU (default: 1)", default=1
    )
    add_number(command, "--cpus", "request N CPU cores per job (default: 4 per training run)")
    what = "request this memory per job, in the format of sbatch (default: 16G per training run)"
    add_option(command, "--memory", "SIZE", what)
    what = "set this time limit per job, in the format of sbatch (default: %(default)s)"
    add_option(command, "--time", "TIME", what, default="12:00:00")
    add_option(command, "--partition", "NAME", "submit to this Slurm partition")
    add_option(command, "--account", "NAME", "charge this Slurm account")
    what = "pass a further option to sbatch, for example --sbatch=--qos=long"
    add_repeated(command, "--sbatch", "OPTION", what)
    _add_shard_options(command)
    add_out_option(
        command, "write the scripts into this folder (default: RESULTS/pilot)", required=False
    )
    add_flag(command, "--submit", "submit the scripts with sbatch after writing them")
    add_json_option(command)
    command = add_command(commands, "records", list_record_paths, light=True)
    _add_shard_options(command)
    add_json_option(command)


def _add_shard_options(command: argparse.ArgumentParser) -> None:
    add_option(command, "--model", "NAME", "use only the nodes of this model (default: all)")
    add_option(command, "--seed", "N", "use only the nodes of seed N (default: all)", type=int)


def write_pilot_jobs(args: argparse.Namespace) -> None:
    """Write a few large Slurm jobs, one per model and seed, and submit them with --submit."""
    from tasktransfer.operate import pilot

    study = open_study(args)
    _check_model_and_seed(study, args)
    counts = pilot.count_unfinished_nodes(study)
    shards = {shard: left for shard, left in counts.items() if shard and _is_selected(shard, args)}
    if not shards and None not in counts:
        print_result({"scripts": []}, lambda _: f"{NOTHING_LEFT}\n", as_json=args.json)
        return
    folder = args.out or Path(study.config.results) / "pilot"
    asked = {field.name: getattr(args, field.name) for field in fields(pilot.Resources)}
    texts = pilot.build_scripts(study, pilot.Resources(**asked), folder, shards)
    paths = pilot.write_scripts(texts, folder)
    left = {
        pilot.format_shard_name(shard): f" ({count} to make)" for shard, count in shards.items()
    }
    jobs = pilot.submit_scripts(paths) if args.submit else {}
    to_make = {pilot.format_shard_name(shard): count for shard, count in shards.items()}
    scripts = [
        {"script": str(path), "left": to_make.get(path.stem), "job": jobs.get(path.stem)}
        for path in paths
    ]
    print_result(
        {"scripts": scripts},
        lambda _: _format_scripts(folder, paths, left, jobs),
        as_json=args.json,
    )


def _format_scripts(
    folder: Path, paths: Sequence[Path], left: Mapping[str, str], jobs: Mapping[str, str]
) -> str:
    """Format the paths of scripts, or the submitted jobs, with numbers of nodes."""
    lines = [
        f"{name}: job {job}, log {folder}/{name}.{job}.log{left.get(name, '')}"
        for name, job in jobs.items()
    ]
    if not jobs:
        lines = [f"{path}{left.get(path.stem, '')}" for path in paths]
        lines.append(NOT_SUBMITTED)
    return "\n".join(lines) + "\n"


def list_record_paths(args: argparse.Namespace) -> None:
    """Print the path of every record of the study, one per line, in order of execution."""
    from tasktransfer.operate.pilot import find_shard

    study = open_study(args)
    _check_model_and_seed(study, args)
    nodes = [node for node in study.plan.nodes if _is_selected(find_shard(node), args)]
    result = [{"digest": node.digest, "record": study.get_record_path(node)} for node in nodes]
    print_result(
        result, lambda rows: "".join(f"{row['record']}\n" for row in rows), as_json=args.json
    )


def _is_selected(shard: Shard | None, args: argparse.Namespace) -> bool:
    model, seed = shard or (None, None)
    return args.model in (None, model) and args.seed in (None, seed)


def _check_model_and_seed(study: Study, args: argparse.Namespace) -> None:
    """Raise ConfigError if the study does not have a requested model or seed."""
    if args.model is not None:
        study.get_model_config(args.model)
    if args.seed is not None and args.seed not in study.config.seeds:
        seeds = ", ".join(map(str, study.config.seeds))
        raise ConfigError(
            f"{study.config_file}: The study has no seed {args.seed}. Choose one of {seeds}."
        )
