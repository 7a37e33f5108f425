"""Trace of a cell: its numbers, its records, and the text."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from study_records import write_records, write_stage
from tasktransfer.cli import main
from tasktransfer.core.runs import Run
from tasktransfer.designs import open_study
from tasktransfer.designs.explain import as_text, explain
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.designs.transfer.shown import build_analysis
from tasktransfer.present.numbers import format_delta
from tasktransfer.results.study import Study

ER, DNLI, TC = "emotion_recognition", "dialogue_nli", "topic_classification"
KEYS: dict[str, Any] = {
    "study": "constructed",
    "datasets": {"DailyDialog": {"tasks": [ER, DNLI, TC]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "seeds": 2,
    "multi_source": {
        "mode": "named",
        "named": [{"dataset": "DailyDialog", "target": DNLI, "sources": [ER, TC]}],
        "algorithms": ["pretrain_finetune"],
    },
}
CELL = ("DailyDialog", "tiny-bert", "multitask_finetune", "ER", "DNLI")


def opened(**keys: Any) -> Study:
    Path("study.yaml").write_text(yaml.safe_dump(KEYS | keys))
    return open_study("study.yaml")


def write_tables() -> None:
    for command in ("collect", "statistics"):
        assert main([command, "--config", "study.yaml"]) == 0


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write records, tables and statistics of a small study."""
    folder = tmp_path_factory.mktemp("explain")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_records(opened())
        write_tables()
    return folder


@pytest.fixture
def study(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    shutil.copytree(finished, tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    return opened()


def text(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["explain", *words, "--config", "study.yaml"]) == 0
    return capsys.readouterr().out


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    return json.loads(text(capsys, *words, "--json"))  # type: ignore[no-any-return]


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], Any]:
    """Return the explanation of a row, by default ``CELL``, and the row itself."""
    explanation = asked(capsys, *(words or CELL))
    (row,) = explanation["rows"]
    return explanation, row


def row_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    return explained(capsys, *words)[1]  # type: ignore[no-any-return]


def run_in(row: dict[str, Any], seed: int, *, reference: bool = False) -> dict[str, Any]:
    (run,) = [
        each
        for each in row["runs"]
        if each["names"]["seed"] == str(seed) and each["is_reference"] == reference
    ]
    return run  # type: ignore[no-any-return]


def trainings(explanation: dict[str, Any], run: dict[str, Any]) -> list[dict[str, Any]]:
    nodes = {node["digest"]: node for node in explanation["nodes"]}
    return [nodes[digest] for digest in run["nodes"]]


def runs_of(study: Study, algorithm: str, sources: tuple[str, ...]) -> list[Run]:
    return [
        run
        for run in select_transfer_runs(study.plan)
        if (run.method, run.about["sources"], run.about["target"]) == (algorithm, sources, DNLI)
    ]


def transfers_of(study: Study) -> list[Run]:
    """Return the runs of the explained cell, one per seed."""
    return runs_of(study, "multitask_finetune", (ER,))


def score(study: Study, run: Run) -> float:
    record = json.loads(Path(study.get_record_path(run.stages[-1])).read_text())
    return float(record["results"][run.about["target"]]["score"])


def test_the_number_is_that_of_the_records(study: Study, capsys: Any) -> None:
    explanation, row = explained(capsys)
    scores = [score(study, run) for run in transfers_of(study)]
    baselines = [score(study, run) for run in runs_of(study, "baseline", ())]
    means = row["means"]
    delta = (sum(scores) - sum(baselines)) / 2
    assert means["seeds"] == [0, 1]
    assert means["scores"]["score"] == pytest.approx(sum(scores) / 2)
    assert means["scores"]["reference"] == pytest.approx(sum(baselines) / 2)
    assert means["scores"]["delta"] == pytest.approx(delta)
    assert means["scores"]["improvement"] == pytest.approx(100 * 2 * delta / sum(baselines))
    assert [each["score"] for each in means["by_seed"].values()] == scores
    assert [each["delta"] for each in means["by_seed"].values()] == [
        pytest.approx(t - b) for t, b in zip(scores, baselines, strict=True)
    ]
    assert all(node["in_plan"] for node in explanation["nodes"])
    assert row["numbers"]["delta"] == pytest.approx(delta)


