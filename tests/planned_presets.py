"""Plans of the presets with invented revisions, so that neither data nor weights are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasktransfer.core.plan import Plan
from tasktransfer.core.specs import ModelSpec
from tasktransfer.designs import get_design, load_config
from tasktransfer.results.revisions import Revisions

PRESETS = Path(__file__).resolve().parents[1] / "workflow" / "presets"


def plan_preset(preset: str, **changes: Any) -> tuple[Any, Plan]:
    """Return the config of a preset with other values of some keys, and its plan."""
    return plan_file(PRESETS / f"{preset}.yaml", changes)


def plan_file(file: Path, changes: dict[str, Any] | None = None) -> tuple[Any, Plan]:
    """Return the config of a file, and its plan."""
    config: Any = load_config(file, changes)
    specs: dict[str, ModelSpec] = {}
    for model in config.models:
        weights = getattr(model, "architecture", None) or model.checkpoint
        beside = specs.get(getattr(model, "second_encoder", None) or "")
        specs[model.name] = ModelSpec(
            model.name, model.family, model.recipe or f"w-{weights}", model.max_length, beside
        )
    revisions = Revisions({name: f"r-{name}" for name in config.dataset_names}, specs)
    return config, get_design(config).plan(config, revisions)
