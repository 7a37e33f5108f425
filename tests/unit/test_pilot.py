"""Pilots: requests of their scripts, and the order of submission."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tasktransfer import cli
from tasktransfer.operate.pilot import read_job_id

ROOT = Path(__file__).resolve().parents[2]
STUDY = {
    "study": "two seeds",
    "data": {"release": "tiny_world"},
    "datasets": {"DailyDialog": {"tasks": ["emotion_recognition", "topic_classification"]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    "algorithms": ["pretrain_finetune"],
    "seeds": 2,
}
SBATCH = """\
#!/bin/sh
echo "$@" >> calls.txt
test "$(wc -l < calls.txt)" != "$REFUSED" || { echo "no such partition" >&2; exit 1; }
echo "$((100 + $(wc -l < calls.txt)));cluster"
"""


@pytest.fixture
def checkout(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a folder with the workflow, a study, and an sbatch that records its arguments."""
    for name in ("Snakefile", "workflow", "profiles"):
        (here / name).symlink_to(ROOT / name)
    (here / "study.yaml").write_text(yaml.safe_dump(STUDY))
    sbatch = here / "bin" / "sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text(SBATCH)
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sbatch.parent}:/usr/bin:/bin")
    monkeypatch.setenv("REFUSED", "none")
    return here


def pilot(*words: str) -> int:
    return cli.main(["pilot", "--config", "study.yaml", *words])


def test_without_submit_scripts_are_written_and_nothing_runs(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pilot() == 0
    said = capsys.readouterr().out
    assert "tiny-bert-seed0.sh (4 to make)" in said
    assert "were not submitted" in said
    assert not (checkout / "calls.txt").exists()
    for script in sorted((checkout / "results" / "pilot").glob("*.sh")):
        subprocess.run(["bash", "-n", script], check=True)


def test_a_script_asks_for_what_was_said(checkout: Path) -> None:
    pilot(
        *("--gpus", "4", "--slots", "2", "--time", "3:00:00", "--partition", "gpu", "--seed", "1"),
        *("--account", "me", "--sbatch=--qos=long"),
    )
    scripts = {path.stem: path.read_text() for path in Path("results/pilot").glob("*.sh")}
    assert scripts.keys() == {"prepare", "tiny-bert-seed1", "finish"}
    assert "--gpus" not in scripts["prepare"]
    lines = scripts["tiny-bert-seed1"].splitlines()
    asked = {line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")}
    assert asked >= {
        *("--gpus=4", "--nodes=1", "--cpus-per-task=32", "--mem=128G", "--time=3:00:00"),
        *("--requeue", "--partition=gpu", "--account=me", "--qos=long"),
        "--job-name=two-seeds-tiny-bert-seed1",
        f"--output={checkout}/results/pilot/tiny-bert-seed1.%j.log",
    }
    text = "\n".join(lines)
    assert "export TASKTRANSFER_SLOTS_PER_GPU=2" in text
    assert "--resources gpu=8" in text  # two trainings a GPU
    assert "--workflow-profile workflow/profiles/slurm-pilot" in text


def test_shards_come_after_prepare_and_finish_after_all(checkout: Path) -> None:
    assert pilot("--submit") == 0
    prepare, first, second, finish = (checkout / "calls.txt").read_text().splitlines()
    assert "--dependency=singleton" in prepare
    assert "--dependency=afterok:101,singleton" in first
    assert "--dependency=afterok:101,singleton" in second
    assert "--dependency=afterany:101:102:103,singleton" in finish


def test_a_refusal_names_what_was_submitted_before(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REFUSED", "3")
    assert pilot("--submit") != 0
    said = capsys.readouterr().err
    assert "no such partition" in said
    assert "prepare 101, tiny-bert-seed0 102" in said


@pytest.mark.parametrize(
    ("output", "number"),
    [
        ("4711\n", "4711"),
        ("4711;tank\n", "4711"),
        ("67109001;north\r\n", "67109001"),
        ("Submitted batch job 4711\n", "4711"),
        ("Submitted batch job 4711 on cluster tank\n", "4711"),
        ("sbatch: Submitted batch job 4711", "4711"),
        ("--> Checking allocation... OK\n--> 120 hours left\n\n4711\n", "4711"),
        ("\x1b[1mWelcome\x1b[0m\n\x1b[32m4711;tank\x1b[0m\n", "4711"),
        ("2026\nSubmitted batch job 4711\n", "4711"),
        ("4711;tank\n4711\n", "4711"),
        ("", None),
        ("OK\n", None),
        ("quota: 4711 of 9000 hours\n", None),
        ("4711\n4712\n", None),
        ("4711 4712\n", None),
    ],
)
def test_the_job_number_is_read_among_what_wrappers_print(output: str, number: str | None) -> None:
    assert read_job_id(output) == number


@pytest.mark.parametrize("printed", ["'Checking project: ok'", "'17\\n18'", ""])
def test_output_without_one_job_number_is_refused(
    checkout: Path, capsys: pytest.CaptureFixture[str], printed: str
) -> None:
    (checkout / "bin" / "sbatch").write_text(
        f'#!/bin/sh\necho "$@" >> calls.txt\nprintf {printed or chr(39) * 2}\n'
    )
    assert pilot("--submit") == 2
    said = capsys.readouterr().err
    assert (
        "does not contain exactly one job ID" in said and "Jobs submitted before: nothing" in said
    )
    assert len((checkout / "calls.txt").read_text().splitlines()) == 1


def test_no_sbatch_is_said(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert pilot("--submit") != 0
    assert "sbatch is not available" in capsys.readouterr().err


def test_away_from_the_snakefile_it_refuses(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "Snakefile").unlink()
    assert pilot() != 0
    assert "Run the command in the folder of the Snakefile" in capsys.readouterr().err


def test_unknown_names_are_refused(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pilot("--seed", "7") != 0
    assert "Choose one of 0, 1" in capsys.readouterr().err
