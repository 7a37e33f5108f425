"""The digests of whole studies do not change, so users keep their results."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tasktransfer.designs import open_study
from tasktransfer.results import revisions

PRESETS = Path(__file__).parents[2] / "workflow" / "presets"

# Change these only together with a recipe or another version of what makes results.
DIGESTS = {
    "demo": (51, "47c4ac6f6527a01debcbb64876b284c310fb2614f6d7ba8a3435db41623bb18f"),
    "paper": (5445, "3fe2d83aed46ee22e8b02e73f8d961a8a7facd368c60ca3cb60042ebc6e4610f"),
}


@pytest.mark.parametrize("preset", DIGESTS)
def test_the_stages_of_a_preset_keep_their_digests(
    preset: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the revisions of data nor the commits of models are known in an empty folder."""
    monkeypatch.setattr(revisions, "resolve_commit", lambda *_: None)
    plan = open_study(PRESETS / f"{preset}.yaml", need_inputs=False).plan
    digests = [stage.digest for stage in plan.stages]
    summed = hashlib.sha256("\n".join(digests).encode()).hexdigest()
    assert (len(digests), summed) == DIGESTS[preset]
