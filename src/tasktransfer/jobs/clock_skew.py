"""Files in a results folder with a modification time in the future.

The cause is another machine's clock, or a copy. Snakemake compares modification times: an output
older than its input is outdated. A job with an input from the future would fail and be repeated in
every later call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from tasktransfer.results.study import Study

TOLERATED_SECONDS = 2.0
"""Resolution of modification times on common file systems."""


def reset_future_dates(study: Study) -> str | None:
    """Reset modification times in the future to the present, for files in the study's results.

    Returns:
        A note for the user, or None if there were no such files.
    """
    now = time.time()
    if not any(_is_ahead(path, now) for path in _iterate_compared_files(study)):
        return None
    results = Path(study.config.results)
    ahead = [path for path in _iterate_files(results) if _is_ahead(path, now)]
    latest = max(os.lstat(path).st_mtime for path in ahead)
    failed = [path for path in ahead if not _set_time(path, now)]
    problem = (
        f"{results}: {len(ahead):,} files are dated in the future (up to {_format_date(latest)}), "
        "because of a clock that is ahead, or a copy"
    )
    if failed:
        return (
            f"{problem}. The dates of {len(failed):,} files cannot be changed, for example "
            f"{failed[0]}, so Snakemake would repeat jobs that read them. Run touch on these files "
            "as their owner."
        )
    return (
        f"{problem}. Their dates are set to now, so that Snakemake does not repeat jobs that read "
        "them."
    )


def _iterate_compared_files(study: Study) -> Iterator[str]:
    """Yield the files whose modification times Snakemake compares."""
    yield from study.list_record_paths()
    yield from (f"{folder}/manifest.json" for folder in study.encoded_folders)
    for name in study.config.dataset_names:
        yield f"{study.get_instances_folder(name)}/manifest.json"
    for folder in (study.tables, study.figures):
        yield from map(str, Path(folder).glob("*"))


def _iterate_files(folder: Path) -> Iterator[str]:
    for path, folders, files in os.walk(folder):
        yield from (f"{path}/{name}" for name in (*folders, *files))


def _is_ahead(path: str, now: float) -> bool:
    try:
        return os.lstat(path).st_mtime > now + TOLERATED_SECONDS
    except OSError:
        return False


def _set_time(path: str, now: float) -> bool:
    """Set a file's modification time, and return whether that was permitted."""
    try:
        os.utime(path, (now, now), follow_symlinks=False)
    except OSError:
        return False
    return True


def _format_date(seconds: float) -> str:
    """Format a time as a date, or as seconds for years outside the calendar's range."""
    try:
        return time.strftime("%Y-%m-%d", time.gmtime(seconds))
    except (OSError, OverflowError, ValueError):
        return f"{seconds:.0f} s"
