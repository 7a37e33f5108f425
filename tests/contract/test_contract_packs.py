"""A finished study is packed, merged elsewhere and gives equal tables and figures there, where
neither data nor models are."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import cases
from contract_studies import STUDIES

from benchmarks.compare_results import MACHINE, compare
from tasktransfer.cli import main
from tasktransfer.results.study import Study

DIALOGUES = tuple(f"figures/one_dialogue.{end}" for end in ("csv", "md", "tex", "parquet", "html"))
"""What shows dialogues themselves, which no pack holds."""


@cases([(design,) for design in STUDIES])
def test_a_packed_study_gives_equal_tables_and_figures_elsewhere(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack, here = tmp_path / "study.parquet", Path.cwd()
    elsewhere = tmp_path / "elsewhere"
    assert main(["pack", "--config", "study.yaml", "--out", str(pack), "--with-text"]) == 0
    elsewhere.mkdir()
    (elsewhere / "study.yaml").write_text((here / "study.yaml").read_text())
    monkeypatch.chdir(elsewhere)
    for words in (["merge", str(pack)], ["collect", "--complete"], ["statistics"], ["figures"]):
        assert main([words[0], "--config", "study.yaml", *words[1:]]) == 0, words
    differing = compare(here / "results", elsewhere / "results", 0.0, MACHINE)
    assert {name: how for name, how in differing.items() if name not in DIALOGUES} == {}
