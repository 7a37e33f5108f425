"""The digests of whole studies do not change, so users keep their results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from tasktransfer.core.identity import FAMILY_RECIPES, RECIPE_VERSION
from tasktransfer.core.plan import Plan
from tasktransfer.designs import open_study
from tasktransfer.results import revisions

PRESETS = Path(__file__).parents[2] / "workflow" / "presets"

# Change these only together with a recipe or another version of what makes results.
DIGESTS = {
    "demo": (51, "47c4ac6f6527a01debcbb64876b284c310fb2614f6d7ba8a3435db41623bb18f"),
    "paper": (5445, "3fe2d83aed46ee22e8b02e73f8d961a8a7facd368c60ca3cb60042ebc6e4610f"),
}

SPANS = (
    "causal_emotion_span_extraction",
    "dialogue_reasoning_span_extraction",
    "reading_comprehension",
    "question_answering",
)
LATER = {
    *((task, family) for task in SPANS for family in ("encoder", "decoder")),
    ("question_answering", "encoder_decoder"),
    ("relation_extraction", "decoder"),
}
"""Task and family whose trainings are of recipe 4 (CHANGELOG), and all of ``FAMILY_RECIPES``."""


def plan_of(preset: str, folder: Path, patch: pytest.MonkeyPatch) -> Plan:
    patch.chdir(folder)  # no release here: the revisions of its data are `unknown`
    patch.setattr(revisions, "resolve_commit", lambda *_: None)  # nor are the commits of its models
    return open_study(PRESETS / f"{preset}.yaml", need_inputs=False).plan


def summed(digests: Iterable[str]) -> tuple[int, str]:
    each = list(digests)
    return len(each), hashlib.sha256("\n".join(each).encode()).hexdigest()


@pytest.mark.parametrize("preset", DIGESTS)
def test_the_stages_of_a_preset_keep_their_digests(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(preset, tmp_path, monkeypatch)
    assert summed(stage.digest for stage in plan.stages) == DIGESTS[preset]


@pytest.mark.parametrize("preset", DIGESTS)
def test_the_recipe_is_a_later_one_for_what_changed_alone(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = plan_of(preset, tmp_path, monkeypatch).stages
    for stage in stages:
        family = stage.model.family
        changed = family in FAMILY_RECIPES or any((task, family) in LATER for task in stage.tasks)
        assert stage.recipe == RECIPE_VERSION + changed, stage.label
    assert {stage.recipe for stage in stages} == {3, 4}