def test_interval_and_test_are_those_of_the_statistics(study: Study, capsys: Any) -> None:
    cells = pd.read_parquet(Path(study.tables, "cells.parquet"))
    (expected,) = cells[
        (cells.algorithm == "multitask_finetune") & (cells.source == ER) & (cells.target == DNLI)
    ].to_dict("records")
    explanation, row = explained(capsys)
    for key in ("low", "high", "p", "q", "delta", "score", "instances", "significant"):
        assert row["numbers"][key] == pytest.approx(expected[key])
    assert row["up_to_date"]
    single = cells[cells.n_sources == 1]
    (family,) = [note for note in explanation["notes"] if note.startswith("q is ")]
    assert len(single) == 18
    assert "for 18 single-source cells of DailyDialog" in family
    assert f"significant cells among them is {int(single.significant.sum())}." in family
    several = asked(capsys, "DailyDialog", "tiny-bert", "pretrain_finetune", "TC+ER", "DNLI")
    assert several["rows"][0]["names"]["source"] == f"{ER}+{TC}"
    assert "for 1 multi-source cell of" in " ".join(several["notes"])


def test_the_significance_of_the_statistics_is_reported(study: Study, capsys: Any) -> None:
    explanation = explain(study, build_analysis(study), CELL)
    (row,) = explanation.rows
    for significant, word in ((False, "no"), (True, "yes")):
        numbers = {**row.numbers, "q": None, "significant": significant}
        told = as_text(replace(explanation, rows=(replace(row, numbers=numbers),)))
        assert re.search(f"  significant +{word} +q <= 0.05 with several seeds", told)
        assert re.search("  q +none +p adjusted .* NaN with one seed", told)


def test_trainings_come_in_order_with_their_parents(study: Study, capsys: Any) -> None:
    run = transfers_of(study)[1]
    explanation, row = explained(capsys)
    first, second = trainings(explanation, run_in(row, 1))
    assert [first["node"]["step"], second["node"]["step"]] == ["multitask", "finetune"]
    assert (first["node"]["parents"], second["node"]["parents"]) == ([], [first["digest"]])
    assert second["digest"] == run.stages[-1].digest
    assert second["record"] == study.get_record_path(run.stages[-1])
    assert second["log"] == f"{study.get_node_folder(run.stages[-1])}/train.log"
    assert second["content"] == json.loads(Path(second["record"]).read_text())
    (baseline,) = trainings(explanation, run_in(row, 1, reference=True))
    assert baseline["node"]["step"] == "baseline"


def test_the_text_names_all_of_it(study: Study, capsys: Any) -> None:
    said, explanation = text(capsys, *CELL), asked(capsys, *CELL)
    (row,) = explanation["rows"]
    numbers, means = row["numbers"], row["means"]
    wanted = [
        format_delta(means["scores"]["delta"]),
        *(f"{numbers[key]:.6g}" for key in ("low", "high", "p", "q")),
        "lower end of the 95 % interval of delta",
        "Benjamini-Hochberg for 18 single-source cells of DailyDialog",
        "0" * 40 + ", with uncommitted changes",
        f"config digest {study.config.digest}",
        "SYNTHETIC (tiny world): generated dialogues",
        "learning_rate 3e-05",
    ]
    for node in explanation["nodes"]:
        wanted += [node["digest"], node["record"], node["log"]]
        wanted += [node["content"]["rows"]["sha256"], *node["commands"]]
    assert len(explanation["nodes"]) == 6
    assert [line for line in wanted if line not in said] == []
    assert "outdated" not in said


def test_a_baseline_has_a_score_and_no_delta(study: Study, capsys: Any) -> None:
    row = row_of(capsys, "DailyDialog", "tiny-bert", "baseline", DNLI)
    baselines = [score(study, run) for run in runs_of(study, "baseline", ())]
    assert row["means"]["scores"]["score"] == pytest.approx(sum(baselines) / 2)
    assert row["means"]["scores"]["delta"] is None
    assert row["numbers"] == {}
    assert "mean of 2 of 2 seeds" in text(capsys, "DailyDialog", "tiny-bert", "baseline", "DNLI")


def test_a_missing_seed_is_shown_with_its_state(study: Study, capsys: Any) -> None:
    run = transfers_of(study)[1]
    folder = Path(study.get_node_folder(run.stages[-1]))
    (folder / "metrics.json").unlink()
    (folder / "train.log").write_text("Traceback (most recent call last):\nerror: out of paper\n")
    explanation, row = explained(capsys)
    means = row["means"]
    assert means["seeds"] == [0]
    # The baseline of the missing seed does not count.
    assert means["references"] == 1
    assert means["scores"]["delta"] == pytest.approx(means["by_seed"]["0"]["delta"])
    lost = run_in(row, 1)
    assert (lost["score"], lost["state"], means["by_seed"]["1"]["delta"]) == (None, "failed", None)
    assert lost["reason"] == "failed: out of paper"
    nodes = trainings(explanation, lost)
    assert [node["state"] for node in nodes] == ["done", "failed"]
    assert nodes[1]["error"] == "out of paper"
    assert not row["up_to_date"]
    said = text(capsys, *CELL)
    assert "run: failed: out of paper" in said
    assert "mean of 1 of 2 seeds" in said
    assert "numbers are outdated, see the notes" in said
    assert "recompute it: snakemake figures_now" in " ".join(said.split())


