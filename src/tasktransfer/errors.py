"""The errors that a user can mend, each with its own exit code.

Every message names the file, the key or instance, the value, and the remedy.
Anything else that escapes is a bug and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import sys
from contextlib import suppress
from traceback import walk_tb

CONSOLE = "TASKTRANSFER_CONSOLE"
"""The environment variable with the number of a descriptor to which an error is written that cannot
be written to standard error: in a workflow that is a log, which a full disk takes along."""


_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Control characters but for tabs and line ends, characters without a width, those that change the
direction of text, and halves of surrogate pairs."""
_LINE_ENDS = {ord("\n"): "\\n", ord("\t"): "\\t"}


def escape_text(text: str) -> str:
    """Return a text that is safe on a terminal: what cannot be seen, or moves what can, becomes
    ``\\x1b``. Line ends and tabs stay."""
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1], text)


def escape_line(text: str) -> str:
    """Return a text that is safe on a terminal and stays on its line."""
    return escape_text(text).translate(_LINE_ENDS)


def tell_note(text: str) -> None:
    """Print a note on standard error. It is one line, whatever file it quotes."""
    tell(f"note: {escape_line(text)}")


def tell(text: str) -> None:
    """Say something on standard error, or else on the console (``CONSOLE``)."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        with suppress(OSError, ValueError):
            os.write(int(os.environ.get(CONSOLE, "")), f"{text}\n".encode())


class TaskTransferError(Exception):
    """Base of all errors that the command line prints without a traceback. Their messages quote
    what files and configs hold, so that ``str`` escapes them for the terminal."""

    exit_code = 1

    def __str__(self) -> str:
        return escape_text(super().__str__())


class ConfigError(TaskTransferError):
    """The study asked for cannot be: unknown key, unknown name, impossible number."""

    exit_code = 2


class DataError(TaskTransferError):
    """The release on disk is damaged, incomplete or unsafe."""

    exit_code = 3


class ModelError(TaskTransferError):
    """A checkpoint cannot be loaded or does not fit its family."""

    exit_code = 4


class TrainingError(TaskTransferError):
    """A training cannot go on, for example because its loss is not a number."""

    exit_code = 5


class MemoryShortageError(TaskTransferError):
    """A training does not fit into memory, however small its micro-batches, or a command not into
    what its process may have. Worth another try: on a larger device or with a higher limit, or
    once whatever else held the memory is gone."""

    exit_code = 8


class RecordError(TaskTransferError):
    """A run record is damaged, of another schema, or contradicts its predictions."""

    exit_code = 6


class SubmissionError(TaskTransferError):
    """A challenge submission breaks the format. The message lists what is wrong, each finding with
    its file and line."""

    exit_code = 9


class EndpointError(TaskTransferError):
    """An endpoint does not answer, or not what it is asked. What it has answered is kept."""

    exit_code = 10


class StorageError(TaskTransferError):
    """The disk is full, the quota used up, or a folder cannot be written. Nothing is lost: what is
    finished stays, and the next start goes on from there."""

    exit_code = 7


_STORAGE = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some of your quota",
    errno.EROFS: "the file system is mounted read-only; put `results` of the config elsewhere",
    errno.EACCES: "make it writable for you, or put `results` of the config elsewhere",
    errno.EISDIR: "give the name of a file",
    errno.EEXIST: "a file stands where a folder should be; give another place",
    errno.EFBIG: "this shell limits the size of files: raise the limit (ulimit -f unlimited)",
    errno.EMFILE: "this shell limits the number of open files: raise the limit (ulimit -n 4096)",
    errno.ENOTDIR: "a file stands where a folder should be; give another place",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.EPERM: "make it writable for you, or put `results` of the config elsewhere",
}


def storage_error(error: BaseException) -> StorageError | None:
    """A failed write as an error with its remedy; None if ``error`` is something else.

    Libraries that write by themselves (safetensors, torch) report the cause in their text only.
    """
    code = error.errno if isinstance(error, OSError) else None
    text = str(error)
    for number, remedy in _STORAGE.items():
        if code == number or os.strerror(number) in text:
            where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
            return StorageError(
                f"{where}{os.strerror(number)}. Nothing that was finished is lost: {remedy} and "
                "start again"
            )
    return None


_MEMORY = (
    os.strerror(errno.ENOMEM),
    "failed to map segment",  # a library that cannot be loaded
    "can't allocate memory",  # torch
    "can't start new thread",
    "bad_alloc",
)

LEAST_MEMORY_MB = 1024
"""Address space below which the libraries of tables and trainings abort the process, each in its
own way; above it they raise errors."""


def memory_shortage(error: BaseException) -> MemoryShortageError | None:
    """A process that got no memory, wherever it failed; None if ``error`` is something else."""
    cause: BaseException | None = error
    while cause is not None:
        text = str(cause)
        if isinstance(cause, MemoryError) or any(part in text for part in _MEMORY):
            reason = text.splitlines()[0] if text else type(cause).__name__
            return MemoryShortageError(f"out of memory ({reason}). {_more_memory()}")
        cause = cause.__cause__ or cause.__context__
    return None


def refuse_little_memory() -> None:
    """Raise where the shell limits the memory to less than any library takes.

    Raises:
        MemoryShortageError: the limit is below ``LEAST_MEMORY_MB``.
    """
    limit = _memory_limit_mb()
    if limit is not None and limit < LEAST_MEMORY_MB:
        raise MemoryShortageError(
            f"out of memory: this command takes {LEAST_MEMORY_MB:,} MB at least. {_more_memory()}"
        )


def _memory_limit_mb() -> int | None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit // 2**20


def _more_memory() -> str:
    limit = _memory_limit_mb()
    if limit is not None:
        return f"This shell limits it to {limit:,} MB: raise the limit (ulimit -v unlimited)"
    return "End what else uses the memory, or take a machine with more, and start again"


def mendable(error: BaseException) -> TaskTransferError | None:
    """An error of the disk or of memory, whatever library it comes from, with its remedy; None if
    ``error`` is something else."""
    return storage_error(error) or memory_shortage(error)


PLUGIN_PREFIX = "tasktransfer_plugin_"
"""Beginning of the module names of a study's plugins."""
LONGEST = 300
"""Characters of a foreign error's text that are shown."""


def plugin_error(error: BaseException) -> ConfigError | None:
    """Return an error that a plugin's code raised, with its line; None for other errors."""
    line = find_plugin_line(error)
    if line is None:
        return None
    return ConfigError(f"{line}: this plugin raised {describe_error(error)}. Mend it there")


def find_plugin_line(error: BaseException) -> str | None:
    """Return the last line of a plugin that an error came through, as ``file:line``."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    lines = [
        f"{frame.f_code.co_filename}:{number}"
        for frame, number in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).startswith(PLUGIN_PREFIX)
    ]
    return lines[-1] if lines else None


def describe_error(error: BaseException) -> str:
    """Return the type and text of an error of any library in one printable line."""
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # its own __str__ is at fault
        text = "an error without a text"
    line = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__
