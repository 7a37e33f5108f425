"""Measuring this machine for a second, in a process of its own, since torch is heavy to import."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

from tasktransfer.errors import TaskTransferError
from tasktransfer.files import json_text, replacing
from tasktransfer.operate.forecast.speed import Calibration, calibration_file, read_calibrations
from tasktransfer.results.study import Study

LONGEST = 120.0


def calibrate(study: Study) -> Calibration:
    """Measure this machine's matrix product and remember it beside the study's data.

    Raises:
        TaskTransferError: torch is not installed here, or does not work.
    """
    command = [sys.executable, "-m", "tasktransfer.training.matrix_product"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST, check=True
        ).stdout
        calibration = Calibration(**json_text.loads(done.splitlines()[-1]))
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise TaskTransferError(
            f"--calibrate: the measurement failed: {last}; it needs the environment that trains "
            "(torch). Leave --calibrate out to estimate from reference values"
        ) from error
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, IndexError) as error:
        raise TaskTransferError(f"--calibrate: the measurement failed: {error!r}") from error
    # Other machines' measurements stay: a results folder may be shared.
    place = (calibration.host, calibration.device)
    others = [each for each in read_calibrations(study) if (each.host, each.device) != place]
    with replacing(calibration_file(study)) as part:
        part.write_text(
            json.dumps([asdict(each) for each in (*others, calibration)], indent=1) + "\n"
        )
    return calibration
