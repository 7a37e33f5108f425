"""Errors that a user can fix, each with its own exit code, and the parts of their messages.

Every message names the file, the key or instance, the value, and the remedy. Any other exception
is a bug and keeps its traceback. Every command imports this module: standard library only.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from traceback import walk_tb
from typing import Any

CONSOLE = "TASKTRANSFER_CONSOLE"
"""Environment variable with the number of a fallback file descriptor for errors.

It is used if standard error cannot be written. In a workflow standard error is a log file, which
cannot be written if the disk is full.
"""


_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that are escaped on a terminal.

They are control characters except tabs and line ends, characters without a width, characters that
change the text direction, and halves of surrogate pairs.
"""
_LINE_ENDS = {ord("\n"): "\\n", ord("\t"): "\\t"}


def escape_text(text: str) -> str:
    r"""Escape control characters, so that a text is safe to print on a terminal.

    Invisible characters and control sequences are escaped, as in ``\x1b``. Line ends and tabs
    stay.
    """
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1], text)


def escape_line(text: str) -> str:
    """Escape control characters and line ends, so that a text is a single safe line."""
    return escape_text(text).translate(_LINE_ENDS)


def print_note(text: str) -> None:
    """Print a note on standard error in one line, with line ends escaped."""
    print_message(f"note: {escape_line(text)}")


def print_message(text: str) -> None:
    """Print a message to standard error, or to the console (``CONSOLE``) if that fails."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        with suppress(OSError, ValueError):
            os.write(int(os.environ.get(CONSOLE, "")), f"{text}\n".encode())


class TaskTransferError(Exception):
    """Base class of all errors that the command line prints without a traceback.

    Messages quote files and configs, so ``str`` escapes them for the terminal.
    """

    exit_code = 1

    def __str__(self) -> str:
        return escape_text(super().__str__())


class ConfigError(TaskTransferError):
    """The config is not valid: unknown key, unknown name, or impossible number."""

    exit_code = 2


class DataError(TaskTransferError):
    """The release on disk is damaged, incomplete or unsafe."""

    exit_code = 3


class ModelError(TaskTransferError):
    """A checkpoint cannot be loaded or does not fit its family."""

    exit_code = 4


class TrainingError(TaskTransferError):
    """A training run cannot continue, for example because its loss is NaN."""

    exit_code = 5


class MemoryShortageError(TaskTransferError):
    """A training run or command does not fit into memory.

    A training run does not fit even with its smallest micro-batch. A command does not fit into the
    memory limit of its process. Try again on a larger device, with a higher limit, or when other
    processes have freed their memory.
    """

    exit_code = 8


class RecordError(TaskTransferError):
    """A run record is damaged, has another schema, or contradicts its predictions."""

    exit_code = 6


class SubmissionError(TaskTransferError):
    """A challenge submission violates the format.

    The message lists all problems, each with its file and line.
    """

    exit_code = 9


class EndpointError(TaskTransferError):
    """An endpoint does not respond, or its response is not valid. Earlier responses are kept."""

    exit_code = 10


class StorageError(TaskTransferError):
    """The disk is full, the quota is exhausted, or a folder cannot be written.

    Finished results are kept, and the next start resumes from them.
    """

    exit_code = 7


_STORAGE = {
    errno.ENOSPC: "Free some space",
    errno.EDQUOT: "Free some of your quota",
    errno.EROFS: "Set `results` in the config to a folder on a writable file system",
    errno.EACCES: "Make it writable for you, or set `results` in the config to another folder",
    errno.EISDIR: "Specify a file",
    errno.EEXIST: "Choose another path, because a file has the name of the folder",
    errno.EFBIG: "Raise this shell's limit on the size of files (ulimit -f unlimited)",
    errno.EMFILE: "Raise this shell's limit on the number of open files (ulimit -n 4096)",
    errno.ENOTDIR: "Choose another path, because a file has the name of a folder",
    errno.ENAMETOOLONG: "Choose a shorter name",
    errno.EPERM: "Make it writable for you, or set `results` in the config to another folder",
}


def as_storage_error(error: BaseException) -> StorageError | None:
    """Convert a failed write to an error with a remedy, or return None for other errors.

    Libraries that write files (safetensors, torch) report the cause only in the error's text.
    """
    code = error.errno if isinstance(error, OSError) else None
    text = str(error)
    for number, remedy in _STORAGE.items():
        if code == number or os.strerror(number) in text:
            where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
            return StorageError(
                f"{where}{os.strerror(number)}. {remedy}, and start again. Finished results are "
                "kept."
            )
    return None


_MEMORY = (
    os.strerror(errno.ENOMEM),
    "failed to map segment",  # the dynamic linker, for a shared library
    "can't allocate memory",  # torch
    "can't start new thread",
    "bad_alloc",
)

LEAST_MEMORY_MB = 1024
"""Address space below which torch and the table libraries abort the process.

