"""The demo study in its own folder, run with the workflow that is installed with the package."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import tasktransfer
from tasktransfer.errors import ConfigError, ModelError, TaskTransferError

WORKFLOW = Path(tasktransfer.__file__).parent / "workflow"
"""The workflow: a folder of the installed package, or a link to workflow/ in a checkout."""

SNAKEFILE = f"""\
# The workflow of the installed package, for the study in config.yaml.
#
#   snakemake --cores all                   run or resume the study
#   snakemake --cores all --dry-run         list the remaining jobs
#   snakemake --cores 1 figures             rebuild tables, figures and report
#   tasktransfer status                     show the progress
#
# Written by tasktransfer {tasktransfer.__version__}. Snakemake uses ./profiles/default by default.

from tasktransfer.cli.demo_study import WORKFLOW


module tasktransfer:
    snakefile:
        str(WORKFLOW / "Snakefile")
    config:
        config


use rule * from tasktransfer
"""


def write_demo(folder: Path) -> None:
    """Write the demo study (config.yaml, Snakefile and profile) into an empty folder.

    Raises:
        ConfigError: the folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(
            f"{folder}: The folder is not empty, and files are not overwritten. Choose a new "
            "folder (--folder), or resume the study in this folder with `snakemake --cores all`."
        )
    copies = {
        "config.yaml": "presets/demo.yaml",
        "profiles/default/config.yaml": "profiles/default/config.yaml",
    }
    texts = {name: (WORKFLOW / file).read_text("utf-8") for name, file in copies.items()}
    texts["Snakefile"] = SNAKEFILE
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def run_demo(folder: Path, cores: int | None, *, dry_run: bool) -> None:
    """Run the demo study with Snakemake in the folder from ``write_demo``.

    Args:
        cores: number of CPU cores, None for all.

    Raises:
        ModelError: torch is not installed.
        TaskTransferError: Snakemake failed; its output says why.
    """
    if not dry_run and find_spec("torch") is None:
        raise ModelError(
            "torch: The package is not installed, but the demo trains models. Run `pip "
            f"install 'tasktransfer[train]'` and start `snakemake --cores all` in {folder}."
        )
    words = ["--cores", str(cores or "all"), *(["--dry-run", "--quiet", "rules"] * dry_run)]
    # Jobs call `tasktransfer` from the PATH, and need nothing from the Hugging Face hub.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "snakemake", *words], cwd=folder, env=environment, check=False
    )
    if done.returncode:
        raise TaskTransferError(
            f"{folder}: Snakemake ended with exit code {done.returncode}, and the output above "
            "shows the reason. Run `snakemake --cores all` in this folder to resume."
        )
