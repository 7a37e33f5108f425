"""The demo study in a folder of its own, by the workflow that is installed with the package."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import tasktransfer
from tasktransfer.errors import ConfigError, ModelError, TaskTransferError

WORKFLOW = Path(tasktransfer.__file__).parent / "workflow"
"""The workflow: a part of the package where it is installed, a link to workflow/ in a checkout."""

SNAKEFILE = f"""\
# The workflow of the installed package, for the study of config.yaml.
#
#   snakemake --cores all                   run it, or go on with it
#   snakemake --cores all --dry-run         what is left to do
#   snakemake --cores 1 figures             tables, figures and report again
#   tasktransfer status                     how far it is
#
# Written by tasktransfer {tasktransfer.__version__}; ./profiles/default is in force by itself.

from tasktransfer.cli.demo_study import WORKFLOW


module tasktransfer:
    snakefile:
        str(WORKFLOW / "Snakefile")
    config:
        config


use rule * from tasktransfer
"""


def write_demo(folder: Path) -> None:
    """Write config.yaml, a Snakefile and the default profile into a new or empty folder.

    Raises:
        ConfigError: the folder holds something.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(
            f"{folder}: is not empty, and nothing in it is overwritten: name a new folder "
            "(--folder), or go on with a study that is there by `snakemake --cores all` in it"
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
    """Run Snakemake in a folder that ``write_demo`` has filled.

    Args:
        cores: None: all.

    Raises:
        ModelError: there is no torch to train with.
        TaskTransferError: Snakemake failed, and has said why.
    """
    if not dry_run and find_spec("torch") is None:
        raise ModelError(
            "torch: not installed here, and the demo trains: pip install 'tasktransfer[train]' "
            f"and start `snakemake --cores all` in {folder}"
        )
    words = ["--cores", str(cores or "all"), *(["--dry-run", "--quiet", "rules"] * dry_run)]
    # Jobs call `tasktransfer` by its name, and need nothing from the Hugging Face hub.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "snakemake", *words], cwd=folder, env=environment, check=False
    )
    if done.returncode:
        raise TaskTransferError(
            f"{folder}: snakemake ended with exit code {done.returncode}, see above; start it "
            "there again to go on"
        )
