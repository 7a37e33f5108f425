"""The host: trainings are forked from it, nobody stays behind, and no one is served by another's.

A stand-in for Snakemake starts clients, a stand-in for the host's program does what they ask.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tasktransfer
from tasktransfer.cli.host import MODULES
from tasktransfer.training.host import THREADS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="hosts are for Linux")

BY_ITSELF = 99
MARK = "TASKTRANSFER_TEST"

WORKFLOW_PROGRAM = """
import json, os, subprocess, sys
os.environ["TASKTRANSFER_WORKFLOW"] = str(os.getpid())
for line in sys.stdin:
    name, arguments, more = json.loads(line)
    script = 'echo typed | "$@" > $0.out 2> $0.err; echo $? > $0.part; mv $0.part $0.code'
    words = ["sh", "-c", script, name, sys.executable, "client.py", *arguments]
    subprocess.Popen(words, env={**os.environ, **more})
"""

CLIENT_PROGRAM = f"""
import os, sys
from tasktransfer.training import host
threads, *arguments = sys.argv[1:]
code = host.ask(arguments, int(threads), [sys.executable, "served.py"])
sys.exit({BY_ITSELF} if code is None else code)
"""

HOST_PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from tasktransfer.training import host

def run(arguments):
    what, value = arguments
    match what:
        case "say": print(Path.cwd(), os.environ[value], sys.stdin.read().strip())
        case "exit": return int(value)
        case "leave": sys.exit(int(value))
        case "raise": raise ValueError(value)
        case "signal": os.kill(os.getpid(), int(value))
        case "sleep":
            print("asleep", flush=True)
            time.sleep(float(value))
    return 0

host.serve(run, MODULES, int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
"""


class Workflow:
    """A process that starts clients, and what is left of them."""

    def __init__(self, folder: Path, modules: tuple[str, ...] = ("json",)) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "client.py").write_text(CLIENT_PROGRAM)
        (folder / "served.py").write_text(HOST_PROGRAM.replace("MODULES", repr(modules)))
        source = str(Path(tasktransfer.__file__).parents[1])
        # The name of a socket may have 107 bytes: too few for pytest's folders.
        self.locks = Path(tempfile.mkdtemp(prefix="host-"))
        self.environment = {
            **os.environ, MARK: str(folder), "TASKTRANSFER_LOCKS": str(self.locks),
            "PYTHONPATH": source,
        }  # fmt: skip
        self.names = iter(range(10**6))
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKFLOW_PROGRAM],
            cwd=self.folder, stdin=subprocess.PIPE, text=True, env=self.environment,
        )  # fmt: skip

    def client(self, *arguments: str, threads: int = 1, **environment: str) -> str:
        """Start a client; its name."""
        name = f"job{next(self.names)}"
        assert self.process.stdin is not None
        order = [name, [str(threads), *arguments], environment]
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return name

    def code(self, name: str) -> int:
        """A client's exit code."""
        file = self.folder / f"{name}.code"
        wait_until(file.exists)
        return int(file.read_text())

    def sleeper(self, **environment: str) -> str:
        """A client whose child is at work."""
        name = self.client("sleep", "60", **environment)
        wait_until(lambda: "asleep" in self.out(name))
        return name

    def out(self, name: str, kind: str = "out") -> str:
        file = self.folder / f"{name}.{kind}"
        return file.read_text(errors="surrogateescape") if file.exists() else ""

    def living(self) -> dict[str, list[int]]:
        """Processes by what they are."""
        roles: dict[str, list[int]] = {"client": [], "host": [], "supervisor": [], "child": []}
        role_of: dict[int, str] = {}
        below = {"host": "supervisor", "supervisor": "child"}
        for pid, parent, words in processes(self.folder):
            if "client.py" in words and words[0] != "sh":
                role = "client"
            elif "served.py" in words:
                role = below.get(role_of.get(parent, ""), "host")
            else:
                continue
            role_of[pid] = role
            roles[role].append(pid)
        return roles

    def hosts(self) -> set[int]:
        return set(self.living()["host"])

    def is_quiet(self) -> bool:
        """Whether nobody but hosts is left."""
        return not any(pids for role, pids in self.living().items() if role != "host")

    def sockets(self) -> list[Path]:
        return [*self.locks.rglob("*.sock")]


def processes(folder: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Number, parent and words of every process of a folder, parents first; zombies left out."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={folder}".encode() not in (process / "environ").read_bytes().split(b"\0"):
                continue
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            words = (process / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        found.append((int(process.name), int(parent), words))
    yield from sorted(found)


def wait_until(condition, seconds: float = 30.0) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


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
    """Another environment trains by itself, and is not served by what was imported in this one."""
    assert workflow.code(workflow.client("exit", "0")) == 0
    name = (
        workflow.client("exit", "0", MKL_CBWR="COMPATIBLE")
        if other == "environment"
        else workflow.client("exit", "0", threads=2)
    )
    assert workflow.code(name) == BY_ITSELF
    assert len(workflow.hosts()) == 1


def test_another_version_of_the_package_has_its_own(workflow: Workflow, tmp_path: Path) -> None:
    """A file of the checkout is changed while the workflow runs."""
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
        made.process.kill()
        made.process.wait()
    wait_until(lambda: not [*processes(made.folder)])


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
        assert ("try again" in workflow.out(name, "err")) == (expected == 1)
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
    workflow.process.kill()
    wait_until(lambda: not [*processes(workflow.folder)])
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


def test_a_process_that_is_no_ancestor_is_no_workflow(workflow: Workflow) -> None:
    """The variable was inherited from a workflow elsewhere, and here its number is another's."""
    with subprocess.Popen(["sleep", "60"]) as other:
        number = {"TASKTRANSFER_WORKFLOW": str(other.pid)}
        assert workflow.code(workflow.client("exit", "0", **number)) == BY_ITSELF
        other.kill()


def test_a_folder_that_cannot_be_used_is_no_error(workflow: Workflow) -> None:
    workflow.locks.rmdir()
    workflow.locks.write_text("a file")
    assert workflow.code(workflow.client("exit", "0")) == BY_ITSELF


def test_after_random_kills_nothing_is_left(workflow: Workflow) -> None:
    """Twelve clients at a time; benchmarks/host_kills.py does the same with 500 kills."""
    chance = random.Random(0)
    names = []
    for _ in range(10):
        names += [workflow.client("sleep", str(chance.random())) for _ in range(4)]
        time.sleep(0.2 * chance.random())
        victims = [pid for pids in workflow.living().values() for pid in pids]
        if victims:
            try:
                os.kill(chance.choice(victims), signal.SIGKILL)
            except ProcessLookupError:
                continue
    assert {workflow.code(name) for name in names} <= {0, 1, 137, BY_ITSELF}
    wait_until(workflow.is_quiet)
    workflow.process.kill()
    wait_until(lambda: not [*processes(workflow.folder)])


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
