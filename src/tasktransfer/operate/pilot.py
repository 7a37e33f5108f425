"""Batch scripts that run a study in a few large jobs instead of thousands of small ones.

With one job per training, a cluster's scheduler spends seconds on each. A pilot is one job with
several GPUs in which Snakemake's local executor trains one shard: all nodes of one model and seed.
Shards share only the inputs prepared before them, so they can run in parallel on one results
folder. Standard library only.
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

from tasktransfer.core.nodes import Node, Stage
from tasktransfer.core.runs import add_ancestors
from tasktransfer.errors import ConfigError
from tasktransfer.results.node_folders import inspect_nodes
from tasktransfer.results.study import Study

Shard = tuple[str, int]
"""Model and seed of a shard."""

PREPARE, FINISH = "prepare", "finish"

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_JOB_LINES = (
    re.compile(r".*\bSubmitted batch job (\d{1,10})(?: on cluster \S+)?\.?"),
    re.compile(r"(\d{1,10});\S+"),
    re.compile(r"(\d{1,10})"),
)
"""Output lines of sbatch with a job ID, the most explicit first.

They are the forms without ``--parsable``, with it on a multi-cluster system, and with it alone.
"""
PROFILE = "workflow/profiles/slurm-pilot"


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one pilot job.

    ``slots``: trainings that share a GPU. ``sbatch``: further options for sbatch, passed unchanged.
    ``cpus``, ``memory``: None for typical values per training.
    """

    gpus: int
    slots: int
    cpus: int | None
    memory: str | None
    time: str
    partition: str | None
    account: str | None
    sbatch: Sequence[str]


def count_unfinished_nodes(study: Study) -> dict[Shard | None, int]:
    """Count unfinished nodes per shard, in the order of the plan.

    The key None counts the nodes outside any shard.
    """
    finished = inspect_nodes(study).finished
    left = [node for node in study.plan.nodes if node.digest not in finished]
    return dict(Counter(find_shard(node) for node in left))


def find_shard(node: Node) -> Shard | None:
    """Return the shard that computes a node, from the trainings that it depends on.

    Return None if it depends on several shards or on no training. ``prepare`` then computes it if
    it is needed for token ids, and ``finish`` otherwise.
    """
    if isinstance(node, Stage):
        return node.model.name, node.seed
    stages = [used for used in add_ancestors((node,)) if isinstance(used, Stage)]
    shards = {(stage.model.name, stage.seed) for stage in stages}
    return shards.pop() if len(shards) == 1 else None


def format_shard_name(shard: Shard) -> str:
    """Return the name of a shard (model and seed) for scripts, logs and the queue."""
    return f"{shard[0]}-seed{shard[1]}"


def build_scripts(
    study: Study, resources: Resources, folder: Path, chosen: Iterable[Shard]
) -> dict[str, str]:
    """Build the batch scripts by name: prepare, one per shard, and finish.

    ``prepare`` creates the shared inputs (data, token ids, tiny models). ``finish`` runs the whole
    study: nodes outside the shards, nodes that a shard left unfinished, runs selected only now,
    tables and figures.

    Raises:
        ConfigError: the current folder, in which the jobs run, does not contain the workflow.
    """
    if not (Path("Snakefile").exists() and Path(PROFILE).is_dir()):
        raise ConfigError(
            f"{Path.cwd()}: The folder in which the jobs would run has no Snakefile with "
            f"{PROFILE}. Run the command in the folder of the Snakefile."
        )
    targets, listings = {PREPARE: "data"}, {}
    for model, seed in chosen:
        name = format_shard_name((model, seed))
        # The job itself lists its thousands of paths. The array allows spaces in names.
        shard = f"{study.format_arguments()} --model {shlex.quote(model)} --seed {seed}"
        listing = [f"listed=$(tasktransfer records {shard})", 'mapfile -t targets <<< "$listed"']
        targets[name], listings[name] = '"${targets[@]}"', listing
    targets[FINISH] = "all"
    return {
        name: _format_script(study, resources, folder, name, listings.get(name, []), what)
        for name, what in targets.items()
    }


def _format_script(
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
        # A job that is preempted or loses its node is queued again and resumes.
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
    """Write each batch script to ``<folder>/<name>.sh``."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in texts.items():
        path = folder / f"{name}.sh"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def submit_scripts(paths: Sequence[Path]) -> dict[str, str]:
    """Submit the batch scripts with sbatch.

    The shards wait for ``prepare``, and ``finish`` waits for all other jobs.

    Returns:
        Script name → job ID.

    Raises:
        ConfigError: sbatch is missing, rejects a script, or prints no job ID. The
            message names the jobs submitted before.
    """
    by_name = {path.stem: path for path in paths}
    ids = {PREPARE: _submit_script(by_name[PREPARE], ["singleton"], {})}
    for name, path in by_name.items():
        if name not in (PREPARE, FINISH):
            ids[name] = _submit_script(path, [f"afterok:{ids[PREPARE]}", "singleton"], ids)
    # `finish` runs even if shards fail, to build tables and figures from the existing results.
    others = ":".join(ids.values())
    ids[FINISH] = _submit_script(by_name[FINISH], [f"afterany:{others}", "singleton"], ids)
    return ids


def _submit_script(path: Path, after: list[str], before: Mapping[str, str]) -> str:
    # `singleton`: a pilot already in the queue runs first and leaves nothing to do.
    # If `prepare` fails, its shards are removed from the queue.
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
            f"{path}: The command sbatch is not available on this machine. Submit the scripts on a "
            "machine with sbatch."
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        message = getattr(error, "stderr", None) or str(error)
        raise ConfigError(
            f"{path}: sbatch rejected the script: {message.strip()}. Jobs submitted before: "
            f"{submitted}."
        ) from error
    number = read_job_id(done.stdout)
    if number is None:
        raise ConfigError(
            f"{path}: The output of sbatch does not contain exactly one job ID, so later jobs "
            f"cannot wait for this job ({done.stdout.strip()!r}). Look for the job with squeue, "
            "and cancel it with scancel. Then call sbatch itself instead of a wrapper, or submit "
            f"the scripts by hand. Jobs submitted before: {submitted}."
        )
    return number


def read_job_id(output: str) -> str | None:
    """Read the job ID from the output of sbatch.

    Returns:
        The number, or None if no line contains a job ID, or lines contain different IDs.
    """
    lines = [_ESCAPE.sub("", line).strip() for line in output.splitlines()]
    for pattern in _JOB_LINES:
        numbers = {match[1] for line in lines if (match := pattern.fullmatch(line))}
        if numbers:
            return numbers.pop() if len(numbers) == 1 else None
    return None
