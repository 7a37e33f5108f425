"""Files of a results folder that are dated in the future: by another machine's clock, or copied.

Snakemake compares times of change. An output that is older than its input counts as outdated, so a
job with an input from the future would end in an error and would be repeated in every later call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from tasktransfer.results.study import Study

TOLERATED_SECONDS = 2.0
"""Times of change are this exact at most on the file systems in use."""


def date_future_files_now(study: Study) -> str | None:
    """Give files of the study's results that are dated in the future the present time.

    Returns:
        What was done, for the user; None if no file was dated in the future.
    """
    now = time.time()
    if not any(_is_ahead(path, now) for path in _compared_files(study)):
        return None
    results = Path(study.config.results)
    ahead = [path for path in _all_files(results) if _is_ahead(path, now)]
    latest = max(os.lstat(path).st_mtime for path in ahead)
    failed = [path for path in ahead if not _date(path, now)]
    told = (
        f"{results}: {len(ahead):,} files are dated in the future (up to {_date_text(latest)}): "
        "by a clock that is ahead, or by a copy"
    )
    if failed:
        return (
            f"{told}. {len(failed):,} of them cannot be dated anew, for example {failed[0]}: "
            "Snakemake would repeat the jobs that read them. Run touch on them as their owner"
        )
    return f"{told}. They are dated now, so that Snakemake does not repeat the jobs that read them"


def _compared_files(study: Study) -> Iterator[str]:
    """Yield the files whose times Snakemake compares, as far as they are known without a walk."""
    yield from study.records()
    yield from (f"{folder}/manifest.json" for folder in study.encoded_folders)
    for name in study.config.dataset_names:
        yield f"{study.instances(name)}/manifest.json"
    for folder in (study.tables, study.figures):
        yield from map(str, Path(folder).glob("*"))


def _all_files(folder: Path) -> Iterator[str]:
    for path, folders, files in os.walk(folder):
        yield from (f"{path}/{name}" for name in (*folders, *files))


def _is_ahead(path: str, now: float) -> bool:
    try:
        return os.lstat(path).st_mtime > now + TOLERATED_SECONDS
    except OSError:
        return False


def _date(path: str, now: float) -> bool:
    try:
        os.utime(path, (now, now), follow_symlinks=False)
    except OSError:
        return False
    return True


def _date_text(seconds: float) -> str:
    """Return a date; years beyond what the calendar holds as a number."""
    try:
        return time.strftime("%Y-%m-%d", time.gmtime(seconds))
    except (OSError, OverflowError, ValueError):
        return f"{seconds:.0f} s"
