"""Records of the challenge-demo preset → submit → validate → score, 2 datasets, 17 tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from challenge_study import MODEL, PRESET, trained_preset
from tasktransfer.cli import main
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.challenge.choose import choose_runs
from tasktransfer.designs.challenge.policy import Policy
from tasktransfer.designs.challenge.score import score_file
from tasktransfer.designs.challenge.submit import SubmissionOptions as Options
from tasktransfer.designs.challenge.submit import write_submission
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.results.records import read_record
from tasktransfer.results.study import Study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Return 34 trainings on a generated world."""
    return trained_preset(tmp_path_factory.mktemp("challenge"))


@pytest.mark.parametrize("dataset", DATASETS)
def test_round_trip_without_a_warning_and_with_the_records_own_metrics(
    study: Study, dataset: str, tmp_path: Path
) -> None:
    made = write_submission(study, Options(dataset, MODEL), tmp_path / "submission.zip")
    report = score_file(made.archive, study.release)
    assert report.submission.findings.errors == report.submission.findings.warnings == []
    assert list(report.tasks) == list(DATASETS[dataset].tasks)
    totals = {"baseline": 0.0, "transfer": 0.0}
    chosen = choose_runs(study, dataset, MODEL, Policy("best-dev"), all_seeds=False)
    for task, (baseline, transfer) in chosen.tasks.items():
        scored_task = report.tasks[task]
        for side, candidate, score in (
            ("baseline", baseline, scored_task.baseline),
            ("transfer", transfer, scored_task.transfer),
        ):
            (one,) = candidate.picked
            result = read_record(Path(one.record))["results"][task]
            assert score.metrics == pytest.approx(result["measures"], abs=1e-9, rel=0)
            assert score.score == pytest.approx(result["score"], abs=1e-9, rel=0)
            assert scored_task.instances == result["instances"]
            totals[side] += result["score"] / len(DATASETS[dataset].tasks)
    assert report.scores is not None
    delta = totals["transfer"] - totals["baseline"]
    assert report.scores.submission == pytest.approx(delta + 0.1 * totals["baseline"], abs=1e-9)


def test_the_commands(study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive, report = tmp_path / "a.zip", tmp_path / "report.json"
    changed = ["--set", f"results={study.config.results}"]
    changed += ["--set", f"data.release={study.release}"]
    words = ["--config", str(PRESET), *changed, "--dataset", "Friends", "--model", MODEL]
    assert main(["submit", *words, "--out", str(archive)]) == 0
    told = capsys.readouterr().out
    assert f"score it: tasktransfer score {archive} --data {study.release}" in told
    assert "(SYNTHETIC data, for practice only)" in told
    assert json.loads(archive.with_name("a.zip.json").read_text())["synthetic"] is True
    score = ["score", str(archive), "--data", study.release, "--json", str(report)]
    assert main(score) == 0
    shown = capsys.readouterr()
    assert shown.err == "" and "submission score" in shown.out
    written = json.loads(report.read_text())
    assert written["valid"] and not written["warnings"]
    assert shown.out.startswith("SYNTHETIC") and written["notes"][0].startswith("SYNTHETIC")
    assert written["synthetic"] is True


def test_records_say_their_rules_and_their_data(study: Study) -> None:
    for run in select_transfer_runs(study.plan):
        record = read_record(Path(study.get_record_path(run.stages[-1])))
        assert record["provenance"]["rules"] == "challenge"
        assert record["synthetic"] and record["few_sample"]