With more address space they raise errors.
"""


def as_memory_shortage(error: BaseException) -> MemoryShortageError | None:
    """Convert a failed memory allocation to an error, or return None for other errors."""
    cause: BaseException | None = error
    while cause is not None:
        text = str(cause)
        if isinstance(cause, MemoryError) or any(part in text for part in _MEMORY):
            reason = text.splitlines()[0] if text else type(cause).__name__
            return MemoryShortageError(
                f"The command ran out of memory ({reason}). {_recommend_more_memory()}"
            )
        cause = cause.__cause__ or cause.__context__
    return None


def check_memory_limit() -> None:
    """Raise an error if the shell's memory limit is below what the libraries need.

    Raises:
        MemoryShortageError: the limit is below ``LEAST_MEMORY_MB``.
    """
    limit = _read_memory_limit_mb()
    if limit is not None and limit < LEAST_MEMORY_MB:
        raise MemoryShortageError(
            f"The command would run out of memory, because it needs {LEAST_MEMORY_MB:,} MB. "
            f"{_recommend_more_memory()}"
        )


def _read_memory_limit_mb() -> int | None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit // 2**20


def _recommend_more_memory() -> str:
    limit = _read_memory_limit_mb()
    if limit is not None:
        return f"Raise this shell's limit of {limit:,} MB (ulimit -v unlimited)."
    return "Stop other processes, or use a machine with more memory, and start again."


def as_fixable_error(error: BaseException) -> TaskTransferError | None:
    """Convert a disk or memory error from any library, or return None for other errors."""
    return as_storage_error(error) or as_memory_shortage(error)


PLUGIN_PREFIX = "tasktransfer_plugin_"
"""Prefix of the module names of a study's plugins."""
LONGEST = 300
"""Maximum number of characters that are shown of a library's error text."""


def as_plugin_error(error: BaseException) -> ConfigError | None:
    """Convert an error in a plugin to an error that names its line, or return None for others."""
    line = find_plugin_line(error)
    if line is None:
        return None
    return ConfigError(f"{line}: The plugin raised {describe_error(error)}. Fix the plugin.")


def find_plugin_line(error: BaseException) -> str | None:
    """Find the innermost line of a plugin in an error's traceback, as ``file:line``."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    lines = [
        f"{frame.f_code.co_filename}:{number}"
        for frame, number in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).startswith(PLUGIN_PREFIX)
    ]
    return lines[-1] if lines else None


def describe_error(error: BaseException) -> str:
    """Describe any error by its type and text in one printable line."""
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # the error's own __str__ fails
        text = "an error without a text"
    line = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__


def format_location(file: str | Path, line: int | None = None, column: int | None = None) -> str:
    """Format ``file:line:column``, numbered from 1, without numbers that are None.

    Terminals and editors turn it into a link.
    """
    return ":".join(str(part) for part in (file, line, column) if part is not None)


def format_problem(place: str | Path, problem: str, remedy: str = "") -> str:
    """Format an error message, ``place: Problem. Remedy.``, from its parts.

    Their first letters may be small, and their full stops missing.
    """
    sentences = [
        f"{text[0].upper()}{text[1:].removesuffix('.')}." for text in (problem, remedy) if text
    ]
    return f"{place}: {' '.join(sentences)}"


def format_missing_columns(columns: Sequence[str]) -> str:
    """Describe one or several missing columns in a sentence."""
    names = ", ".join(columns)
    return (
        f"The column {names} is missing."
        if len(columns) == 1
        else f"The columns {names} are missing."
    )


def format_value(value: Any) -> str:
    """Format a value as JSON or YAML for a message, in at most 60 characters."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        text = str(value) if isinstance(value, date) else repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"
    return text if len(text) <= 60 else text[:57] + "..."


def describe_wrong_value(value: Any, expected: str) -> str:
    """Describe a wrong value, given the expected kind such as ``a number above 0``."""
    return f"The value is {format_value(value)}, but it must be {expected}."


def format_quantity(count: int, thing: str) -> str:
    """Format a count with its noun, as in 1 training or 2 trainings."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Suggest the nearest name in a sentence (`` Did you mean 'x'?``), or return "".

    The comparison ignores case, because "friends" for "Friends" is a likely mistake.
    """
    by_casefold = {known.casefold(): known for known in names}
    close = get_close_matches(name.casefold(), by_casefold, n=1, cutoff=0.5)
    return f" Did you mean {by_casefold[close[0]]!r}?" if close else ""
