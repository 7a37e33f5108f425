"""Packs of this repository, and what is built of them for comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import golden_results
from benchmarks.golden_results import EXPLAINED, FINISHED, LOG, Pack, list_packs, main


def test_every_pack_of_the_repository_has_its_preset() -> None:
    packs = list_packs()
    assert all(pack.preset.is_file() for pack in packs.values()), packs
    assert len(packs) == 14
    assert packs.keys() == EXPLAINED.keys()
    assert {pack.file.suffix for pack in packs.values()} == {".parquet", ".zip"}


def test_a_complete_pack_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "adapters").mkdir()
    (tmp_path / "adapters" / FINISHED).write_text("6.0\n")
    assert main([str(tmp_path), "--packs", "adapters"]) == 0
    assert capsys.readouterr().out == "adapters: already built\n"


@pytest.mark.slow
def test_a_pack_is_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--packs", "adapters"]) == 0
    results = tmp_path / "adapters" / "results" / "adapters"
    assert "adapters: " in capsys.readouterr().out
    assert (results / "report.html").is_file()
    assert {path.suffix for path in (results / "figures").iterdir()} >= {".png", ".csv", ".md"}
    assert len([*(results / "tables").glob("*.parquet")]) > 20
    explained = (results / "explained.txt").read_text()
    assert explained.startswith("\n$ explain table1 DailyDialog topic_classification\nTable 1")
    assert explained.endswith("\nexit code 0\n")
    assert (tmp_path / "adapters" / FINISHED).is_file()


def test_a_failed_pack_is_reported_and_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "adapters.parquet"
    broken.write_text("no table")
    preset = list_packs()["adapters"].preset
    packs = {"adapters": Pack("adapters", broken, preset)}
    monkeypatch.setattr(golden_results, "list_packs", lambda: packs)
    for _ in range(2):
        assert main([str(tmp_path / "out")]) == 1
        log = tmp_path / "out" / "adapters" / LOG
        assert f"adapters: merge failed. Read {log}." in capsys.readouterr().err
        assert str(broken) in log.read_text()
