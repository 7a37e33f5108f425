"""The errors that a user can mend, each with its own exit code.

Every message names the file, the key or instance, the value, and the remedy.
Anything else that escapes is a bug and keeps its traceback.
"""

from __future__ import annotations

import errno
import os


class TaskTransferError(Exception):
    """Base of all errors that the command line prints without a traceback."""

    exit_code = 1


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
    """A training does not fit into memory, however small its micro-batches. Worth another try:
    on a larger device, or once whatever else held the memory is gone."""

    exit_code = 8


class RecordError(TaskTransferError):
    """A run record is damaged, of another schema, or contradicts its predictions."""

    exit_code = 6


class SubmissionError(TaskTransferError):
    """A challenge submission breaks the format. The message lists what is wrong, each finding with
    its file and line."""

    exit_code = 9


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
