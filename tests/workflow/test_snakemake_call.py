"""Attributes of Snakemake's `workflow` object that the rules need exist in the installed release.

If Snakemake changes one of them, these tests fail first and name it. `make test-floor` runs the
workflow tests with the oldest Snakemake that pyproject.toml allows.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from dag_study import MODEL, SMALL, Sandbox, sandbox
from forked_snakemake import run_snakemake

ROOT = Path(__file__).resolve().parents[2]

PROBE = """
import json
from dataclasses import asdict
from tasktransfer.jobs import snakemake_call

with snakemake_call.convert_errors():
    CALL = snakemake_call.read_snakemake_call(workflow, config)

def answers(wildcards):
    said = asdict(CALL) | {"triggers": sorted(snakemake_call.get_rerun_triggers(workflow))}
    said |= {"config_file": str(CALL.config_file), "limited": sorted(CALL.limited)}
    print("ANSWERS " + json.dumps(said))
    return []

rule all:
    input:
        answers,
"""
MODULE = """
configfile: "parent.yaml"

module study:
    snakefile: "probe.smk"
    config: config["transfer"]

use rule * from study as tt_*
"""


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_snakemake(["--dry-run", "--cores", "1", *arguments], folder)


def answers(folder: Path, *arguments: str) -> dict[str, Any]:
    done = snakemake(folder, "--snakefile", "probe.smk", *arguments)
    lines = (done.stdout + done.stderr).splitlines()
    told = [line.removeprefix("ANSWERS ") for line in lines if line.startswith("ANSWERS ")]
    assert told, done.stdout + done.stderr
    answer = json.loads(told[0])
    assert isinstance(answer, dict)
    return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "probe.smk").write_text(PROBE)
    (tmp_path / "study.yaml").write_text("study: of a file\nseeds: 3\n")
    return tmp_path


def test_a_plain_call(folder: Path) -> None:
    told = answers(folder, "--rerun-triggers", "mtime", "params")
    assert told == {
        "config": None,
        "config_file": "config.yaml",
        "overrides": {},
        "is_main": True,
        "on_one_machine": True,
        "limited": told["limited"],
        "triggers": ["mtime", "params"],
    }
    assert "mem_mb" not in told["limited"]


def test_a_call_with_everything(folder: Path) -> None:
    told = answers(
        folder,
        *("--config", "seeds=5", "training={epochs: 2}"),
        *("--resources", "mem_mb=100", "--rerun-triggers", "input", "code", "software-env"),
        *("--configfile", "study.yaml"),
    )
    assert told["config_file"] == "study.yaml"
    assert told["overrides"] == {"seeds": 5, "training": {"epochs": 2}}
    assert told["config"] is None
    assert "mem_mb" in told["limited"]
    assert told["triggers"] == ["code", "input", "software-env"]


def test_jobs_of_a_batch_system(folder: Path) -> None:
    """The number of jobs is recognized, and the jobs' own calls are not user calls."""
    assert not answers(folder, "--jobs", "7")["on_one_machine"]
    told = answers(folder, "--mode", "remote")
    assert not told["is_main"]
    assert not told["on_one_machine"]


def test_two_files_are_refused(folder: Path) -> None:
    done = snakemake(folder, "--snakefile", "probe.smk", "--configfile", "study.yaml", "study.yaml")
    assert done.returncode != 0
    assert "--configfile: The option has 2 files" in done.stdout + done.stderr


def test_a_configuration_is_handed_over(folder: Path) -> None:
    (folder / "Snakefile").write_text(MODULE)
    section = {"study": "of a section", "seeds": 1}
    (folder / "parent.yaml").write_text(yaml.safe_dump({"transfer": section, "other": 1}))
    arguments = ("--snakefile", "Snakefile")
    assert answers(folder, *arguments)["config"] == section
    told = answers(folder, *arguments, "--config", "transfer={seeds: 2}")
    assert told["config"] == section | {"seeds": 2}
    # A file is then the calling workflow's, and no study.
    told = answers(folder, *arguments, "--configfile", "parent.yaml")
    assert told["config"] == section


# --- the workflow as a module ---


USER = """
configfile: "parent.yaml"

module tasktransfer:
    snakefile: "{root}/workflow/Snakefile"
    config: config["transfer"]

use rule * from tasktransfer as tt_*

rule mine:
    default_target: True
    input: rules.tt_tables.input
    output: "mine.txt"
    shell: "touch {{output}}"
"""


@pytest.fixture
def user(tmp_path: Path) -> Sandbox:
    """Write a user's workflow that has the study as a section of its configuration."""
    made = sandbox(tmp_path / "user")
    made.write()
    (made.folder / "Snakefile").write_text(USER.format(root=ROOT))
    (made.folder / "parent.yaml").write_text(yaml.safe_dump({"transfer": SMALL, "mine": True}))
    return made


def as_module(user: Sandbox, *arguments: str) -> str:
    (user.folder / "asked.log").unlink(missing_ok=True)
    words = [
        *("--cores", "2", *arguments),
        *("--workflow-profile", ROOT / "profiles" / "default"),
        *("--max-jobs-per-timespan", "100/1s"),
    ]
    done = run_snakemake(words, user.folder, user.environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_workflow_is_a_module(user: Sandbox) -> None:
    said = as_module(user, "--dry-run", "--quiet", "rules")
    assert "tt_baseline" in said
    (study,) = (user.folder / "results").glob("study-*.yaml")
    assert yaml.safe_load(study.read_text()) == SMALL
    as_module(user, "tt_data")
    assert (user.folder / "results" / "tables" / "table1.parquet").exists()
    assert list((user.folder / "results").glob("study-*.yaml")) == [study]
    # Errors in the section are reported with their key.
    (user.folder / "parent.yaml").write_text(yaml.safe_dump({"transfer": SMALL | {"seed": 1}}))
    with pytest.raises(AssertionError, match=r"the configuration handed over.*seed"):
        as_module(user, "--dry-run")


def test_a_module_runs_to_the_end_and_its_own_file_names_the_study(user: Sandbox) -> None:
    """The jobs' commands read the file to which the section was written."""
    as_module(user, "tt_trainings")
    trained = (user.folder / "asked.log").read_text().splitlines()
    assert len(trained) == 7
    (user.folder / "asked.log").unlink()
    # The same study from a file finds everything done.
    assert user.run("trainings") == {}
    assert MODEL["name"] in trained[0]
