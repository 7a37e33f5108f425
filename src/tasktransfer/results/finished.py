"""Which nodes of a study are finished, from one look at each node's folder.

A node is finished if its record is there with nothing wrong (see ``damage``), and what nodes that
are not finished read of it: the parameters of a stage's rounds, a fit, derived data. Plan, status,
pilot, merge, gc, explain and the Snakefile ask here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.core.ancestors import starts_of
from tasktransfer.core.nodes import SHORT, Evaluation, Node, Stage
from tasktransfer.errors import RecordError
from tasktransfer.files.progress import with_progress
from tasktransfer.results.damage import Checked, checked, damage
from tasktransfer.results.records import not_chosen, parts_of, read_record
from tasktransfer.results.rounds import LAST, ROUNDS, last_of, round_folder
from tasktransfer.results.schema import Record
from tasktransfer.results.state import DAMAGED, DONE, RECORD, unfinished
from tasktransfer.results.study import Study


@dataclass(frozen=True, slots=True)
class OnDisk:
    """What of a study is on the disk.

    ``names``: digest → names of what is in the node's folder; nodes without folder are left out.
    ``finished``: digests of the nodes that need not be made. ``damaged``: digest → what is wrong
    with a record that is there. ``again``: stages that have their record and yet have to be trained
    once more, for their parameters.
    """

    names: Mapping[str, frozenset[str]]
    finished: frozenset[str]
    damaged: Mapping[str, str]
    again: frozenset[str]

    def left(self, study: Study) -> tuple[Stage, ...]:
        """The trainings that are not finished."""
        return tuple(s for s in study.plan.stages if s.digest not in self.finished)


def look(study: Study) -> OnDisk:
    """List every node's folder, and check the records that were not checked before.

    Raises:
        OSError: a folder may not be read.
        RecordError: a record or its predictions may not be read.
    """
    nodes = with_progress(study.plan.nodes, "listing folders")
    listed = ((node.digest, names_in(study.folder(node))) for node in nodes)
    names = {digest: content for digest, content in listed if content is not None}
    recorded = [node for node in study.plan.nodes if RECORD in names.get(node.digest, ())]
    checked = with_progress(recorded, "checking records")
    damaged = {n.digest: problem for n in checked if (problem := damage_of(study, n))}
    finished = frozenset(node.digest for node in recorded if is_finished(study, node))
    keep_checks(study)
    again = {node.digest for node in recorded} - finished - damaged.keys()
    return OnDisk(names, finished, damaged, frozenset(again))


def is_finished(study: Study, node: Node) -> bool:
    """Whether a node need not be made. Raises as ``look``."""
    if not is_whole(study, node):
        return False
    if not isinstance(node, Stage):
        return lacking_parts(study, node) is None
    if lacking_selections(study, node):
        return False
    if not node.keeps_rounds and not node.also_selected:  # nothing starts from another round
        return os.path.lexists(study.checkpoint(node)) or not is_start(study, node)
    return not _lacking(study, node)


def lacking_selections(study: Study, stage: Stage) -> str | None:
    """The selections of a whole stage that it was not asked for when it was made; None: it was for
    all. Raises as ``look``."""
    made = _checked(study).selections(stage, study.folder(stage))
    lacks = not_chosen(stage, made)
    return f"{study.record(stage)}: {lacks}" if lacks else None


def lacking_rounds(study: Study, stage: Stage) -> str | None:
    """Which rounds of a whole stage are not there, of those that unfinished nodes start from; None:
    all are there. Raises as ``look``."""
    gone = sorted(Path(path).name for path in _lacking(study, stage) if f"/{ROUNDS}/" in path)
    if not gone:
        return None
    return f"{study.folder(stage)}/{ROUNDS}: rounds asked for and not kept: {', '.join(gone)}"


def lacking_parts(study: Study, node: Node) -> str | None:
    """What a whole fit or derived data has lost of what an unfinished node uses: its classifiers,
    its instances; None: nothing. Raises as ``look``."""
    if isinstance(node, Evaluation):  # nobody reads one but collect
        return None
    folder = Path(study.folder(node))
    gone = [part for part in parts_of(read_record(folder / RECORD)) if not (folder / part).exists()]
    if not gone or not is_start(study, node):
        return None
    return f"{folder}: what others read is gone: {', '.join(gone)}"


def _lacking(study: Study, stage: Stage) -> list[str]:
    """Where parameters of a whole stage are not, that unfinished nodes start from."""
    folder = study.folder(stage)
    starts = [
        start
        for user in study.users(stage)
        for start in starts_of(user)
        if start.stage is not None
        and start.stage.digest == stage.digest
        and not is_finished(study, user)
    ]
    places = {
        round_folder(
            folder, last_of(Path(folder)) if start.at == LAST else start.at, start.selected_on
        )
        for start in starts
    }
    return sorted(path for path in places if not os.path.lexists(path))


def is_whole(study: Study, node: Node) -> bool:
    """Whether a node has its record with nothing wrong. Raises as ``look``."""
    return os.path.lexists(study.record(node)) and damage_of(study, node) is None


def is_start(study: Study, node: Node) -> bool:
    """Whether a node that is not finished uses this one. Raises as ``look``."""
    return not all(is_finished(study, user) for user in study.users(node))


def state_of(study: Study, node: Node) -> tuple[str, str | None]:
    """The state of a node and its error: done, damaged, or as ``state.unfinished``. Raises as
    ``look``."""
    return _state(Path(study.folder(node)), lambda: damage_of(study, node))


def examined(study: Study, node: Node) -> tuple[str, str | None, Record | None]:
    """``state_of``, and the record of a node that is done. What cannot be read is damaged."""
    file = Path(study.record(node))
    if not os.path.lexists(file):
        seen = unfinished(file.parent)
        return seen.state, seen.error, None
    try:
        problem, record = _checked(study).examined(node, study.folder(node))
        if problem is None:
            return DONE, None, record or read_record(file)
    except RecordError as error:
        problem = str(error)
    return DAMAGED, " ".join(problem.split()), None


def state_in(folder: Path) -> tuple[str, str | None]:
    """The state of the node that belongs in a folder, by its name alone; a record that may not be
    read is damaged."""

    def problem() -> str | None:
        try:
            return damage(folder, folder.name[-SHORT:])
        except RecordError as error:
            return str(error)

    return _state(folder, problem)


def _state(folder: Path, damage: Callable[[], str | None]) -> tuple[str, str | None]:
    if not os.path.lexists(folder / RECORD):
        seen = unfinished(folder)
        return seen.state, seen.error
    problem = damage()
    return (DAMAGED, problem) if problem else (DONE, None)


def damage_of(study: Study, node: Node) -> str | None:
    """What is wrong with a node's record or what it names beside it, as far as sizes and times tell
    of large files (``damage``); None: nothing, or there is no record.

    Raises:
        RecordError: they may not be read.
    """
    return _checked(study).damage(node, study.folder(node))


def keep_checks(study: Study) -> None:
    """Remember which records were right, so that the next start need not read them."""
    _checked(study).save()


def names_in(folder: str | Path) -> frozenset[str] | None:
    """Names of what is in a node's folder; None if there is none."""
    try:
        return frozenset(entry.name for entry in os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _checked(study: Study) -> Checked:
    return checked(study.config.results, str(Path.cwd()))
