"""Dropout of the fast path has the same effect on the loss as torch's dropout."""

from __future__ import annotations

import pytest
import torch

from small_models import Loader
from tasktransfer.core.specs import FAMILIES, Family


@pytest.mark.parametrize(
    "family",
    [pytest.param(f, marks=[pytest.mark.slow] * (f == "encoder_decoder")) for f in FAMILIES],
)
def test_dropout_moves_a_loss_as_much_as_the_plain_paths(load: Loader, family: Family) -> None:
    """Single samples differ, but mean and spread of the loss over many samples agree."""
    means, spreads, draws = [], [], 300
    torch.manual_seed(0)
    for plain in (True, False):
        model, split = load(family, "DailyDialog", "dialogue_nli", plain=plain)
        for module in model.module.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.3
            if isinstance(getattr(module, "dropout", None), float):
                module.dropout = 0.3  # T5's attention has a rate and no module
        model.module.train()
        losses = torch.tensor(
            [float(model.compute_loss(split, [0]).detach()) for _ in range(draws)]
        )
        means.append(losses.mean())
        spreads.append(losses.std())
    assert min(spreads) > 0
    assert abs(means[0] - means[1]) < 3 * max(spreads) / (draws / 2) ** 0.5
    assert 0.8 < spreads[0] / spreads[1] < 1.25
