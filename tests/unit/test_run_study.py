"""The command ``run_command``: its options, and its reading of Snakemake's output."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from finished_stages import finish_all, opened
from tasktransfer import cli
from tasktransfer.cli import run_study
from tasktransfer.cli.run_forecast import Forecast, forecast_study
from tasktransfer.cli.run_study import (
    Progress,
    Request,
    TimeLeft,
    build_snakemake_arguments,
    follow_snakemake,
    format_output_paths,
)
from tasktransfer.designs import get_design
from tasktransfer.errors import ConfigError

pytestmark = pytest.mark.usefixtures("here")

STARTED = """\
Building DAG of jobs...
Job stats:
job           count
----------  -------
baseline          2
total             3

[Fri Nov 27 10:54:13 2026]
Job 4: baseline DailyDialog/tiny-gpt/ER, seed 0
[Fri Nov 27 10:54:13 2026]
Job 7: baseline DailyDialog/tiny-gpt/TC, seed 0
"""
FAILED = """\
[Fri Nov 27 10:54:15 2026]
Error in rule baseline:
    message: baseline DailyDialog/tiny-gpt/ER, seed 0
    jobid: 4
    output: results/x/metrics.json
    log: {log} (check log file(s) for error details)
"""
ENDED = """\
Finished jobid: {job} (Rule: baseline)
{done} of 3 steps (33%) done
"""


def test_the_forecast_depends_on_the_cores_and_on_what_is_left() -> None:
    study = opened(seeds=2)
    one, two = (forecast_study(study, cores=count, gpus=count) for count in (1, 2))
    assert one is not None and two is not None
    assert (one.devices, two.devices) == (1, 2) and two.hours < one.hours
    finish_all(study)
    assert forecast_study(study, cores=1, gpus=1) is None


def test_the_forecast_is_stated_before_and_compared_after_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study, forecast = opened(), Forecast(0.25, 2, "cpu")
    assert follow_snakemake(["--version"], study, forecast) == (0, [])
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "forecast: 0.25 h on 2 cores (`tasktransfer plan` shows details)"
    assert re.fullmatch(r"took [\d.e-]+ h; forecast 0.25 h", last)
    assert forecast.format_comparison(0.21 * 3600) == "took 0.21 h; forecast 0.25 h"
    assert follow_snakemake(["--no-such-option"], study, forecast)[0] != 0
    assert "took" not in capsys.readouterr().err


def test_only_existing_outputs_are_listed() -> None:
    study = opened()
    design = get_design(study.config)
    assert format_output_paths(study, design) == ""  # for example after --until fit
    Path(study.report).parent.mkdir(parents=True, exist_ok=True)
    Path(study.report).write_text("")
    assert format_output_paths(study, design) == f"report:  {study.report}\n"


def test_the_time_left_begins_with_the_forecast() -> None:
    left = TimeLeft(opened(), Forecast(0.25, 2, "cpu")).estimate_seconds(Progress())
    assert left == pytest.approx(900, abs=5)
    assert TimeLeft(opened()).estimate_seconds(Progress()) is None


def test_no_time_is_named_after_the_estimate_has_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a run that takes longer would announce 0:00 until its end."""
    now = [100.0]
    monkeypatch.setattr(run_study.time, "monotonic", lambda: now[0])
    left = TimeLeft(opened(), Forecast(1 / 360, 2, "cpu"))  # 10 seconds
    seconds = []
    for now[0] in (100.0, 109.0, 111.0):
        seconds.append(left.estimate_seconds(Progress()))
    assert seconds == [pytest.approx(10), pytest.approx(1), None]


def read(*texts: str) -> Progress:
    progress = Progress()
    for line in "".join(texts).splitlines():
        progress.read_line(line)
    return progress


def test_jobs_are_counted() -> None:
    progress = read(STARTED)
    assert (progress.done, progress.total, progress.running) == (0, 3, {"4", "7"})
    progress = read(STARTED, ENDED.format(job=7, done=1))
    assert (progress.done, progress.running, progress.failed) == (1, {"4"}, {})
    text = progress.describe(65, 130)
    assert text == "1 of 3 jobs done (33 %), 1 running, 0 failed, 1:05 elapsed, about 2:10 left"
    assert Progress().describe(1, None) == "planning jobs"


def test_a_failed_job_is_reported_with_the_error_of_its_log(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("reading\nerror: the loss is NaN\n")
    progress = read(STARTED, FAILED.format(log=log))
    assert (set(progress.failed), progress.running) == ({"4"}, {"7"})
    assert progress.list_failures() == [f"baseline: the loss is NaN\n    {log}"]
    # Tried again by Snakemake, with success.
    progress = read(STARTED, FAILED.format(log=log), ENDED.format(job=4, done=1))
    assert progress.failed == {}


def test_output_before_the_first_job_says_why_none_began() -> None:
    progress = read("Error: cannot do that\n")
    assert progress.list_failures() == ["Error: cannot do that"]


def test_an_error_of_snakemake_after_the_first_job_is_shown() -> None:
    """Snakemake prints such an error twice, below its table of jobs."""
    progress, error = Progress(), ["WorkflowError:", "Error recording metadata (No such file)."]
    jobs = ["job      count", "-----  -------", "fit          3", "total        3", ""]
    for line in ["Building DAG of jobs...", *jobs, "Job 6: fitting a reference", *error, *error]:
        progress.read_line(line)
    assert progress.list_failures() == error


def words(**more: Any) -> list[str]:
    return build_snakemake_arguments(Request("s.yaml", {"training": {"epochs": 2}}, **more))


def test_options_are_passed_on() -> None:
    options = cli.parse_arguments(["run", "s.yaml", "--", "--forcerun", "draw"]).snakemake_options
    passed = words(gpus=4, options=options)
    assert passed[passed.index("--resources") + 1] == "gpu=4"
    assert passed[passed.index("--cores") + 1] == "all"
    assert passed[passed.index("--config") + 1] == 'training={"epochs": 2}'
    assert passed[-2:] == ["--forcerun", "draw"]
    assert "--snakefile" in passed
    Path("Snakefile").touch()
    assert "--snakefile" not in words()
    assert "--cores" not in words(profile="slurm")
    with pytest.raises(ConfigError, match="--profile nowhere: The folder does not exist"):
        words(profile="nowhere")


def test_one_study_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "a.yaml", "--config", "b.yaml"]) == 2
    assert "specifies the study a.yaml" in capsys.readouterr().err
