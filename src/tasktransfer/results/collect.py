"""The records of a study, for its tables: the one way from nodes on disk to runs, for every design.

    collected = gather(study)                     # every record of the plan, read and checked
    collected.require(complete)                   # refuse holes, if tables without any are wanted
    for run in collected.runs: ...                # those whose numbers are all there
    collected.record(node), collected.rows(node)  # a record; its rows, read when they are asked for

Each record is read once and checked; so are its rows, of a training against its scores too. A
damaged record is named and left out, so is one that lies where it does not belong, or was tested on
something else than the others; a run that left nothing is listed with its state and reason, and
records that must not be compared are refused. Neither torch nor the data are needed.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tasktransfer.core.ancestors import with_ancestors
from tasktransfer.core.nodes import SHORT, Node, Stage
from tasktransfer.core.runs import Run
from tasktransfer.data.prepared import says_synthetic
from tasktransfer.errors import RecordError, TaskTransferError
from tasktransfer.files import replacing
from tasktransfer.files.progress import with_progress
from tasktransfer.results.finished import examined, keep_checks
from tasktransfer.results.mixtures import Comparison, facts_of
from tasktransfer.results.prepared import as_prepared
from tasktransfer.results.records import NOUNS, PLURALS, read_record, without_selection
from tasktransfer.results.rows import COLUMNS, read_rows
from tasktransfer.results.schema import Record
from tasktransfer.results.state import DAMAGED, DONE, RECORD, WAITING, log_in
from tasktransfer.results.study import Study
from tasktransfer.results.tallies import Checks, check_predictions
from tasktransfer.results.test_sets import deviating_test_sets
from tasktransfer.tasks.card import SPLITS

if TYPE_CHECKING:
    import pyarrow as pa

CHECKED = "checked.json"
"""Beside the tables: which rows were held against their records. It may be deleted."""

NO_RECORD = "no record"
SHOWN = 12
"""Holes that an error lists; the others are counted."""

_VERBS = {"running": "is ", DAMAGED: "is ", "interrupted": "was "}


@dataclass(frozen=True, slots=True)
class Missing:
    """A node with numbers of a run that is not done.

    ``wanted``: the node; ``node``: the first that is not done of all that it needs, with its state,
    why in one line, and what to do.
    """

    run: Run
    wanted: Node
    node: Node
    state: str
    reason: str
    error: str | None
    remedy: str


@dataclass(frozen=True)
class Collected:
    """What the records of a study's plan say.

    ``planned``: the runs that were looked for; ``runs``: those whose numbers are all there;
    ``records``: digest → record of every node that is done; ``problems``: (record's path below the
    results folder, what is wrong with it); ``test_sets``: digest → tested task → digest of the ids
    and right answers of its test set.
    """

    study: Study
    planned: tuple[Run, ...]
    records: Mapping[str, Record]
    runs: tuple[Run, ...]
    missing: tuple[Missing, ...]
    problems: tuple[tuple[str, str], ...]
    test_sets: Mapping[str, Mapping[str, str]]

    def has(self, node: Node) -> bool:
        """Whether a node is done."""
        return node.digest in self.records

    def record(self, node: Node) -> Record:
        """The record of a node that is done."""
        return self.records[node.digest]

    def rows(self, node: Node) -> pa.Table:
        """The rows of a node that is done, columns as in ``rows.COLUMNS``.

        Raises:
            RecordError: they are damaged.
        """
        named = self.record(node)["rows"]
        if named is None:
            return COLUMNS.empty_table()
        return read_rows(Path(self.study.folder(node), named["file"]), named)

    @cached_property
    def synthetic(self) -> dict[str, bool]:
        """Dataset → whether its dialogues are generated, as records or prepared data say."""
        synthetic = {r["node"]["dataset"]: r["synthetic"] for r in self.records.values()}
        known = {name: self.study.synthetic(name) for name in self.study.config.dataset_names}
        return {**{k: bool(v) for k, v in known.items() if v is not None}, **synthetic}

    @property
    def cuts(self) -> str:
        """The limits in force in any of the records, such as ``limit_test 1200``; a key that has
        several comes with what it is of."""
        limits = {
            (tuple(key.split(".")), limit)
            for record in self.records.values()
            for key, limit in record["provenance"].get("cuts", {}).items()
        }
        values = Counter(key for key, _ in {(path[-1], limit) for path, limit in limits})
        named = {
            (path[-1], ".".join(path[-2:] if values[path[-1]] > 1 else path[-1:]), limit)
            for path, limit in limits
        }
        order = {f"limit_{split}": number for number, split in enumerate(SPLITS)}
        ordered = sorted(named, key=lambda cut: (order.get(cut[0], len(order)), cut))
        return ", ".join(f"{name} {limit}" for _, name, limit in ordered)

    @cached_property
    def without_record(self) -> tuple[Node, ...]:
        """Nodes of the plan, of every kind, without a usable record."""
        return tuple(node for node in self.study.plan.nodes if not self.has(node))

    @cached_property
    def without_run(self) -> tuple[Node, ...]:
        """Those of them that no missing run names: what is made from them is there."""
        named = {node.digest for hole in self.missing for node in (hole.wanted, hole.node)}
        return tuple(node for node in self.without_record if node.digest not in named)

    def describe_missing(self) -> str:
        """Return the nodes without a usable record by kind, ``33 of 102 evaluations``; empty if
        every node has one."""
        planned = Counter(NOUNS[type(node)] for node in self.study.plan.nodes)
        missing = Counter(NOUNS[type(node)] for node in self.without_record)
        return ", ".join(
            f"{missing[noun]:,} of {total:,} {PLURALS[noun]}"
            for noun, total in planned.items()
            if missing[noun]
        )

    @property
    def stand_ins(self) -> dict[str, str]:
        """What stands in for what, as the records name it."""
        found: dict[str, str] = {}
        for record in self.records.values():
            found |= record["provenance"].get("stand_ins", {})
        return found

    def holes(self) -> list[str]:
        """A line for each run that lacks something, each other node without a record, and each
        damaged record."""
        results = self.study.config.results
        lines = [f"{results}/{m.wanted.path}: {m.reason}; {m.remedy}" for m in self.missing]
        lines += [f"{results}/{node.path}: {NO_RECORD}" for node in self.without_run]
        damaged = [f"damaged: {error}" for _, error in self.problems]
        return list(dict.fromkeys([*damaged, *lines]))

    def require(self, *, complete: bool) -> None:
        """Refuse to go on without any number or, if ``complete``, with a hole.

        Raises:
            RecordError: names what is missing, with its state and reason.
        """
        results, planned, holes = self.study.config.results, self.planned, self.holes()
        if self.runs and not (complete and (self.missing or self.problems)):
            return
        more = [f"and {len(holes) - SHOWN:,} more"] * (len(holes) > SHOWN)
        if not self.runs:
            found = f"none of {len(planned):,} planned runs has a usable record"
        elif self.missing:
            lacking = len(planned) - len(self.runs)
            found = f"{lacking:,} of {len(planned):,} planned runs lack a usable record"
        else:
            found = f"{len(self.problems):,} records are damaged"
        raise RecordError(
            f"{results}: {found}, so no table was written; run snakemake again"
            f"{', or collect without --complete' if self.runs else ''}:\n  "
            + "\n  ".join([*holes[:SHOWN], *more])
        )

    def tell(self) -> None:
        """Say how many runs are there, what is left out and why; write down the holes."""
        # One of a run, however many of its nodes lack: the last that is made.
        states = Counter({id(hole.run): hole.state for hole in self.missing}.values())
        counted = ", ".join(f"{count:,} {state}" for state, count in states.items())
        print(
            f"{self.study.tables}: {len(self.runs):,} runs, {sum(states.values()):,} missing"
            + (f" ({counted})" if counted else "")
        )
        if nodes := self.describe_missing():
            print(f"{self.study.tables}: without a record: {nodes}")
        for _, error in self.problems:
            print(f"left out, damaged: {error}")
        file = Path(self.study.holes)
        file.unlink(missing_ok=True)
        if holes := self.holes():
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(file) as part:
                part.write_text("\n".join([time.ctime(), *holes, ""]), encoding="utf-8")


def gather(study: Study, runs: Iterable[Run] | None = None) -> Collected:
    """Read the records of a study's plan.

    Args:
        runs: those of the plan to look for, with all that they use; None: everything.

    Raises:
        RecordError: records that must not be compared came together.
    """
    planned = study.plan.runs if runs is None else tuple(runs)
    reading = _Reading(study, Checks.read(Path(study.tables, CHECKED)))
    for node in with_progress(_nodes(study, None if runs is None else planned), "reading records"):
        reading.read(node)
    reading.leave_out_deviating()
    reading.compare()
    if runs is None:
        keep_checks(study)
        reading.checks.write(Path(study.tables, CHECKED))
    missing = [hole for run in planned for hole in _holes(reading, run)]
    lacking = {id(hole.run) for hole in missing}
    return Collected(
        study,
        planned,
        reading.records,
        tuple(run for run in planned if id(run) not in lacking),
        tuple(missing),
        (*reading.problems, *_misplaced(study, reading.nodes)),
        reading.test_sets,
    )


def _nodes(study: Study, runs: Iterable[Run] | None) -> tuple[Node, ...]:
    if runs is None:
        return study.plan.nodes
    used = {node.digest for run in runs for node in with_ancestors(run.results_in)}
    return tuple(node for node in study.plan.nodes if node.digest in used)


class _Reading:
    """The records of nodes as they are read, what they are compared by, and what is wrong."""

    def __init__(self, study: Study, checks: Checks) -> None:
        self.study, self.checks = study, checks
        self.nodes: dict[str, Node] = {}
        self.records: dict[str, Record] = {}
        self.states: dict[str, tuple[str, str | None]] = {}
        self.problems: list[tuple[str, str]] = []
        self.test_sets: dict[str, dict[str, str]] = {}
        self._comparison = Comparison()
        self._says = cache(says_synthetic)

    def read(self, node: Node) -> None:
        """Read and check a node's record and rows."""
        self.nodes[node.digest] = node
        state, error, record = examined(self.study, node)
        self.states[node.digest] = state, error
        if record is None:
            if state == DAMAGED:
                self.problems.append((f"{node.path}/{RECORD}", str(error)))
            return
        record = as_prepared(record, Path(self.study.config.results), self._says)
        self.records[node.digest] = record
        wrong = self._check_tests(node, record) if isinstance(node, Stage) else None
        if wrong is not None:
            self._leave_out(node, f"{self.study.record(node)}: {wrong}")

    def _check_tests(self, stage: Stage, record: Record) -> str | None:
        """What is wrong with the rows of a training."""
        try:
            tested = check_predictions(Path(self.study.record(stage)), record, self.checks)
        except TaskTransferError as error:
            return f"its predictions are damaged: {error}"
        self.test_sets[stage.digest] = tested
        return None

    def _leave_out(self, node: Node, error: str) -> None:
        error = " ".join(error.split())
        self.states[node.digest] = DAMAGED, error
        self.problems.append((f"{node.path}/{RECORD}", error))
        del self.records[node.digest]
        self.test_sets.pop(node.digest, None)

    def leave_out_deviating(self) -> None:
        """Leave out trainings that were tested on something else than most others of their data,
        model and limit: instances are paired by position."""
        tested = [
            (digest, (stage.data.digest, stage.model.name, stage.training.limit_test, task), found)
            for digest, test_sets in self.test_sets.items()
            if isinstance(stage := self.nodes[digest], Stage)
            for task, found in test_sets.items()
        ]
        for digest, wrong in deviating_test_sets(tested).items():
            node = self.nodes[digest]
            self._leave_out(node, f"{self.study.record(node)}: {wrong}")

    def compare(self) -> None:
        """Hold all that is usable against each other.

        Raises:
            RecordError: records that must not be compared came together.
        """
        for digest, record in self.records.items():
            node = self.nodes[digest]
            self._comparison.add(dict(facts_of(node, record)), self.study.record(node))


