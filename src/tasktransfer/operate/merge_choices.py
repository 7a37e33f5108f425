"""Choices of another results folder, on which the runs of a study may depend (ADR 0028).

Without them, a study that checks its baselines would not plan the transfers that the other folder
contains, so ``merge`` would not copy them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tasktransfer.core.plan import get_relative_choice_path
from tasktransfer.errors import RecordError
from tasktransfer.files import replace_file
from tasktransfer.results.node_folders import is_through_link
from tasktransfer.results.study import Study


def list_choice_files(study: Study) -> list[str]:
    """Return the files of the choices made so far, relative to the results folder."""
    return [get_relative_choice_path(each.name) for each in study.plan.choices if each.made]


def merge_choices(study: Study, other: Path) -> Study:
    """Copy the choices that are pending here, and return the study with the runs that follow.

    Args:
        study: study whose pending choices are copied.
        other: a results folder, which is only read.

    Raises:
        RecordError: a choice is damaged, or was made for another config. It is not copied.
    """
    own, copied = Path(study.config.results), set[str]()
    while names := [name for name in _list_offered(study, other) if name not in copied]:
        for name in names:
            with replace_file(own / name) as part:
                shutil.copyfile(other / name, part)
        copied.update(names)
        study = study.with_choices()
        try:
            study.plan  # noqa: B018  # reads the choices
        except RecordError as error:
            for name in names:
                (own / name).unlink()
            raise RecordError(f"{other}: The selection does not fit the study. {error}") from error
    return study


def _list_offered(study: Study, other: Path) -> list[str]:
    """Return the files of pending choices that the other folder contains."""
    names = (get_relative_choice_path(each.name) for each in study.pending_choices)
    return [name for name in names if (other / name).is_file() and not is_through_link(other, name)]
