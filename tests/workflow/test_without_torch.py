"""Tables, statistics, figures and report from records, in an environment without torch.

The environment is that of envs/figures.yaml, created by ``make .venv-figures/.ready``. The records
are artificial, at the paths of a real plan of a tiny study.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from study_records import write_records
from tasktransfer.designs import open_study
from tasktransfer.results.study import Study

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-figures"
PYTHON = ENVIRONMENT / "bin" / "python"

ER, DNLI, TC = "emotion_recognition", "dialogue_nli", "topic_classification"
KEYS: dict[str, Any] = {
    "study": "constructed",
    "datasets": {"DailyDialog": {"tasks": [ER, DNLI, TC]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "seeds": 2,
    "multi_source": {
        "mode": "named",
        "named": [{"dataset": "DailyDialog", "target": DNLI, "sources": [ER, TC]}],
        "algorithms": ["pretrain_finetune", "multitask"],
    },
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHON.exists(), reason=f"no {ENVIRONMENT}: run `make .venv-figures/.ready`"
    ),
]


def call(*command: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in the environment without torch, isolated from this one."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**kept, "PATH": f"{ENVIRONMENT / 'bin'}:/usr/bin:/bin", "VIRTUAL_ENV": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def snakemake(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command that `explain` prints, with the workflow of this repository."""
    return call(
        *(ENVIRONMENT / "bin" / "snakemake", *words),
        *("--snakefile", ROOT / "Snakefile", "--workflow-profile", ROOT / "profiles" / "default"),
        *("--max-jobs-per-timespan", "100/1s"),
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """Write a study with finished trainings, but without data, models, tables or figures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("figures"))
        Path("study.yaml").write_text(yaml.safe_dump(KEYS))
        made = open_study("study.yaml")
        write_records(made)
        yield made


@pytest.fixture(scope="module")
def drawn(study: Study) -> subprocess.CompletedProcess[str]:
    done = snakemake("figures", "--cores", "2", "--configfile", "study.yaml")
    assert done.returncode == 0, done.stdout + done.stderr + _logs(study)
    return done


def _logs(study: Study) -> str:
    return "\n".join(p.read_text() for p in Path(study.config.results, "logs").rglob("*.log"))


def test_the_environment_is_the_one_of_the_file_and_has_no_torch() -> None:
    code = (
        "import importlib.util, importlib.metadata as m, json; "
        "print(json.dumps([[n for n in ('torch', 'transformers', 'datasets', 'safetensors') "
        "if importlib.util.find_spec(n)], {d.name.lower().replace('_', '-'): d.version "
        "for d in m.distributions()}]))"
    )
    found, versions = json.loads(call(PYTHON, "-c", code).stdout)
    assert found == []
    listed = yaml.safe_load((ROOT / "envs" / "figures.yaml").read_text())["dependencies"][-1]["pip"]
    pins = dict(pin.lower().split("==") for pin in listed)
    assert {name: versions.get(name) for name in pins} == pins


def test_everything_comes_from_the_records(study: Study, drawn: Any) -> None:
    tables, figures = Path(study.tables), Path(study.figures)
    for name in ("runs", "scores", "deltas", "sizes", "missing", "problems", "cells", "summary"):
        assert pd.read_parquet(tables / f"{name}.parquet") is not None
    assert len(pd.read_parquet(tables / "runs.parquet")) == len(study.plan.runs)
    assert pd.read_parquet(tables / "missing.parquet").empty
    for name in ("heatmap", "transfer_graph", "multi_source"):
        for ending, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
            file = figures / f"{name}_DailyDialog.{ending}"
            assert file.read_bytes().startswith(magic), file
    for name in ("table1", "table2", "table3", "table6"):
        for ending in ("csv", "md", "tex", "parquet"):
            assert (figures / f"{name}.{ending}").stat().st_size > 0
    assert "<html" in Path(study.report).read_text(encoding="utf-8")[:2000].lower()
    # No data and no model was created, and nothing was trained.
    assert not Path(study.tiny_world).exists()
    assert not Path(study.config.results, "models").exists()
    again = snakemake("figures", "--cores", "1", "--configfile", "study.yaml", "-n")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_a_damaged_record_is_named_and_the_rest_is_drawn(
    study: Study, drawn: Any, tmp_path: Path
) -> None:
    kept = tmp_path / "results"
    shutil.copytree(study.config.results, kept)
    record = Path(study.get_record_path(study.plan.runs[-1].stages[-1]))
    record.write_text("{")
    try:
        done = snakemake("figures_now", "--cores", "1", "--configfile", "study.yaml")
        assert done.returncode == 0, done.stdout + done.stderr + _logs(study)
        tables = Path(study.tables)
        (problem,) = pd.read_parquet(tables / "problems.parquet")["error"]
        assert str(record) in problem
        assert pd.read_parquet(tables / "missing.parquet")["state"].tolist() == ["damaged"]
        assert problem[:40] in Path(study.report).read_text(encoding="utf-8")
    finally:
        shutil.rmtree(study.config.results)
        shutil.copytree(kept, study.config.results)


def test_the_commands_of_explain_make_a_training_again(study: Study, drawn: Any) -> None:
    words = ("DailyDialog", "tiny-bert", "multitask_finetune", "ER", "DNLI")
    program = ENVIRONMENT / "bin" / "tasktransfer"
    said = call(program, "explain", *words, "--config", "study.yaml", "--json")
    assert said.returncode == 0, said.stderr
    explanation = json.loads(said.stdout)
    (row,) = explanation["rows"]
    assert row["up_to_date"]
    nodes = {node["digest"]: node for node in explanation["nodes"]}
    of_first_seed = [run for run in row["runs"] if run["names"]["seed"] == "0"]
    (transfer,) = [run for run in of_first_seed if not run["is_reference"]]
    (baseline,) = [run for run in of_first_seed if run["is_reference"]]
    multitask, finetune = (nodes[digest] for digest in transfer["nodes"])
    (source,) = (nodes[digest] for digest in baseline["nodes"])
    # The multitask checkpoint was temporary, so the fine-tuning alone requires both trainings.
    for training, rules in (
        (source, {"baseline"}),
        (multitask, {"multitask"}),
        (finetune, {"multitask", "finetune"}),
    ):
        delete, again = training["commands"]
        record = Path(training["record"])
        content = record.read_bytes()
        assert subprocess.run(shlex.split(delete), check=True).returncode == 0
        assert not record.exists()
        name, *arguments = shlex.split(again)
        assert name == "snakemake"
        # In the folder of the Snakefile, the printed command works unchanged.
        done = snakemake(*arguments, "-n", "--quiet", "reason")
        record.write_bytes(content)
        assert done.returncode == 0, done.stdout + done.stderr
        jobs = {line.split()[0] for line in done.stdout.splitlines() if line.split()[1:] == ["1"]}
        assert jobs & {"baseline", "multitask", "finetune"} == rules


def test_the_doctor_says_that_torch_is_lacking(tmp_path: Path) -> None:
    """It also says that nothing is wrong without a study, since tables and figures work here."""
    done = call(ENVIRONMENT / "bin" / "tasktransfer", "doctor", "--json", folder=tmp_path)
    seen = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert (done.returncode, seen["torch"]["state"]) == (0, "lacking"), done.stderr
    assert seen["packages"]["state"] == "fine", seen["packages"]


def test_the_regret_of_selectors_needs_no_package_of_their_fits() -> None:
    """``make figures`` builds it from records; fitting packages are imported only for fitting."""
    done = call(PYTHON, "-c", "import tasktransfer.selection.values")
    assert done.returncode == 0, done.stderr