_ADDRESS = re.compile(rf"(?:.*-)?([0-9a-f]{{{SHORT}}})")
"""The folder of a node: its name ends in the first digits of the node's digest."""


def _misplaced(study: Study, nodes: Mapping[str, Node]) -> Iterator[tuple[str, str]]:
    """Records that lie elsewhere in the results folder and are of a node of these."""
    results = Path(study.config.results)
    by_digits = {digest[:SHORT]: node for digest, node in nodes.items()}
    places = {study.record(node) for node in nodes.values()}
    for root in sorted({node.path.split("/", 1)[0] for node in nodes.values()}):
        for path in records_under(results / root):
            address = _ADDRESS.fullmatch(path.parent.name)
            if str(path) in places or (address and address[1] not in by_digits):
                continue
            node = nodes.get(_digest_in(path) or "")
            if node is not None:
                belongs = f"{node.path}/{RECORD}"
                error = f"{path}: {node.label} belongs at {belongs}; this one is left out"
                yield path.relative_to(results).as_posix(), error


def records_under(folder: Path) -> list[Path]:
    """Everything below a folder that is called like a record, sorted; folders and links too."""
    return sorted(
        Path(path, RECORD)
        for path, folders, files in os.walk(folder)
        if RECORD in files or RECORD in folders
    )


