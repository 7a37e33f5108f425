"""Batch scripts that run a study in a few large jobs instead of thousands of small ones.

A job for every training costs a cluster's scheduler seconds each. A pilot is one job with several
GPUs in which Snakemake's local executor trains one shard: all nodes of one model and seed. Shards
share nothing but what is prepared before them, so they run side by side on one results folder.
Standard library only.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.core.ancestors import with_ancestors
from tasktransfer.core.nodes import Node, Stage
from tasktransfer.errors import ConfigError
from tasktransfer.results.finished import look
from tasktransfer.results.study import Study

Shard = tuple[str, int]
"""model, seed"""

PREPARE, FINISH = "prepare", "finish"

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_JOB_LINES = (
    re.compile(r".*\bSubmitted batch job (\d{1,10})(?: on cluster \S+)?\.?"),
    re.compile(r"(\d{1,10});\S+"),
    re.compile(r"(\d{1,10})"),
)
"""Lines of sbatch with a job number, the most explicit first: without ``--parsable``, with it on
a cluster of several, with it alone."""
PROFILE = "workflow/profiles/slurm-pilot"


@dataclass(frozen=True, slots=True)
class Resources:
    """What one pilot job asks for.

    ``slots`` trainings share a GPU; ``sbatch`` are further words for it, as they are. ``cpus`` and
    ``memory``: None for so much a training that is typical.
    """

    gpus: int
    slots: int
    cpus: int | None
    memory: str | None
    time: str
    partition: str | None
    account: str | None
    sbatch: Sequence[str]


def left_by_shard(study: Study) -> dict[Shard | None, int]:
    """How many nodes each shard has left, in the order of the plan; None: those of no shard."""
    finished = look(study).finished
    left = [node for node in study.plan.nodes if node.digest not in finished]
    return dict(Counter(shard_of(node) for node in left))


def shard_of(node: Node) -> Shard | None:
    """The shard that makes a node: that of the trainings it is made from. None where these are of
    several or none: ``prepare`` makes it if token ids are made of it, else ``finish``."""
    if isinstance(node, Stage):
        return node.model.name, node.seed
    stages = [each for each in with_ancestors((node,)) if isinstance(each, Stage)]
    shards = {(stage.model.name, stage.seed) for stage in stages}
    return shards.pop() if len(shards) == 1 else None


def name_of(shard: Shard) -> str:
    """A shard's name, for scripts, logs and the queue."""
    return f"{shard[0]}-seed{shard[1]}"


def scripts(
    study: Study, resources: Resources, folder: Path, chosen: Iterable[Shard]
) -> dict[str, str]:
    """The batch scripts by name: prepare, one per shard, finish.

    ``prepare`` makes what shards share (data, token ids, tiny models); ``finish`` runs the whole
    study once more: what is of no shard or was left by one, what is chosen only now, tables,
    figures.

    Raises:
        ConfigError: the current folder, in which the jobs run, does not hold the workflow.
    """
    if not (Path("Snakefile").exists() and Path(PROFILE).is_dir()):
        raise ConfigError(
            f"{Path.cwd()}: no Snakefile with {PROFILE} here, and here the jobs would run; "
            "call it where the Snakefile is"
        )
    targets, listings = {PREPARE: "data"}, {}
    for model, seed in chosen:
        name = name_of((model, seed))
        # Thousands of paths: listed by the job itself, and held in an array for names with spaces.
        shard = f"{study.arguments()} --model {shlex.quote(model)} --seed {seed}"
        listing = [f"listed=$(tasktransfer records {shard})", 'mapfile -t targets <<< "$listed"']
        targets[name], listings[name] = '"${targets[@]}"', listing
    targets[FINISH] = "all"
    return {
        name: _script(study, resources, folder, name, listings.get(name, []), what)
        for name, what in targets.items()
    }


