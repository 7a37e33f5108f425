"""Jobs that run a model without training: each leases a device before torch is imported.

Real processes, fake devices.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_device import most_at_once
from toy_study import opened

from tasktransfer.core.nodes import Data, Fit, Node, Outcome, Start
from tasktransfer.jobs.needs import runs_model

EVALUATION = """
import sys, os, time, types
from pathlib import Path
from tasktransfer.designs import get_design, open_study
from tasktransfer.errors import ConfigError
from tasktransfer.jobs import node_jobs

log, place = Path(sys.argv[1]), int(sys.argv[2])

def said(event):
    with log.open("a") as out:
        out.write(f"{time.monotonic()} {event} {os.environ['CUDA_VISIBLE_DEVICES']} {place}\\n")

def answered(*_):
    assert "torch" not in sys.modules
    said("start")
    time.sleep(0.5)
    said("end")
    raise ConfigError("judged")

# What judges, without torch and without a model.
module = types.ModuleType("tasktransfer.evaluation.outcome")
module.predict_split = answered
sys.modules[module.__name__] = module
node_jobs.build_evaluation_inputs = lambda *_: None
node_jobs.inputs.get_cache = lambda *_: Path()
node_jobs.read_instances = lambda *_: []

study = open_study("study.yaml")
node = [e for e in study.plan.evaluations if not e.of.__class__.__name__ == "Fit"][place]
try:
    node_jobs.evaluate_node(study, node, get_design(study.config), 1)
except ConfigError as error:
    assert str(error) == "judged", error
    print(Path(study.get_node_folder(node), ".claim").read_text())
"""


def test_evaluations_side_by_side_have_a_device_each(here: Path) -> None:
    """Six on four devices; before, all of them used the first."""
    opened(seeds=6)
    (here / "evaluate.py").write_text(EVALUATION)
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "0,1,2,3",
        "TASKTRANSFER_LOCKS": str(here / "locks"),
    }
    jobs = [
        subprocess.Popen(
            [sys.executable, "evaluate.py", str(here / "log"), str(number)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]
    told = [job.communicate(timeout=120) for job in jobs]
    assert [job.returncode for job in jobs] == [0] * 6, told
    assert set(most_at_once(here / "log").values()) == {1}
    claims = " ".join(out for out, _ in told)
    assert claims.count('"device": "') == 6


def test_an_evaluation_waits_while_a_training_has_the_only_device(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKTRANSFER_LOCKS", str(here / "locks"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    opened(seeds=1)
    (here / "evaluate.py").write_text(EVALUATION)
    training = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from tasktransfer.training.device import lease_device\n"
            "with lease_device(['7']): print(flush=True), sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert training.stdout is not None
    training.stdout.readline()
    job = subprocess.Popen([sys.executable, "evaluate.py", str(here / "log"), "0"])
    with pytest.raises(subprocess.TimeoutExpired):
        job.wait(4)
    assert not (here / "log").exists()
    training.communicate(timeout=30)
    assert job.wait(60) == 0
    assert most_at_once(here / "log") == {"7": 1}


def test_what_runs_a_model_takes_a_device_and_nothing_else(here: Path) -> None:
    plan = opened().plan
    stage, fit = plan.stages[0], plan.fits[0]
    data = Data("DailyDialog", "r1")
    takes: dict[Node, bool] = {
        stage: True,
        fit: False,
        Fit("logistic", data, ("topic_classification",), 0, {}, Start(stage)): True,
        Fit("probes", data, ("topic_classification",), 0, {"model": {"weights": "w"}}): True,
        Fit("probes_of_words", data, ("topic_classification",), 0, {}): False,
        Data("DailyDialog", "r1", {}, "labelled", (stage,)): True,
        Data("DailyDialog", "r1", {}, "prepend_labels", (fit,)): False,
    }
    for evaluation in plan.evaluations:
        takes[evaluation] = isinstance(evaluation.of, Outcome)
    assert {node: runs_model(node) for node in takes} == takes
