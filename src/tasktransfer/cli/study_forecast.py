"""Forecast of a study that is not written yet, for ``tasktransfer init``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.config.yaml_text import format_yaml
from tasktransfer.tasks.card import SPLITS

DRAFT = Path(".config.yaml")
"""Config file of a study that is forecast, in the study's folder. It is deleted afterwards."""


@dataclass(frozen=True, slots=True)
class StudyForecast:
    """Forecast of a study on this machine.

    Attributes:
        hours: wall time of the study.
        reference_hours: wall time of its references and of a report on them, without training.
        instances: split → number of the target's instances, without limits.
    """

    hours: float
    reference_hours: float
    instances: Mapping[str, int]


def forecast_draft(
    config: Mapping[str, Any], folder: Path, target: tuple[str, str], cores: int | None
) -> StudyForecast:
    """Forecast a study on this machine.

    Args:
        config: config of the study, with paths relative to its folder.
        folder: folder of the study.
        target: dataset and task whose instances are counted.
        cores: number of CPU cores, None for all.
    """
    from tasktransfer.datasets import DATASETS
    from tasktransfer.designs import open_study
    from tasktransfer.operate.forecast.rates import measure_machine_rates
    from tasktransfer.operate.overview import WORKFLOW_SECONDS, summarise_study
    from tasktransfer.training.device import list_devices

    with chdir(folder):
        try:
            DRAFT.write_text(format_yaml(config), "utf-8")
            study = open_study(DRAFT)
            has_gpu = bool(list_devices())
            rates = measure_machine_rates("cuda" if has_gpu else "cpu")
            estimate = summarise_study(study, None if has_gpu else cores, rates)["estimate"]
        finally:
            DRAFT.unlink(missing_ok=True)
    dataset, task = target
    few_sample = study.config.data.few_sample
    count = DATASETS[dataset].count_instances
    total = estimate["total"]
    references = total["device_hours_besides"] / estimate["devices"]
    return StudyForecast(
        total["wall_hours"],
        references + 2 * WORKFLOW_SECONDS / 3600,  # the references, then the report
        {split: count(task, split, few_sample=few_sample) for split in SPLITS},
    )
