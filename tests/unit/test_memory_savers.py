"""Options that save memory: recomputed layers, and moments of 8 bits."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from small_models import small_stage
from tasktransfer.core.specs import FAMILIES, Family, LowRank, Training
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError, ModelError
from tasktransfer.models.gradient_checkpointing import enable_gradient_checkpointing
from tasktransfer.models.load import Loading, load_model
from tasktransfer.models.low_rank import CONFIG_FILE
from tasktransfer.results.records import read_record
from tasktransfer.training.job import Job
from tasktransfer.training.optimisers import create_optimiser
from tasktransfer.training.run import train_stage

TASK = "emotion_recognition"
TRAINING = Training(epochs=2, batch_size=2, learning_rate=3e-3, precision="float32", dropout=0.2)
TWICE = replace(TRAINING, gradient_checkpointing=True)


def losses(small: Path, family: Family, training: Training, out: Path) -> list[float]:
    stage = small_stage(TASK, family=family, training=training)
    stage = replace(stage, model=replace(stage.model, adapter=LowRank(rank=4, dropout=0.1)))
    encoded, base = small / f"DailyDialog-{family}", str(small / family)
    train_stage(Job(stage, encoded, base, None, out, False, 1, "small", "c"))
    rounds = read_record(out / "metrics.json")["training"]["rounds"]
    return [one["train_loss"][TASK] for one in rounds]


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_computed_twice_draw_the_same_dropout(
    family: Family, small: Path, tmp_path: Path
) -> None:
    once = losses(small, family, TRAINING, tmp_path / "once")
    twice = losses(small, family, TWICE, tmp_path / "twice")
    assert once == pytest.approx(twice, abs=1e-6)
    without = losses(small, family, replace(TRAINING, dropout=0.0), tmp_path / "without")
    assert once != pytest.approx(without, abs=1e-3)


def test_layers_computed_twice_go_through_the_same_adapters(small: Path, tmp_path: Path) -> None:
    """A panel's adapters are those of one task during its forward pass."""
    found = []
    for training in (TRAINING, TWICE):
        stage = small_stage(TASK, training=training)
        stage = replace(stage, model=replace(stage.model, adapter_reduction=4))
        out = tmp_path / str(training.gradient_checkpointing)
        job = Job(stage, small / "DailyDialog-encoder", str(small / "encoder"), None, out, False, 1,
                  "small", "c")  # fmt: skip
        train_stage(job)
        rounds = read_record(out / "metrics.json")["training"]["rounds"]
        found.append([one["train_loss"][TASK] for one in rounds])
    assert found[0] == pytest.approx(found[1], abs=1e-6)


@pytest.mark.parametrize("plain", [True, False])
def test_a_layers_inside_is_not_kept(plain: bool, small: Path) -> None:
    """Counts the numbers that are stored for the backward pass."""
    kept = {}
    for training in (TRAINING, TWICE):
        spec = small_stage(TASK).model
        encoded, device = small / "DailyDialog-encoder", torch.device("cpu")
        loading = Loading(spec, training, encoded, 0, device, plain=plain)
        tasks = {TASK: get_task("DailyDialog", TASK)}
        model = load_model(loading, str(small / "encoder"), None, tasks)
        model.enter_training_mode()
        from tasktransfer.encoding.encoded import read_split  # noqa: PLC0415

        split, held = read_split(encoded, TASK, "train"), 0

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
        create_optimiser(
            torch.nn.Module(),
            [torch.nn.Parameter(torch.ones(1))],
            replace(TRAINING, optimiser_bits=8),
        )
    monkeypatch.setattr("tasktransfer.models.low_rank.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"adapter: .*peft.*tasktransfer\[adapters\].*to null"):
        losses(small, "encoder", TRAINING, tmp_path)
    assert not list(tmp_path.rglob(CONFIG_FILE))
