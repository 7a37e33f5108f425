"""Notes on truncated inputs, which a finished study prints and its report lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finished_stages import opened
from tasktransfer.designs.transfer.collect import list_truncation_notes
from tasktransfer.designs.transfer.commands import list_warnings
from tasktransfer.results.study import Study


def write_manifest(study: Study, **truncated: int) -> None:
    """Write the counts of truncated inputs, of 100 in each split."""
    stage = study.plan.stages[0]
    folder = Path(study.get_encoded_folder(stage.data, stage.model.name))
    folder.mkdir(parents=True, exist_ok=True)
    counts = {name.replace("__", "-"): count for name, count in truncated.items()}
    manifest = {"max_length": 64, "truncated": counts, "examples": dict.fromkeys(counts, 100)}
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.usefixtures("here")
def test_tasks_are_listed_if_more_than_a_tenth_is_truncated() -> None:
    study = opened()
    assert list_truncation_notes(study) == [], "no token ids"
    write_manifest(study, emotion_recognition__train=10, dialogue_nli__test=0)
    assert list_truncation_notes(study) == []
    write_manifest(study, emotion_recognition__train=11, emotion_recognition__test=40)
    (note,) = list_warnings(study)
    assert note.startswith(
        "DailyDialog with tiny-bert: Many inputs are longer than max_length (64 tokens) and are "
        "truncated: 40 % for emotion_recognition. Raise models[].max_length."
    )
