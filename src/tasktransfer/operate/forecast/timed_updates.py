"""Timed updates of a study's models on this machine, which make its first forecast more accurate.

A few updates are trained in a separate process, because torch is slow to import. They are cached
for a day, so that later forecasts of any study with this model use them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from tasktransfer.config.model_sizes import ModelSize
from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Family, Training
from tasktransfer.files import json_text
from tasktransfer.operate.forecast.machine_cache import (
    cache_measurement,
    describe_machine,
    read_measurement,
)
from tasktransfer.operate.forecast.rates import Device, Precision
from tasktransfer.operate.forecast.speed import TimedUpdates

if TYPE_CHECKING:
    from tasktransfer.operate.forecast.estimate import Estimates

FILE = "updates.json"
UPDATES = 3
"""Number of timed updates, after one that is not timed."""
LEAST_PARAMETERS = 5_000_000
"""Size of the smallest model that is timed. Smaller models train within seconds."""
LONGEST_SECONDS = 60.0
"""Largest expected duration. Updates of a model that takes longer are not timed."""
SIMILAR = 1.5
"""Largest ratio of two studies' tokens per update for which the same timed updates are used."""
TIMEOUT_SECONDS = 180.0
TIMED_FAMILIES: tuple[Family, ...] = ("encoder", "decoder", "encoder_decoder")


def format_key(device: Device, family: Family, size: ModelSize, precision: Precision) -> str:
    """Return the key of a model's timed updates in the cache file.

    Models of the same family and size take the same time.
    """
    shape = f"{size.parameters} parameters, {size.layers} layers of {size.hidden}"
    return f"{describe_machine(device)}, {precision}, {family}, {shape}, {size.trained} trained"


def read_timed_updates(key: str) -> TimedUpdates | None:
    """Return the updates with this key that were timed on this machine in the last day."""
    entry = read_measurement(FILE, key) or {}
    values = [entry.get(name) for name in ("updates", "tokens", "seconds")]
    if not all(isinstance(value, int | float) and value > 0 for value in values):
        return None
    return TimedUpdates(*values)  # type: ignore[arg-type]


def time_model_updates(estimates: Estimates, *, again: bool = False) -> list[str]:
    """Time updates of a study's models on this machine, and return a description of each.

    Updates are not timed again if cached ones read a similar number of tokens. Models whose files
    are not on this machine are left out, and so are very small and very large ones.

    Args:
        estimates: estimates of the study.
        again: time updates even if they are cached.
    """
    stages = {stage.model.name: stage for stage in reversed(estimates.study.plan.stages)}
    described = []
    for stage in stages.values():
        if estimates.is_for_this_machine and _can_be_timed(estimates, stage):
            timed = _time_stage(estimates, stage, again)
            if timed is not None:
                described.append(_describe(stage, timed))
    return described


def _can_be_timed(estimates: Estimates, stage: Stage) -> bool:
    size = estimates.model(stage.model.name)
    return (
        size.parameters >= LEAST_PARAMETERS
        and size.basis == "its files"
        and stage.model.family in TIMED_FAMILIES
        and stage.model.beside is None
    )


def _time_stage(estimates: Estimates, stage: Stage, again: bool) -> TimedUpdates | None:
    """Return cached updates of a stage's model, or time some. Return None if this fails."""
    name = stage.model.name
    precision = estimates.resolve_precision(name, stage.training.precision)
    key = format_key(estimates.device, stage.model.family, estimates.model(name), precision)
    timed = None if again else read_timed_updates(key)
    length = estimates.compute_mean_length(stage)
    tokens = length * stage.training.batch_size
    if timed is not None and _is_similar(timed.tokens / timed.updates, tokens):
        return timed
    expected = estimates.speed(name, precision).estimate_training_seconds(stage, tokens, 1)
    if expected * (UPDATES + 1) > LONGEST_SECONDS:
        return None
    training = Training(
        learning_rate=stage.training.learning_rate,
        batch_size=stage.training.batch_size,
        precision=precision,
        gradient_checkpointing=stage.training.gradient_checkpointing,
    )
    request = {
        "model": asdict(stage.model),
        "checkpoint": estimates.study.get_checkpoint_source(name),
        "training": asdict(training),
        "updates": UPDATES,
        "length": length,
    }
    timed = _run_process(json.dumps(request), estimates.device)
    if timed is not None:
        cache_measurement(FILE, key, asdict(timed))
    return timed


def _is_similar(timed: float, wanted: float) -> bool:
    """Return whether the numbers of tokens per update differ at most by ``SIMILAR``."""
    return 1 / SIMILAR <= timed / wanted <= SIMILAR


def _run_process(request: str, device: Device) -> TimedUpdates | None:
    """Time updates in a separate process. Return None if it fails or has no such device."""
    command = [sys.executable, "-P", "-m", "tasktransfer.training.update_speed", request]
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", **hidden},
        )
        measured = json_text.loads(done.stdout.splitlines()[-1])
        trained_on = measured.pop("device")
        return TimedUpdates(**measured) if trained_on == device else None
    except (
        OSError,
        subprocess.SubprocessError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ):
        return None


def _describe(stage: Stage, timed: TimedUpdates) -> str:
    tokens = round(timed.tokens / timed.updates / stage.training.batch_size)
    return (
        f"One training update of {stage.model.name} takes {timed.seconds / timed.updates:.2g} s on "
        f"this machine ({stage.training.batch_size} instances of {tokens} tokens)."
    )