def _script(
    study: Study, resources: Resources, folder: Path, name: str, before: list[str], targets: str
) -> str:
    gpus = 0 if name == PREPARE else resources.gpus
    at_once = resources.gpus * resources.slots
    cpus = resources.cpus or 4 * at_once
    asked = [
        f"--job-name={study.config.study.replace(' ', '-')}-{name}",
        f"--output={shlex.quote(str(Path.cwd() / folder / name))}.%j.log",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={cpus}",
        f"--mem={resources.memory or f'{16 * at_once}G'}",
        f"--time={resources.time}",
        # Preempted or on a node that was lost: queued again, and goes on where it was.
        "--requeue",
        "--open-mode=append",
        *([f"--gpus={gpus}"] if gpus else []),
        *([f"--partition={resources.partition}"] if resources.partition else []),
        *([f"--account={resources.account}"] if resources.account else []),
        *resources.sbatch,
    ]
    words = [
        f"snakemake {targets}",
        f"--cores {cpus}",
        f"--resources gpu={gpus * resources.slots}",
        f"--workflow-profile {PROFILE}",
        f"--configfile {shlex.quote(study.config_file)}",
        *["--config"] * bool(study.overrides),
        *(shlex.quote(f"{key}={json.dumps(value)}") for key, value in study.overrides.items()),
    ]
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {word}" for word in asked),
        f"# One part of the study {study.config.study}, written by `tasktransfer pilot`.",
        "set -euo pipefail",
        f"cd {shlex.quote(str(Path.cwd()))}",
        f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH",
        f"export TASKTRANSFER_SLOTS_PER_GPU={resources.slots}",
        *before,
        "exec " + " \\\n    ".join(words),
    ]
    return "\n".join(lines) + "\n"


def write_scripts(texts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write ``<folder>/<name>.sh`` each."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in texts.items():
        path = folder / f"{name}.sh"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def submit(paths: Sequence[Path]) -> dict[str, str]:
    """Hand the scripts to sbatch: the shards after ``prepare``, ``finish`` after all of them.

    Returns:
        Script name → job id.

    Raises:
        ConfigError: there is no sbatch, it refuses a script, or it prints no job number; what was
            submitted before is named.
    """
    by_name = {path.stem: path for path in paths}
    ids = {PREPARE: _sbatch(by_name[PREPARE], ["singleton"], {})}
    for name, path in by_name.items():
        if name not in (PREPARE, FINISH):
            ids[name] = _sbatch(path, [f"afterok:{ids[PREPARE]}", "singleton"], ids)
    # Whatever became of the shards: what is there is worth tables and figures.
    others = ":".join(ids.values())
    ids[FINISH] = _sbatch(by_name[FINISH], [f"afterany:{others}", "singleton"], ids)
    return ids


def _sbatch(path: Path, after: list[str], before: Mapping[str, str]) -> str:
    # `singleton`: a pilot that is in the queue already comes first, and leaves nothing to do.
    # Shards of a `prepare` that failed leave the queue.
    options = [f"--dependency={','.join(after)}", "--kill-on-invalid-dep=yes"]
    command = ["sbatch", "--parsable", *options, str(path)]
    submitted = ", ".join(f"{name} {number}" for name, number in before.items()) or "nothing"
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
            timeout=120,
        )
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: no sbatch on this machine; submit the scripts where there is one"
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        message = getattr(error, "stderr", None) or str(error)
        raise ConfigError(
            f"{path}: sbatch refused it: {message.strip()}; submitted already: {submitted}"
        ) from error
    number = read_job_number(done.stdout)
    if number is None:
        raise ConfigError(
            f"{path}: sbatch printed {done.stdout.strip()!r}, which does not name one job, so "
            "that no later job can wait for it. Look for the job with squeue, cancel it with "
            "scancel, and call sbatch itself instead of a wrapper, or submit the scripts by hand; "
            f"submitted already: {submitted}"
        )
    return number


def read_job_number(output: str) -> str | None:
    """Return the job number in what sbatch and its wrappers printed.

    Returns:
        The number, or None if no line or several lines with different numbers name a job.
    """
    lines = [_ESCAPE.sub("", line).strip() for line in output.splitlines()]
    for pattern in _JOB_LINES:
        numbers = {match[1] for line in lines if (match := pattern.fullmatch(line))}
        if numbers:
            return numbers.pop() if len(numbers) == 1 else None
    return None
