"""Function that opens the study when Snakemake is called."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasktransfer.config import Document
from tasktransfer.config.places import expand_path
from tasktransfer.config.yaml_text import format_yaml
from tasktransfer.core.identity import compute_digest
from tasktransfer.designs import check_shortages, get_design, open_study, validate_config
from tasktransfer.files import replace_file
from tasktransfer.jobs.clock_skew import reset_future_dates
from tasktransfer.jobs.snakemake_call import SnakemakeCall
from tasktransfer.operate.missing_inputs import require_available_data
from tasktransfer.results.study import Study


def open_study_for_call(call: SnakemakeCall) -> Study:
    """Open the study for which Snakemake was called.

    Jobs of a batch system call Snakemake, too. Only the user's own call checks the data.

    Raises:
        ConfigError, DataError, ModelError, RecordError: as ``open_study``; in a user's call, also
            if the data are missing, insufficient for the trainings, or cannot be used together.
    """
    if call.config is None:
        study = open_study(call.config_file, call.overrides)
    else:
        study = open_study(_write_config(call.config))
    if call.is_main:
        require_available_data(study)
        check_shortages(study)
        get_design(study.config).refuse(study)
        if note := reset_future_dates(study):
            print(note, file=sys.stderr)
    # Modules and plan live as long as the process. Python's garbage collector would scan them with
    # every pass over Snakemake's jobs, which takes a sixth of a large study's start.
    gc.freeze()
    return study


def _write_config(config: Mapping[str, Any]) -> Path:
    """Write the config that Snakemake received, for the commands of its jobs, and return its path.

    The file is named after its content, so that every job of the study finds the same file.
    """
    study = validate_config(Document(config, "the configuration handed over to the workflow"))
    plain = json.loads(json.dumps(config))
    file = Path(expand_path(study.results), f"study-{compute_digest(plain)[:12]}.yaml")
    if not file.exists():
        with replace_file(file) as part:
            part.write_text(format_yaml(plain), "utf-8")
    return file
