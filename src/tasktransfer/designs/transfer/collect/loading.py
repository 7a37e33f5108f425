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

from tasktransfer.data.prepared import Says, as_prepared, says_synthetic
from tasktransfer.designs.transfer.collect.mixtures import Aspect, Comparison, differences
from tasktransfer.designs.transfer.collect.planned import RECORD, Expected, RunKey, run_key, spell
from tasktransfer.designs.transfer.collect.rows import Row, run_row, score_rows
from tasktransfer.errors import RecordError, TaskTransferError
from tasktransfer.results.records import Record, read_record
from tasktransfer.results.tallies import Checks, check_predictions
from tasktransfer.results.test_sets import strangers

_ADDRESS = re.compile(r"seed\d+-([0-9a-f]{12})")
"""The folder of a stage: its name ends in the first digits of the stage's digest."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that is left out, and why. ``key``: the run that it stands for, where known."""

    path: str
    error: str
    key: RunKey | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the tables need of one usable record; ``run`` is None where no run ends with it."""

    path: str
    key: RunKey | None
    digest: str
    parent: str | None
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


@dataclass(frozen=True, slots=True)
class _Place:
    """What a plan says of a record's path; without a plan only the folder's name says something."""

    key: RunKey | None = None
    digest: str = ""


def load(
    paths: Iterable[Path],
    root: Path,
    expected: Sequence[Expected] = (),
    checks: Checks | None = None,
) -> tuple[list[Loaded], list[Problem]]:
    """Read records.

    Args:
        paths: the record files, in the order to keep.
        root: the results folder; names are relative to it.
        expected: the planned runs. A record at a planned place must hold that run. The trainings
            before it are checked too, and so is whether other records under ``root`` claim it.
        checks: predictions that were checked before; those of this call are added.

    Returns:
        The usable records that end a run, and what is wrong with the others.

    Raises:
        RecordError: records that must not be compared came together.
    """
    places = {plan.record: _Place(plan.key, plan.digest) for plan in expected}
    comparison = Comparison()
    checks = checks or Checks()
    read = partial(
        _read,
        root=root,
        places=places,
        comparison=comparison,
        checks=checks,
        says=cache(says_synthetic),
    )
    paths = list(paths)
    found = [read(path) for path in paths]
    parents = [read(path) for path in _parents(expected, root)]
    runs = [item for item in found if isinstance(item, Loaded) and item.key is not None]
    usable, doubled = _without_duplicates(runs)
    usable, strange = _with_one_test_set(usable)
    _refuse_mixtures(usable, [*found, *parents], comparison)
    problems = [item for item in (*found, *parents) if isinstance(item, Problem)]
    return usable, [*problems, *doubled, *strange, *_strays(expected, root, {*paths})]


def records_under(folder: Path) -> list[Path]:
    """Everything below a folder that is called like a record, sorted; folders and links too."""
    return sorted(
        Path(here, RECORD)
        for here, folders, files in os.walk(folder)
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
    path: Path,
    *,
    root: Path,
    places: dict[str, _Place],
    comparison: Comparison,
    checks: Checks,
    says: Says,
) -> Loaded | Problem:
    """One record, with all that can be told of it and its predictions alone."""
    name = relative(path, root)
    place = places.get(name, _Place())
    try:
        record = as_prepared(read_record(path), root, says)
    except RecordError as error:
        return Problem(name, _line(str(error)), place.key)
    run = record["run"]
    key = run_key(run) if run else None
    wrong = _misplaced(path, record, key, place)
    test_set = None
    if wrong is None:
        try:
            test_set = check_predictions(path, record, checks)
        except TaskTransferError as error:
            wrong = f"its predictions are damaged: {error}"
    if wrong is not None:
        return Problem(name, _line(f"{path}: {wrong}"), place.key or key)
    origin = record["provenance"]
    return Loaded(
        path=name,
        key=key,
        digest=record["stage"]["digest"],
        parent=record["stage"]["parent"],
        score=record["score"],
        run=run_row(name, record, run, test_set) if run else None,
        scores=score_rows(record, run) if run else [],
        facts=comparison.facts(record),
        study=origin["study"],
        config_digest=origin["config_digest"],
        dataset=record["stage"]["dataset"],
        synthetic=record["synthetic"],
        test_set=test_set,
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def _misplaced(path: Path, record: Record, key: RunKey | None, place: _Place) -> str | None:
    """How a record differs from what its place says of it."""
    digest = record["stage"]["digest"]
    if place.key is not None and key != place.key:
        held = "a stage that no run ends with" if key is None else spell(key)
        return f"holds {held}, planned {spell(place.key)}"
    address = _ADDRESS.fullmatch(path.parent.name)
    wanted = place.digest or (address[1] if address else "")
    if not digest.startswith(wanted):
        return (
            f"holds the stage {digest[:12]}, its place is that of {wanted[:12]}: it was moved, or "
            "made with other data, hyperparameters or code; delete it and start snakemake again"
        )
    return None


def _parents(expected: Sequence[Expected], root: Path) -> list[Path]:
    """Records of planned trainings that no planned run ends with, as far as they are there."""
    scored = {plan.record for plan in expected}
    folders = dict.fromkeys(stage for plan in expected for stage in plan.stages)
    records = (f"{folder}/{RECORD}" for folder in folders)
    return [root / name for name in records if name not in scored and is_there(root / name)]


def _without_duplicates(loaded: list[Loaded]) -> tuple[list[Loaded], list[Problem]]:
    """Leave out runs that several records claim: none of them can be told to be the right one."""
    claims: dict[RunKey | None, list[Loaded]] = defaultdict(list)
    for item in loaded:
        claims[item.key].append(item)
    problems = [
        Problem(
            item.path, f"{item.path}: {spell(key)} is also claimed by {_rivals(item, claim)}", key
        )
        for key, claim in claims.items()
        if key is not None and len(claim) > 1
        for item in claim
    ]
    return [item for item in loaded if len(claims[item.key]) == 1], problems


def _with_one_test_set(loaded: list[Loaded]) -> tuple[list[Loaded], list[Problem]]:
    """Leave out runs that were tested on something else than the other runs on their target."""
    wrong = strangers(
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


def _rivals(item: Loaded, claim: list[Loaded]) -> str:
    """The other records of a run, and what is different in the first of them."""
    others = [other for other in claim if other is not item]
    named = ", ".join(other.path for other in others)
    for aspect, value in item.facts.items():
        for name, mine, theirs in differences(value, others[0].facts.get(aspect), aspect[0]):
            return f"{named}; {name} is {mine!r} here and {theirs!r} there"
    there = "there too" if others[0].score == item.score else f"and {others[0].score} there"
    return f"{named}; the score is {item.score} here {there}"


def _strays(expected: Sequence[Expected], root: Path, read: set[Path]) -> list[Problem]:
    """Records elsewhere under ``root`` that claim a planned run. Results of other studies, under
    the name of another digest, are none of them."""
    if not expected:
        return []
    plans = {plan.key: plan for plan in expected}
    digests = {plan.digest[:12] for plan in expected}
    known = {root / plan.record for plan in expected} | set(_parents(expected, root)) | read
    problems = []
    for path in records_under(root / "stages"):
        address = _ADDRESS.fullmatch(path.parent.name)
        if path in known or (address and address[1] not in digests):
            continue
        claimed = _claimed(path)
        if claimed is None or claimed[0] not in plans:
            continue
        key, digest = claimed
        plan = plans[key]
        if digest.startswith(plan.digest):
            name = relative(path, root)
            problems.append(
                Problem(
                    name, f"{path}: {spell(key)} belongs at {plan.record}; this one is left out"
                )
            )
    return problems


def _claimed(path: Path) -> tuple[RunKey, str] | None:
    """The run and the stage that a record says it is of; None if it cannot be told."""
    try:
        record = read_record(path)
    except RecordError:
        return None
    return (run_key(record["run"]), record["stage"]["digest"]) if record["run"] else None


def _refuse_mixtures(
    usable: list[Loaded], seen: Iterable[Loaded | Problem], comparison: Comparison
) -> None:
    """Compare the usable records with each other and with what they started from."""
    for item in usable:
        comparison.add(item.facts, item.path)
    parents = {item.parent for item in usable}
    for other in seen:
        if isinstance(other, Loaded) and other.key is None and other.digest in parents:
            comparison.add(other.facts, other.path)
