"""Parts of several trainings applied to a base model, each from another training or merged."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from small_models import Loader, small_stage
from tasktransfer.core.nodes import Merge, Stage, Start
from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError, ModelError
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.parts import replace_parts

EMOTIONS, NLI = "emotion_recognition", "dialogue_nli"
STAGES = [small_stage(EMOTIONS), small_stage(NLI)]


def shifted(load: Loader, by: float, task: str = EMOTIONS, *others: str) -> FamilyModel:
    """Return an encoder with every parameter larger than the base model's by a constant."""
    model, _ = load("encoder", "DailyDialog", task, others=others)
    with torch.no_grad():
        for parameter in model.module.parameters():
            parameter.add_(by)
    return model


def values(model: FamilyModel, part: str) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.get_parts()[part].values()])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_parts_of_a_model_are_all_of_its_parameters(family: Family, load: Loader) -> None:
    model, _ = load(family, "DailyDialog", EMOTIONS, others=(NLI,))
    parts = model.get_parts()
    names = {
        "encoder": ["encoder", f"head.{NLI}", f"head.{EMOTIONS}"],
        "decoder": ["body"],
        "encoder_decoder": ["encoder", "decoder", "body"],
    }
    assert [*parts] == names[family]
    covered = {id(p) for part in parts.values() for p in part.values()}
    assert covered == {id(p) for p in model.module.parameters()}
    if family == "encoder_decoder":
        ids = [{id(p) for p in parts[name].values()} for name in ("encoder", "decoder")]
        assert not ids[0] & ids[1]


def test_each_part_comes_from_its_start_and_the_rest_from_the_base_model(load: Loader) -> None:
    base = shifted(load, 0.0, EMOTIONS, NLI)
    model = shifted(load, 0.0, EMOTIONS, NLI)
    first, second = shifted(load, 1.0), shifted(load, 2.0, NLI)
    starts = [
        (Start(STAGES[0], parts=("encoder",)), first),
        (Start(STAGES[1], parts=(f"head.{NLI}",)), second),
    ]
    replace_parts(model, starts)
    assert torch.equal(values(model, "encoder"), values(first, "encoder"))
    assert torch.equal(values(model, f"head.{NLI}"), values(second, f"head.{NLI}"))
    assert torch.equal(values(model, f"head.{EMOTIONS}"), values(base, f"head.{EMOTIONS}"))


def test_a_start_without_parts_brings_all_that_both_models_have(load: Loader) -> None:
    model, other = shifted(load, 0.0, EMOTIONS, NLI), shifted(load, 1.0, NLI)
    before = values(model, f"head.{EMOTIONS}")
    replace_parts(model, [(Start(STAGES[1]), other)])
    assert torch.equal(values(model, "encoder"), values(other, "encoder"))
    assert torch.equal(values(model, f"head.{NLI}"), values(other, f"head.{NLI}"))
    assert torch.equal(values(model, f"head.{EMOTIONS}"), before)


def test_named_parts_win_over_a_whole_model(load: Loader) -> None:
    model, whole, expert = (shifted(load, by) for by in (0.0, 1.0, 2.0))
    starts = [(Start(STAGES[1], parts=("encoder",)), expert), (Start(STAGES[0]), whole)]
    replace_parts(model, starts)
    assert torch.equal(values(model, "encoder"), values(expert, "encoder"))
    assert torch.equal(values(model, f"head.{EMOTIONS}"), values(whole, f"head.{EMOTIONS}"))


def test_a_part_may_lead_into_another(load: Loader) -> None:
    model = shifted(load, 0.0, EMOTIONS)
    other = shifted(load, 1.0, EMOTIONS)
    renamed = Renamed(other, {f"head.{EMOTIONS}": "head.expert"})
    start = Start(STAGES[0], parts=("head.expert",), into=(f"head.{EMOTIONS}",))
    replace_parts(model, [(start, renamed)])
    assert torch.equal(values(model, f"head.{EMOTIONS}"), values(other, f"head.{EMOTIONS}"))


class Renamed:
    """A model whose parts have other names."""

    def __init__(self, model: FamilyModel, names: dict[str, str]) -> None:
        self.module = model.module
        self._parts = {names.get(name, name): part for name, part in model.get_parts().items()}

    def get_parts(self) -> dict[str, dict[str, nn.Parameter]]:
        return self._parts


@pytest.mark.parametrize(("merged", "by"), [("mean", 2.0), ("max", 5.0), ("min", -1.0)])
def test_starts_into_the_same_part_are_merged_element_by_element(
    merged: Merge, by: float, load: Loader
) -> None:
    base = shifted(load, 0.0)
    model = shifted(load, 0.0)
    starts = [
        (Start(STAGES[0], parts=("encoder",), merged=merged), shifted(load, shift))
        for shift in (2.0, -1.0, 5.0)
    ]
    replace_parts(model, starts)
    assert torch.allclose(values(model, "encoder"), values(base, "encoder") + by, atol=1e-5)
    assert torch.equal(values(model, f"head.{EMOTIONS}"), values(base, f"head.{EMOTIONS}"))


@pytest.mark.parametrize(
    ("starts", "said"),
    [
        (
            [Start(STAGES[0], parts=("adapter",))],
            r"starts.parts: The model has no part 'adapter'.*encoder",
        ),
        (
            [Start(STAGES[0], parts=("encoder",), into=("body",))],
            r"starts.into: The model has no part 'body'. Choose one of encoder, head",
        ),
        (
            [Start(STAGES[0], parts=("encoder",), into=("a", "b"))],
            r"The list has 2 names \(a, b\) for 1",
        ),
        (
            [Start(STAGES[0], parts=("encoder",)), Start(STAGES[1], parts=("encoder",))],
            "2 parts .* merged into encoder, but .* differ .None.*mean, max, min or ties",
        ),
        (
            [
                Start(STAGES[0], parts=("encoder",), merged="mean"),
                Start(STAGES[1], parts=("encoder",), merged="max"),
            ],
            "merged differ .max, mean",
        ),
    ],
)
def test_starts_that_cannot_be_are_refused_by_name(
    starts: list[Start], said: str, load: Loader
) -> None:
    model = shifted(load, 0.0)
    with pytest.raises(ConfigError, match=said):
        replace_parts(model, [(start, shifted(load, 1.0)) for start in starts])


def test_shapes_and_parameters_must_agree(load: Loader) -> None:
    model, other = shifted(load, 0.0, EMOTIONS, NLI), shifted(load, 0.0, NLI)
    heads = Start(STAGES[1], parts=(f"head.{NLI}",), into=(f"head.{EMOTIONS}",))
    sizes = [get_task("DailyDialog", task).classes for task in (NLI, EMOTIONS)]
    with pytest.raises(
        ModelError,
        match=rf"head.{NLI} → head.{EMOTIONS} is not possible \(weight is of shape "
        rf"\[{sizes[0]}, \d+\] in the first and of shape \[{sizes[1]}, \d+\] in the second",
    ):
        replace_parts(model, [(heads, other)])
    whole = Start(STAGES[1], parts=("encoder",), into=(f"head.{EMOTIONS}",))
    with pytest.raises(ModelError, match="in the first and missing in the second"):
        replace_parts(model, [(whole, other)])


def test_only_a_stage_that_keeps_its_rounds_can_be_started_from_one_of_them() -> None:
    keeping: Stage = replace(STAGES[0], selection=replace(STAGES[0].selection, keep="every"))
    assert Start(keeping, at=3).at == 3
    with pytest.raises(ConfigError, match=r"at 3: .* its best round.*keep: every"):
        Start(STAGES[0], at=3)
