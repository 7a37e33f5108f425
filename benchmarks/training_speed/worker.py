"""A measuring process: one contestant, one case, one line of JSON.

``python -m benchmarks.training_speed.worker WORK.json STARTED``: STARTED is the parent's
``time.monotonic()``. A contestant's output goes to stderr, the line to stdout.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from benchmarks.training_speed.cases import Measured, Work


def main() -> None:
    """Run the measurement in the command-line arguments."""
    file, started = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the toolkit logs to stdout
    work: Work = json.loads(Path(file).read_text())
    print(json.dumps(run(work, float(started))), file=out, flush=True)


def run(work: Work, started: float) -> Measured:
    """Run a contestant, importing only its own modules, since imports are part of the start-up."""
    match work["contestant"]:
        case "tasktransfer" | "tasktransfer_float32":
            from benchmarks.training_speed import own

            return own.run(work, started)
        case "tlidb":
            from benchmarks.training_speed import toolkit

            return toolkit.run(work, started)
        case "hf_trainer":
            from benchmarks.training_speed import hf_trainer

            return hf_trainer.run(work, started)


if __name__ == "__main__":
    main()
