"""How the transfer run of each task is chosen: the policy, and the file of the ``named`` one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from tasktransfer.config import yaml_file
from tasktransfer.config.declare import INVALID, Problems, at, nearest, show
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.algorithms import TRANSFER_ALGORITHMS
from tasktransfer.errors import ConfigError

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
    if text == NAMED and runs is None:
        raise ConfigError(f"--policy {text}: name the runs in a file: --runs FILE")
    if text != NAMED and runs is not None:
        raise ConfigError(f"--policy {text}: --runs is for named")
    if runs is not None:
        return Policy(text, named=_read_runs(runs, dataset))
    if text == BEST_DEV:
        return Policy(text)
    algorithm = text.removeprefix(FIXED)
    if text.startswith(FIXED) and algorithm in TRANSFER_ALGORITHMS:
        return Policy(text, algorithm=algorithm)
    policies = (BEST_DEV, *(FIXED + name for name in TRANSFER_ALGORITHMS), NAMED)
    raise ConfigError(
        f"--policy {text}: no such policy{nearest(text, policies)}; known: {', '.join(policies)}"
    )


# --- the file of named runs ----------------------------------------------------------------------


def _read_runs(path: Path, dataset: str) -> dict[str, NamedRun]:
    """task → run, from YAML (of which JSON is a part)."""
    problems = Problems()
    document = yaml_file.read(path, problems)
    try:
        runs = _runs_model(dataset).model_validate(document.value)
    except ValidationError as error:
        for one in error.errors():
            if one["input"] is not INVALID:  # a problem of the YAML itself, noted already
                problems.add(_key_path(one["loc"]), _message(one, dataset))
    if problems.found:
        lines = []
        for problem in problems.found:
            line = document.lines.get(problem.path)
            place = f"{path}:{line}" if line else str(path)
            lines.append(f"  {place}: {problem.path + ': ' * bool(problem.path)}{problem.message}")
        count = f"{len(lines)} problem{'s' * (len(lines) != 1)}"
        raise ConfigError("\n".join([f"{count} in {path}:", *lines]))
    return {
        task: NamedRun(**{**run, "sources": tuple(sorted(run["sources"]))})
        for task, run in runs.model_dump().items()
    }


_STRICT = ConfigDict(strict=True, extra="forbid")
_RUN_KEYS = tuple(NamedRun.__dataclass_fields__)


def _runs_model(dataset: str) -> type[BaseModel]:
    """A run for every task of ``dataset``."""
    source = Annotated[str, AfterValidator(_one_of(f"task of {dataset}", DATASETS[dataset].tasks))]
    algorithm = Annotated[
        str, AfterValidator(_one_of("transfer algorithm", dict.fromkeys(TRANSFER_ALGORITHMS)))
    ]
    sources = Annotated[list[source], Field(min_length=1), AfterValidator(_distinct)]
    seed = Annotated[int, Field(ge=0, lt=2**32)]
    run = create_model(
        "NamedRun",
        __config__=_STRICT,
        algorithm=(algorithm, ...),
        sources=(sources, ...),
        seed=(seed, None),
        baseline_seed=(seed, None),
    )
    tasks: dict[str, Any] = dict.fromkeys(DATASETS[dataset].tasks, (run, ...))
    return create_model("NamedRuns", __config__=_STRICT, **tasks)


def _one_of(what: str, names: Mapping[str, object]) -> Callable[[str], str]:
    def check(name: str) -> str:
        if name not in names:
            advice = nearest(name, tuple(names))
            raise ValueError(f"unknown {what} {show(name)}{advice}; known: {', '.join(names)}")
        return name

    return check


def _distinct(names: list[str]) -> list[str]:
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"duplicate source {', '.join(sorted(repeated))}: name each once")
    return names


def _key_path(place: tuple[int | str, ...]) -> str:
    path = ""
    for key in place:
        path = at(path, key)
    return path


def _message(error: Mapping[str, Any], dataset: str) -> str:
    """One of pydantic's errors in our words: value, what is expected, remedy."""
    match error["type"]:
        case "missing":
            return "is missing: add it"
        case "extra_forbidden":
            what, keys = "task", tuple(DATASETS[dataset].tasks)
            if len(error["loc"]) > 1:
                what, keys = "key", _RUN_KEYS
            name = str(error["loc"][-1])
            return f"unknown {what} {show(name)}{nearest(name, keys)}; known: {', '.join(keys)}"
        case "value_error":
            return str(error["ctx"]["error"])
        case "too_short":
            return "has 0 items: name at least one"
        case "model_type":
            return f"found {show(error['input'])}, expected a mapping (key: value)"
    expected = re.sub("^Input should be ", "expected ", error["msg"])
    return f"found {show(error['input'])}, {expected}"
