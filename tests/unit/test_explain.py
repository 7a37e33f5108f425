"""Trace of a cell: its numbers, its records, and the text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from study_records import write_records, write_stage
from tasktransfer.cli import main
from tasktransfer.core.runs import Run
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.runs import transfer_runs
from tasktransfer.present.numbers import format_delta, format_interval, format_named_p
from tasktransfer.results.state import claim
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


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write records, tables and statistics of a small study."""
    folder = tmp_path_factory.mktemp("explain")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_records(opened())
        for command in ("collect", "statistics"):
            assert main([command, "--config", "study.yaml"]) == 0
    return folder


@pytest.fixture
def study(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    shutil.copytree(finished, tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    return opened()


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    code = main(["explain", *words, "--config", "study.yaml", "--json"])
    said = capsys.readouterr()
    assert code == 0, said.err
    return json.loads(said.out)  # type: ignore[no-any-return]


def text(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["explain", *words, "--config", "study.yaml"]) == 0
    return capsys.readouterr().out


def runs_of(study: Study, algorithm: str, sources: tuple[str, ...]) -> list[Run]:
    return [
        run
        for run in transfer_runs(study.plan)
        if (run.method, run.about["sources"], run.about["target"]) == (algorithm, sources, DNLI)
    ]


def score(study: Study, run: Run) -> float:
    record = json.loads(Path(study.record(run.stages[-1])).read_text())
    return float(record["results"][run.about["target"]]["score"])


def test_the_number_is_that_of_the_records(study: Study, capsys: Any) -> None:
    facts = asked(capsys, *CELL)
    transfers = [score(study, run) for run in runs_of(study, "multitask_finetune", (ER,))]
    baselines = [score(study, run) for run in runs_of(study, "baseline", ())]
    number = facts["number"]
    assert number["seeds"] == [0, 1]
    assert number["score"] == pytest.approx(sum(transfers) / 2)
    assert number["baseline_score"] == pytest.approx(sum(baselines) / 2)
    assert number["delta"] == pytest.approx((sum(transfers) - sum(baselines)) / 2)
    assert number["improvement"] == pytest.approx(
        100 * (sum(transfers) - sum(baselines)) / sum(baselines)
    )
    assert [seed["score"] for seed in facts["seeds"]] == transfers
    assert [seed["delta"] for seed in facts["seeds"]] == [
        pytest.approx(t - b) for t, b in zip(transfers, baselines, strict=True)
    ]
    assert facts["in_plan"]
    assert facts["in_tables"]


def test_interval_and_test_are_those_of_the_statistics(study: Study, capsys: Any) -> None:
    from tasktransfer.designs.transfer.collect.results import read_statistic  # noqa: PLC0415

    cells = read_statistic(Path(study.tables), "cells")
    (row,) = cells[
        (cells.algorithm == "multitask_finetune") & (cells.source == ER) & (cells.target == DNLI)
    ].to_dict("records")
    said = asked(capsys, *CELL)["statistics"]
    for key in ("low", "high", "p", "q", "delta"):
        assert said[key] == pytest.approx(row[key])
    assert said["significant"] == row["significant"]
    assert said["up_to_date"]
    single = cells[cells.n_sources == 1]
    assert said["family"]["tests"] == len(single) == 18
    assert said["family"]["significant"] == int(single.significant.sum())
    several = asked(capsys, "DailyDialog", "tiny-bert", "pretrain_finetune", "TC+ER", "DNLI")
    assert several["sources"] == [ER, TC]
    assert several["statistics"]["family"]["tests"] == 1


def test_of_one_training_nothing_is_called_significant(study: Study, capsys: Any) -> None:
    from tasktransfer.designs.transfer.explain.text import as_text  # noqa: PLC0415

    facts = asked(capsys, *CELL)
    alone = {"seeds": [0], "q": None, "significant": False}
    said = as_text({**facts, "statistics": facts["statistics"] | alone})
    assert ": one run only, variation between seeds unknown" in said
    assert "significant" not in said
    facts["statistics"] |= {"significant": True}
    assert ": significant at q <= 0.05" in as_text(facts)


def test_trainings_come_in_order_with_their_parents(study: Study, capsys: Any) -> None:
    run = runs_of(study, "multitask_finetune", (ER,))[1]
    seed = asked(capsys, *CELL)["seeds"][1]
    first, second = seed["trainings"]
    assert [first["kind"], second["kind"]] == ["multitask", "finetune"]
    assert (first["parents"], second["parents"]) == ([], [first["digest"]])
    assert second["digest"] == run.stages[-1].digest
    assert second["record"] == study.record(run.stages[-1])
    assert second["log"] == f"{study.folder(run.stages[-1])}/train.log"
    assert second["rows"]["path"].endswith("rows.parquet")
    record = json.loads(Path(second["record"]).read_text())
    assert second["rows"]["sha256"] == record["rows"]["sha256"]
    assert (second["commit"], second["dirty"]) == ("0" * 40, True)
    assert second["versions"]["torch"] == "2.13.0"
    assert second["config_digest"] == study.config.digest
    assert [training["kind"] for training in seed["baseline_trainings"]] == ["baseline"]


def test_the_text_names_all_of_it(study: Study, capsys: Any) -> None:
    said, facts = text(capsys, *CELL), asked(capsys, *CELL)
    number, sure = facts["number"], facts["statistics"]
    wanted = [
        f"{format_delta(number['delta'])} points",
        f"{format_interval(sure['low'], sure['high'], '+.2f')} (95 %, over 2 seeds and 20 "
        "dialogues (40 test instances))",
        f"{format_named_p('p', sure['p'])}, {format_named_p('q', sure['q'])}",
        "Benjamini-Hochberg over 18 single-source cells of DailyDialog",
        "0" * 40 + ", with uncommitted changes",
        f"config digest {study.config.digest}",
        "SYNTHETIC: trained on generated dialogues",
        "learning_rate 3e-05",
    ]
    for seed in facts["seeds"]:
        for training in (*seed["trainings"], *seed["baseline_trainings"]):
            wanted += [training["digest"], training["record"], training["log"]]
            wanted += [training["rows"]["sha256"], *training["commands"]]
    assert [line for line in wanted if line not in said] == []
    assert "up to date" not in said
    assert "outdated" not in said


def test_a_baseline_has_a_score_and_no_delta(study: Study, capsys: Any) -> None:
    facts = asked(capsys, "DailyDialog", "tiny-bert", "baseline", DNLI)
    baselines = [score(study, run) for run in runs_of(study, "baseline", ())]
    assert facts["number"]["score"] == pytest.approx(sum(baselines) / 2)
    assert facts["statistics"] is None
    assert "delta" not in facts["number"]
    assert "mean of 2 of 2 seeds" in text(capsys, "DailyDialog", "tiny-bert", "baseline", "DNLI")


# --- missing records ------------------------------------------------------------------------------


def test_a_missing_seed_is_shown_with_its_state(study: Study, capsys: Any) -> None:
    run = runs_of(study, "multitask_finetune", (ER,))[1]
    folder = Path(study.folder(run.stages[-1]))
    (folder / "metrics.json").unlink()
    (folder / "train.log").write_text("Traceback (most recent call last):\nerror: out of paper\n")
    facts = asked(capsys, *CELL)
    assert facts["number"]["seeds"] == [0]
    # The baseline of the missing seed does not count.
    assert facts["number"]["baselines"] == 1
    assert facts["number"]["delta"] == pytest.approx(facts["seeds"][0]["delta"])
    lost = facts["seeds"][1]
    assert (lost["score"], lost["state"], lost["delta"]) == (None, "failed", None)
    assert lost["reason"] == "failed: out of paper"
    assert [training["state"] for training in lost["trainings"]] == ["done", "failed"]
    assert lost["trainings"][1]["error"] == "out of paper"
    assert not facts["statistics"]["up_to_date"]
    said = text(capsys, *CELL)
    assert "run: failed: out of paper" in said
    assert "mean of 1 of 2 seeds" in said
    assert "(outdated, see notes)" in said
    assert "recompute them: snakemake figures_now" in said


def test_a_failed_parent_is_named(study: Study, capsys: Any) -> None:
    run = runs_of(study, "multitask_finetune", (ER,))[0]
    for stage in run.stages:
        (Path(study.folder(stage)) / "metrics.json").unlink()
    Path(study.folder(run.stages[-1]), "train.log").unlink()
    Path(study.folder(run.stages[0]), "train.log").write_text("error: no memory\n")
    lost = asked(capsys, *CELL)["seeds"][0]
    assert lost["reason"] == "its parent DNLI+ER failed: no memory"
    assert [training["state"] for training in lost["trainings"]] == ["failed", "waiting"]


def test_running_and_interrupted_trainings(study: Study, capsys: Any) -> None:
    run = runs_of(study, "multitask_finetune", (ER,))[0]
    folder = Path(study.folder(run.stages[-1]))
    (folder / "metrics.json").unlink()
    assert asked(capsys, *CELL)["seeds"][0]["state"] == "interrupted"
    with claim(folder, print):
        assert asked(capsys, *CELL)["seeds"][0]["state"] == "running"


def test_a_damaged_record_is_no_number(study: Study, capsys: Any) -> None:
    record = Path(study.record(runs_of(study, "multitask_finetune", (ER,))[0].stages[-1]))
    record.write_text("{")
    facts = asked(capsys, *CELL)
    assert facts["number"]["seeds"] == [1]
    assert facts["seeds"][0]["reason"].startswith(f"damaged: {record}: not valid JSON")
    assert facts["seeds"][0]["trainings"][1]["state"] == "damaged"


def test_a_missing_baseline_leaves_a_score_without_a_delta(study: Study, capsys: Any) -> None:
    for run in runs_of(study, "baseline", ()):
        shutil.rmtree(study.folder(run.stages[-1]))
    facts = asked(capsys, *CELL)
    assert facts["number"]["delta"] is None
    assert {seed["baseline_state"] for seed in facts["seeds"]} == {"waiting"}
    assert "none: no seed has both" in text(capsys, *CELL)


def test_records_without_tables_and_statistics(study: Study, capsys: Any) -> None:
    before = asked(capsys, *CELL)
    shutil.rmtree(study.tables)
    facts = asked(capsys, *CELL)
    assert facts["number"] == before["number"]
    assert facts["statistics"] is None
    notes = " ".join(facts["notes"])
    assert "do not contain it; run `tasktransfer collect` again" in notes
    assert "no interval and no test" in notes


def test_a_changed_record_outdates_the_statistics(study: Study, capsys: Any) -> None:
    run = runs_of(study, "multitask_finetune", (ER,))[0]
    write_stage(study, run.stages[-1], lambda run: 0.9)
    facts = asked(capsys, *CELL)
    assert not facts["statistics"]["up_to_date"]
    assert facts["seeds"][0]["score"] == score(study, run)


def test_a_cell_that_the_config_lost_is_told_from_the_tables(study: Study, capsys: Any) -> None:
    before = asked(capsys, *CELL)
    opened(algorithms=["multitask"])
    facts = asked(capsys, *CELL)
    assert not facts["in_plan"]
    assert facts["number"] == before["number"]
    for now, then in zip(facts["seeds"], before["seeds"], strict=True):
        assert [t["digest"] for t in now["trainings"]] == [t["digest"] for t in then["trainings"]]
        assert [t["commands"] for t in now["trainings"]] == [[], []]
    assert "current plan does not contain this cell" in " ".join(facts["notes"])


def test_a_cell_that_was_never_run_is_told_from_the_plan(study: Study, capsys: Any) -> None:
    opened(training={"epochs": 2})
    facts = asked(capsys, *CELL)
    assert facts["number"]["seeds"] == []
    assert {seed["state"] for seed in facts["seeds"]} == {"waiting"}
    assert "contain other runs of this cell than the current plan" in " ".join(facts["notes"])
    assert not facts["statistics"]["up_to_date"]


def test_absent_data_are_named_and_the_tables_used(study: Study, capsys: Any) -> None:
    before = asked(capsys, *CELL)
    Path("study.yaml").write_text(yaml.safe_dump(KEYS | {"data": {"release": "nowhere"}}))
    facts = asked(capsys, *CELL)
    assert facts["number"] == before["number"]
    assert "nowhere" in " ".join(facts["notes"])


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Dailydialogue", *CELL[1:]], "did you mean 'DailyDialog'?; the study has DailyDialog"),
        (["DailyDialog", "bert", *CELL[2:]], "unknown model of DailyDialog: 'bert'"),
        ([*CELL[:2], "multitsk", "ER", "DNLI"], "did you mean 'multitask'"),
        ([*CELL[:3], "emotion_recogniton", "DNLI"], "did you mean 'emotion_recognition'"),
        ([*CELL[:3], "ER", "DLI"], "dialogue_nli (DNLI)"),
        ([*CELL[:3], "DNLI"], "multitask_finetune needs SOURCE TARGET"),
        ([*CELL[:3], "ER", "DNLI", "TC"], "needs SOURCE TARGET"),
        ([*CELL[:2], "baseline", "ER", "DNLI"], "a baseline has no source"),
        ([*CELL[:3], "ER", "ER"], "cannot be a source of itself"),
        ([*CELL[:3], "ER+TC", "DNLI"], "sources of dialogue_nli with multitask_finetune: dial"),
    ],
)
def test_unknown_names_are_refused_with_the_known(
    study: Study, capsys: Any, words: list[str], said: str
) -> None:
    said = said.removesuffix("dial")
    capsys.readouterr()
    assert main(["explain", *words, "--config", "study.yaml"]) == 2
    assert said in capsys.readouterr().err


def test_names_may_be_short_long_and_of_any_case(study: Study, capsys: Any) -> None:
    words = ("dailydialog", "TINY-BERT", "Multitask_Finetune", ER, "dnli")
    assert asked(capsys, *words) == asked(capsys, *CELL)
