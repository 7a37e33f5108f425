"""Paths in a config: expansion of ``~``, hub names, and checks of the results folder."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from tasktransfer.errors import format_value

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 3000
"""Maximum bytes of a file name, and of the results folder's path.

File systems allow paths of 4,095 bytes; files in the results folder need the rest.
"""

SOURCE_FOLDERS = frozenset(
    {".git", "benchmarks", "docs", "envs", "notebooks", "profiles", "src", "tests", "workflow"}
)
"""Folders under version control in a checkout of this project, which must not contain results."""


def expand_path(path: str) -> str:
    """Expand a leading ``~`` in a config's path, and protect a leading dash, for programs.

    A leading ``~`` or ``~user`` is expanded. A leading dash, which programs take for an option, is
    prefixed with ``./``.
    """
    path = os.path.expanduser(path)  # noqa: PTH111  # Path would drop a leading ./
    return f"./{path}" if path.startswith("-") else path


def check_home_expansion(path: str) -> str:
    """Return a path, or raise ValueError if its leading ``~`` cannot be expanded."""
    if expand_path(path).startswith("~"):
        raise ValueError(
            f"The ~ in the path {path!r} cannot be expanded, because this machine has no such "
            "user. Write the complete path."
        )
    return path


def check_path_length(path: str) -> str:
    """Return a path, or raise ValueError if it is too long for a file system."""
    longest = max(path.split("/"), key=lambda part: len(part.encode()))
    for what, text, most in (("name", longest, MAX_NAME_BYTES), ("path", path, MAX_PATH_BYTES)):
        if (length := len(text.encode())) > most:
            raise ValueError(
                f"The value {format_value(path)} contains a {what} of {length:,} bytes, but at "
                f"most {most:,} are allowed. Choose a shorter {what}."
            )
    return path


def has_hub_form(checkpoint: str) -> bool:
    """Return whether a checkpoint has the form of a hub name instead of a path."""
    return HUB_NAME.fullmatch(checkpoint) is not None and not is_gguf(checkpoint)


def is_gguf(checkpoint: str) -> bool:
    """Return whether a checkpoint is a GGUF file (llama.cpp's format, usually quantised)."""
    return checkpoint.lower().endswith(".gguf")


UNUSABLE = frozenset("{}*?\"'$`\\<>")
"""Characters with a special meaning to Snakemake (wildcards, ``<path variables>``) or a shell."""


def check_results_folder(path: str) -> str:
    """Return the normalised path of a results folder, or raise ValueError if it is unusable."""
    real = Path(os.path.realpath(expand_path(check_home_expansion(path))))
    remedy = "Choose a separate folder, for example results"
    if real == Path(real.anchor):
        raise ValueError(f"The path {path!r} is the root of the file system. {remedy}.")
    # A top-level folder that does not exist is accepted: another machine may run the study.
    there = next(folder for folder in (real, *real.parents) if os.path.lexists(folder))
    if not there.is_dir():
        raise ValueError(f"The path {path!r} is not a folder, because {there} is a file. {remedy}.")
    if there != real and there != Path(real.anchor):
        _check_writable(path, there)
    for folder in (real, *real.parents):
        if (folder / "Snakefile").is_file() and (folder / "src" / "tasktransfer").is_dir():
            inside = real.relative_to(folder).parts
            if not inside or inside[0] in SOURCE_FOLDERS:
                raise ValueError(f"The path {path!r} is inside the source tree {folder}. {remedy}.")
    plain = normalise_path(path)
    if odd := sorted(UNUSABLE & set(plain)):
        raise ValueError(
            f"The path {plain!r} contains the characters {' '.join(odd)}, which have a special "
            "meaning to Snakemake or the shell. Choose a folder without such characters, for "
            "example results."
        )
    return plain


def normalise_path(path: str) -> str:
    """Return a folder's path in Snakemake's spelling, without ``./``, ``//`` or final slash.

    Snakemake normalises paths in some places and not in others, and does not find a file if the two
    spellings differ. The working directory becomes its absolute path.

    Raises:
        ValueError: the path begins with a dash, which programs take for an option.
    """
    whole = os.path.expanduser(path)  # noqa: PTH111  # expand_path would add a ./
    parts = [part for part in whole.split("/") if part not in ("", ".")]
    if whole.startswith("/"):
        return "/" + "/".join(parts)
    if parts and parts[0].startswith("-"):
        raise ValueError(
            f"The path {path!r} begins with a dash, so programs would read it as an option. "
            "Choose another folder."
        )
    return "/".join(parts) or str(Path.cwd())


def _check_writable(path: str, there: Path) -> None:
    """Raise ValueError if no folder can be created in the folder ``there``.

    Creating one is the only reliable test: /proc and /sys look writable to some users.
    """
    try:
        Path(tempfile.mkdtemp(prefix=".tasktransfer-", dir=there)).rmdir()
    except OSError as error:
        raise ValueError(
            f"The folder {path!r} cannot be created, because {there} is not writable "
            f"({error.strerror}). Choose a writable folder, for example results."
        ) from error
