"""The command line: exit codes, messages, and arguments of a training process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from finished_stages import finish
from tasktransfer import cli
from tasktransfer.cli.groups import GROUPS
from tasktransfer.cli.parsers import list_command_summaries
from tasktransfer.designs import open_study
from tasktransfer.training import device
from tasktransfer.training.job import Job

ROOT = Path(__file__).resolve().parents[2]
PAPER = str(ROOT / "workflow/presets/paper.yaml")
DEMO = str(ROOT / "workflow" / "presets" / "demo.yaml")


pytestmark = pytest.mark.usefixtures("here")


def test_plan_counts_the_paper_without_its_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "--config", PAPER, "--set", "multi_source.mode=off"]) == 0
    out = capsys.readouterr().out
    assert "trainings, shared ones counted once: 5,205" in out
    assert "990 fewer than best rounds" in out
    assert "255  baseline" in out
    assert "not found: data/feta" in out
    assert "finished work is unknown" in out


def test_help_starts_without_the_libraries_of_configs_and_results() -> None:
    """pydantic alone would triple the time that it takes."""
    code = "import sys; from tasktransfer.cli import make_parser; make_parser().format_help(); "
    code += "print({'pydantic', 'numpy', 'pandas', 'torch'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_plan_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "--config", PAPER, "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    several = [n for name, n in seen["runs"]["by_method"].items() if "several sources" in name]
    assert (seen["runs"]["total"], sum(several)) == (6195 + 180, 180)
    assert seen["trainings"]["by_kind"]["multitask"] == 990 + 60 + 60
    assert seen["trainings"]["spared"] == 990
    assert seen["trainings"]["done"] is None
    runs, trainings = f"{seen['runs']['total']:,} runs", f"{seen['trainings']['total']:,}"
    for page, count in {
        "README.md": f"({runs})",
        "docs/transfer.md": f"`plan` counts {runs}: ",
        "docs/running.md": f"{trainings} training stages",
    }.items():
        assert count in " ".join((ROOT / page).read_text().split()), page
    assert f"{trainings} distinct training stages" in (ROOT / "docs/transfer.md").read_text()


def test_ctrl_c_ends_any_command_in_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tasktransfer.designs.open_study", stopped)
    assert cli.main(["plan", "--config", DEMO]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_plan_knows_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    study = open_study(DEMO)
    for stage in study.plan.stages[:3]:
        finish(study, stage, checkpoint=True)
    assert cli.main(["plan", "--config", DEMO]) == 0
    assert f"done: 3, left: {len(study.plan.stages) - 3}" in capsys.readouterr().out


def test_plan_estimates_for_the_named_hardware(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "--config", PAPER, "--devices", "8", "--on", "gpu"]) == 0
    out = capsys.readouterr().out
    assert "GPU-hours  wall time on 8" in out
    assert "A100: 109,200 GFLOP/s in float32 and 218,400 GFLOP/s in bfloat16 (70% of" in out
    assert "not measured)" in out
    assert "Table 1 of the paper" in out
    assert "disk, at most:" in out
    assert cli.main(["plan", "--config", PAPER, "--on", "cpu"]) == 0
    assert "core-hours" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["epochs", "=3", "training.epochs=[1"])
def test_malformed_overrides(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["validate", "--config", DEMO, "--set", option]) == 2
    assert f"--set {option}" in capsys.readouterr().err


def told(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> Job:
    """Return the job that a train command would start, without torch."""
    jobs: list[Job] = []
    fake: Any = type(sys)("tasktransfer.training.run")
    fake.train_stage = jobs.append
    monkeypatch.setitem(sys.modules, "tasktransfer.training.run", fake)
    monkeypatch.setattr(device, "list_devices", list)
    assert cli.main(["train", *arguments]) == 0
    return jobs[0]


def test_train_tells_the_trainer_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(DEMO)
    stage = next(s for s in study.plan.stages if s.kind == "finetune")
    arguments = ["--config", DEMO, "--node", stage.digest[:12]]
    job = told(monkeypatch, [*arguments, "--threads", "2"])
    assert (job.stage, job.stage.path) == (stage, stage.path)
    assert str(job.encoded) == study.get_encoded_folder(stage.data, stage.model.name)
    assert str(job.out) == study.get_node_folder(stage)
    assert (job.base, job.revision) == (study.get_checkpoint_source(stage.model.name), None)
    assert job.starts == tuple(study.get_start_folder(start) for start in stage.starts)
    assert len(job.starts) == 1
    assert (job.save_checkpoint, job.threads, job.study) == (False, 2, "demo")
    assert (job.config_digest, job.facts, job.plain) == (
        study.config.digest,
        {"rules": "free"},
        False,
    )
    kept = told(monkeypatch, [*arguments, "--plain", "--set", "checkpoints.keep=all"])
    assert (kept.save_checkpoint, kept.plain) == (True, True)


@pytest.mark.parametrize(
    ("command", "kind", "message"),
    [
        ("train", None, "the digest 0123456789ab"),
        ("fit", "stage", "needs a node of kind fit"),
        ("evaluate", "stage", "needs a node of kind evaluation"),
        ("derive", "stage", "needs a node of kind data"),
    ],
)
def test_a_node_of_another_kind_is_refused(
    command: str, kind: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = open_study(DEMO).plan.stages[0].digest[:12] if kind else "0123456789ab"
    assert cli.main([command, "--config", DEMO, "--node", digest]) == 2
    assert message in capsys.readouterr().err


def test_a_training_starts_without_heavy_imports() -> None:
    """torch is imported after the device is leased, and no other heavy package before."""
    digest = open_study(DEMO).plan.stages[0].digest[:12]
    code = (
        "import sys\n"
        "from tasktransfer import cli\n"
        "from tasktransfer.training import device\n"
        "def pool():\n"
        "    heavy = {'torch', 'pandas', 'pyarrow', 'numpy', 'transformers'} & set(sys.modules)\n"
        "    print(sorted(heavy)); sys.exit()\n"
        "device.list_devices = pool\n"
        f"cli.main(['train', '--config', {DEMO!r}, '--node', {digest!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_data_stats_prepares_what_is_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "study.yaml").write_text(
        "study: s\n"
        "datasets: {Friends: {tasks: [question_answering]}}\n"
        "models: [{name: m, family: encoder, checkpoint: tiny}]\n"
        "algorithms: [baseline]\n"
        "data: {tiny_world: {dialogues: 120}}\n"
    )
    assert cli.main(["data", "stats", "--config", "study.yaml", "--out", "tables"]) == 0
    out = capsys.readouterr().out
    assert "SYNTHETIC" in out
    assert "question_answering" in out
    assert "utterance_words" in out
    names = sorted(path.name for path in (tmp_path / "tables").iterdir())
    tables = ("lengths", "overlap_data", "table1")
    assert names == [f"{table}.{ending}" for table in tables for ending in ("csv", "parquet")]
    header, first = (tmp_path / "tables" / "table1.csv").read_text().splitlines()[:2]
    assert dict(zip(header.split(","), first.split(","), strict=True))["synthetic"] == "True"


def test_the_help_lists_each_command_in_one_group_and_no_step_of_the_workflow() -> None:
    help_text = cli.make_parser().format_help()
    commands = list_command_summaries(cli.make_parser())
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) <= commands.keys()
    for name in commands:
        assert (f"\n  {name} " in help_text) == (name in grouped)


def test_a_step_runs_with_and_without_job(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["world", "--out", "world", "--seed", "3"]
    assert (
        vars(cli.parse_arguments(["job", *words]))["seed"] == cli.parse_arguments(words).seed == 3
    )
    with pytest.raises(SystemExit, match="0"):
        cli.parse_arguments(["job"])
    assert "  train  " in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        cli.parse_arguments(["job", "report"])
    assert "job: 'report' is not a step. Choose one of world" in capsys.readouterr().err