def test_a_failed_parent_is_named(study: Study, capsys: Any) -> None:
    run = transfers_of(study)[0]
    for stage in run.stages:
        (Path(study.get_node_folder(stage)) / "metrics.json").unlink()
    Path(study.get_node_folder(run.stages[-1]), "train.log").unlink()
    Path(study.get_node_folder(run.stages[0]), "train.log").write_text("error: no memory\n")
    explanation = asked(capsys, *CELL)
    lost = run_in(explanation["rows"][0], 0)
    assert lost["reason"] == "its parent DNLI+ER failed: no memory"
    nodes = trainings(explanation, lost)
    assert [node["state"] for node in nodes] == ["failed", "waiting"]


def test_a_damaged_record_is_no_number(study: Study, capsys: Any) -> None:
    record = Path(study.get_record_path(transfers_of(study)[0].stages[-1]))
    record.write_text("{")
    explanation, row = explained(capsys)
    assert row["means"]["seeds"] == [1]
    lost = run_in(row, 0)
    assert lost["reason"].startswith(f"damaged: {record}: The record is not valid JSON")
    assert trainings(explanation, lost)[1]["state"] == "damaged"


def test_a_missing_baseline_leaves_a_score_without_a_delta(study: Study, capsys: Any) -> None:
    for run in runs_of(study, "baseline", ()):
        shutil.rmtree(study.get_node_folder(run.stages[-1]))
    row = row_of(capsys)
    assert row["means"]["scores"]["delta"] is None
    assert {run["state"] for run in row["runs"] if run["is_reference"]} == {"waiting"}
    assert "mean of 0 of 2 seeds" in text(capsys, *CELL)


def test_records_without_tables_and_statistics(study: Study, capsys: Any) -> None:
    before = row_of(capsys)
    shutil.rmtree(study.tables)
    explanation, row = explained(capsys)
    assert row["means"] == before["means"]
    assert (row["numbers"], row["up_to_date"]) == ({}, None)
    notes = " ".join(explanation["notes"])
    assert "do not contain these runs. Run `tasktransfer collect` again" in notes
    assert "no interval and no test" in notes


def test_a_changed_record_outdates_the_statistics(study: Study, capsys: Any) -> None:
    run = transfers_of(study)[0]
    write_stage(study, run.stages[-1], lambda run: 0.9)
    row = row_of(capsys)
    assert not row["up_to_date"]
    assert run_in(row, 0)["score"] == score(study, run)


def test_a_cell_that_the_config_lost_is_explained_from_the_tables(
    study: Study, capsys: Any
) -> None:
    before = asked(capsys, *CELL)
    opened(algorithms=["multitask"])
    explanation = asked(capsys, *CELL)
    (row,), (earlier,) = explanation["rows"], before["rows"]
    assert row["means"] == earlier["means"]
    assert [run["nodes"] for run in row["runs"]] == [run["nodes"] for run in earlier["runs"]]
    transfers = [run for run in row["runs"] if not run["is_reference"]]
    for node in (node for run in transfers for node in trainings(explanation, run)):
        assert (node["in_plan"], node["commands"]) == (False, [])
    assert "current plan does not contain these runs" in " ".join(explanation["notes"])


def test_a_cell_that_was_never_run_is_explained_from_the_plan(study: Study, capsys: Any) -> None:
    opened(training={"epochs": 2})
    explanation, row = explained(capsys)
    assert row["means"]["seeds"] == []
    assert {run["state"] for run in row["runs"]} == {"waiting"}
    assert "other runs of this kind than the current plan" in " ".join(explanation["notes"])
    assert not row["up_to_date"]


