"""`snakemake -n` reports missing data of a study within seconds, like `plan` and `validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from forked_snakemake import run_snakemake

import small_corpora as sound

ROOT = Path(__file__).resolve().parents[2]
LSTM = {"kind": "lstm", "embedding": 8, "units": 8}
DATA = {"release": "corpora", "few_sample": False}
PANEL: dict[str, Any] = {
    "study": "p",
    "design": "panel",
    "data": DATA,
    "models": [{"name": "tiny", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    "domains": ["Own"],
    "rated_sets": ["Persona_USR", "FED_Turn"],
    "pairs": {"labels": "made", "train": 10, "dev": 4},
}
PROBES: dict[str, Any] = {
    "study": "w",
    "design": "probes",
    "data": DATA,
    "corpora": ["MultiWOZ"],
    "models": [{"name": "L", "family": "encoder_decoder", "architecture": LSTM}],
    "probes": {"human_judgements": "corpora/judgements/ties.csv"},
}


@pytest.mark.parametrize(
    ("config", "name", "content", "told"),
    [
        (PANEL, "evaluation/fed/fed_data.json", None, "remove 'FED_Turn' from rated_sets"),
        (PANEL, "own/train.jsonl", b"", "Own has 0 dialogues in the split train"),
        (PROBES, "judgements/ties.csv", None, "The file of probes.human_judgements does not exist"),
        (
            PROBES,
            "multiwoz20/train.json",
            sound.FILES["multiwoz20/test.json"],
            "Dialogue 'test0.json' is in train and in test (12 in all)",
        ),
    ],
    ids=["a set gone", "a domain empty", "judgements gone", "test in training"],
)
def test_a_dry_run_says_what_is_missing_from_the_data(
    config: dict[str, Any], name: str, content: bytes | None, told: str, tmp_path: Path
) -> None:
    sound.write(tmp_path / "corpora")
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(config))
    if content is None:
        (tmp_path / "corpora" / name).unlink()
    else:
        (tmp_path / "corpora" / name).write_bytes(content)
    words = ("--snakefile", ROOT / "Snakefile", "--configfile", "study.yaml")
    done = run_snakemake(["-n", "--cores", "1", *words], tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert told in said
    assert "Traceback" not in said
