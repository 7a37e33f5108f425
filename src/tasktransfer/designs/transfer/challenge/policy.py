"""How the transfer run of each task is chosen: the policy, and the file of the ``named`` one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tasktransfer.config import yaml_file
from tasktransfer.config.declare import (
    ABSENT,
    Choice,
    Key,
    ListOf,
    Problems,
    Section,
    Whole,
    check,
    nearest,
)
from tasktransfer.config.keys import MAX_SEED
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.algorithms import TRANSFER_ALGORITHMS
from tasktransfer.errors import ConfigError

Ensemble = Literal["majority", "mean"]
BEST_DEV, FIXED, NAMED = "best-dev", "fixed:", "named"


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run that the user names for a task; a seed of None is chosen by dev score."""

    algorithm: str
    sources: tuple[str, ...]
    seed: int | None = None
    baseline_seed: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """``name`` as it was given. ``algorithm`` is set for ``fixed:ALGORITHM``, ``named`` (task →
    run) for ``named``; with neither, algorithm and sources are chosen by dev score."""

    name: str
    algorithm: str | None = None
    named: Mapping[str, NamedRun] = field(default_factory=dict)


def parse_policy(text: str, dataset: str, runs: Path | None) -> Policy:
    """Read a policy; ``runs`` is the file of the ``named`` one.

    Raises:
        ConfigError: no such policy or algorithm, a file that is not asked for or is missing, or
            something wrong in it (everything at once).
    """
    if (text == NAMED) != (runs is not None):
        raise ConfigError(
            f"--policy {text}: "
            + ("name the runs in a file: --runs FILE" if runs is None else "--runs is for named")
        )
    if runs is not None:
        return Policy(text, named=_read_runs(runs, dataset))
    if text == BEST_DEV:
        return Policy(text)
    algorithm = text.removeprefix(FIXED)
    if text.startswith(FIXED) and algorithm in TRANSFER_ALGORITHMS:
        return Policy(text, algorithm=algorithm)
    known = (BEST_DEV, *(FIXED + name for name in TRANSFER_ALGORITHMS), NAMED)
    raise ConfigError(
        f"--policy {text}: no such policy{nearest(text, known)}; known: {', '.join(known)}"
    )


def _read_runs(path: Path, dataset: str) -> dict[str, NamedRun]:
    """task → run, from YAML (of which JSON is a part)."""
    problems = Problems()
    document = yaml_file.read(path, problems)
    found = check(_declaration(dataset), document.value, "", problems)
    if problems.found:
        told = "\n".join(
            f"  {path}{_line(document.lines, p.path)}: {p.path + ': ' if p.path else ''}{p.message}"
            for p in problems.found
        )
        raise ConfigError(f"{len(problems.found)} problems in {path}:\n{told}")
    return {
        task: NamedRun(
            algorithm=item["algorithm"],
            sources=tuple(sorted(item["sources"])),
            seed=item.get("seed"),
            baseline_seed=item.get("baseline_seed"),
        )
        for task, item in found.items()
    }


def _declaration(dataset: str) -> Section:
    tasks = tuple(DATASETS[dataset].tasks)
    seed = Whole(0, MAX_SEED)
    run = Section(
        (
            Key("algorithm", Choice(TRANSFER_ALGORITHMS, "transfer algorithm"), "how it transfers"),
            Key("sources", ListOf(Choice(tasks, f"task of {dataset}")), "its source tasks"),
            Key("seed", seed, "its seed; left out: the one with the best dev score", ABSENT),
            Key("baseline_seed", seed, "seed of the baseline; left out: best dev score", ABSENT),
        )
    )
    return Section(tuple(Key(t, run, f"the run submitted for {t}") for t in tasks), "task")


def _line(lines: dict[str, Any], path: str) -> str:
    return f":{lines[path]}" if path in lines else ""
