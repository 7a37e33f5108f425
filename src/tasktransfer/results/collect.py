"""Collection of a study's records for its tables, shared by all designs.

    collected = gather_records(study)                # every record of the plan, read and checked
    collected.check_completeness(complete=complete)  # raise an error for missing runs, if required
    for run in collected.runs: ...                # runs with all of their records
    collected.record(node), collected.rows(node)  # a record; its rows, read on demand

Each record and its rows are read and checked once. A training's rows are also checked against its
scores. Damaged records, records in the wrong folder and runs with a deviating test set are reported
and left out. A run without results is listed with its state and reason. Incompatible records raise
an error. Neither torch nor the data are needed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tasktransfer.core.nodes import Node, Stage
from tasktransfer.core.runs import Run, add_ancestors
from tasktransfer.data.prepared import has_generated_dialogues
from tasktransfer.errors import RecordError, TaskTransferError, format_quantity
from tasktransfer.files import replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.metrics.texts import clear_caches
from tasktransfer.results.compact import SharedParts, compact_record
from tasktransfer.results.mixtures import Comparison, iterate_facts
from tasktransfer.results.node_folders import find_misplaced_records, inspect_node, save_check_cache
from tasktransfer.results.records import (
    NOUNS,
    PLURALS,
    correct_synthetic_flag,
    describe_unrecorded_selections,
)
from tasktransfer.results.rows import COLUMNS, read_rows
from tasktransfer.results.schema import Record
from tasktransfer.results.state import DAMAGED, DONE, RECORD, WAITING, find_log
from tasktransfer.results.study import Study
from tasktransfer.results.tallies import (
    PredictionChecks,
    check_predictions,
    find_deviating_test_sets,
)

if TYPE_CHECKING:
    import pyarrow as pa

CHECKED = "checked.json"
"""File beside the tables that caches which rows were validated. It may be deleted."""

NO_RECORD = "no record"
CACHED = 500
"""Number of records after which the caches of compared texts are cleared, to limit the memory."""
SHOWN = 12
"""Largest number of missing results that an error lists; the others are counted."""

_VERBS = {"running": "is ", DAMAGED: "is ", "interrupted": "was "}


@dataclass(frozen=True, slots=True)
class MissingResult:
    """An unfinished node whose results a run needs.

    ``wanted``: the node whose results are needed. ``node``: the first unfinished node among
    ``wanted`` and its ancestors. ``state``, ``reason``, ``error``, ``remedy``: state of ``node``,
    its reason in one line, its error, and what to do.
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
    """Records of a study's plan.

    ``planned``: requested runs. ``runs``: runs with all of their records. ``records``: digest →
    record of every node that is done. ``missing``: unfinished nodes. ``problems``: (path below the
    results folder, problem) of each damaged record. ``test_sets``: digest → tested task → digest of
    the ids and gold answers of its test set.
    """

    study: Study
    planned: tuple[Run, ...]
    records: Mapping[str, Record]
    runs: tuple[Run, ...]
    missing: tuple[MissingResult, ...]
    problems: tuple[tuple[str, str], ...]
    test_sets: Mapping[str, Mapping[str, str]]

    def has_record(self, node: Node) -> bool:
        """Return whether a node has a record that can be used in tables."""
        return node.digest in self.records

    def record(self, node: Node) -> Record:
        """Return the record of a finished node."""
        return self.records[node.digest]

    def rows(self, node: Node) -> pa.Table:
        """Return the rows of a finished node, with the columns ``rows.COLUMNS``.

        Raises:
            RecordError: the rows are damaged.
        """
        named = self.record(node)["rows"]
        if named is None:
            return COLUMNS.empty_table()
        return read_rows(Path(self.study.get_node_folder(node), named["file"]), named)

    @cached_property
    def synthetic(self) -> dict[str, bool]:
        """Flag by dataset: true if its dialogues are synthetic, from records or prepared data."""
        synthetic = {r["node"]["dataset"]: r["synthetic"] for r in self.records.values()}
        known = {name: self.study.is_synthetic(name) for name in self.study.config.dataset_names}
        return {**{k: bool(v) for k, v in known.items() if v is not None}, **synthetic}

    @cached_property
    def nodes_without_record(self) -> tuple[Node, ...]:
        """Nodes of the plan that have no usable record."""
        return tuple(node for node in self.study.plan.nodes if not self.has_record(node))

    @cached_property
    def unlisted_nodes(self) -> tuple[Node, ...]:
        """Nodes without a usable record that are not in the frame ``missing``.

        No missing result depends on them, because the nodes that use them are done.
        """
        named = {node.digest for hole in self.missing for node in (hole.wanted, hole.node)}
        return tuple(node for node in self.nodes_without_record if node.digest not in named)

    def describe_missing(self) -> str:
        """Return the counts of nodes without a usable record, such as ``33 of 102 evaluations``.

        Empty if every node has a usable record.
        """
        planned = Counter(NOUNS[type(node)] for node in self.study.plan.nodes)
        missing = Counter(NOUNS[type(node)] for node in self.nodes_without_record)
        return ", ".join(
            f"{missing[noun]:,} of {total:,} {PLURALS[noun]}"
            for noun, total in planned.items()
            if missing[noun]
        )

    @property
    def substitutes(self) -> dict[str, str]:
        """Substitutes for unavailable inputs according to the records, by input."""
        found: dict[str, str] = {}
        for record in self.records.values():
            found |= record["provenance"].get("substitutes", {})
        return found

    def list_problems(self) -> list[str]:
        """Return one line per damaged record, missing result of a run, and other missing node."""
        results = self.study.config.results
        lines = [
            f"{results}/{m.wanted.path}: {m.reason}. Remedy: {m.remedy}." for m in self.missing
        ]
        lines += [f"{results}/{node.path}: {NO_RECORD}" for node in self.unlisted_nodes]
        damaged = [f"damaged: {error}" for _, error in self.problems]
        return list(dict.fromkeys([*damaged, *lines]))

    def check_completeness(self, *, complete: bool) -> None:
        """Raise an error if there are no runs or, with ``complete``, if any result is missing.

        Raises:
            RecordError: results are missing. The message lists them with state and reason.
        """
        results, planned, holes = self.study.config.results, self.planned, self.list_problems()
        if self.runs and not (complete and (self.missing or self.problems)):
            return
        more = [f"and {len(holes) - SHOWN:,} more"] * (len(holes) > SHOWN)
        if not self.runs:
            found = f"None of {len(planned):,} planned runs has a usable record"
        elif self.missing:
            lacking = len(planned) - len(self.runs)
            found = (
                f"{lacking:,} of {len(planned):,} planned runs "
                f"{'has' if lacking == 1 else 'have'} no usable record"
            )
        else:
            count = len(self.problems)
            found = f"{format_quantity(count, 'record')} {'is' if count == 1 else 'are'} damaged"
        raise RecordError(
            f"{results}: {found}, so no table was written. Run snakemake again"
            f"{', or collect without --complete' if self.runs else ''}.\n  "
            + "\n  ".join([*holes[:SHOWN], *more])
        )

    def print_summary(self) -> None:
        """Print counts of runs and excluded records, and write a list of missing results."""
        # Count each run once, with the state of the last of its missing nodes.
        states = Counter({id(hole.run): hole.state for hole in self.missing}.values())
        counted = ", ".join(f"{count:,} {state}" for state, count in states.items())
        print(
            f"{self.study.tables}: {len(self.runs):,} runs, {sum(states.values()):,} missing"
            + (f" ({counted})" if counted else "")
        )
        if nodes := self.describe_missing():
            print(f"{self.study.tables}: without a record: {nodes}")
        for _, error in self.problems:
            print(f"A damaged record was excluded: {error}")
        file = Path(self.study.missing_results_log)
        file.unlink(missing_ok=True)
        if holes := self.list_problems():
            file.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(file) as part:
                part.write_text("\n".join([time.ctime(), *holes, ""]), encoding="utf-8")


