"""Record files to what the tables need of them. What is damaged is named and left out.

Each file is read once and reduced at once: the records of a large study need much memory whole.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from tasktransfer.data.prepared import says_synthetic
from tasktransfer.designs.transfer.collect.mixtures import facts
from tasktransfer.designs.transfer.collect.planned import Expected, RunKey, spell
from tasktransfer.designs.transfer.collect.rows import Row, run_row, score_rows
from tasktransfer.errors import RecordError, TaskTransferError
from tasktransfer.results.mixtures import Aspect, Comparison
from tasktransfer.results.prepared import Says, as_prepared
from tasktransfer.results.records import read_record, stage_of
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD
from tasktransfer.results.tallies import Checks, check_predictions
from tasktransfer.results.test_sets import deviating_test_sets

_ADDRESS = re.compile(r"seed\d+-([0-9a-f]{12})")
"""The folder of a stage: its name ends in the first digits of the stage's digest."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that is left out, and why. ``key``: the run that it is of, if any."""

    path: str
    error: str
    key: RunKey | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the tables need of one usable record, of a planned run that ends with its stage; all of
    the run is None for a stage that others only start from."""

    path: str
    key: RunKey | None
    digest: str
    parents: tuple[str, ...]
    score: float | None
    run: Row | None
    scores: list[Row]
    facts: dict[Aspect, Any]
    """What has to be the same in all records that it is compared with."""
    study: str
    config_digest: str
    dataset: str
    synthetic: bool
    test_set: str | None
    """Digest of what its predictions answer; None: it has none."""


def load(
    results: Path, expected: Sequence[Expected], checks: Checks | None = None
) -> tuple[list[Loaded], list[Problem]]:
    """Read the records of planned runs.

    Args:
        results: the results folder; names are relative to it.
        expected: the planned runs, in the order to keep. Several may end with one stage. The
            trainings before them are checked too, and so is whether other records claim a stage.
        checks: predictions that were checked before; those of this call are added.

    Returns:
        What is usable, a ``Loaded`` per run, and what is wrong with the others.

    Raises:
        RecordError: records that must not be compared came together.
    """
    comparison, checks = Comparison(), checks or Checks()
    says = cache(says_synthetic)
    runs_of: dict[str, list[Expected]] = defaultdict(list)
    for plan in expected:
        runs_of[plan.record] += [plan] * is_there(results / plan.record)
    read = partial(_read, results=results, comparison=comparison, checks=checks, says=says)
    read_records = [item for name, plans in runs_of.items() if plans for item in read(name, plans)]
    parents = [item for name in _parents(expected, results) for item in read(name, [])]
    runs = [item for item in read_records if isinstance(item, Loaded)]
    usable, differing = _with_one_test_set(runs)
    _refuse_mixtures(usable, parents, comparison)
    problems = [item for item in (*read_records, *parents) if isinstance(item, Problem)]
    return usable, [*problems, *differing, *_misplaced_copies(expected, results)]


def records_under(folder: Path) -> list[Path]:
    """Everything below a folder that is called like a record, sorted; folders and links too."""
    return sorted(
        Path(place, RECORD)
        for place, folders, files in os.walk(folder)
        if RECORD in files or RECORD in folders
    )


def relative(path: Path, root: Path) -> str:
    """A path as the tables name it."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def is_there(path: Path) -> bool:
    """Whether anything has this name: broken links and what cannot be looked at count."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _read(
    name: str,
    plans: Sequence[Expected],
    *,
    results: Path,
    comparison: Comparison,
    checks: Checks,
    says: Says,
) -> list[Loaded] | list[Problem]:
    """One record, for each run that ends with it, with all that can be told of it alone."""
    path = results / name
    key = plans[0].key if plans else None
    try:
        record = as_prepared(read_record(path), results, says)
    except RecordError as error:
        return [Problem(name, _line(str(error)), key)]
    wrong = _misplaced(path, record, plans)
    test_sets: dict[str, str] = {}
    if wrong is None:
        try:
            test_sets = check_predictions(path, record, checks)
        except TaskTransferError as error:
            wrong = f"its predictions are damaged: {error}"
    if wrong is not None:
        return [Problem(name, _line(f"{path}: {wrong}"), key)]
    origin = record["provenance"]

    def loaded(plan: Expected | None) -> Loaded:
        test_set = test_sets.get(plan.target) if plan else None
        return Loaded(
            path=name,
            key=plan.key if plan else None,
            digest=record["node"]["digest"],
            parents=tuple(stage_of(record)["parents"]),
            score=record["results"][plan.target]["score"] if plan else None,
            run=run_row(name, record, plan, test_set) if plan else None,
            scores=score_rows(record, plan) if plan else [],
            facts=comparison.shared(
                facts(record, *((plan.target, plan.algorithm) if plan else ()))
            ),
            study=origin["study"],
            config_digest=origin["config_digest"],
            dataset=record["node"]["dataset"],
            synthetic=record["synthetic"],
            test_set=test_set,
        )

    return [loaded(plan) for plan in plans] if plans else [loaded(None)]


def _line(text: str) -> str:
    return " ".join(text.split())


def _misplaced(path: Path, record: Record, plans: Sequence[Expected]) -> str | None:
    """How a record differs from what its place and its plan say of it."""
    digest = record["node"]["digest"]
    address = _ADDRESS.fullmatch(path.parent.name)
    wanted = next((plan.digest for plan in plans if plan.digest), address[1] if address else "")
    if not digest.startswith(wanted):
        return (
            f"holds the stage {digest[:12]}, its place is that of {wanted[:12]}: it was moved, or "
            "made with other data, hyperparameters or code; delete it and start snakemake again"
        )
    untested = [plan for plan in plans if plan.target not in record["results"]]
    if untested:
        return f"has no test result of {untested[0].target}, planned {spell(untested[0].key)}"
    return None


def _parents(expected: Sequence[Expected], results: Path) -> list[str]:
    """Records of planned trainings that no planned run ends with, as far as they are there."""
    scored = {plan.record for plan in expected}
    folders = dict.fromkeys(stage for plan in expected for stage in plan.stages)
    records = (f"{folder}/{RECORD}" for folder in folders)
    return [name for name in records if name not in scored and is_there(results / name)]


def _with_one_test_set(loaded: list[Loaded]) -> tuple[list[Loaded], list[Problem]]:
    """Leave out runs that were tested on something else than the other runs on their target."""
    wrong = deviating_test_sets(
        (item.path, (item.key[0], item.key[1], item.key[4]), item.test_set)
        for item in loaded
        if item.key is not None and item.test_set is not None
    )
    problems = [
        Problem(item.path, f"{item.path}: {wrong[item.path]}", item.key)
        for item in loaded
        if item.path in wrong
    ]
    return [item for item in loaded if item.path not in wrong], problems


def _misplaced_copies(expected: Sequence[Expected], results: Path) -> list[Problem]:
    """Records elsewhere under ``results`` of a stage that a planned run ends with."""
    planned = {plan.digest[:12]: plan for plan in expected if plan.digest}
    places = {results / plan.record for plan in expected}
    problems = []
    for path in records_under(results / "stages"):
        address = _ADDRESS.fullmatch(path.parent.name)
        if path in places or (address and address[1] not in planned):
            continue
        digest = _stage_of(path)
        plan = planned.get(digest[:12]) if digest else None
        if plan is not None:
            name = relative(path, results)
            text = f"{path}: {spell(plan.key)} belongs at {plan.record}; this one is left out"
            problems.append(Problem(name, text))
    return problems


def _stage_of(path: Path) -> str | None:
    """The digest of the stage that a record says it is of; None if it cannot be told."""
    try:
        return read_record(path)["node"]["digest"]
    except RecordError:
        return None


def _refuse_mixtures(
    usable: list[Loaded], others: Iterable[Loaded | Problem], comparison: Comparison
) -> None:
    """Compare the usable records with each other and with what they started from."""
    for item in usable:
        comparison.add(item.facts, item.path)
    parents = {parent for item in usable for parent in item.parents}
    for other in others:
        if isinstance(other, Loaded) and other.digest in parents:
            comparison.add(other.facts, other.path)
