"""``tasktransfer doctor`` on machines where something is missing, and its exit codes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finished_stages import finish_all, opened
from tasktransfer import cli
from tasktransfer.files import locks
from tasktransfer.operate import doctor
from tasktransfer.operate.doctor import Check

Patch = Callable[..., None]


@pytest.fixture(autouse=True)
def _environment(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKTRANSFER_LOCKS", str(here / "locks"))
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor.find_spec
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "torch" else found(name))


def examined(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and the checks by name."""
    code = cli.main(["doctor", "--json", *words])
    seen = json.loads(capsys.readouterr().out)
    assert seen["exit_code"] == code
    return code, {check["name"]: check for check in seen["checks"]}


def test_a_machine_without_torch_makes_tables(
    no_torch: None, capsys: pytest.CaptureFixture[str]
) -> None:
    code, seen = examined(capsys)
    assert (code, seen["torch"]["state"]) == (0, "lacking")
    assert seen["torch"]["remedy"] == "pip install 'tasktransfer[train]'"
    assert {"Python", "packages", "CPU", "disk", "locks", "profile"} <= seen.keys()
    study = opened("config.yaml")
    code, seen = examined(capsys)
    assert (code, seen["torch"]["state"]) == (4, "wrong")
    finish_all(study)
    assert examined(capsys)[1]["torch"]["state"] == "lacking"


def test_a_wrong_config_is_one_of_the_findings(
    no_torch: None, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other.yaml").write_text("sudy: s\n")
    code, seen = examined(capsys, "--config", "other.yaml")
    assert (code, seen["study"]["exit_code"], seen["disk"]["state"]) == (2, 2, "fine")
    assert cli.main(["doctor", "--config", "other.yaml"]) == 2
    printed = capsys.readouterr()
    assert "wrong   study" in printed.out and "1 wrong" in printed.out
    assert "The checks of study" in printed.err


def test_torch_tells_of_its_devices(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    _, seen = examined(capsys)
    assert seen["torch"]["state"] == "fine"
    assert {"GPU", "bfloat16"} <= seen.keys()


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    full = type("Usage", (), {"free": 5 << 20})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: full)
    check = doctor.check_disk(Path("results/not/there/yet"))
    assert (check.state, check.exit_code) == ("wrong", 7)
    assert "5.0 MiB free" in check.text and "put `results`" in check.remedy


@pytest.mark.parametrize(("kind", "state"), [("ext4", "fine"), ("nfs4", "slow"), ("9p", "slow")])
def test_results_on_another_machine_are_slow(kind: str, state: str, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"none / ext4 rw 0 0\nserver {tmp_path} {kind} rw 0 0\n")
    check = doctor.check_file_system(tmp_path / "results", mounts)
    assert (check.state, kind in check.text) == (state, True)


def test_locks_that_do_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.check_kernel_locks(Path("results")).state == "fine"

    def none(descriptor: int) -> bool:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locks, "try_lock", none)
    check = doctor.check_kernel_locks(Path("results"))
    assert (check.state, check.exit_code) == ("wrong", 7)
    assert "No locks available" in check.text


def test_a_lock_of_a_snakemake_that_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path.cwd()
    assert doctor.check_snakemake_lock(here).state == "fine"
    held = here / ".snakemake/locks/0.input.lock"
    held.parent.mkdir(parents=True)
    held.touch()
    check = doctor.check_snakemake_lock(here)
    assert (check.state, check.exit_code) == ("wrong", 1)
    assert "--unlock" in check.remedy
    monkeypatch.setattr(doctor, "_list_snakemake_processes", lambda folder: [123])
    assert "process 123" in doctor.check_snakemake_lock(here).text


def test_the_profile_in_force(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check = doctor.check_profile(tmp_path)
    assert check.state == "slow"
    packaged = Path(check.remedy.split()[2].rstrip(":"))
    assert (packaged / "config.yaml").is_file()
    (tmp_path / "profiles/default").mkdir(parents=True)
    (tmp_path / "profiles/default/config.yaml").write_text("executor: slurm\njobs: 9\n")
    assert "executor: slurm, jobs: 9" in doctor.check_profile(tmp_path).text
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "mine")
    assert doctor.check_profile(tmp_path).text.startswith("SNAKEMAKE_PROFILE=mine, then ")


def test_an_environment_that_is_not_active(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.check_command().state == "fine"
    monkeypatch.setenv("PATH", "/nowhere")
    check = doctor.check_command()
    assert (check.state, check.exit_code) == ("wrong", 2)
    assert str(Path(sys.executable).parent) in check.remedy


def test_versions_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.check_packages().state == "fine"
    wanted = ["snakemake<1", "nobody-has-this", 'torch>=99; extra == "train"', 'x; extra == "dev"']
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: wanted)
    monkeypatch.setattr(doctor, "_read_version", {"snakemake": "9.27.1"}.get)
    check = doctor.check_packages()
    assert (check.state, check.exit_code) == ("wrong", 2)
    assert check.text.endswith("snakemake 9.27.1, required <1; nobody-has-this absent, required ")


def test_every_finding_has_a_remedy_and_the_first_wrong_one_the_exit_code() -> None:
    seen = [
        Check("a", "slow", "t", "r"),
        Check("b", "wrong", "t", "r", 7),
        Check("c", "wrong", "t", "r", 2),
    ]
    assert doctor.find_exit_code(seen) == 7
    assert doctor.format_totals(seen) == "1 slow, 2 wrong"
    for check in doctor.run_checks(None, Path.cwd()):
        assert (check.state == "fine") == (check.remedy == ""), check
        assert (check.state == "wrong") == (check.exit_code > 0), check
