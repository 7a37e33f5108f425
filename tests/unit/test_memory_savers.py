"""Options that save memory: recomputed layers, and moments of 8 bits."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from small_models import Loader, small_stage, train_job
from tasktransfer.core.specs import FAMILIES, Family, LowRank, Training
from tasktransfer.errors import ConfigError, ModelError
from tasktransfer.models.gradient_checkpointing import enable_gradient_checkpointing
from tasktransfer.models.low_rank import CONFIG_FILE
from tasktransfer.training.optimisers import create_optimiser

TASK = "emotion_recognition"
TRAINING = Training(epochs=2, batch_size=2, learning_rate=3e-3, precision="float32", dropout=0.2)
TWICE = replace(TRAINING, gradient_checkpointing=True)


LORA, PANEL = {"adapter": LowRank(rank=4, dropout=0.1)}, {"adapter_reduction": 4}


def losses(
    small: Path, family: Family, training: Training, out: Path, adapter: dict[str, Any]
) -> list[float]:
    stage = small_stage(TASK, family=family, training=training)
    stage = replace(stage, model=replace(stage.model, **adapter))
    rounds = train_job(small, stage, out, save_checkpoint=False)["training"]["rounds"]
    return [one["train_loss"][TASK] for one in rounds]


@pytest.mark.parametrize(
    ("family", "adapter"), [*((family, LORA) for family in FAMILIES), ("encoder", PANEL)]
)
def test_layers_computed_twice_draw_the_same_dropout_with_the_same_adapter(
    family: Family, adapter: dict[str, Any], small: Path, tmp_path: Path
) -> None:
    """A panel's adapters are those of one task during its forward pass."""
    once = losses(small, family, TRAINING, tmp_path / "once", adapter)
    twice = losses(small, family, TWICE, tmp_path / "twice", adapter)
    assert once == pytest.approx(twice, abs=1e-6)
    without = losses(small, family, replace(TRAINING, dropout=0.0), tmp_path / "without", adapter)
    assert once != pytest.approx(without, abs=1e-3)


@pytest.mark.parametrize("plain", [True, False])
def test_a_layers_inside_is_not_kept(plain: bool, load: Loader) -> None:
    """Counts the numbers that are stored for the backward pass."""
    kept = {}
    for training in (TRAINING, TWICE):
        model, split = load("encoder", "DailyDialog", TASK, plain=plain, training=training)
        model.enter_training_mode()
        held = 0

        def count(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal held
            held += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            model.compute_loss(split, range(len(split)))
        kept[training.gradient_checkpointing] = held
    assert kept[True] < 0.7 * kept[False]


def test_what_has_no_layers_of_transformers_is_refused() -> None:
    with pytest.raises(ModelError, match=r"gradient_checkpointing: .* but gru.*Set it to false"):
        enable_gradient_checkpointing(torch.nn.GRU(4, 4), "gru")


def test_moments_of_8_bits_train_and_are_of_8_bits() -> None:
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(128, 64))
    optimiser = create_optimiser(torch.nn.Module(), [weight], replace(TRAINING, optimiser_bits=8))
    before = float(weight.detach().square().sum())
    for _ in range(5):
        weight.square().sum().backward()
        optimiser.step()
        optimiser.zero_grad()
    assert float(weight.detach().square().sum()) < before
    assert {optimiser.state[weight][name].dtype for name in ("state1", "state2")} == {torch.uint8}


def test_a_package_that_is_missing_is_named(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(ConfigError, match=r"optimiser_bits.*tasktransfer\[eight-bit\].*to 32"):
        weight = torch.nn.Parameter(torch.ones(1))
        create_optimiser(torch.nn.Module(), [weight], replace(TRAINING, optimiser_bits=8))
    monkeypatch.setattr("tasktransfer.models.low_rank.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"adapter: .*peft.*tasktransfer\[adapters\].*to null"):
        losses(small, "encoder", TRAINING, tmp_path, LORA)
    assert not list(tmp_path.rglob(CONFIG_FILE))
