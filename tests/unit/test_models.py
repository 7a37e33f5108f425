"""Heads of models that start from others, spans, and a missing checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from small_models import Loader
from tasktransfer.core.specs import ModelSpec, Training
from tasktransfer.datasets import get_task
from tasktransfer.errors import ModelError
from tasktransfer.models.heads import find_best_spans
from tasktransfer.models.load import Loading, load_model


def an_encoder(encoded: Path) -> Loading:
    spec = ModelSpec("small", "encoder", "w1", 200)
    return Loading(spec, Training(), encoded, 0, torch.device("cpu"))


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
