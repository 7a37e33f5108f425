"""The errors that a user can mend, each with its own exit code.

Every message names the file, the key or instance, the value, and the remedy.
Anything else that escapes is a bug and keeps its traceback.
"""

from __future__ import annotations


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


class RecordError(TaskTransferError):
    """A run record is damaged, of another schema, or contradicts its predictions."""

    exit_code = 6
