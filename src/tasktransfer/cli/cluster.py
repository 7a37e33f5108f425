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
    add_json,
    add_number,
    add_option,
    add_out,
    add_repeated,
    open_study,
    show,
)
from tasktransfer.errors import ConfigError

if TYPE_CHECKING:
    from tasktransfer.operate.pilot import Shard
    from tasktransfer.results.study import Study


NOTHING_LEFT = "all requested nodes are finished: nothing to submit"
NOT_SUBMITTED = (
    "not submitted: add --submit, or call sbatch for prepare, then the shards, then finish"
)


def add_commands(commands: Any) -> None:
    """Add ``pilot`` and ``records``."""
    command = add_command(commands, "pilot", pilot, light=True)
    add_number(command, "--gpus", "GPUs per job (default: 1)", default=1)
    add_number(command, "--slots", "training runs per GPU (default: 1)", default=1)
    add_number(command, "--cpus", "CPU cores per job (default: 4 per training run)")
    what = "memory per job, in sbatch format (default: 16G per training run)"
    add_option(command, "--memory", "SIZE", what)
    what = "time limit per job, in sbatch format (default: %(default)s)"
    add_option(command, "--time", "TIME", what, default="12:00:00")
    add_option(command, "--partition", "NAME", "Slurm partition")
    add_option(command, "--account", "NAME", "Slurm account")
    what = "further option for sbatch, for example --sbatch=--qos=long"
    add_repeated(command, "--sbatch", "OPTION", what)
    _add_shard_options(command)
    add_out(command, "folder of the scripts (default: RESULTS/pilot)", required=False)
    add_flag(command, "--submit", "also submit the scripts with sbatch")
    add_json(command)
    command = add_command(commands, "records", records, light=True)
    _add_shard_options(command)
    add_json(command)


def _add_shard_options(command: argparse.ArgumentParser) -> None:
    add_option(command, "--model", "NAME", "this model only (default: all)")
    add_option(command, "--seed", "N", "this seed only (default: all)", type=int)


def pilot(chosen: argparse.Namespace) -> None:
    """Write a few large Slurm jobs, one per model and seed; submit them with --submit."""
    from tasktransfer.operate import pilot

    study = open_study(chosen)
    _check_names(study, chosen)
    counts = pilot.count_unfinished(study)
    shards = {shard: left for shard, left in counts.items() if shard and _is_asked(shard, chosen)}
    if not shards and None not in counts:
        show({"scripts": []}, lambda _: f"{NOTHING_LEFT}\n", as_json=chosen.json)
        return
    folder = chosen.out or Path(study.config.results) / "pilot"
    asked = {field.name: getattr(chosen, field.name) for field in fields(pilot.Resources)}
    texts = pilot.build_scripts(study, pilot.Resources(**asked), folder, shards)
    paths = pilot.write_scripts(texts, folder)
    left = {pilot.name_of(shard): f" ({count} to make)" for shard, count in shards.items()}
    jobs = pilot.submit(paths) if chosen.submit else {}
    to_make = {pilot.name_of(shard): count for shard, count in shards.items()}
    scripts = [
        {"script": str(path), "left": to_make.get(path.stem), "job": jobs.get(path.stem)}
        for path in paths
    ]
    show(
        {"scripts": scripts},
        lambda seen: _format_scripts(folder, paths, left, jobs),
        as_json=chosen.json,
    )


def _format_scripts(
    folder: Path, paths: Sequence[Path], left: Mapping[str, str], jobs: Mapping[str, str]
) -> str:
    """Return the scripts with the number of missing nodes, or the submitted jobs."""
    lines = [
        f"{name}: job {job}, log {folder}/{name}.{job}.log{left.get(name, '')}"
        for name, job in jobs.items()
    ]
    if not jobs:
        lines = [f"{path}{left.get(path.stem, '')}" for path in paths]
        lines.append(NOT_SUBMITTED)
    return "\n".join(lines) + "\n"


def records(chosen: argparse.Namespace) -> None:
    """Print the path of every record of the study, one per line, in order of execution."""
    from tasktransfer.operate.pilot import find_shard

    study = open_study(chosen)
    _check_names(study, chosen)
    nodes = [node for node in study.plan.nodes if _is_asked(find_shard(node), chosen)]
    seen = [{"digest": node.digest, "record": study.record(node)} for node in nodes]
    show(seen, lambda seen: "".join(f"{each['record']}\n" for each in seen), as_json=chosen.json)


def _is_asked(shard: Shard | None, chosen: argparse.Namespace) -> bool:
    model, seed = shard or (None, None)
    return chosen.model in (None, model) and chosen.seed in (None, seed)


def _check_names(study: Study, chosen: argparse.Namespace) -> None:
    """Raise ConfigError if the study does not have the requested model or seed."""
    if chosen.model is not None:
        study.model(chosen.model)
    if chosen.seed is not None and chosen.seed not in study.config.seeds:
        seeds = ", ".join(map(str, study.config.seeds))
        raise ConfigError(
            f"{study.config_file}: The study has no seed {chosen.seed}. Choose one of {seeds}."
        )
