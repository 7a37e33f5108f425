"""A host process that has already imported the libraries, and forks a child for each job.

Importing torch and transformers takes longer than a small training. Within a workflow on one
machine, the first ``tasktransfer train`` starts a host. This and all later clients pass their
arguments, environment, working directory and standard streams to the host. They return the exit
code of the child that does the training. If no suitable host can be used, a client imports the
libraries itself.

    client ── socket ── supervisor          the host forks a supervisor for each client,
                            └── child       which forks the child, which trains

No process is left over, whichever one dies. A client that ends closes its socket, and the
supervisor kills the child. The kernel kills supervisor and child when their parent ends. The client
of a dead host fails, and its job is tried again. The host ends after the workflow and its last job.

Linux only, with a Python that was built with ``os.pidfd_open`` (conda-forge's may lack it).
Standard library only: whoever starts the host passes the modules to import.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import tasktransfer
from tasktransfer.core.identity import compute_digest
from tasktransfer.errors import CONSOLE
from tasktransfer.files import locks
from tasktransfer.results.state import INTERRUPTED
from tasktransfer.training.device import get_batch_job, get_lock_folder

WORKFLOW = "TASKTRANSFER_WORKFLOW"
"""Environment variable with the process id of the Snakemake workflow whose jobs share a host."""

THREADS = {"OPENBLAS_NUM_THREADS": "1"}
"""Variables set for the host: a BLAS that starts threads on import does not survive a fork."""

SHELL_VARIABLES = frozenset({"_", "OLDPWD", "PWD", "SHLVL"})
"""Variables that no library reads; they may differ between the jobs of a workflow."""

_TAKEN, _INTERRUPT = b"+", b"!"
_KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


# --- the client ---------------------------------------------------------------------------------


def run_in_host(arguments: Sequence[str], threads: int, program: Sequence[str]) -> int | None:
    """Run a command in the workflow's host process, which is started if necessary.

    Args:
        arguments: arguments of the command.
        threads: CPU threads of the training. Libraries read the number on import, so a host serves
            one number of threads.
        program: command line that starts the host and calls ``serve`` with three more arguments.

    Returns:
        The command's exit code, or 128 plus the signal's number if a signal ended it. None if there
        is no suitable host, so the caller must run the command itself.
    """
    workflow = _find_workflow()
    if workflow is None:
        return None
    try:
        with _Host(workflow, threads).connect([*program]) as connection:
            return _request_job(connection, arguments, threads)
    except OSError:
        return None
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 128 + signal.SIGINT


def _request_job(connection: socket.socket, arguments: Sequence[str], threads: int) -> int | None:
    if not _belongs_to_user(connection):
        return None
    request = {
        "arguments": [*arguments],
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "key": _compute_environment_digest(threads),
    }
    socket.send_fds(connection, [_TAKEN], [0, 1, 2, *_list_console_descriptors()])
    connection.sendall(json.dumps(request).encode() + b"\n")
    before = signal.signal(signal.SIGINT, lambda *_: _send_interrupt(connection))
    try:
        return _read_exit_code(connection) if connection.recv(1) == _TAKEN else None
    finally:
        signal.signal(signal.SIGINT, before)


def _read_exit_code(connection: socket.socket) -> int:
    with suppress(OSError, ValueError), connection.makefile("rb") as stream:
        code = int(stream.readline())
        return code if code >= 0 else 128 - code
    print("error: The process that ran this job was killed. Try again.", file=sys.stderr)
    return 1


def _list_console_descriptors() -> list[int]:
    """Return a list with the console's file descriptor, or an empty list without a console."""
    with suppress(OSError, ValueError):
        number = int(os.environ.get(CONSOLE, ""))
        os.fstat(number)
        return [number]
    return []


