"""The commands ``ls`` and ``cp``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tasktransfer import cli
from tasktransfer.cli.listing import LISTS, PRESETS, PURPOSES
from tasktransfer.datasets import ALL_TASKS
from tasktransfer.designs import load_config
from tasktransfer.selection.methods import SELECTORS


def listed(kind: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    assert cli.main(["ls", kind, "--json"]) == 0
    rows: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return rows


@pytest.mark.parametrize("kind", LISTS)
def test_every_row_has_all_its_texts(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed(kind, capsys)
    assert rows
    assert all(text for row in rows for key, text in row.items() if key != "checkpoint")
    assert cli.main(["ls", kind]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 1


def test_everything_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(listed("tasks", capsys)) == len(ALL_TASKS)
    assert {row["selector"] for row in listed("selectors", capsys)} == set(SELECTORS)
    assert {row["design"] for row in listed("designs", capsys)} >= set(PURPOSES)
    presets = listed("presets", capsys)
    assert {row["preset"] for row in presets} == {file.stem for file in PRESETS.glob("*.yaml")}
    assert all(row["purpose"].endswith(".") for row in presets)


def test_a_preset_is_copied_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new" / "study.yaml"
    assert cli.main(["cp", "demo", str(file)]) == 0
    assert load_config(file).study == "demo"
    assert "shares the folder results/demo" in capsys.readouterr().out
    file.write_text("mine")
    assert cli.main(["cp", "demo", str(file)]) == 2
    assert "The file exists" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert cli.main(["cp", "papr", str(file)]) == 2
    assert "Did you mean 'paper'" in capsys.readouterr().err
    assert cli.main(["cp", "demo.yaml", str(tmp_path)]) == 0
    assert (tmp_path / "demo.yaml").exists()