def gather_records(study: Study, runs: Iterable[Run] | None = None) -> Collected:
    """Read the records of a study's plan.

    Args:
        runs: runs of the plan to collect, with their ancestors; None for the whole plan.

    Raises:
        RecordError: some records are incompatible.
    """
    planned = study.plan.runs if runs is None else tuple(runs)
    reading = _Reading(study, PredictionChecks.read(Path(study.tables, CHECKED)))
    nodes = _select_nodes(study, None if runs is None else planned)
    for number, node in enumerate(show_progress(nodes, "reading records"), 1):
        reading.read(node)
        if number % CACHED == 0 or number == len(nodes):
            clear_caches()
    reading.exclude_deviating_trainings()
    reading.check_compatibility()
    if runs is None:
        save_check_cache(study)
        reading.checks.write(Path(study.tables, CHECKED))
    missing = [hole for run in planned for hole in _find_missing_results(reading, run)]
    lacking = {id(hole.run) for hole in missing}
    return Collected(
        study,
        planned,
        reading.records,
        tuple(run for run in planned if id(run) not in lacking),
        tuple(missing),
        (*reading.problems, *find_misplaced_records(study, reading.nodes)),
        reading.test_sets,
    )


def _select_nodes(study: Study, runs: Iterable[Run] | None) -> tuple[Node, ...]:
    if runs is None:
        return study.plan.nodes
    used = {node.digest for run in runs for node in add_ancestors(run.result_nodes)}
    return tuple(node for node in study.plan.nodes if node.digest in used)


