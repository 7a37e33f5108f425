"""Missing data of panel, empathetic and probe studies are reported before anything runs.

Plan, validate and the start of Snakemake report them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import small_corpora as sound
from tasktransfer import cli
from tasktransfer.designs import open_study
from tasktransfer.designs.panel.sources.dataset import REAL
from tasktransfer.errors import DataError
from tasktransfer.operate.missing_inputs import list_missing_inputs, require_available_data

ENCODER = {"name": "tiny", "family": "encoder", "checkpoint": "tiny", "max_length": 64}
PANEL: dict[str, Any] = {
    "study": "p",
    "design": "panel",
    "data": {"release": "corpora"},
    "models": [ENCODER],
    "domains": ["Own", "TopicalChat"],
    "rated_sets": ["Persona_USR", "FED_Turn", "DailyDialog_Gupta"],
    "pairs": {"labels": "made", "train": 10, "dev": 4},
}
LSTM = {"kind": "lstm", "embedding": 8, "units": 8}
PROBES: dict[str, Any] = {
    "study": "w",
    "design": "probes",
    "data": {"release": "corpora", "few_sample": False},
    "corpora": ["MultiWOZ"],
    "models": [{"name": "L", "family": "encoder_decoder", "architecture": LSTM}],
    "probes": {"word_vectors": "corpora/own_words/vectors.txt"},
}
SMALL = {
    "layers": 1,
    "hidden": 8,
    "heads": 2,
    "feed_forward": 8,
    "positions": 51,
    "vocabulary_size": 100,
}
EMPATHETIC: dict[str, Any] = {
    "study": "e",
    "design": "empathetic",
    "data": {"release": "corpora", "few_sample": False},
    "models": [
        {
            "name": "r",
            "family": "dual_encoder",
            "checkpoint": "built",
            "max_length": 50,
            "architecture": SMALL,
        }
    ],
    "retrieval": {"model": "r", "methods": ["base", "emoprepend-1"]},
}
OWN, GUPTA = "own/train.jsonl", "evaluation/gupta/mturk_rating_processed_output.csv"
FED = "evaluation/fed/fed_data.json"
EMOTION = "empathetic_dialogues/by_emotion/afraid.csv"


@pytest.fixture(autouse=True)
def _corpora(here: Path, datasets_of_one_test: None) -> None:
    sound.write(Path("corpora"))


def written(config: dict[str, Any]) -> str:
    Path("study.yaml").write_text(yaml.safe_dump(config))
    return "study.yaml"


def gone(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def first_line(file: Path) -> None:
    """Keep the header only, or one dialogue."""
    file.write_bytes(file.read_bytes().partition(b"\n")[0] + b"\n")


def silent(file: Path) -> None:
    """Make all texts empty."""
    content = json.loads(file.read_bytes())
    for chat in content.values():
        for turn in chat.get("content") or chat.get("log"):
            turn["message" if "message" in turn else "text"] = ""
    file.write_text(json.dumps(content))


def all_silent(file: Path) -> None:
    for each in file.parent.glob("*.json"):
        silent(each)


def leaked(file: Path) -> None:
    """Replace the training dialogues by those of the test split."""
    file.write_bytes(sound.FILES["multiwoz20/test.json"])


@pytest.mark.parametrize("config", [PANEL, PROBES, EMPATHETIC], ids=lambda one: one["design"])
def test_sound_data_is_complete(config: dict[str, Any]) -> None:
    assert list_missing_inputs(open_study(written(config))) == ()


JUDGED = PROBES | {"probes": {"human_judgements": "corpora/judgements/ties.csv"}}
CASES: list[tuple[dict[str, Any], str, Callable[[Path], None], str]] = [
    (PANEL, FED, gone, "read from evaluation/fed/fed_data.json. .*remove 'FED_Turn' from rated_"),
    (PANEL, FED, empty, "fed_data.json:1:1: The file is empty. Fetch"),
    (PANEL, GUPTA, empty, "processed_output.csv:1: The file is empty"),
    (PANEL, GUPTA, first_line, "DailyDialog_Gupta has 0 items of 0 contexts.* from rated_"),
    (PANEL, OWN, gone, "own/train.jsonl, own/dev.jsonl. .*remove 'Own' from domains"),
    (
        PANEL,
        OWN,
        empty,
        "train.jsonl: .* has 0 dialogues in the split train, .* or remove Own from domains",
    ),
    (
        PANEL,
        OWN,
        first_line,
        "train.jsonl: The domain Own has 1 dialogue in the split train, .*Provide at least 2",
    ),
    (PANEL, "topical_chat/valid_freq.json", all_silent, "TopicalChat has 0 dialogues in the"),
    (
        PROBES,
        "multiwoz20/val.json",
        all_silent,
        "no instances of 'MultiWOZ_reply' in .* remove 'MultiWOZ' from corp",
    ),
    (PROBES, "multiwoz20/val.json", empty, "val.json:1:1: The file is empty. Fetch"),
    (PROBES, "own_words/vectors.txt", gone, "vectors.txt: The file of probes.word_vec"),
    (
        PROBES,
        "own_words/vectors.txt",
        empty,
        "vectors.txt: The file of probes.word_vectors is empty",
    ),
    (JUDGED, "judgements/ties.csv", gone, "The file of probes.human_judgements does not exist"),
    (JUDGED, "multiwoz20/train.json", leaked, "Dialogue 'test0.json' is in train and in test"),
    (
        EMPATHETIC,
        EMOTION,
        first_line,
        "afraid.csv: The file contains no dialogue. Copy the whole release again.",
    ),
]


@pytest.mark.parametrize(
    ("config", "name", "damage", "told"),
    [
        pytest.param(*case, id=f"{case[0]['design']}: {Path(case[1]).name} {case[2].__name__}")
        for case in CASES
    ],
)
def test_it_is_reported_before_anything_runs(
    config: dict[str, Any],
    name: str,
    damage: Callable[[Path], None],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(Path("corpora", name))
    file = written(config)
    with pytest.raises(DataError, match=told):
        require_available_data(open_study(file))  # what the Snakefile asks
    assert cli.main(["validate", "--config", file]) == 3
    assert capsys.readouterr().err.startswith("error: ")
    assert cli.main(["plan", "--config", file]) == 0
    assert "CANNOT BE RUN: " in capsys.readouterr().out


def test_what_is_missing_of_several_is_told_at_once() -> None:
    for name in (FED, GUPTA, OWN):
        empty(Path("corpora", name))
    Path("corpora/topical_chat/valid_rare.json").unlink()
    messages = list_missing_inputs(open_study(written(PANEL)))
    assert len(messages) == 4
    assert {name for name in ("FED_Turn", "Gupta") for text in messages if name in text} <= {
        "FED_Turn", "Gupta",
    }  # fmt: skip


def test_what_the_study_does_not_read_is_not_looked_at() -> None:
    empty(Path("corpora/evaluation/usr/persona_usr.json"))
    assert (
        list_missing_inputs(open_study(written({**PANEL, "rated_sets": ["FED_Turn", "ConTurE"]})))
        == ()
    )


def test_a_release_is_read_once_and_by_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(PANEL)
    assert list_missing_inputs(open_study(file)) == ()
    with monkeypatch.context() as patched:
        patched.delattr(type(REAL), "_read_instances")
        assert list_missing_inputs(open_study(file)) == ()
    empty(Path("corpora", FED))
    assert len(list_missing_inputs(open_study(file))) == 1
