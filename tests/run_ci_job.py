#!/usr/bin/env python3
"""Run the commands of a CI job in a new clone on this machine, and print their times.

    python tests/run_ci_job.py tests.yml wheel os=ubuntu-latest

Steps that call an action (checkout, Python, uploads) are listed and skipped: the clone is the
checkout, and Python is taken from the PATH. Expressions may use ``matrix`` (given as arguments),
``env`` and ``github.ref_name``. ``if:`` must be a single comparison, as in these workflows.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
SHELL = ("bash", "-e", "-o", "pipefail", "-c")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workflow", help="a file of .github/workflows")
    parser.add_argument("job")
    parser.add_argument("values", nargs="*", help="of the matrix: os=ubuntu-latest python=3.11")
    parser.add_argument("--set", nargs="*", default=[], help="of the environment, over all else")
    asked = parser.parse_args()
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / asked.workflow).read_text())
    job = workflow["jobs"][asked.job]
    context = {f"matrix.{name}": value for name, value in pairs(asked.values).items()}
    context |= {"runner.os": "Linux", "github.ref_name": "main"}
    environment = os.environ | {"GITHUB_REF_NAME": "main"}
    environment |= workflow.get("env", {}) | job.get("env", {})
    with tempfile.TemporaryDirectory(prefix=f"ci-{asked.job}-") as name:
        folder = Path(name) / "checkout"
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        return run_steps(job, folder, context, environment, pairs(asked.set))


def pairs(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def run_steps(
    job: dict[str, Any],
    folder: Path,
    context: dict[str, str],
    environment: dict[str, str],
    over: dict[str, str],
) -> int:
    began = time.monotonic()
    for step in job["steps"]:
        title = step.get("uses") or step["run"].strip().replace("\n", "; ")
        if "uses" in step or not holds(step.get("if"), context):
            print(f"     -  {title}", flush=True)
            continue
        started = time.monotonic()
        command = filled(step["run"], context)
        own = environment | step.get("env", {}) | over
        code = subprocess.run([*SHELL, command], cwd=folder, env=own, check=False).returncode
        print(f"{time.monotonic() - started:6.0f} s  {filled(title, context)}", flush=True)
        if code:
            print(f"exit code {code}")
            return code
    print(f"{time.monotonic() - began:6.0f} s  in all")
    return 0


def filled(text: str, context: dict[str, str]) -> str:
    return EXPRESSION.sub(lambda found: context[found[1]], text)


def holds(condition: str | None, context: dict[str, str]) -> bool:
    if condition is None:
        return True
    name, wanted = re.fullmatch(r"([\w.]+) == '([^']*)'", condition).groups()  # type: ignore[union-attr]
    return context.get(name) == wanted


if __name__ == "__main__":
    sys.exit(main())
