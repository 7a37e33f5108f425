"""A process that has imported the libraries already, and forks a child for each training and each
other job that needs them.

Importing torch and transformers takes longer than a small training. Within a workflow on one
machine the first ``tasktransfer train`` starts a host; it and all later ones hand over their
arguments, environment, working directory and standard streams, and return the exit code of the
child that does the training. Where there is no host, or none that fits, they import by themselves.

    client ── socket ── supervisor          the host forks a supervisor for each client,
                            └── child       and that one the child, which trains

Nobody stays behind, whoever dies. A client that ends closes its socket, and the supervisor kills
the child. Supervisor and child are killed by the kernel when their parent ends, and the client of a
dead host fails; its job is tried again. The host ends with the workflow, once nobody needs it.

Linux only (and there a Python that was built with ``os.pidfd_open``, which conda-forge's may not
be), and standard library only: what is imported beforehand is told by whoever starts it.
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
from tasktransfer.core.digests import digest_of
from tasktransfer.errors import CONSOLE
from tasktransfer.files import locks
from tasktransfer.results.state import INTERRUPTED
from tasktransfer.training.device import batch_job, lock_folder

WORKFLOW = "TASKTRANSFER_WORKFLOW"
"""The environment variable that names the Snakemake process whose trainings share a host."""

THREADS = {"OPENBLAS_NUM_THREADS": "1"}
"""Set for the host: a BLAS that starts its threads when it is imported does not survive a fork."""

OF_SHELLS = frozenset({"_", "OLDPWD", "PWD", "SHLVL"})
"""Variables that no library reads, and that may differ between the jobs of a workflow."""

_TAKEN, _INTERRUPT = b"+", b"!"
_KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


# --- the client ---------------------------------------------------------------------------------


def ask(arguments: Sequence[str], threads: int, program: Sequence[str]) -> int | None:
    """Have a command done by the workflow's host, which is started if there is none.

    Args:
        arguments: of the command.
        threads: CPU threads of the training; libraries read their number when they are imported,
            so that a host serves one number.
        program: how the host is started; it calls ``serve`` with the three arguments that follow.

    Returns:
        The command's exit code, 128 and the signal's number if a signal ended it; None: there is
        no host for it, and the caller is to do it.
    """
    workflow = _workflow()
    if workflow is None:
        return None
    try:
        with _Host(workflow, threads).connection([*program]) as connection:
            return _asked(connection, arguments, threads)
    except OSError:
        return None
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 128 + signal.SIGINT


def _asked(connection: socket.socket, arguments: Sequence[str], threads: int) -> int | None:
    if not _is_of_this_user(connection):
        return None
    request = {
        "arguments": [*arguments],
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "key": _key(threads),
    }
    socket.send_fds(connection, [_TAKEN], [0, 1, 2, *_console()])
    connection.sendall(json.dumps(request).encode() + b"\n")
    before = signal.signal(signal.SIGINT, lambda *_: _interrupt(connection))
    try:
        return _answered(connection) if connection.recv(1) == _TAKEN else None
    finally:
        signal.signal(signal.SIGINT, before)


def _answered(connection: socket.socket) -> int:
    with suppress(OSError, ValueError), connection.makefile("rb") as stream:
        code = int(stream.readline())
        return code if code >= 0 else 128 - code
    print("error: the process that trained for this one was killed; try again", file=sys.stderr)
    return 1


def _console() -> list[int]:
    """The descriptor for what cannot be written to the log, if there is one."""
    with suppress(OSError, ValueError):
        number = int(os.environ.get(CONSOLE, ""))
        os.fstat(number)
        return [number]
    return []


def _interrupt(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.sendall(_INTERRUPT)


def _workflow() -> int | None:
    """The workflow that this process is a job of: its process is one of our ancestors. Elsewhere
    (a job on another machine, a shell that inherited the variable) the number means nothing."""
    text = os.environ.get(WORKFLOW, "")
    if batch_job() is not None or not text.isdecimal() or not hasattr(os, "pidfd_open"):
        return None
    workflow, ancestor = int(text), os.getppid()
    while ancestor not in (0, workflow):
        try:
            stat = Path(f"/proc/{ancestor}/stat").read_text()
        except OSError:
            return None
        ancestor = int(stat.rpartition(")")[2].split()[1])
    return workflow if ancestor else None


def _key(threads: int) -> str:
    """What the trainings of a host have in common: libraries read the environment once."""
    environment = {name: os.environ[name] for name in os.environ.keys() - OF_SHELLS}
    return digest_of([environment, threads])


@dataclass(frozen=True, slots=True)
class _Host:
    """The host of a workflow, for this checkout, version and user."""

    workflow: int
    threads: int

    def connection(self, program: list[str]) -> socket.socket:
        """A connection to it, running or just started. Raises OSError where that cannot be."""
        path = self._place()
        with suppress(FileNotFoundError, ConnectionRefusedError):
            return _connected(path)
        with (path.parent / ".lock").open("a") as stream:
            locks.wait(stream.fileno(), lambda: None)
            with suppress(FileNotFoundError, ConnectionRefusedError):
                return _connected(path)  # another client was quicker
            _sweep(path.parent)
            path.unlink(missing_ok=True)
            self._start(path, program)
            return _connected(path)

    def _place(self) -> Path:
        package = Path(tasktransfer.__file__).parent
        sources = sorted(package.rglob("*.py"))
        version = [[file.stat().st_mtime_ns, file.stat().st_size] for file in sources]
        name = digest_of([str(package), sys.executable, version])
        folder = lock_folder() / "hosts"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / f"{self.workflow}-{name[:16]}.sock"

    def _start(self, path: Path, program: list[str]) -> None:
        """Start it on a socket that listens already: clients wait in its queue meanwhile."""
        workflow = os.pidfd_open(self.workflow)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(128)
            numbers = listener.fileno(), workflow
            command = [*program, *map(str, numbers), _key(self.threads)]
            threads = {"OMP_NUM_THREADS": str(max(1, self.threads)), **THREADS}
            quiet = subprocess.DEVNULL
            subprocess.Popen(
                command,
                env=os.environ | threads,
                pass_fds=numbers,
                start_new_session=True,  # Ctrl-C is for the clients
                stdin=quiet, stdout=quiet, stderr=quiet,
            )  # fmt: skip
        os.close(workflow)


def _connected(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _sweep(folder: Path) -> None:
    """Remove the sockets of hosts that were killed, and whose workflows are gone too."""
    for path in folder.glob("*.sock"):
        if not Path(f"/proc/{path.name.partition('-')[0]}").exists():
            path.unlink(missing_ok=True)


def _is_of_this_user(connection: socket.socket) -> bool:
    size = struct.calcsize("3i")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return bool(struct.unpack("3i", credentials)[1] == os.getuid())


# --- the host -----------------------------------------------------------------------------------


Command = Callable[[Sequence[str]], int]
"""Runs a command by its arguments; the exit code."""


def serve(run: Command, modules: Sequence[str], listener: int, workflow: int, key: str) -> None:
    """Import what trainings need, and fork for each client until the workflow is gone and the last
    training done.

    Args:
        run: what a child does.
        modules: what is imported beforehand.
        listener: a listening socket's descriptor.
        workflow: a descriptor of the workflow's process.
        key: what the environments of the trainings have in common.
    """
    with socket.socket(fileno=listener) as queue:
        try:
            fit = _import(modules)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries supervisors
            _fork_for_each(queue, workflow, key, run if fit else None)
        finally:
            Path(queue.getsockname()).unlink(missing_ok=True)
    with suppress(ChildProcessError):
        os.wait()  # for all of them, since they are not reported one by one


def _import(modules: Sequence[str]) -> bool:
    """Import them; whether this process may be forked now."""
    gc.disable()  # imports make many objects and no garbage
    try:
        for module in modules:
            importlib.import_module(module)
    except Exception:  # whoever trains by itself meets it as well, and says so
        return False
    gc.enable()
    gc.freeze()  # a pass over these would copy their pages in every child
    # A fork copies one thread; what others have locked would stay locked in the child for ever.
    return len([*Path("/proc/self/task").iterdir()]) == 1


def _fork_for_each(queue: socket.socket, workflow: int, key: str, run: Command | None) -> None:
    """Until the workflow ends; without ``run`` every client is sent away, and trains by itself."""
    host = os.getpid()
    while workflow not in _readable(queue, workflow):
        connection, _ = queue.accept()
        with connection, suppress(OSError):  # without a fork the client trains by itself
            if run and not os.fork():
                queue.close()
                os.close(workflow)
                _supervise(connection, key, run, host)


def _supervise(connection: socket.socket, key: str, run: Command, host: int) -> NoReturn:
    try:
        _die_with(host)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _, streams, _, _ = socket.recv_fds(connection, 1, 4)
        request = json.loads(connection.makefile("rb").readline() or "{}")
        if _is_of_this_user(connection) and request.get("key") == key and len(streams) >= 3:
            connection.sendall(_TAKEN)
            own = os.getpid()
            child = os.fork()
            if not child:
                connection.close()
                _train(request, streams, run, own)
            for stream in streams:
                os.close(stream)
            connection.sendall(b"%d\n" % _ended(child, connection))
    finally:
        os._exit(0)


def _ended(child: int, connection: socket.socket) -> int:
    """Wait for a child, and hand on what its client says; the exit code, or a signal's number
    below zero."""
    descriptor = os.pidfd_open(child)
    while descriptor not in _readable(descriptor, connection):
        with suppress(OSError):
            if connection.recv(1) == _INTERRUPT:
                os.kill(child, signal.SIGINT)
                continue
        os.kill(child, signal.SIGKILL)  # the client is gone
        break
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _readable(*either: int | socket.socket) -> list[Any]:
    """Wait for one of two descriptors; those that can be read. A process's can once it ended."""
    return select.select(either, [], [])[0]


def _train(request: Any, streams: Sequence[int], run: Command, supervisor: int) -> NoReturn:
    code = 1
    try:
        _die_with(supervisor)
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


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(_KILL_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # it had ended before
        os._exit(1)
