"""Parts of models: heads that start from others, spans, and bottleneck adapters."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertModel, DistilBertModel

from architectures import build_config
from small_models import Loader
from tasktransfer.core.specs import ModelSpec, Training
from tasktransfer.datasets import get_task
from tasktransfer.errors import ModelError
from tasktransfer.models.adapters import AdapterBank
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


# --- bottleneck adapters --------------------------------------------------------------------------


def small_bert(layers: int = 2) -> Any:
    torch.manual_seed(0)
    return BertModel(build_config("bert", num_hidden_layers=layers, hidden_size=16)).eval()


def states(model: Any, bank: AdapterBank | None = None, task: str = "") -> torch.Tensor:
    with torch.no_grad(), bank.use_task(task) if bank else nullcontext():
        return model(torch.tensor([[2, 5, 9, 3]])).last_hidden_state


def test_without_a_task_the_encoder_is_what_it_was() -> None:
    model = small_bert()
    before, names = states(model), [*model.state_dict()]
    bank = AdapterBank(model, ("first",), 4, seed=0)
    assert torch.equal(states(model), before)
    assert [*model.state_dict()] == names
    assert not torch.equal(states(model, bank, "first"), before)


def test_an_adapter_is_two_bottlenecks_a_layer() -> None:
    bank = AdapterBank(small_bert(layers=3), ("first", "second"), 4, seed=0)
    (first, second) = bank.get_parts().values()
    per_bottleneck = 16 * 4 + 4 + 4 * 16 + 16
    assert sum(p.numel() for p in first.values()) == 3 * 2 * per_bottleneck
    assert [*bank.get_parts()] == ["adapter.first", "adapter.second"]
    for one, other in zip(first.values(), second.values(), strict=True):
        assert torch.equal(one, other)  # one start for all, so that means are meaningful


def test_a_bottleneck_is_down_swish_up_and_residual() -> None:
    adapter = AdapterBank(small_bert(), ("first",), 4, seed=0).banks["first"][0]  # type: ignore[index]
    given = torch.randn(3, 16)
    hidden = given @ adapter.down.weight.T + adapter.down.bias
    hidden = hidden * torch.sigmoid(hidden)
    wanted = given + hidden @ adapter.up.weight.T + adapter.up.bias
    assert torch.allclose(adapter(given), wanted, atol=1e-6)


def test_threads_do_not_see_each_others_task() -> None:
    model = small_bert()
    bank = AdapterBank(model, ("first", "second"), 4, seed=0)
    with torch.no_grad():
        for parameter in bank.get_parts()["adapter.second"].values():
            parameter.add_(0.5)
    alone = {task: states(model, bank, task) for task in ("first", "second")}
    with ThreadPoolExecutor(4) as pool:
        tasks = ["first", "second"] * 20
        together = [*pool.map(lambda task: states(model, bank, task), tasks)]
    for task, found in zip(tasks, together, strict=True):
        assert torch.equal(found, alone[task])


def test_saved_adapters_come_back_for_the_tasks_in_common(tmp_path: Path) -> None:
    bank = AdapterBank(small_bert(), ("first", "second"), 4, seed=0)
    with torch.no_grad():
        for parameter in bank.parameters():
            parameter.add_(1.0)
    bank.save(tmp_path)
    other = AdapterBank(small_bert(), ("second", "third"), 4, seed=0)
    fresh = {n: p.clone() for n, p in other.get_parts()["adapter.third"].items()}
    other.load(tmp_path)
    for name, parameter in other.get_parts()["adapter.second"].items():
        assert torch.equal(parameter, bank.get_parts()["adapter.second"][name])
    for name, parameter in other.get_parts()["adapter.third"].items():
        assert torch.equal(parameter, fresh[name])


@pytest.mark.parametrize(("reduction", "layers"), [(8, 2), (4, 3), (4, 1)])
def test_adapters_of_another_size_are_refused(tmp_path: Path, reduction: int, layers: int) -> None:
    AdapterBank(small_bert(), ("first",), 4, seed=0).save(tmp_path)
    other = AdapterBank(small_bert(layers), ("first",), reduction, seed=0)
    with pytest.raises(ModelError, match=r"parameter first.*same encoder and reduction"):
        other.load(tmp_path)


def test_architectures_without_known_places_are_refused() -> None:
    other = DistilBertModel(build_config("distilbert"))
    with pytest.raises(ModelError, match=r"type distilbert are not supported.*bert.*roberta"):
        AdapterBank(other, ("first",), 4, seed=0)
    with pytest.raises(ModelError, match="The reduction 17 is larger than the hidden size 16"):
        AdapterBank(small_bert(), ("first",), 17, seed=0)
