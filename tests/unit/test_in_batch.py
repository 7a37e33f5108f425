"""Losses of a whole batch: gradients do not depend on how the batch is split."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_splits import build_split
from test_resume import KilledError, Killing, outcome, snapshots
from transformers import BertConfig, BertModel

from small_models import small_stage
from tasktransfer.core.fidelity import DEFAULT
from tasktransfer.core.specs import Selection, Training
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers.dropout import use_fast_dropout
from tasktransfer.models.dual_encoder import DualEncoder
from tasktransfer.models.recipe import duplicate_encoder
from tasktransfer.tasks.card import MetricSpec, Prompt, Task
from tasktransfer.training.ahead import MicroBatch
from tasktransfer.training.gradients import set_gradients
from tasktransfer.training.loop import train
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.progress import Progress
from tasktransfer.training.resume import Snapshots
from tasktransfer.training.samplers import Batch, Update
from tasktransfer.training.selection import compute_dev_loss
from tasktransfer.training.setup import Setup

ROWS = 512
REPLY = Task("reply", "R", "D", "reply", (), (MetricSpec("bleu"),), "", Prompt("", 8), "", "", "")
FEELING = Task(
    "feeling", "F", "D", "dialogue_classification", ("a", "b", "c"), (MetricSpec("accuracy"),),
    "", Prompt("", 8), "", "", "", by_head=True,
)  # fmt: skip


def draw_split(task: str, sequences: int, labels: Sequence[Sequence[int]]) -> EncodedSplit:
    chance = np.random.default_rng(3)
    rows = [chance.integers(4, 60, chance.integers(3, 9)) for _ in range(ROWS * sequences)]
    return build_split(task, rows, sequences, labels=labels)


SPLITS = {
    "reply": draw_split("reply", 2, [[]] * ROWS),
    "feeling": draw_split("feeling", 1, [[i % 3] for i in range(ROWS)]),
}


def model(dropout: float = 0.0) -> DualEncoder:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16, hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=0.0, attn_implementation="eager",
    )  # fmt: skip
    bert = BertModel(config, add_pooling_layer=False)
    use_fast_dropout(bert)
    dual = DualEncoder(
        *duplicate_encoder(bert), {"reply": REPLY, "feeling": FEELING}, seed=0, pads=(0,),
        cosine_scale=None, fidelity=DEFAULT, device=torch.device("cpu"),
    )  # fmt: skip
    dual.enter_training_mode()
    return dual


def gradients(
    dual: DualEncoder, portion: int, update: Update
) -> tuple[list[float], dict[str, torch.Tensor]]:
    torch.manual_seed(5)
    made = [
        [MicroBatch(list(b.examples[i : i + portion])) for i in range(0, len(b.examples), portion)]
        for b in update
    ]
    setup = Setup(torch.device("cpu"), TokenBudget(1, "training"), TokenBudget(1, "evaluation"))
    moving = list(dual.module.parameters())
    losses = set_gradients(dual, moving, SPLITS, update, made, setup)
    named = dict(dual.module.named_parameters())
    return [float(loss) for loss in losses], {
        n: p.grad for n, p in named.items() if p.grad is not None
    }


BOTH = (Batch("feeling", tuple(range(ROWS)), 0.5), Batch("reply", tuple(range(ROWS)), 0.5))


@pytest.mark.parametrize("update", [(Batch("reply", tuple(range(ROWS))),), BOTH])
def test_portions_of_any_size_give_the_same_gradient(update: Update) -> None:
    dual = model()
    whole_loss, whole = gradients(dual, 512, update)
    for portion in (16, 64):
        loss, parts = gradients(dual, portion, update)
        assert loss == pytest.approx(whole_loss, abs=1e-5)
        assert parts.keys() == whole.keys()
        for name, gradient in parts.items():
            torch.testing.assert_close(gradient, whole[name], rtol=0, atol=1e-5)


def test_it_is_the_gradient_of_the_softmax_over_the_batch() -> None:
    dual, reply = model(), SPLITS["reply"]
    (loss,), made = gradients(dual, 64, (Batch("reply", tuple(range(ROWS)), 1.0),))
    encodings = dual.encode(reply, range(ROWS), None)
    scores = encodings[:, 0] @ encodings[:, 1].T
    wanted = -torch.log_softmax(scores, 1).diagonal().mean()
    assert loss == pytest.approx(float(wanted), abs=1e-5)
    named = dict(dual.module.named_parameters())
    each = torch.autograd.grad(wanted, [named[name] for name in made])
    for gradient, expected in zip(made.values(), each, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-5)


def test_with_dropout_a_repetition_gives_the_same_gradient_and_another_draw_does_not() -> None:
    dual = model(dropout=0.3)
    update = (Batch("reply", tuple(range(ROWS))),)
    first, second = (gradients(dual, 64, update) for _ in range(2))
    assert first[0] == second[0]
    for name, gradient in first[1].items():
        assert torch.equal(gradient, second[1][name])
    assert gradients(dual, 128, update)[0] != first[0]


def test_dev_loss_is_of_consecutive_batches() -> None:
    dual, reply = model(), SPLITS["reply"]
    setup = Setup(torch.device("cpu"), TokenBudget(64, "training"), TokenBudget(64, "evaluation"))
    found = compute_dev_loss(dual, reply, setup, 200)
    dual.module.eval()
    with torch.no_grad():
        encodings = dual.encode(reply, range(ROWS), None)
        wanted = sum(float(dual.compute_in_batch_loss(e)) for e in encodings.split(200)) / ROWS
    assert found == pytest.approx(wanted, abs=1e-5)


@pytest.mark.slow
def test_a_killed_training_resumes_and_ends_bit_for_bit_the_same(tmp_path: Path) -> None:
    training = Training(epochs=3, batch_size=128, learning_rate=1e-3)
    stage = small_stage("reply", training=training, selection=Selection(("reply",), "loss"))

    def once(kept: Snapshots | None, kill_after: int | None = None) -> tuple[Any, ...]:
        dual, cpu = model(dropout=0.2), torch.device("cpu")
        budgets = TokenBudget(64, "training"), TokenBudget(64, "evaluation")
        told = Progress(1, "test", io.StringIO()) if kill_after is None else Killing(kill_after)
        tasks, splits = {"reply": REPLY}, {"reply": SPLITS["reply"]}
        done = train(dual, stage, tasks, splits, splits, Setup(cpu, *budgets), told, kept, None)
        return outcome(done, dual)

    undisturbed = once(None)
    with pytest.raises(KilledError):
        once(snapshots(tmp_path), kill_after=2)
    assert once(snapshots(tmp_path)) == undisturbed