def _send_interrupt(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.sendall(_INTERRUPT)


def _find_workflow() -> int | None:
    """Find the process ID of the workflow that started this job, or return None.

    The workflow must be an ancestor of this process. In a job on another machine, or in a shell
    that inherited the variable, the number has no meaning.
    """
    text = os.environ.get(WORKFLOW, "")
    if get_batch_job() is not None or not text.isdecimal() or not hasattr(os, "pidfd_open"):
        return None
    workflow, ancestor = int(text), os.getppid()
    while ancestor not in (0, workflow):
        try:
            stat = Path(f"/proc/{ancestor}/stat").read_text()
        except OSError:
            return None
        ancestor = int(stat.rpartition(")")[2].split()[1])
    return workflow if ancestor else None


def _compute_environment_digest(threads: int) -> str:
    """Return a digest of the environment and threads that jobs of one host must share.

    Libraries read the environment only once.
    """
    environment = {name: os.environ[name] for name in os.environ.keys() - SHELL_VARIABLES}
    return compute_digest([environment, threads])


@dataclass(frozen=True, slots=True)
class _Host:
    """The host of a workflow, for this checkout, version and user."""

    workflow: int
    threads: int

    def connect(self, program: list[str]) -> socket.socket:
        """Connect to the host process, which is started if necessary.

        Raises:
            OSError: the host cannot be started or reached.
        """
        path = self._locate_socket()
        with suppress(FileNotFoundError, ConnectionRefusedError):
            return _connect_socket(path)
        with (path.parent / ".lock").open("a") as stream:
            locks.wait_for_lock(stream.fileno(), lambda: None)
            with suppress(FileNotFoundError, ConnectionRefusedError):
                return _connect_socket(path)  # another client was faster
            _remove_stale_sockets(path.parent)
            path.unlink(missing_ok=True)
            self._start(path, program)
            return _connect_socket(path)

    def _locate_socket(self) -> Path:
        package = Path(tasktransfer.__file__).parent
        sources = sorted(package.rglob("*.py"))
        version = [[file.stat().st_mtime_ns, file.stat().st_size] for file in sources]
        name = compute_digest([str(package), sys.executable, version])
        folder = get_lock_folder() / "hosts"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / f"{self.workflow}-{name[:16]}.sock"

    def _start(self, path: Path, program: list[str]) -> None:
        """Start the host process on a socket that is already listening."""
        workflow = os.pidfd_open(self.workflow)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(128)
            numbers = listener.fileno(), workflow
            command = [*program, *map(str, numbers), _compute_environment_digest(self.threads)]
            threads = {"OMP_NUM_THREADS": str(max(1, self.threads)), **THREADS}
            quiet = subprocess.DEVNULL
            subprocess.Popen(
                command,
                env=os.environ | threads,
                pass_fds=numbers,
                start_new_session=True,  # Ctrl-C must reach only the clients
                stdin=quiet, stdout=quiet, stderr=quiet,
            )  # fmt: skip
        os.close(workflow)


def _connect_socket(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _remove_stale_sockets(folder: Path) -> None:
    """Remove the sockets of killed host processes whose workflows have ended."""
    for path in folder.glob("*.sock"):
        if not Path(f"/proc/{path.name.partition('-')[0]}").exists():
            path.unlink(missing_ok=True)


def _belongs_to_user(connection: socket.socket) -> bool:
    size = struct.calcsize("3i")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return bool(struct.unpack("3i", credentials)[1] == os.getuid())


# --- the host -----------------------------------------------------------------------------------


Command = Callable[[Sequence[str]], int]
"""Function that runs a command by its arguments and returns its exit code."""


def serve_clients(
    run: Command, modules: Sequence[str], listener: int, workflow: int, key: str
) -> None:
    """Import the libraries, and fork a process per client until the workflow ends.

    Args:
        run: function that a child runs.
        modules: modules to import beforehand.
        listener: descriptor of the listening socket.
        workflow: descriptor of the workflow's process.
        key: digest of the environment that all jobs share.
    """
    with socket.socket(fileno=listener) as queue:
        try:
            fit = _import_modules(modules)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps supervisors
            _start_supervisors(queue, workflow, key, run if fit else None)
        finally:
            Path(queue.getsockname()).unlink(missing_ok=True)
    with suppress(ChildProcessError):
        os.wait()  # returns after all have ended, since the kernel reaps them


def _import_modules(modules: Sequence[str]) -> bool:
    """Import modules, and return whether it is safe to fork this process."""
    gc.disable()  # imports create many objects but no garbage
    try:
        for module in modules:
            importlib.import_module(module)
    except Exception:  # a client that imports the modules itself reports the error
        return False
    gc.enable()
    gc.freeze()  # a garbage collection of these would copy their pages in every child
    # A fork copies one thread; locks held by other threads would never be released in the child.
    return len([*Path("/proc/self/task").iterdir()]) == 1


def _start_supervisors(queue: socket.socket, workflow: int, key: str, run: Command | None) -> None:
    """Fork a supervisor for each client until the workflow ends.

    Without ``run``, every connection is closed, and the clients run their jobs themselves.
    """
    host = os.getpid()
    while workflow not in _wait_for_readable(queue, workflow):
        connection, _ = queue.accept()
        with connection, suppress(OSError):  # if the fork fails, the client runs its job itself
            if run and not os.fork():
                queue.close()
                os.close(workflow)
                _run_client_job(connection, key, run, host)


def _run_client_job(connection: socket.socket, key: str, run: Command, host: int) -> NoReturn:
    try:
        _end_with_parent(host)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _, streams, _, _ = socket.recv_fds(connection, 1, 4)
        request = json.loads(connection.makefile("rb").readline() or "{}")
        if _belongs_to_user(connection) and request.get("key") == key and len(streams) >= 3:
            connection.sendall(_TAKEN)
            own = os.getpid()
            child = os.fork()
            if not child:
                connection.close()
                _run_in_child(request, streams, run, own)
            for stream in streams:
                os.close(stream)
            connection.sendall(b"%d\n" % _wait_for_child(child, connection))
    finally:
        os._exit(0)


def _wait_for_child(child: int, connection: socket.socket) -> int:
    """Wait for a child process, forwarding the signals of its client.

    Returns:
        The exit code, or the negative number of the signal that ended the child.
    """
    descriptor = os.pidfd_open(child)
    while descriptor not in _wait_for_readable(descriptor, connection):
        with suppress(OSError):
            if connection.recv(1) == _INTERRUPT:
                os.kill(child, signal.SIGINT)
                continue
        os.kill(child, signal.SIGKILL)  # the client is gone
        break
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _wait_for_readable(*either: int | socket.socket) -> list[Any]:
    """Wait until at least one of two file descriptors is readable, and return the readable ones.

    The descriptor of a process is readable after the process has ended.
    """
    return select.select(either, [], [])[0]


def _run_in_child(request: Any, streams: Sequence[int], run: Command, supervisor: int) -> NoReturn:
    code = 1
    try:
        _end_with_parent(supervisor)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, stream in enumerate(streams[:3]):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        if streams[3:]:
            os.environ[CONSOLE] = str(streams[3])
        code = run(request["arguments"])
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        code = 128 + signal.SIGINT
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _end_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(_KILL_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # it had ended before
        os._exit(1)
