"""Keys without effect in a design are refused there, because they would rename its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tasktransfer.designs import DESIGNS, load_config
from tasktransfer.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
PRESETS = {"empathetic": "empathetic-demo", "panel": "panel-demo", "probes": "probes-demo"}
OTHER_VALUES: dict[str, Any] = {
    "limit_test": 10,
    "task_weighting": "none",
    "loss_on": "sequence",
    "head_learning_rate": 0.1,
    "gradient_checkpointing": True,
    "fidelity.scoring": "tlidb",
    "fidelity.backbone_dropout": False,
    "fidelity.head_init": "xavier",
    "fidelity.selection_metrics": "release",
    "fidelity.answers": "tlidb",
    "fidelity.several_answers": "drawn",
    "fidelity.multi_label": "softmax",
    "fidelity.weighting_when_finetuning": True,
    "fidelity.repetition_penalty": 2.0,
    "fidelity.truncated_spans": "first_token",
    "fidelity.span_choice": "edges",
    "fidelity.inputs": "tlidb",
    "fidelity.generation_length": "tlidb",
    "fidelity.exp3_steps": "released",
}


def idle_keys(design: str) -> dict[str, str]:
    training: Any = DESIGNS[design].config.model_fields["training"].annotation
    return dict(training.without_effect)


def write_study(design: str, folder: Path, key: str, **changes: Any) -> Path:
    study = yaml.safe_load((ROOT / f"workflow/presets/{PRESETS[design]}.yaml").read_text())
    section, _, switch = key.rpartition(".")
    value = OTHER_VALUES[key]
    study["training"] |= {section: {switch: value}} if section else {key: value}
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump({**study, **changes}))
    return file


@pytest.mark.parametrize(
    ("design", "key"), [(design, key) for design in PRESETS for key in idle_keys(design)]
)
def test_a_key_without_effect_is_refused(design: str, key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"study.yaml:\d+: training.{key}: .*(Set|Remove)"):
        load_config(write_study(design, tmp_path, key))


def test_a_test_limit_needs_trainings_that_are_tested(tmp_path: Path) -> None:
    """In a panel study these are few-shot transfer and response selection."""
    assert load_config(write_study("panel", tmp_path, "limit_test")).training.limit_test == 10
    file = write_study("panel", tmp_path, "limit_test", few_shot=None, selection=None)
    with pytest.raises(ConfigError, match=r"training.limit_test: .*few_shot or selection"):
        load_config(file)


@pytest.mark.parametrize("design", [*PRESETS, "transfer"])
def test_a_key_at_its_default_is_no_problem(design: str) -> None:
    training: Any = DESIGNS[design].config.model_fields["training"].annotation
    assert training.model_validate({"task_weighting": "auto", "limit_test": None, "fidelity": {}})
