"""Dialogues for ``tasktransfer init``, and forecasts that do not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from declared_files import dialogue, lines

from tasktransfer.cli import new_study
from tasktransfer.cli.study_forecast import StudyForecast


def write_own(folder: Path, count: int = 40) -> Path:
    """Write dialogues that have the labels ``intent`` and ``urgency``."""
    file = folder / "own.jsonl"
    file.write_text(lines([dialogue("a", number) for number in range(count)]))
    return file


def set_forecast(
    monkeypatch: pytest.MonkeyPatch, forecast: Callable[[Mapping[str, Any]], float], train: int = 28
) -> None:
    """Replace the forecast of a study by a function of its config.

    Args:
        train: number of the target's training instances.
    """
    instances = {"train": train, "dev": train // 10, "test": train // 4}
    monkeypatch.setattr(new_study, "time_updates_of_draft", lambda *_: [])
    monkeypatch.setattr(
        new_study,
        "forecast_draft",
        lambda config, *_: StudyForecast(forecast(config), 0.02, instances),
    )
