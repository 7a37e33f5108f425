"""Which trainings of a study are finished, from one look at each stage's folder.

As Snakemake sees it: a training is left if its record is not there, or if a training that is left
starts from its checkpoint and that is not there. It asks for records alone, so predictions that
were deleted start nothing; they are counted apart.
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
    out. ``finished``: digests of the stages that need not be trained. ``again``: those that have
    their record and yet have to be trained once more, for their checkpoint. ``unpredicted``: those
    that are finished, and whose predictions are gone.
    """

    names: Mapping[str, frozenset[str]]
    finished: frozenset[str]
    again: frozenset[str]
    unpredicted: frozenset[str]


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
    scored = {stage.digest for stage in study.plan.stages if len(stage.select_on) == 1}
    unpredicted = {d for d in finished & scored if PREDICTIONS not in names[d]}
    return Found(names, frozenset(finished), frozenset(again), frozenset(unpredicted))


def _finished(stages: tuple[Stage, ...], names: Mapping[str, frozenset[str]]) -> set[str]:
    """Children before parents: a checkpoint may be gone once nothing starts from it any more."""
    finished: set[str] = set()
    needed: set[str] = set()
    for stage in reversed(stages):
        there = names.get(stage.digest, frozenset())
        if RECORD in there and (CHECKPOINT in there or stage.digest not in needed):
            finished.add(stage.digest)
        elif stage.parent is not None:
            needed.add(stage.parent.digest)
    return finished
