"""The records of a study, for its tables: the one way from nodes on disk to runs, for every design.

    collected = gather(study)                     # every record of the plan, read and checked
    collected.require(complete)                   # refuse holes, if tables without any are wanted
    for run in collected.runs: ...                # those whose numbers are all there
    collected.record(node), collected.rows(node)  # a record; its rows, read when they are asked for

A damaged record is named and left out, a run that left nothing is listed with its state and reason,
and records that must not be compared are refused. Neither torch nor the data are needed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.core.ancestors import with_ancestors
from tasktransfer.core.nodes import Node
from tasktransfer.core.runs import Run
from tasktransfer.errors import RecordError
from tasktransfer.files import replacing
from tasktransfer.results.costs import hours_of
from tasktransfer.results.finished import keep_checks, state_of
from tasktransfer.results.mixtures import Comparison, facts_of
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import COLUMNS, read_rows
from tasktransfer.results.schema import Record
from tasktransfer.results.state import DAMAGED, DONE, RECORD, WAITING, log_in
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

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

    ``records``: digest → record of every node that is done; ``problems``: (record's path below the
    results folder, what is wrong with it).
    """

    study: Study
    records: Mapping[str, Record]
    runs: tuple[Run, ...]
    missing: tuple[Missing, ...]
    problems: tuple[tuple[str, str], ...]

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
        said = {r["node"]["dataset"]: r["synthetic"] for r in self.records.values()}
        known = {name: self.study.synthetic(name) for name in self.study.config.dataset_names}
        return {**{k: bool(v) for k, v in known.items() if v is not None}, **said}

    @property
    def cuts(self) -> str:
        """The limits in force in any of the records, such as ``limit_test 1200``."""
        limits = {
            (key.rpartition(".")[2], limit)
            for record in self.records.values()
            for key, limit in record["provenance"].get("cuts", {}).items()
        }
        return ", ".join(f"{key} {limit}" for key, limit in sorted(limits))

    @property
    def stand_ins(self) -> dict[str, str]:
        """What stands in for what, as the records name it."""
        told: dict[str, str] = {}
        for record in self.records.values():
            told |= record["provenance"].get("stand_ins", {})
        return told

    def holes(self) -> list[str]:
        """A line for each run that lacks something, and for each damaged record."""
        place = self.study.config.results
        lines = [f"{place}/{m.wanted.path}: {m.reason}; {m.remedy}" for m in self.missing]
        damaged = [f"damaged: {error}" for _, error in self.problems]
        return list(dict.fromkeys([*damaged, *lines]))

    def require(self, *, complete: bool) -> None:
        """Refuse to go on without any number or, if ``complete``, with a hole.

        Raises:
            RecordError: names what is missing, with its state and reason.
        """
        results, planned, holes = self.study.config.results, self.study.plan.runs, self.holes()
        if self.runs and not (complete and holes):
            return
        more = [f"and {len(holes) - SHOWN:,} more"] * (len(holes) > SHOWN)
        found = (
            f"{len(planned) - len(self.runs):,} of {len(planned):,} planned runs"
            if self.runs
            else f"none of {len(planned):,} planned runs"
        )
        what = "lack a usable record" if self.runs else "has a usable record"
        raise RecordError(
            f"{results}: {found} {what}, so no table was written; run snakemake again"
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
        for _, error in self.problems:
            print(f"left out, damaged: {error}")
        file = Path(self.study.holes)
        file.unlink(missing_ok=True)
        if holes := self.holes():
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(file) as part:
                part.write_text("\n".join([time.ctime(), *holes, ""]), encoding="utf-8")


def gather(study: Study) -> Collected:
    """Read the records of a study's plan.

    Raises:
        RecordError: records that must not be compared came together, or one may not be read.
    """
    records: dict[str, Record] = {}
    states: dict[str, tuple[str, str | None]] = {}
    problems = []
    comparison = Comparison()
    for node in study.plan.nodes:
        state, error = state_of(study, node)
        if state == DONE:
            record = read_record(Path(study.record(node)))
            comparison.add(comparison.shared(facts_of(node, record)), study.record(node))
            records[node.digest] = record
        elif state == DAMAGED:
            error = " ".join(str(error).split())
            problems.append((f"{node.path}/{RECORD}", error))
        states[node.digest] = state, error
    keep_checks(study)
    missing = [hole for run in study.plan.runs for hole in _holes(study, run, states)]
    lacking = {id(hole.run) for hole in missing}
    whole = tuple(run for run in study.plan.runs if id(run) not in lacking)
    return Collected(study, records, whole, tuple(missing), tuple(problems))


def _holes(
    study: Study, run: Run, states: Mapping[str, tuple[str, str | None]]
) -> Iterator[Missing]:
    """The nodes with numbers of a run that are not done, and why."""
    for wanted in run.results_in:
        needed = with_ancestors((wanted,))
        if states[wanted.digest][0] == DONE:
            continue
        node = next(node for node in needed if states[node.digest][0] != DONE)
        state, error = states[node.digest]
        reason = _reason(node, state, error, parent=node is not wanted)
        yield Missing(run, wanted, node, state, reason, error, _remedy(study, node))


def _reason(node: Node, state: str, error: str | None, *, parent: bool) -> str:
    said = f"{state}: {error}" if error else state
    if state == WAITING:
        return NO_RECORD
    return f"its parent {node.label} {_VERBS.get(state, '')}{said}" if parent else said


def _remedy(study: Study, node: Node) -> str:
    log = log_in(Path(study.folder(node)))
    return f"see {log}, and run snakemake again" if log else "run snakemake again"


def tables_of(collected: Collected, about: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of the tables that every design has, columns as in ``tables.collected``.

    Args:
        about: keys of ``Run.about`` that are columns, in their order.
    """

    def named(run: Run) -> tuple[Any, ...]:
        values = (run.about.get(key) for key in about)
        return run.method, run.model, run.seed, *(_text(value) for value in values)

    return {
        "runs": [
            (
                *named(run),
                [f"{node.path}/{RECORD}" for node in run.results_in],
                sum(
                    hours_of(collected.record(node))
                    for node in with_ancestors(run.results_in)
                    if collected.has(node)
                ),
            )
            for run in collected.runs
        ],
        "missing": [
            (
                *(*named(hole.run), f"{hole.wanted.path}/{RECORD}", hole.state, hole.reason),
                *(hole.node.path, hole.error, hole.remedy),
            )
            for hole in collected.missing
        ],
        "problems": list(collected.problems),
    }


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    parts: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return "+".join(map(str, parts))
