"""A real Slurm on this machine during a test: a controller and virtual nodes on loopback.

It only needs Debian's packages slurmctld, slurmd and slurm-client: no root, no munge, no cgroups,
no accounting. Nodes have fake GPUs: links to /dev/null, which Slurm counts and lists in
CUDA_VISIBLE_DEVICES like real ones.

Daemons are child processes that the kernel ends with this process, even if a test is killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel", "sinfo", "srun")
PACKAGES = "slurmctld slurmd slurm-client"
GPUS = 2
CPUS = 4

SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
"""PATH that includes the folders of daemons."""

CONFIG = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
# Daemons bind to loopback only.
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/none
CredType=cred/none
# A job whose node was lost waits this long before it starts again; two minutes by default.
AuthInfo=cred_expire=5
# A node that does not answer is given up soon.
TCPTimeout=2
MessageTimeout=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
# No cgroups.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,bf_interval=1,requeue_delay=1
# A lost node is noticed soon, and comes back when its daemon does.
SlurmdTimeout=8
ReturnToService=2
# More CPUs than the machine has.
SlurmdParameters=config_overrides
GresTypes=gpu
# At least three times the plugin's first wait, or it asks sacct.
MinJobAge=300
KillWait=2
MpiDefault=none
DefMemPerCPU=100
NodeName=n[1-{nodes}] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[2]}] \
CPUs={cpus} RealMemory=64000 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=1-00:00:00 State=UP
"""

GRES = """\
AutoDetect=off
NodeName=n[1-{nodes}] Name=gpu File={folder}/dev/nvidia[0-{last}] Flags=nvidia_gpu_env
"""


def missing_programs() -> list[str]:
    """Return the programs that the cluster needs but that are not installed."""
    needed = (*PROGRAMS, "setpriv")
    return [name for name in needed if shutil.which(name, path=SEARCH_PATH) is None]


@dataclass(frozen=True)
class Cluster:
    """A running cluster. ``environment``: variables that its client programs need."""

    folder: Path
    environment: dict[str, str]
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """Daemons of the controller and of the nodes, by name."""

    def call(self, *words: str) -> str:
        """Run one of Slurm's programs, and return its output."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.strip()

    def jobs(self, *states: str) -> dict[str, str]:
        """Return job id → name for jobs in the queue, limited to the given states if any."""
        chosen = [f"--states={','.join(states)}"] if states else []
        lines = self.call("squeue", "--noheader", "--format=%i|%j|%T|%N", *chosen).splitlines()
        return {line.split("|")[0]: line.split("|")[1] for line in lines}

    def state_of(self, node: str) -> str:
        """Return the node's state: idle, mixed, drained, down ..."""
        return self.call("sinfo", "--noheader", f"--nodes={node}", "--format=%T")

    def drain(self, node: str) -> None:
        """Stop a node from accepting further jobs."""
        self.call("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")

    def kill(self, job: str) -> None:
        """Kill all processes of a job with SIGKILL."""
        self._kill_all(f"SLURM_JOB_ID={job}")

    def lose(self, node: str) -> None:
        """Kill a node's daemon and all its processes without notifying the controller."""
        # First the daemon, then its slurmstepd processes, so that neither reports the failure.
        daemon = self.daemons.pop(node)
        daemon.kill()
        daemon.wait()
        self._kill_all(f"SLURMD_NODENAME={node}", shepherds=True)

    def revive(self, node: str) -> None:
        """Start a node's daemon, again if it was lost."""
        self.start(node, "slurmd", "-N", node)

    def start(self, name: str, program: str, *words: str) -> None:
        """Start a daemon that ends with this process."""
        found = shutil.which(program, path=SEARCH_PATH) or program
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self.daemons[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", found, "-D", *words],
                env=self.environment,
                stdout=log,
                stderr=log,
            )

    def processes(self, *marks: str) -> list[int]:
        """Return the processes in this cluster's environment that have these variables."""
        wanted = {f"SLURM_CONF={self.folder / 'etc' / 'slurm.conf'}", *marks}
        pids = (int(process.name) for process in Path("/proc").glob("[0-9]*"))
        return [
            pid
            for pid in pids
            if wanted <= {f"{name}={value}" for name, value in environment_of(pid).items()}
        ]

    def _kill_all(self, mark: str, shepherds: bool = False) -> None:
        """Kill every process with a variable, and those started while the others were listed."""
        deadline, quiet = time.monotonic() + 20, 0
        while quiet < 3 and time.monotonic() < deadline:
            jobs = self.processes(mark)
            _kill([*_shepherds(jobs), *jobs] if shepherds else jobs)
            quiet = 0 if jobs else quiet + 1
            time.sleep(0.1)

    def stop(self) -> None:
        """End every daemon and its processes, and wait until they are gone."""
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait()
        # Processes of jobs and helpers of daemons, but not the programs of a test.
        jobs = [pid for pid in self.processes() if "SLURM_JOB_ID" in environment_of(pid)]
        victims = [*_shepherds(jobs), *jobs]
        _kill(victims)
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() for pid in victims) and time.monotonic() < deadline:
            time.sleep(0.05)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def command_of(pid: int) -> list[str]:
    """Return a process's command line; empty if it has ended."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
        return text.rstrip("\0").split("\0")
    return []


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment of a process at its start; empty if it has ended."""
    with suppress(OSError):
        entries = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace")
        return dict(entry.partition("=")[::2] for entry in entries.split("\0"))
    return {}


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _shepherds(jobs: list[int]) -> list[int]:
    """Return the slurmstepd processes that are parents of jobs' processes."""
    found = set()
    for pid in jobs:
        above = _parent(pid)
        while above > 1:
            if "".join(command_of(above)[:1]).startswith("slurmstepd"):
                found.add(above)
            above = _parent(above)
    return sorted(found)