def test_absent_data_are_named_and_the_tables_used(study: Study, capsys: Any) -> None:
    before = row_of(capsys)
    Path("study.yaml").write_text(yaml.safe_dump(KEYS | {"data": {"release": "nowhere"}}))
    explanation = asked(capsys, *CELL)
    assert explanation["rows"][0]["means"] == before["means"]
    assert "nowhere" in " ".join(explanation["notes"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Dailydialogue", *CELL[1:]], "Did you mean 'DailyDialog'? Choose from"),
        (["DailyDialog", "bert", *CELL[2:]], "No run is named 'bert'. Did you mean 'tiny-bert'?"),
        ([*CELL[:2], "multitsk", "ER", "DNLI"], "Did you mean 'multitask'"),
        ([*CELL[:3], "emotion_recogniton", "DNLI"], "Did you mean 'emotion_recognition'"),
        ([*CELL[:3], "ER", "DLI"], "dialogue_nli (DNLI)"),
        ([*CELL[:3], "DNLI"], "Select one cell with DATASET MODEL ALGORITHM SOURCE TARGET"),
        ([*CELL[:3], "ER", "DNLI", "TC"], "DNLI TC. Leave out 'TC'"),
        ([*CELL[:2], "baseline", "ER", "DNLI"], "No run has all of DailyDialog tiny-bert baseline"),
        ([*CELL[:3], "ER", "ER"], "'ER' could be dialogue_nli (DNLI), topic_classification (TC)"),
        ([*CELL[:3], "ER+TC", "DNLI"], "'ER+TC' could be emotion_recognition (ER), topic_classif"),
    ],
)
def test_unknown_names_are_refused_with_the_known(
    study: Study, capsys: Any, words: list[str], said: str
) -> None:
    capsys.readouterr()
    assert main(["explain", *words, "--config", "study.yaml"]) == 2
    assert said in capsys.readouterr().err


def test_names_may_be_short_long_and_of_any_case(study: Study, capsys: Any) -> None:
    words = ("dailydialog", "TINY-BERT", "Multitask_Finetune", ER, "dnli")
    assert asked(capsys, *words) == asked(capsys, *CELL)


def test_a_reference_is_explained_by_its_model_and_target(study: Study, capsys: Any) -> None:
    opened(references=["tfidf_logistic", "frozen_logistic"])
    for words in (("frozen_logistic", "tiny-bert", "dnli"), ("frozen_logistic", DNLI)):
        (run,) = row_of(capsys, *words)["runs"]
        assert (run["names"]["reference"], run["state"]) == ("frozen_logistic", "waiting")
    assert main(["explain", "frozen_logistic", "act", "--config", "study.yaml"]) == 2


@pytest.mark.parametrize(
    ("printed", "word"),
    [
        ("fine_tuning", "baseline"),
        ("Fine-tuning", "baseline"),
        ("frozen embeddings with nearest neighbour", "nearest_neighbour"),
    ],
)
def test_a_method_is_explained_by_its_printed_name(
    study: Study, capsys: Any, printed: str, word: str
) -> None:
    opened(references=["nearest_neighbour"])
    expected = row_of(capsys, word, "tiny-bert", "DNLI")
    assert row_of(capsys, printed, "tiny-bert", "DNLI") == expected
    assert {run["names"]["method"] for run in expected["runs"]} <= {"baseline", "reference"}


def test_the_order_tells_source_and_target_apart(study: Study, capsys: Any) -> None:
    there = row_of(capsys, *CELL[:3], "ER", "DNLI")["names"]
    back = row_of(capsys, *CELL[:3], "DNLI", "ER")["names"]
    assert (there["source"], there["target"]) == (back["target"], back["source"]) == (ER, DNLI)
    mixed = row_of(capsys, "ER", "multitask_finetune", "DNLI", "tiny-bert", "DailyDialog")
    assert mixed["names"] == there


def test_a_cell_of_one_training_has_an_interval_but_no_test(study: Study, capsys: Any) -> None:
    opened(seeds=1)
    write_tables()
    row = row_of(capsys)
    assert row["numbers"]["n_seeds"] == 1 and row["numbers"]["low"] < row["numbers"]["high"]
    assert not {"p", "q", "significant"} & {*row["numbers"]}
    assert "has one seed, so its interval is over test dialogues only" in text(capsys, *CELL)


def test_a_row_lists_only_the_baselines_that_it_uses(study: Study, capsys: Any) -> None:
    """Further seeds of the baselines have no transfer run that they are compared with."""
    study = opened(baseline_seeds=3)
    write_records(study)
    write_tables()
    for table in ("table2", "summary"):
        row = row_of(capsys, table, "DailyDialog", "tiny-bert", "multitask_finetune")
        assert {run["names"]["seed"] for run in row["runs"]} == {"0", "1"}
        assert row["source_runs"] == 2 * (6 + 3)