def _digest_in(path: Path) -> str | None:
    """The digest of the node that a record says it is of; None if it cannot be told."""
    try:
        return read_record(path)["node"]["digest"]
    except RecordError:
        return None


def _holes(reading: _Reading, run: Run) -> Iterator[Missing]:
    """The nodes with numbers of a run that are not done, and why."""
    study, states = reading.study, reading.states
    for wanted in run.results_in:
        record = reading.records.get(wanted.digest)
        if record is not None and isinstance(wanted, Stage):
            yield from _holes_in(study, run, wanted, record)
        if states[wanted.digest][0] == DONE:
            continue
        damaged = states[wanted.digest][0] == DAMAGED
        needed = (wanted,) if damaged else with_ancestors((wanted,))
        node = next(node for node in needed if states[node.digest][0] != DONE)
        state, error_of_node = states[node.digest]
        reason = _reason(node, state, error_of_node, parent=node is not wanted)
        yield Missing(run, wanted, node, state, reason, error_of_node, _remedy(study, node))


def _holes_in(study: Study, run: Run, stage: Stage, record: Record) -> Iterator[Missing]:
    """What a training that is done lacks of what a run asks of it: its best round was not asked for
    when the training was made, or it has no test result."""
    remedy = _remedy(study, stage)
    if lacks := without_selection(stage, record):
        yield Missing(run, stage, stage, WAITING, lacks, None, remedy)
    elif untested := [task for task in stage.tested if task not in record["results"]]:
        error = f"{study.record(stage)}: has no test result of {', '.join(untested)}"
        reason = _reason(stage, DAMAGED, error, parent=False)
        yield Missing(run, stage, stage, DAMAGED, reason, error, remedy)


def _reason(node: Node, state: str, error: str | None, *, parent: bool) -> str:
    reason = f"{state}: {error}" if error else state
    if state == WAITING:
        return NO_RECORD
    return f"its parent {node.label} {_VERBS.get(state, '')}{reason}" if parent else reason


def _remedy(study: Study, node: Node) -> str:
    log = log_in(Path(study.folder(node)))
    return f"see {log}, and run snakemake again" if log else "run snakemake again"
