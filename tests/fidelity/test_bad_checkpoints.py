"""Checkpoints that would silently give wrong numbers, or a traceback, are refused before training.

The exit code is 4, and the message gives the file, its problem, and the remedy.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from architectures import FAMILY_OF, write_checkpoint
from checkpoint_damage import Bad
from damaged_checkpoints import CASES
from releases import tiny_release
from tasktransfer.cli import main


def study_of(folder: Path, case: Bad) -> str:
    """Write the config file of a study with one model."""
    config = folder.parent / "config.yaml"
    family = case.family or FAMILY_OF[case.architecture]
    config.write_text(
        f"study: bad\nresults: {folder.parent}/results\ndatasets: {{DailyDialog: {{}}}}\n"
        f"models: [{{name: m, family: {family}, checkpoint: {folder}, "
        f"max_length: {case.max_length}}}]\n"
    )
    return str(config)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bad_checkpoint_is_refused_with_its_remedy(
    case: Bad, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_checkpoint(case.architecture, tmp_path / "model", **case.settings)
    case.damage(folder)
    config = study_of(folder, case)
    capsys.readouterr()
    assert main(["validate", "--config", config]) == 4
    told = capsys.readouterr().err
    (message,) = [line for line in told.splitlines() if line.startswith("error: ")]
    assert str(folder) in message
    assert re.search(case.message, message), message
    for riddle in ("Traceback", "trust_remote_code", "above report", "AlbertConfig"):
        assert riddle not in told
    assert len(message) < 1500


def test_a_file_for_a_checkpoint_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Bad("file", "bert", "")
    file = write_checkpoint("bert", tmp_path / "model") / "model.safetensors"
    assert main(["validate", "--config", study_of(file, case)]) == 4
    assert f"The folder {file} does not exist. Put the checkpoint there" in capsys.readouterr().err


def test_what_is_not_bad_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """This excludes that the command refuses everything."""
    case = Bad("good", "bert", "")
    folder = write_checkpoint("bert", tmp_path / "model")
    assert main(["validate", "--config", study_of(folder, case)]) == 0
    assert (
        "The checkpoint lacks pooler.dense, which is initialised at random"
        in capsys.readouterr().err
    )


def test_a_tokenizer_that_does_not_know_the_studys_words_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_release("DailyDialog").write(tmp_path / "release")
    letters = ["ж щ ю", "ж щ ю я"]  # none of the release's
    folder = write_checkpoint("bert", tmp_path / "model", letters)
    config = Path(study_of(folder, Bad("words", "bert", "")))
    config.write_text(config.read_text() + f"data: {{release: {tmp_path}/release}}\n")
    instances = tmp_path / "results" / "instances"
    asked = ["--config", str(config), "--dataset", "DailyDialog"]

    def encode(*more: str) -> int:
        return main(["encode", *asked, "--model", "m", "--out", str(tmp_path / "ids"), *more])

    from tasktransfer.designs import open_study  # noqa: PLC0415

    instances = open_study(config).get_instances_folder("DailyDialog")
    assert main(["data", "prepare", *asked, "--out", instances]) == 0
    capsys.readouterr()
    assert encode() == 4
    told = capsys.readouterr().err
    assert re.search(r"maps \d+\.\d% of the study's words to the unknown token", told)
    assert "models.max_unknown_words allows 5.0%" in told
    assert not (tmp_path / "ids").exists()
    model = f"name: m, family: encoder, checkpoint: {folder}, max_length: 128, max_unknown_words: 1"
    assert encode("--set", f"models=[{{{model}}}]") == 0


@pytest.mark.parametrize("damage", ["{", '{"num_hidden_layers": 1000000}', "[]"])
def test_a_bad_checkpoint_of_another_design_is_refused(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_checkpoint("bert", tmp_path / "model")
    (folder / "config.json").write_text(damage)
    config = tmp_path / "study.yaml"
    config.write_text(
        f"study: bad\ndesign: panel\nresults: {tmp_path}/results\n"
        "domains: [Harbour]\nrated_sets: [Harbour_Tiny]\npairs: {labels: made}\n"
        f"models: [{{name: m, family: encoder, checkpoint: {folder}, max_length: 64}}]\n"
    )
    assert main(["validate", "--config", str(config)]) == 4
    told = capsys.readouterr().err
    assert f"error: {folder}: " in told
    assert "Traceback" not in told
