"""What made a record: versions of packages, the commit of the code, the machine."""

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
from tasktransfer.core.cuts import cuts_of
from tasktransfer.core.nodes import Node, Stage
from tasktransfer.core.versions import LIBRARY_VERSION
from tasktransfer.results.schema import Cost, Host, Provenance

PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "pyarrow", "datasets")


def provenance_of(
    node: Node,
    *,
    study: str,
    config_digest: str,
    host: Host | None,
    started: datetime,
    seconds: Mapping[str, float],
    notes: Sequence[str],
    facts: Mapping[str, str] | None = None,
    stand_ins: Mapping[str, str] | None = None,
    training: Cost | None = None,
) -> Provenance:
    """How a node's numbers came about.

    Args:
        node: its recipe and the limits in force are taken from it.
        study, config_digest: what asked for it.
        host: where it was computed; None: not known.
        started: in UTC.
        seconds: phase → wall time; with ``total``.
        notes: what was said on the way.
        facts: what else the design says of its trainings.
        stand_ins: input that could not be had: what is instead.
        training: what a training took.
    """
    revision, dirty = commit()
    cuts = cuts_of(node.identity)
    made: dict[str, Any] = {
        "tasktransfer": __version__,
        "recipe": node.recipe if isinstance(node, Stage) else LIBRARY_VERSION,
        "versions": versions(),
        "commit": revision,
        "dirty": dirty,
        "config_digest": config_digest,
        "study": study,
        **(facts or {}),
        **({"stand_ins": dict(stand_ins)} if stand_ins else {}),
        **({"cuts": cuts} if cuts else {}),
        **({"host": host} if host else {}),
        "started": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": dict(seconds),
        "notes": list(notes),
        **({"training": training} if training else {}),
    }
    return cast(Provenance, made)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers may depend on."""
    installed = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def commit() -> tuple[str | None, bool | None]:
    """Return the commit and whether there are uncommitted changes in the package's own checkout;
    None if it is installed elsewhere, even within a checkout of something else."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists() or not (head := _git(root, "rev-parse", "HEAD")):
        return None, None
    # Files that git does not track (results, notes) make no difference to the code.
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return head, None if changed is None else bool(changed)


def _git(folder: Path, *arguments: str) -> str | None:
    """Run git without what the repository's configuration or the caller's git adds."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    own = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    options: dict[str, Any] = {"cwd": folder, "env": own, "stderr": subprocess.DEVNULL}
    try:
        return str(subprocess.check_output(command, text=True, timeout=20, **options)).strip()
    except (OSError, subprocess.SubprocessError):
        return None


def plain_host(threads: int = 1) -> Host:
    """This machine, where no model is run: libraries compute in float64 on the CPU."""
    return {
        "platform": platform.platform(),
        "cpu": cpu_name(),
        "cores": os.cpu_count() or 1,
        "gpu": None,
        "device": "cpu",
        "precision": "float64",
        "threads": threads,
    }


@cache
def cpu_name() -> str:
    """What the CPU calls itself, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def peak_memory_mb() -> float:
    """Peak resident memory of this process in MiB."""
    try:
        # Linux hands a parent's peak down through exec in what getrusage says, but not in this.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
