"""Records that a submission needs. The Snakefile imports this module."""

from __future__ import annotations

from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.errors import ConfigError
from tasktransfer.results.study import Study


def list_submission_records(study: Study, dataset: str, model: str) -> list[str]:
    """Return the records of all runs of a dataset and model that may be submitted.

    Raises:
        ConfigError: the study has ``rules: free`` and cannot be submitted.
    """
    if get_transfer_config(study).rules != "challenge":
        raise ConfigError(
            f"{study.config_file}: A study with rules: free cannot be submitted. "
            "Set rules: challenge."
        )
    submitted = {stage.digest for run in select_transfer_runs(study.plan) for stage in run.stages}
    stages = [stage for stage in study.plan.stages if stage.digest in submitted]
    return [
        study.get_record_path(s) for s in stages if (s.dataset, s.model.name) == (dataset, model)
    ]
