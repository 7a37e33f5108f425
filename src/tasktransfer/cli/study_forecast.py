"""Forecast of a study that is not written yet, for ``tasktransfer init``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from tasktransfer.config.yaml_text import format_yaml
from tasktransfer.tasks.card import SPLITS

if TYPE_CHECKING:
    from tasktransfer.operate.forecast.rates import Rates
    from tasktransfer.results.study import Study


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


def time_updates_of_draft(config: Mapping[str, Any], folder: Path) -> list[str]:
    """Time a few updates of a study's models, which later forecasts use, and describe them.

    Args:
        config: config of the study, with paths relative to its folder.
        folder: folder of the study.
    """
    from tasktransfer.operate.forecast.estimate import Estimates
    from tasktransfer.operate.forecast.timed_updates import time_model_updates

    with _open_draft(config, folder) as (study, rates):
        return time_model_updates(Estimates(study, rates=rates))


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
    from tasktransfer.operate.overview import WORKFLOW_SECONDS, summarise_study

    with _open_draft(config, folder) as (study, rates):
        devices = None if rates.device == "cuda" else cores
        estimate = summarise_study(study, devices, rates)["estimate"]
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


@contextmanager
def _open_draft(config: Mapping[str, Any], folder: Path) -> Iterator[tuple[Study, Rates]]:
    """Open a study that is not written yet, and measure the speed of this machine."""
    from tasktransfer.designs import open_study
    from tasktransfer.operate.forecast.rates import measure_machine_rates
    from tasktransfer.training.device import list_devices

    with (
        chdir(folder),
        NamedTemporaryFile(
            "w", dir=".", prefix=".draft-", suffix=".yaml", encoding="utf-8"
        ) as file,
    ):
        file.write(format_yaml(config))
        file.flush()
        rates = measure_machine_rates("cuda" if list_devices() else "cpu")
        yield open_study(Path(file.name).name), rates
