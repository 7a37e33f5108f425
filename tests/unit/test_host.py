"""The host: trainings are forked from it, no process is left running, and none is shared wrongly.

A substitute for Snakemake starts clients; a substitute for the host's program runs their requests.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tasktransfer
from host_processes import BY_ITSELF, Workflow, left_behind, processes, under_fire, wait_until
from tasktransfer import cli
from tasktransfer.cli.host import MODULES
from tasktransfer.training.host import THREADS

pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="hosts are for Linux, and a Python with pidfd_open"
)


@pytest.fixture
def workflow(tmp_path: Path) -> Iterator[Workflow]:
    made = Workflow(tmp_path / "w")
    yield made
    made.process.kill()
    made.process.wait()
    for pid, _, _ in processes(made.folder):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("what", "value", "code"),
    [
        ("exit", "0", 0),
        ("exit", "3", 3),
        ("leave", "2", 2),
        ("raise", "a bug", 1),
        ("signal", str(signal.SIGKILL.value), 137),
        ("signal", str(signal.SIGINT.value), 130),
    ],
)
def test_the_exit_code_is_the_childs(workflow: Workflow, what: str, value: str, code: int) -> None:
    name = workflow.client(what, value)
    assert workflow.code(name) == code
    assert ("ValueError: a bug" in workflow.out(name, "err")) == (what == "raise")
    wait_until(workflow.is_quiet)


def test_the_child_has_folder_environment_and_streams_of_its_client(workflow: Workflow) -> None:
    name = workflow.client("say", "COLOUR", COLOUR="blue\udcff")
    assert workflow.code(name) == 0
    assert workflow.out(name) == f"{workflow.folder} blue\udcff typed\n"


def test_all_trainings_of_a_workflow_share_a_host(workflow: Workflow) -> None:
    names = [workflow.client("exit", str(n)) for n in range(6)]
    assert [workflow.code(name) for name in names] == [*range(6)]
    assert len(workflow.hosts()) == 1
    assert len(workflow.sockets()) == 1


@pytest.mark.parametrize("other", ["environment", "threads"])
def test_what_libraries_read_once_must_agree(workflow: Workflow, other: str) -> None:
    """With another environment a client trains by itself, without the imports of the host."""
    assert workflow.code(workflow.client("exit", "0")) == 0
    name = (
        workflow.client("exit", "0", MKL_CBWR="COMPATIBLE")
        if other == "environment"
        else workflow.client("exit", "0", threads=2)
    )
    assert workflow.code(name) == BY_ITSELF
    assert len(workflow.hosts()) == 1


def test_another_version_of_the_package_has_its_own(workflow: Workflow, tmp_path: Path) -> None:
    """A file of the checkout changes while the workflow runs."""
    copy = tmp_path / "copy"
    ignored = shutil.ignore_patterns("__pycache__")
    package = Path(tasktransfer.__file__).parent
    shutil.copytree(package, copy / "tasktransfer", ignore=ignored)
    assert workflow.code(workflow.client("exit", "0")) == 0
    for hosts in (2, 3):
        assert workflow.code(workflow.client("exit", "0", PYTHONPATH=str(copy))) == 0
        assert len(workflow.hosts()) == hosts
        os.utime(copy / "tasktransfer" / "errors.py", (hosts, hosts))


@pytest.mark.parametrize("modules", [("no_such_module",), ("threading_at_import",)])
def test_a_host_that_cannot_be_forked_sends_clients_away(
    tmp_path: Path, modules: tuple[str, ...]
) -> None:
    made = Workflow(tmp_path / "w", modules)
    (made.folder / "threading_at_import.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    try:
        for _ in range(2):
            assert made.code(made.client("exit", "0")) == BY_ITSELF
        assert len(made.hosts()) == 1
    finally:
        made.end()


@pytest.mark.parametrize("role", ["client", "child", "supervisor", "host"])
def test_nobody_stays_behind_when_one_is_killed(workflow: Workflow, role: str) -> None:
    names = [workflow.sleeper(), workflow.sleeper()]
    living = workflow.living()
    assert [len(living[kind]) for kind in ("client", "host", "supervisor", "child")] == [2, 1, 2, 2]
    for pid in living[role]:
        os.kill(pid, signal.SIGKILL)
    for name in names:
        expected = {"supervisor": 1, "host": 1}.get(role, 137)
        assert workflow.code(name) == expected
        assert ("Try again" in workflow.out(name, "err")) == (expected == 1)
    wait_until(workflow.is_quiet)
    assert len(workflow.hosts()) == (0 if role == "host" else 1)
    assert workflow.code(workflow.client("exit", "5")) == 5
    assert len(workflow.sockets()) == len(workflow.hosts()) == 1


def test_a_host_outlives_its_workflow_by_its_last_training(workflow: Workflow) -> None:
    name = workflow.client("sleep", "2")
    wait_until(lambda: "asleep" in workflow.out(name))
    workflow.process.kill()
    assert workflow.code(name) == 0
    wait_until(lambda: not [*processes(workflow.folder)])
    assert not workflow.sockets()


def test_an_idle_host_ends_with_its_workflow(workflow: Workflow) -> None:
    assert workflow.code(workflow.client("exit", "0")) == 0
    workflow.end()
    assert not workflow.sockets()


def test_sockets_of_killed_hosts_are_swept_by_the_next_workflow(workflow: Workflow) -> None:
    assert workflow.code(workflow.client("exit", "0")) == 0
    (host,) = workflow.hosts()
    os.kill(host, signal.SIGKILL)
    workflow.process.kill()
    workflow.process.wait()
    (left,) = workflow.sockets()
    workflow.start()
    assert workflow.code(workflow.client("exit", "0")) == 0
    assert left not in workflow.sockets()


def test_ctrl_c_reaches_the_child(workflow: Workflow) -> None:
    name = workflow.sleeper()
    (client,) = workflow.living()["client"]
    os.kill(client, signal.SIGINT)
    assert workflow.code(name) == 130
    assert workflow.out(name, "err") == "interrupted\n"


@pytest.mark.parametrize(
    "environment",
    [
        {"TASKTRANSFER_WORKFLOW": "1234567890"},  # no such process
        {"TASKTRANSFER_WORKFLOW": ""},
        {"TASKTRANSFER_WORKFLOW": "x"},
        {"SLURM_JOB_ID": "7"},
    ],
)
def test_elsewhere_there_is_none(workflow: Workflow, environment: dict[str, str]) -> None:
    assert workflow.code(workflow.client("exit", "0", **environment)) == BY_ITSELF
    assert not workflow.hosts()


def test_a_process_that_is_not_an_ancestor_is_not_a_workflow(workflow: Workflow) -> None:
    """The variable comes from a workflow elsewhere, and its number is another process here."""
    with subprocess.Popen(["sleep", "60"]) as other:
        number = {"TASKTRANSFER_WORKFLOW": str(other.pid)}
        assert workflow.code(workflow.client("exit", "0", **number)) == BY_ITSELF
        other.kill()


def test_a_folder_that_cannot_be_used_is_no_error(workflow: Workflow) -> None:
    workflow.locks.rmdir()
    workflow.locks.write_text("a file")
    assert workflow.code(workflow.client("exit", "0")) == BY_ITSELF


def test_after_random_kills_nothing_is_left_and_nothing_lost(workflow: Workflow) -> None:
    """For 500 kills run tests/host_processes.py by hand."""
    toll = under_fire(workflow, kills=25, at_once=4)
    assert toll["results"] > 0
    workflow.end()
    assert not left_behind(workflow)


def test_what_is_imported_beforehand_starts_no_thread_and_no_cuda() -> None:
    program = (
        "import importlib, os, sys\n"
        f"for module in {MODULES!r}: importlib.import_module(module)\n"
        "import torch\n"
        "assert len(os.listdir('/proc/self/task')) == 1\n"
        "assert not torch.cuda.is_initialized()\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "2", **THREADS}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


@pytest.mark.parametrize("command", ["train", "evaluate", "encode", "tiny-model"])
def test_what_imports_torch_many_times_is_asked_of_the_host(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a workflow none of them imports it by itself."""
    options = {
        "train": ["--node", "0" * 12],
        "evaluate": ["--node", "0" * 12],
        "encode": ["--dataset", "x", "--model", "x", "--out", "x"],
        "tiny-model": ["--model", "x", "--out", "x"],
    }
    asked: list[tuple[list[str], int]] = []
    monkeypatch.setattr(sys, "argv", ["tasktransfer", command, *options[command]])
    monkeypatch.setattr(
        cli.host, "run_in_host", lambda words, threads, _: asked.append((words, threads)) or 7
    )
    monkeypatch.setattr(cli.os, "_exit", sys.exit)
    with pytest.raises(SystemExit, match="7"):
        cli.run_and_leave()
    assert asked == [([command, *options[command]], 1)]
