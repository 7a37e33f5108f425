"""Forecast of a study's wall time, stated when ``tasktransfer run`` starts and when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasktransfer.errors import TaskTransferError, format_quantity

if TYPE_CHECKING:
    from tasktransfer.results.study import Study


@dataclass(frozen=True)
class Forecast:
    """Forecast of the remaining work of a study.

    Attributes:
        hours: wall time in hours.
        devices: number of parallel trainings.
        device: ``cpu`` or ``cuda``.
    """

    hours: float
    devices: int
    device: str

    def __str__(self) -> str:
        device = "GPU" if self.device == "cuda" else "core"
        return (
            f"forecast: {self.hours:.2g} h on {format_quantity(self.devices, device)} "
            "(`tasktransfer plan` shows details)"
        )

    def format_comparison(self, seconds: float) -> str:
        """Format a line that compares the forecast with the actual duration."""
        return f"took {seconds / 3600:.2g} h; forecast {self.hours:.2g} h"


def forecast_study(study: Study, cores: int | None, gpus: int | None) -> Forecast | None:
    """Forecast a study's remaining work, as ``tasktransfer plan`` does.

    Args:
        cores: number of CPU cores, None for all.
        gpus: number of GPU jobs that run in parallel, None for one per GPU.

    Returns:
        None if nothing is left to compute, if endpoints compute a part of it, whose speed is
        unknown, or if an input is missing or damaged, which the workflow reports.
    """
    from tasktransfer.operate.forecast.rates import measure_machine_rates
    from tasktransfer.operate.overview import summarise_study
    from tasktransfer.training.device import list_devices

    if study.has_unknown_inputs:
        return None
    has_gpu = bool(list_devices())
    try:
        rates = measure_machine_rates("cuda" if has_gpu else "cpu")
        estimate = summarise_study(study, gpus if has_gpu else cores, rates)["estimate"]
    except TaskTransferError:
        return None
    left = estimate["left"]
    if left["answered_by_endpoints"] or not left["wall_hours"]:
        return None
    return Forecast(left["wall_hours"], estimate["devices"], estimate["device"])