@contextmanager
def cluster(folder: Path, nodes: int = 2) -> Iterator[Cluster]:
    """Start a cluster under ``folder``, and stop it completely when the block ends."""
    _lay_out(folder, nodes)
    environment = {
        **os.environ,
        "SLURM_CONF": str(folder / "etc" / "slurm.conf"),
        # Slurm's programs and this project's.
        "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{SEARCH_PATH}",
    }
    made = Cluster(folder, environment)
    try:
        made.start("controller", "slurmctld", "-c")
        for number in range(1, nodes + 1):
            made.revive(f"n{number}")
        _wait_until_idle(made, nodes)
        yield made
    finally:
        made.stop()


def _lay_out(folder: Path, nodes: int) -> None:
    for name in ("etc", "state", "log", "dev", "bin"):
        (folder / name).mkdir(parents=True)
    for number in range(1, nodes + 1):
        (folder / "spool" / f"n{number}").mkdir(parents=True)
    for number in range(GPUS):
        (folder / "dev" / f"nvidia{number}").symlink_to("/dev/null")
    first = _free_ports(nodes + 1)
    values = {
        "folder": folder,
        "nodes": nodes,
        "user": os.getuid(),
        "ports": (first, first + 1, first + nodes),
        "cpus": CPUS,
        "gpus": GPUS,
        "last": GPUS - 1,
    }
    (folder / "etc" / "slurm.conf").write_text(CONFIG.format(**values))
    (folder / "etc" / "gres.conf").write_text(GRES.format(**values))
    # The plugin removes SLURM_CONF from the environment of srun inside a job.
    shim = folder / "bin" / "srun"
    real = shutil.which("srun", path=SEARCH_PATH)
    shim.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/etc/slurm.conf exec {real} "$@"\n')
    shim.chmod(0o755)


def _free_ports(count: int) -> int:
    """Return the first of ``count`` consecutive free ports."""
    for first in range(26817, 36000, 16):
        sockets = []
        try:
            for port in range(first, first + count):
                one = socket.socket()
                sockets.append(one)
                one.bind(("127.0.0.1", port))
        except OSError:
            continue
        else:
            return first
        finally:
            for one in sockets:
                one.close()
    raise RuntimeError("no free ports on loopback")


def _wait_until_idle(made: Cluster, nodes: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(subprocess.SubprocessError):
            if made.call("sinfo", "--noheader", "--states=idle", "--format=%D") == str(nodes):
                return
        time.sleep(0.2)
    log = (made.folder / "log" / "slurmctld.log").read_text()[-3000:]
    raise RuntimeError(f"the cluster did not come up: {log}")
