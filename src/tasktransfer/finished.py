"""Which trainings of a study are finished, from one look at each stage's folder.

The same answer as ``Study.is_finished``, which the Snakefile asks stage by stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.stage import Stage
from tasktransfer.stage_state import PREDICTIONS, RECORD
from tasktransfer.study import Study

CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Found:
    """What of a study is on the disk.

    ``names``: digest → names of what is in the stage's folder; stages without folder are left
    out. ``finished``: digests of the stages of which nothing has to be made. ``again``: those that
    have their record and yet have to be trained once more, for predictions or a checkpoint.
    """

    names: Mapping[str, frozenset[str]]
    finished: frozenset[str]
    again: frozenset[str]


def look(study: Study) -> Found:
    """List every stage's folder. Raises OSError for a folder that may not be read."""
    names: dict[str, frozenset[str]] = {}
    for stage in study.plan.stages:
        try:
            names[stage.digest] = frozenset(p.name for p in Path(study.folder(stage)).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            continue
    finished = _finished(study.plan.stages, names)
    again = {digest for digest, there in names.items() if RECORD in there} - finished
    return Found(names, frozenset(finished), frozenset(again))


def _finished(stages: tuple[Stage, ...], names: Mapping[str, frozenset[str]]) -> set[str]:
    """Children before parents: a checkpoint may be gone once nothing starts from it any more."""
    finished: set[str] = set()
    needed: set[str] = set()
    for stage in reversed(stages):
        there = names.get(stage.digest, frozenset())
        scored = len(stage.select_on) == 1
        whole = RECORD in there and (not scored or PREDICTIONS in there)
        if whole and (CHECKPOINT in there or stage.digest not in needed):
            finished.add(stage.digest)
        elif stage.parent is not None:
            needed.add(stage.parent.digest)
    return finished
