"""Provenance of a record: package versions, the commit of the code, the machine."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from tasktransfer import __version__
from tasktransfer.core.identity import LIBRARY_VERSION, collect_limits
from tasktransfer.core.nodes import Node, Stage
from tasktransfer.results.schema import Cost, Host, Provenance

PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "pyarrow", "datasets")


def describe_provenance(
    node: Node,
    *,
    study: str,
    config_digest: str,
    host: Host | None,
    started: datetime,
    seconds: Mapping[str, float],
    notes: Sequence[str],
    facts: Mapping[str, str] | None = None,
    substitutes: Mapping[str, str] | None = None,
    training: Cost | None = None,
) -> Provenance:
    """Return the section ``provenance`` of a node's record.

    Args:
        node: the node, which provides its recipe and the limits in force.
        study, config_digest: study that requested the node, and digest of its config.
        host: machine that computed the node; None if unknown.
        started: start time in UTC.
        seconds: phase → wall time; includes ``total``.
        notes: notes printed during the computation.
        facts: further entries that the design adds to its trainings.
        substitutes: unavailable input → its substitute.
        training: cost of a training.
    """
    revision, dirty = read_commit()
    cuts = collect_limits(node.identity)
    made: dict[str, Any] = {
        "tasktransfer": __version__,
        "recipe": node.recipe if isinstance(node, Stage) else LIBRARY_VERSION,
        "versions": list_versions(),
        "commit": revision,
        "dirty": dirty,
        "config_digest": config_digest,
        "study": study,
        **(facts or {}),
        **({"substitutes": dict(substitutes)} if substitutes else {}),
        **({"cuts": cuts} if cuts else {}),
        **({"host": host} if host else {}),
        "started": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": dict(seconds),
        "notes": list(notes),
        **({"training": training} if training else {}),
    }
    return cast(Provenance, made)


def list_versions() -> dict[str, str]:
    """Return the versions of Python and of packages that may affect results."""
    installed = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def read_commit() -> tuple[str | None, bool | None]:
    """Return the commit of the package's own checkout, and whether it has uncommitted changes.

    Both are None if the package is installed elsewhere, even within another project's checkout.
    """
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists() or not (head := _run_git(root, "rev-parse", "HEAD")):
        return None, None
    # Untracked files (results, notes) do not affect the code.
    changed = _run_git(root, "status", "--porcelain", "--untracked-files=no")
    return head, None if changed is None else bool(changed)


def _run_git(folder: Path, *arguments: str) -> str | None:
    """Run git without repository hooks and without GIT_ variables from the environment."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    own = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    options: dict[str, Any] = {"cwd": folder, "env": own, "stderr": subprocess.DEVNULL}
    try:
        return str(subprocess.check_output(command, text=True, timeout=20, **options)).strip()
    except (OSError, subprocess.SubprocessError):
        return None


def describe_host(threads: int = 1) -> Host:
    """Describe this machine, for nodes without a model that are computed on the CPU."""
    return {
        "platform": platform.platform(),
        "cpu": read_cpu_name(),
        "cores": os.cpu_count() or 1,
        "gpu": None,
        "device": "cpu",
        "precision": "float64",
        "threads": threads,
    }


@cache
def read_cpu_name() -> str:
    """Return the model name of the CPU, or its architecture as a fallback."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def read_peak_memory_mb() -> float:
    """Return the peak resident memory of this process in MiB."""
    try:
        # On Linux, getrusage inherits the parent's peak through exec; VmHWM does not.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
