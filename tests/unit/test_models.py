"""The three families: gradients independent of micro-batches, heads, decoding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from small_models import Loader
from tasktransfer.core.specs import FAMILIES, Family, ModelSpec, Training
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import ModelError
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.heads import find_best_spans
from tasktransfer.models.load import Loading, load_model

KINDS = {  # one task of each kind
    "utterance_classification": ("DailyDialog", "emotion_recognition"),
    "dialogue_classification": ("DailyDialog", "dialogue_nli"),
    "multi_label": ("Friends", "relation_extraction"),
    "multi_output": ("Friends", "personality_detection"),
    "multiple_choice": ("DailyDialog", "adversarial_response_selection"),
    "span": ("DailyDialog", "dialogue_reasoning_span_extraction"),
}


def an_encoder(encoded: Path) -> Loading:
    spec = ModelSpec("small", "encoder", "w1", 200)
    return Loading(spec, Training(), encoded, 0, torch.device("cpu"))


def gradient(model: FamilyModel, split: EncodedSplit, groups: list[list[int]]) -> torch.Tensor:
    """Compute the gradient of the batch's mean loss, group by group, as one vector."""
    model.module.zero_grad(set_to_none=True)
    divisor = model.compute_loss_divisor(split, [u for g in groups for u in g])
    for group in groups:
        (model.compute_loss(split, group) / divisor).backward()
    return torch.cat(
        [p.grad.to_dense().flatten() for p in model.module.parameters() if p.grad is not None]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_micro_batches_give_the_gradient_of_the_whole_batch(
    load: Loader, family: Family, kind: str
) -> None:
    model, split = load(family, *KINDS[kind])
    # Options of a random model have nearly the same score, and the gradient is what is left of
    # their difference: in single precision its rounding would be the larger part.
    model.module.double()
    units = list(range(len(split)))
    assert len(units) >= 2
    whole = gradient(model, split, [units])
    parts = gradient(model, split, [[unit] for unit in units])
    assert whole.norm() > 0
    assert (whole - parts).norm() / whole.norm() < 1e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_predictions_do_not_depend_on_what_they_are_batched_with(
    load: Loader, family: Family
) -> None:
    for dataset, task in KINDS.values():
        model, split = load(family, dataset, task)
        model.module.eval()
        with torch.inference_mode():
            together = model.predict(split, range(len(split)))
            alone = [model.predict(split, [unit])[0] for unit in range(len(split))]
        assert together == alone


def test_a_parents_head_comes_along_and_a_new_tasks_head_is_fresh(
    load: Loader, tmp_path: Path
) -> None:
    parent, _ = load("encoder", "DailyDialog", "dialogue_nli")
    with torch.no_grad():
        for p in parent.module.parameters():
            p.add_(0.25)
    parent.save(tmp_path)
    manifest = {"pad_token_id": 0, "token_types": True, "max_answer_tokens": {}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    tasks = {t: get_task("DailyDialog", t) for t in ("dialogue_nli", "topic_classification")}
    child = load_model(an_encoder(tmp_path), str(tmp_path), None, tasks)
    mine, theirs = child.module.state_dict(), parent.module.state_dict()
    assert set(theirs) < set(mine)
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
    assert mine["heads.topic_classification.bias"].abs().sum() == 0


def test_the_best_span_is_ordered_within_bounds_and_inside_the_context() -> None:
    logits = torch.full((1, 6, 2), -10.0)
    allowed = torch.tensor([[True, False, True, True, True, False]])
    logits[0, 4, 0] = 5.0  # the best start comes after the best end: not a span
    logits[0, 3, 1] = 5.0
    logits[0, 2, 0] = 4.0
    first, last = find_best_spans(logits, allowed, longest=2)
    assert (int(first), int(last)) == (2, 3)
    logits[0, 1, 0] = logits[0, 1, 1] = 99.0  # outside the context
    assert [int(x) for x in find_best_spans(logits, allowed, longest=2)] == [2, 3]
    logits[0, 0, 0] = logits[0, 0, 1] = 50.0  # "no answer" stands alone
    assert [int(x) for x in find_best_spans(logits, allowed, longest=6)] == [0, 0]


def test_a_checkpoint_that_is_not_there_names_itself_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ModelError, match=r"nowhere.*model\.safetensors"):
        load_model(an_encoder(tmp_path), str(tmp_path / "nowhere"), None, {})
