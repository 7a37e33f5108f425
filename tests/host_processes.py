"""A substitute for a workflow whose trainings share a host, to inspect its state after kills.

By hand, with 500 kills:

    python tests/host_processes.py --kills 500
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import tasktransfer
from tasktransfer.files import locks

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
code = host.run_in_host(arguments, int(threads), [sys.executable, "served.py"])
sys.exit({BY_ITSELF} if code is None else code)
"""

HOST_PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from tasktransfer.files import remove_partial_files, replace_file
from tasktransfer.results.state import claim_folder
from tasktransfer.training import host

def run(arguments):
    what, value = arguments
    match what:
        case "say": print(Path.cwd(), os.environ[value], sys.stdin.read().strip())
        case "exit": return int(value)
        case "leave": sys.exit(int(value))
        case "raise": raise ValueError(value)
        case "signal": os.kill(os.getpid(), int(value))
        case "make":
            folder = Path(value)
            with claim_folder(folder, lambda text: None):
                remove_partial_files(folder)
                time.sleep(0.2)
                with replace_file(folder / "result") as part:
                    part.write_text("half of ")
                    time.sleep(0.05)
                    part.write_text("half of it, and the other half")
        case "sleep":
            print("asleep", flush=True)
            time.sleep(float(value))
    return 0

host.serve_clients(run, MODULES, int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
"""


class Workflow:
    """A process that starts clients, and the processes and files that they leave."""

    def __init__(self, folder: Path, modules: tuple[str, ...] = ("json",)) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "client.py").write_text(CLIENT_PROGRAM)
        (folder / "served.py").write_text(HOST_PROGRAM.replace("MODULES", repr(modules)))
        source = str(Path(tasktransfer.__file__).parents[1])
        # A socket's name has at most 107 bytes, too few for pytest's folders.
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
        """Start a client, and return its name."""
        name = f"job{next(self.names)}"
        assert self.process.stdin is not None
        order = [name, [str(threads), *arguments], environment]
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return name

    def code(self, name: str) -> int:
        """Return a client's exit code."""
        file = self.folder / f"{name}.code"
        wait_until(file.exists)
        return int(file.read_text())

    def sleeper(self, **environment: str) -> str:
        """Start a client, wait until its child runs, and return its name."""
        name = self.client("sleep", "60", **environment)
        wait_until(lambda: "asleep" in self.out(name))
        return name

    def out(self, name: str, kind: str = "out") -> str:
        file = self.folder / f"{name}.{kind}"
        return file.read_text(errors="surrogateescape") if file.exists() else ""

    def living(self) -> dict[str, list[int]]:
        """Return the running processes by role."""
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
        """Return whether only hosts are left."""
        return not any(pids for role, pids in self.living().items() if role != "host")

    def end(self) -> None:
        """Kill the workflow, and wait until all its processes have ended."""
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not [*processes(self.folder)])

    def sockets(self) -> list[Path]:
        return [*self.locks.rglob("*.sock")]


def processes(folder: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Yield pid, parent and command words of a folder's processes, parents first, no zombies."""
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


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def under_fire(workflow: Workflow, kills: int, at_once: int, seed: int = 0) -> Counter[str]:
    """Compute results, ``at_once`` in parallel, while killing random processes.

    A client that fails is started again, as Snakemake would do.

    Returns:
        Number of kills by role of the process, and ``results``: number of results.
    """
    chance, toll = random.Random(seed), Counter[str]()
    running: dict[str, str] = {}
    while toll.total() - toll["results"] < kills or running:
        while len(running) < at_once and toll.total() - toll["results"] < kills:
            result = f"node{toll['results'] + len(running)}-{chance.random()}"
            running[workflow.client("make", result)] = result
        time.sleep(0.1 * chance.random())
        victims = [(pid, role) for role, pids in workflow.living().items() for pid in pids]
        if victims and toll.total() - toll["results"] < kills:
            pid, role = chance.choice(victims)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            toll[role] += 1
        for name, result in [*running.items()]:
            if not (workflow.folder / f"{name}.code").exists():
                continue
            del running[name]
            if workflow.code(name) == 0:
                toll["results"] += 1
            else:
                running[workflow.client("make", result)] = result
    return toll


def left_behind(workflow: Workflow) -> list[str]:
    """List leftovers that must not exist after a workflow: locks, partial files and results."""
    folder = workflow.folder
    left = [str(path) for path in folder.rglob(".claim") if locks.is_held(path)]
    left += [str(path) for path in folder.rglob("*/.*.part")]
    whole = "half of it, and the other half"
    left += [str(path) for path in folder.rglob("result") if path.read_text() != whole]
    made = len([*folder.rglob("result")])
    return left if made == len([*folder.glob("node*")]) else [*left, f"{made} results"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="host-kills-"))
    began = time.monotonic()
    workflow = Workflow(folder)
    toll = under_fire(workflow, chosen.kills, at_once=8, seed=chosen.seed)
    workflow.end()
    left = left_behind(workflow)
    print(f"{time.monotonic() - began:.0f} s: {dict(toll)}; left behind: {left or 'nothing'}")
    shutil.rmtree(workflow.locks)
    shutil.rmtree(folder)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
