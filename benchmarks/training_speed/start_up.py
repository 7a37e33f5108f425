"""Measure the time from ``tasktransfer train`` to its first update, with and without a host.

``python -m benchmarks.training_speed.start_up`` repeatedly trains the encoder for one update, alone
and like a workflow's training. It uses one thread, as the workflow does.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.training_speed.__main__ import MINILM, RELEASE
from benchmarks.training_speed.cases import Case, compute_volume
from benchmarks.training_speed.compare import build_environment, get_tail
from benchmarks.training_speed.first_update import VARIABLE
from benchmarks.training_speed.inputs import Inputs, Source, limit_training, prepare_inputs
from tasktransfer.core.nodes import SHORT, Stage
from tasktransfer.designs import open_study
from tasktransfer.errors import TrainingError
from tasktransfer.training.host import WORKFLOW

CASE = Case("encoder", "dialogue_nli")
PLUGIN = Path(__file__).with_name("first_update.py")
EVALUATED = 8


def main() -> None:
    """Measure the start-up, and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training_speed.start_up", description=__doc__
    )
    parser.add_argument("--data", default=RELEASE, help="default: %(default)s")
    parser.add_argument("--weights", type=Path, default=MINILM, help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--work", type=Path, default=Path("results/bench/work"))
    chosen = parser.parse_args()
    weights = chosen.weights if chosen.weights.is_dir() else None
    inputs = prepare_inputs(Source(chosen.data, weights, "small", chosen.work), [CASE])
    with tempfile.TemporaryDirectory(prefix="start-up-") as scratch:
        folder = Path(scratch)
        command = _build_command(inputs, folder)
        alone = [_measure_seconds(command, folder) for _ in range(chosen.repeats)]
        os.environ[WORKFLOW] = str(os.getpid())  # from now on this is a workflow
        first, *later = [_measure_seconds(command, folder) for _ in range(chosen.repeats + 1)]
    rows = {"no host": alone, "the first, which starts it": [first], "from the host": later}
    print("| | to the first update, s | | to the end, s | |\n|---|---|---|---|---|")
    for name, seconds in rows.items():
        cells = [_format_median(column) for column in zip(*seconds, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")


def _build_command(inputs: Inputs, folder: Path) -> list[str]:
    """Return the command that trains for one update, with token ids in a results folder."""
    few = compute_volume(1, len(inputs.read_split(CASE, "train").ids), EVALUATED)
    digest = inputs.find_stage(CASE, few).digest[:SHORT]
    options = {
        "plugins": [str(PLUGIN)],
        "results": str(folder / "out"),
        "checkpoints": {"keep": []},
        **limit_training(few),
    }
    study = open_study(inputs.config, options)
    stage = study.get_node(digest)
    assert isinstance(stage, Stage)
    shutil.copytree(
        inputs.encoded[CASE.family], study.get_encoded_folder(stage.data, stage.model.name)
    )
    command = [
        sys.executable,
        "-m",
        "tasktransfer",
        "train",
        *shlex.split(study.format_arguments()),
    ]
    return [*command, "--node", digest, "--threads", "1"]


def _measure_seconds(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Return the seconds to the first update and to the end of one training.

    Raises:
        TrainingError: it failed.
    """
    noted = folder / "first_update"
    began = time.monotonic()
    done = subprocess.run(
        command,
        env={**build_environment(1), VARIABLE: str(noted)},
        capture_output=True,
        text=True,
        check=False,
    )
    ended = time.monotonic()
    if done.returncode:
        raise TrainingError(get_tail(done.stderr))
    first = float(noted.read_text())
    noted.unlink()
    shutil.rmtree(folder / "out" / "stages")
    return first - began, ended - began


def _format_median(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.2f} | {min(seconds):.2f} to {max(seconds):.2f}"


if __name__ == "__main__":
    main()
