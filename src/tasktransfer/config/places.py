"""Folders that a config names, as the disk has them: a leading ``~``, hub names, and where results
may be kept."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from tasktransfer.core.validation import show

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)

LONGEST_NAME = 255
LONGEST_PATH = 3000
"""Bytes of a file's name, and of a path to which results add theirs: file systems take 4,095."""

SOURCE_FOLDERS = frozenset(
    {".git", "benchmarks", "docs", "envs", "notebooks", "profiles", "src", "tests", "workflow"}
)
"""What is under version control in a checkout of this project; results may lie beside it."""


def on_disk(path: str) -> str:
    """A path of a config as programs take it: a leading ``~`` or ``~user`` written out, and no
    leading dash, which would be an option."""
    path = os.path.expanduser(path)  # noqa: PTH111  # Path would drop a leading ./
    return f"./{path}" if path.startswith("-") else path


def of_a_user(path: str) -> str:
    """For validators: a path whose leading ``~`` can be written out."""
    if on_disk(path).startswith("~"):
        raise ValueError(f"{path!r}: this machine has no user of that name: write the whole path")
    return path


def short_enough(path: str) -> str:
    """For validators: a path that a file system can hold."""
    longest = max(path.split("/"), key=lambda part: len(part.encode()))
    for what, text, most in (("name", longest, LONGEST_NAME), ("path", path, LONGEST_PATH)):
        if (length := len(text.encode())) > most:
            raise ValueError(
                f"{show(path)}: a {what} of {length:,} bytes, and file systems take {most:,}: "
                "write a shorter one"
            )
    return path


def may_be_on_the_hub(checkpoint: str) -> bool:
    """Whether a checkpoint is spelled as names on the hub are; anything else is on the disk."""
    return HUB_NAME.fullmatch(checkpoint) is not None and not is_gguf(checkpoint)


def is_gguf(checkpoint: str) -> bool:
    """Whether a checkpoint is one file in GGUF, llama.cpp's format, most often quantised."""
    return checkpoint.lower().endswith(".gguf")


UNUSABLE = frozenset("{}*?\"'$`\\<>")
"""Characters that Snakemake (wildcards, ``<path variables>``) or a shell takes specially."""


def for_results(path: str) -> str:
    """For validators: a folder in which results can be kept, as ``plain_path`` writes it."""
    real = Path(os.path.realpath(on_disk(of_a_user(path))))
    remedy = "name a folder of its own, for example results"
    if real == Path(real.anchor):
        raise ValueError(f"{path!r} is the root of the file system: {remedy}")
    # Whose root lacks it may plan here what another machine runs.
    there = next(folder for folder in (real, *real.parents) if os.path.lexists(folder))
    if not there.is_dir():
        raise ValueError(f"{path!r}: {there} is a file and no folder: {remedy}")
    if there != real and there != Path(real.anchor):
        _refuse_unwritable(path, there)
    for folder in (real, *real.parents):
        if (folder / "Snakefile").is_file() and (folder / "src" / "tasktransfer").is_dir():
            inside = real.relative_to(folder).parts
            if not inside or inside[0] in SOURCE_FOLDERS:
                raise ValueError(f"{path!r} is the source tree in {folder}: {remedy}")
    plain = plain_path(path)
    if odd := sorted(UNUSABLE & set(plain)):
        raise ValueError(
            f"{plain!r}: Snakemake or the shell takes {' '.join(odd)} in a path specially: name a "
            "folder without them, for example results"
        )
    return plain


def plain_path(path: str) -> str:
    """Return a folder's path as Snakemake spells it: no ``./``, ``//`` or slash at the end.

    Snakemake spells paths in this way itself in some places and not in others, and does not find
    files whose two spellings differ. The working directory becomes its absolute path.

    Raises:
        ValueError: it begins with a dash, which programs take for an option.
    """
    whole = os.path.expanduser(path)  # noqa: PTH111  # on_disk would add a ./
    parts = [part for part in whole.split("/") if part not in ("", ".")]
    if whole.startswith("/"):
        return "/" + "/".join(parts)
    if parts and parts[0].startswith("-"):
        raise ValueError(f"{path!r} begins with a dash, as an option does: name another folder")
    return "/".join(parts) or str(Path.cwd())


def _refuse_unwritable(path: str, there: Path) -> None:
    """Tried, since what a system lets nobody write (/proc, /sys) looks writable to some."""
    try:
        Path(tempfile.mkdtemp(prefix=".tasktransfer-", dir=there)).rmdir()
    except OSError as error:
        raise ValueError(
            f"{path!r} cannot be made: nothing can be written in {there} ({error.strerror}): "
            "name one that you may write, for example results"
        ) from error
