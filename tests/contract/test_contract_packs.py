"""A packed study gives equal tables and figures after a merge without data and models.

Its runs can also be exported in a schema that others read.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import cases
from contract_studies import STUDIES

from benchmarks.compare_results import MACHINE, compare
from tasktransfer.cli import main
from tasktransfer.results.study import Study
from validated_exports import validated

pytestmark = pytest.mark.slow

DIALOGUES = tuple(f"figures/one_dialogue.{end}" for end in ("csv", "md", "tex", "parquet", "html"))
"""Files that show dialogues, which no pack contains."""
REPORT = "report.html"
"""File that other tests of the same study write."""


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
    left_out = (*DIALOGUES, REPORT)
    assert {name: how for name, how in differing.items() if name not in left_out} == {}


@cases([(design,) for design in STUDIES])
def test_its_runs_are_what_every_eval_ever_reads(study: Study) -> None:
    assert main(["export", "--config", "study.yaml", "--out", "eee", "--by", "A lab"]) == 0
    code, seen = validated(Path("eee"))
    assert code == 0, [file for file in seen if not file["valid"] or file["warnings"]]
    assert sum(file["file_type"] == "aggregate" for file in seen) == len(study.plan.runs)