class _Reading:
    """Records read so far, their comparison, and their problems."""

    def __init__(self, study: Study, checks: PredictionChecks) -> None:
        self.study, self.checks = study, checks
        self.nodes: dict[str, Node] = {}
        self.records: dict[str, Record] = {}
        self.states: dict[str, tuple[str, str | None]] = {}
        self.problems: list[tuple[str, str]] = []
        self.test_sets: dict[str, dict[str, str]] = {}
        self._comparison = Comparison()
        self._parts = SharedParts()
        self._says = cache(has_generated_dialogues)

    def read(self, node: Node) -> None:
        """Read and check a node's record and rows."""
        self.nodes[node.digest] = node
        state, error, record = inspect_node(self.study, node)
        self.states[node.digest] = state, error
        if record is None:
            if state == DAMAGED:
                self.problems.append((f"{node.path}/{RECORD}", str(error)))
            return
        record = correct_synthetic_flag(record, Path(self.study.config.results), self._says)
        self.records[node.digest] = record = compact_record(record, self._parts)
        wrong = self._check_rows(node, record) if isinstance(node, Stage) else None
        if wrong is not None:
            self._exclude_node(node, f"{self.study.get_record_path(node)}: {wrong}")

    def _check_rows(self, stage: Stage, record: Record) -> str | None:
        """Check a training's rows, and store the digests of its test sets if the rows are valid.

        Returns:
            The problem with the rows, or None.
        """
        try:
            tested = check_predictions(Path(self.study.get_record_path(stage)), record, self.checks)
        except TaskTransferError as error:
            return f"The predictions are damaged: {error}"
        self.test_sets[stage.digest] = tested
        return None

    def _exclude_node(self, node: Node, error: str) -> None:
        error = " ".join(error.split())
        self.states[node.digest] = DAMAGED, error
        self.problems.append((f"{node.path}/{RECORD}", error))
        del self.records[node.digest]
        self.test_sets.pop(node.digest, None)

    def exclude_deviating_trainings(self) -> None:
        """Exclude trainings whose test set differs from the test set of most others.

        Trainings with the same data, model and limit are compared, since instances are paired by
        position.
        """
        tested = [
            (digest, (stage.data.digest, stage.model.name, stage.training.limit_test, task), found)
            for digest, test_sets in self.test_sets.items()
            if isinstance(stage := self.nodes[digest], Stage)
            for task, found in test_sets.items()
        ]
        for digest, wrong in find_deviating_test_sets(tested).items():
            node = self.nodes[digest]
            self._exclude_node(node, f"{self.study.get_record_path(node)}: {wrong}")

    def check_compatibility(self) -> None:
        """Check that all usable records are compatible.

        Raises:
            RecordError: some records are incompatible.
        """
        for digest, record in self.records.items():
            node = self.nodes[digest]
            self._comparison.add(
                dict(iterate_facts(node, record)), self.study.get_record_path(node)
            )


def _find_missing_results(reading: _Reading, run: Run) -> Iterator[MissingResult]:
    """Yield the unfinished nodes that a run's results come from, with reasons."""
    study, states = reading.study, reading.states
    for wanted in run.result_nodes:
        record = reading.records.get(wanted.digest)
        if record is not None and isinstance(wanted, Stage):
            yield from _find_missing_training_results(study, run, wanted, record)
        if states[wanted.digest][0] == DONE:
            continue
        damaged = states[wanted.digest][0] == DAMAGED
        needed = (wanted,) if damaged else add_ancestors((wanted,))
        node = next(node for node in needed if states[node.digest][0] != DONE)
        state, error_of_node = states[node.digest]
        reason = _describe_reason(node, state, error_of_node, parent=node is not wanted)
        yield MissingResult(
            run, wanted, node, state, reason, error_of_node, _describe_remedy(study, node)
        )


def _find_missing_training_results(
    study: Study, run: Run, stage: Stage, record: Record
) -> Iterator[MissingResult]:
    """Yield the results of a run that its finished training lacks.

    Either the best round was not requested when the model was trained, or a test result is missing.
    """
    remedy = _describe_remedy(study, stage)
    if lacks := describe_unrecorded_selections(stage, record):
        yield MissingResult(run, stage, stage, WAITING, lacks, None, remedy)
    elif untested := [task for task in stage.tested if task not in record["results"]]:
        tasks = ", ".join(untested)
        error = f"{study.get_record_path(stage)}: The record has no test result for {tasks}"
        reason = _describe_reason(stage, DAMAGED, error, parent=False)
        yield MissingResult(run, stage, stage, DAMAGED, reason, error, remedy)


def _describe_reason(node: Node, state: str, error: str | None, *, parent: bool) -> str:
    reason = f"{state}: {error}" if error else state
    if state == WAITING:
        return NO_RECORD
    return f"its parent {node.label} {_VERBS.get(state, '')}{reason}" if parent else reason


def _describe_remedy(study: Study, node: Node) -> str:
    log = find_log(Path(study.get_node_folder(node)))
    return f"see {log}, and run snakemake again" if log else "run snakemake again"
