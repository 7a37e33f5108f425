"""Which trainings of a study are finished, from one look at each stage's folder.

A training is finished if its record and predictions are there and whole (see ``damage``), and its
checkpoint wherever a training that is not finished starts from it. Plan, status, pilot, merge, gc
and the Snakefile ask here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.core.nodes import Node, Stage
from tasktransfer.results.damage import Checked, checked
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study


@dataclass(frozen=True, slots=True)
class Found:
    """What of a study is on the disk.

    ``names``: digest → names of what is in the stage's folder; stages without folder are left
    out. ``finished``: digests of the stages that need not be trained. ``damaged``: digest → what
    is wrong with a record that is there. ``again``: those that have their record and yet have to
    be trained once more, for their checkpoint.
    """

    names: Mapping[str, frozenset[str]]
    finished: frozenset[str]
    damaged: Mapping[str, str]
    again: frozenset[str]


def look(study: Study) -> Found:
    """List every stage's folder, and check the records that were not checked before.

    Raises:
        OSError: a folder may not be read.
        RecordError: a record or its predictions may not be read.
    """
    stages = study.plan.stages
    names = {s.digest: found for s in stages if (found := names_in(study.folder(s))) is not None}
    recorded = [s for s in stages if RECORD in names.get(s.digest, ())]
    damaged = {s.digest: problem for s in recorded if (problem := damage_of(study, s))}
    finished = frozenset(s.digest for s in recorded if is_finished(study, s))
    keep_checks(study)
    again = {s.digest for s in recorded} - finished - damaged.keys()
    return Found(names, finished, damaged, frozenset(again))


def is_finished(study: Study, node: Node) -> bool:
    """Whether a node need not be made. Raises as ``look``."""
    if not is_whole(study, node):
        return False
    if not isinstance(node, Stage):
        return True
    return os.path.lexists(study.checkpoint(node)) or not is_start(study, node)


def is_whole(study: Study, node: Node) -> bool:
    """Whether a node has its record with nothing wrong. Raises as ``look``."""
    return os.path.lexists(study.record(node)) and damage_of(study, node) is None


def is_start(study: Study, node: Node) -> bool:
    """Whether a node that is not finished uses this one. Raises as ``look``."""
    return not all(is_finished(study, user) for user in study.users(node))


def damage_of(study: Study, node: Node) -> str | None:
    """What is wrong with a node's record or the rows beside it; None: nothing, or there is no
    record.

    Raises:
        RecordError: they may not be read.
    """
    return _checked(study).damage(node, study.folder(node))


def keep_checks(study: Study) -> None:
    """Remember which records were found right, so that the next start need not read them."""
    _checked(study).save()


def names_in(folder: str | Path) -> frozenset[str] | None:
    """Names of what is in a stage's folder; None if there is none."""
    try:
        return frozenset(entry.name for entry in os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _checked(study: Study) -> Checked:
    return checked(study.config.results, str(Path.cwd()))
