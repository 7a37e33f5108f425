"""The digests of whole studies: results that people have stay theirs, byte for byte."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tasktransfer.designs import open_study

PRESETS = Path(__file__).parents[2] / "workflow" / "presets"

# Change these only together with RECIPE_VERSION or another version of what makes results.
DIGESTS = {
    "demo": (51, "b95e7b8aec586bc9855ec35ca5d55dd9ecd2ee511da53d764acd848521f22dbb"),
    "paper": (6435, "f79afd0256ec137eacb4bdabcbfe8094d62830d35bcb87afbc348260ea88f1f9"),
}


@pytest.mark.parametrize("preset", DIGESTS)
def test_the_stages_of_a_preset_keep_their_digests(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no release here: the revisions of its data are `unknown`
    plan = open_study(PRESETS / f"{preset}.yaml", need_inputs=False).plan
    digests = "\n".join(stage.digest for stage in plan.stages)
    assert (len(plan.stages), hashlib.sha256(digests.encode()).hexdigest()) == DIGESTS[preset]
