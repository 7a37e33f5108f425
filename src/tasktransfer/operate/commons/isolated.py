"""Unpacking of untrusted packs in a separate process.

If a pack crashes the libraries that read it, hangs, or takes gigabytes, only that process ends, and
the pack is rejected. The parent sends one line of JSON per pack and receives one line. Unpacked
nodes are written into a folder.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tasktransfer.config import CommonConfig
from tasktransfer.errors import RecordError, StorageError, as_storage_error
from tasktransfer.results.revisions import cache_revisions

MOST_MEMORY = 288 * 2**20
"""Memory limit of the process in bytes, on Linux; with the libraries, less than 400 MiB."""
SECONDS = 10
SECONDS_PER_MIB = 10
"""Processor time per pack, and per MiB of its file. The shipped matrix (1.9 MiB) takes 16 s."""
INPUTS = ("data", "models", "parameters", "brought")
"""Kinds of inputs whose revisions a pack has, as ``cache_revisions`` takes them."""
SENT_KEYS = ("by", *INPUTS)
"""Keys of a footer that are sent to the parent."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(frozen=True, slots=True)
class PackFacts:
    """The SHA-256 of a pack and the entries of its footer (``SENT_KEYS``).

    ``problem``: reason why it cannot be read; empty if it can.
    """

    sha256: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


class PackReader:
    """Process that reads packs; use it as a context manager.

    It starts with the first pack, and starts again after a pack that ended it.

    Args:
        follow_links: whether a pack may be a symbolic link.
    """

    def __init__(self, *, follow_links: bool = True) -> None:
        self._follow_links = follow_links
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> PackReader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._stop()

    def read_facts(self, file: Path) -> PackFacts:
        """Read the facts in a pack's footer, or return the problem that prevents it."""
        return PackFacts(**self._send_request(file, None))

    def unpack_nodes(self, file: Path, folder: Path) -> None:
        """Write the nodes of a pack into an empty folder.

        Raises:
            RecordError: the pack is damaged or too large, or ended the process.
            StorageError: the disk is full.
        """
        answer = self._send_request(file, folder)
        if "full" in answer:
            raise StorageError(str(answer["full"]))
        if "problem" in answer:
            raise RecordError(str(answer["problem"]))

    def _send_request(self, file: Path, folder: Path | None) -> dict[str, Any]:
        process = self._process = self._process or _start_process()
        assert process.stdin is not None and process.stdout is not None
        request = {
            "file": os.fspath(file),
            "follow_links": self._follow_links,
            "folder": folder and os.fspath(folder),
        }
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            answer = {"problem": f"{file}: {self._stop()}"}
        if answer.pop("exhausted", False):
            self._stop()  # so that the next pack starts with all of the memory
        return dict(answer)

    def _stop(self) -> str:
        """Stop the process, and return the reason if it had crashed."""
        process, self._process = self._process, None
        if process is None:
            return ""
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        code = process.wait()
        if code == -signal.SIGPROF:
            return "The pack takes too long to read. Pack less into one file."
        return (
            "The pack is damaged or malicious, because the process that read it crashed (exit "
            f"code {code}). Get the file again from its author."
        )


@contextmanager
def unpack_records(file: Path, config: CommonConfig) -> Iterator[Path]:
    """Unpack the records of a pack into a temporary results folder.

    Revisions of its inputs that are unknown here are cached for the config's study.

    Raises:
        RecordError: the pack, or a record or rows in it, are damaged or in the wrong folder.
    """
    with PackReader() as reader, TemporaryDirectory(prefix="tasktransfer-") as folder:
        read = reader.read_facts(file)
        if read.problem:
            raise RecordError(read.problem)
        facts = read.facts
        cache_revisions(config, *(facts[kind] for kind in INPUTS))
        reader.unpack_nodes(file, Path(folder))
        yield Path(folder)


# --- the process --------------------------------------------------------------------------------


def _start_process() -> subprocess.Popen[str]:
    # -P: the working directory may be a folder of shards that contains modules.
    # The system memory pool is covered by the memory limit.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tasktransfer.operate.commons.isolated"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        text=True,
        encoding="utf-8",
    )


def serve_requests() -> None:
    """Answer the requests of the parent process, one per line, until it closes the pipe."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_process_pack(**request)), flush=True)


def _process_pack(file: str, folder: str | None, *, follow_links: bool) -> dict[str, Any]:
    """Read a pack's facts or write its nodes, as requested, and return the answer."""
    from tasktransfer.operate.commons.read_packs import read_pack, write_nodes  # noqa: PLC0415

    with suppress(OSError):
        seconds = SECONDS + SECONDS_PER_MIB * Path(file).stat().st_size / 2**20
        signal.setitimer(signal.ITIMER_PROF, seconds)
    sha256 = ""
    try:
        pack = read_pack(Path(file), follow_links=follow_links)
        sha256 = pack.sha256
        if folder is None:
            return {"sha256": sha256, "facts": {key: pack.facts[key] for key in SENT_KEYS}}
        write_nodes(pack, Path(folder))
        return {}
    except RecordError as error:
        return {"sha256": sha256, "problem": str(error)}
    except MemoryError:
        limit = MOST_MEMORY // 2**20
        what = f"The pack takes more than {limit} MiB of memory. Pack less into one file."
        return {"sha256": sha256, "problem": f"{file}: {what}", "exhausted": True}
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            return {"full": str(as_storage_error(error))}
        # Libraries may raise any exception on invalid bytes.
        what = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        return {"sha256": sha256, "problem": f"{file}: The pack cannot be read ({what:.200})"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    serve_requests()
