"""Which runs are submitted, decided by dev scores alone.

A record is read whole, because a damaged one must be noticed; what choosing may see of it is
``Finished``, which has no field for anything of the test. The rules:

- Candidates for a task are the plan's transfer runs with it as target, taken together over their
  seeds: (algorithm, sources). Only what is finished for all planned seeds takes part, so that a
  lucky first seed does not win against five. What is left out is told.
- ``best-dev``: the candidate with the highest mean dev score over its seeds; of equal ones the one
  with fewer sources, then the one that comes first by algorithm (in the order of ``ALGORITHMS``),
  then by the names of its sources.
- Of the chosen candidate, and of the baseline, the seed with the best dev score is submitted (of
  equal ones the lowest), or all seeds as an ensemble.

A dev score is that of the best epoch, the one that training kept (record: ``dev_score``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any

from tasktransfer.data.prepared import as_prepared
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.algorithms import ALGORITHMS
from tasktransfer.designs.transfer.challenge.guard import ineligible
from tasktransfer.designs.transfer.challenge.policy import Ensemble, NamedRun, Policy
from tasktransfer.designs.transfer.runs import TransferRun as Run
from tasktransfer.designs.transfer.runs import transfer_runs
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.results.records import PredictionsFile, Record, read_record
from tasktransfer.results.study import Study


@dataclass(frozen=True, slots=True)
class Finished:
    """What choosing may know of a finished run: nothing of its test scores."""

    run: Run
    record: str
    dev_score: float
    dev_instances: int
    predictions: PredictionsFile
    synthetic: bool
    rules: str | None

    @property
    def predictions_path(self) -> Path:
        """The Parquet file with its answers."""
        return Path(self.record).with_name(self.predictions["file"])


@dataclass(frozen=True, slots=True)
class Candidate:
    """An algorithm with its sources on one target, finished for all of its seeds."""

    algorithm: str
    sources: tuple[str, ...]
    seeds: tuple[Finished, ...]

    @property
    def dev_score(self) -> float:
        """Mean over seeds, 0-100."""
        return fsum(one.dev_score for one in self.seeds) / len(self.seeds)


@dataclass(frozen=True, slots=True)
class Picked:
    """What is submitted of a candidate: one seed, or all of an ensemble, best dev score first."""

    candidate: Candidate
    seeds: tuple[Finished, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A task's two files."""

    task: str
    baseline: Picked
    transfer: Picked


@dataclass(frozen=True, slots=True)
class Chosen:
    """One choice a task, in the order of the dataset's cards, and the planned runs that took no
    part because they, or other seeds of theirs, are not finished."""

    choices: tuple[Choice, ...]
    left_out: tuple[Run, ...]


Group = tuple[str, str, tuple[str, ...]]
"""Target, algorithm, sources."""


def choose(
    study: Study, dataset: str, model: str, policy: Policy, ensemble: Ensemble | None
) -> Chosen:
    """Choose a baseline and a transfer run for every task of a dataset.

    Raises:
        ConfigError: tasks without a finished baseline or transfer run (all of them, with what to
            do), or named runs that the plan does not have.
        RecordError: records that are damaged or may not be submitted (all of them).
    """
    planned = _planned(study, dataset, model, policy)
    candidates, left_out = _candidates(study, planned)
    choices, missing = [], []
    for task in DATASETS[dataset].tasks:
        baseline = candidates.get((task, "baseline", ()))
        transfers = [
            c for (target, _, sources), c in candidates.items() if target == task and sources
        ]
        if baseline is None or not transfers:
            missing += _missing(task, baseline is None, not transfers, planned, policy)
            continue
        named = policy.named.get(task)
        choices.append(
            Choice(
                task,
                _pick(baseline, ensemble, named.baseline_seed if named else None),
                _pick(_best(transfers), ensemble, named.seed if named else None),
            )
        )
    if missing:
        raise ConfigError(
            f"{study.config_file}: a submission for {dataset} needs a baseline and a transfer run "
            f"of every task, and {model} lacks {len(missing)}:\n  " + "\n  ".join(missing)
        )
    return Chosen(tuple(choices), left_out)


def finished(study: Study, run: Run) -> Finished | None:
    """What choosing may know of a planned run; None if it is not finished.

    Raises:
        RecordError: its record is damaged, another stage's, or may not be submitted.
    """
    path = study.record(run.scored)
    if not Path(path).exists():
        return None
    record = as_prepared(read_record(Path(path)), Path(study.config.results))
    if record["stage"]["digest"] != run.scored.digest:
        raise RecordError(
            f"{path}: it is the record of stage {record['stage']['digest'][:12]}, and "
            f"{run.scored.digest[:12]} belongs here; delete its folder and run the stage again"
        )
    reasons = ineligible(record, run)
    if reasons:
        raise RecordError(f"{path}: it may not be submitted: {'; '.join(reasons)}")
    return of_record(run, path, record)


def of_record(run: Run, path: str, record: Record) -> Finished:
    """The part of a checked record that choosing may see. Reads nothing of the test."""
    predictions = record["predictions"]
    assert predictions is not None, "checked by ineligible"
    return Finished(
        run=run,
        record=path,
        dev_score=record["dev_score"],
        dev_instances=record["sizes"][run.target]["dev"],
        predictions=predictions,
        synthetic=record["synthetic"],
        rules=record["provenance"].get("rules"),
    )


def _planned(study: Study, dataset: str, model: str, policy: Policy) -> dict[Group, list[Run]]:
    """The plan's runs that the policy lets take part, by what they share over seeds."""
    groups: dict[Group, list[Run]] = {}
    for run in transfer_runs(study.plan):
        if (run.dataset, run.model) == (dataset, model) and _asked(run, policy):
            groups.setdefault((run.target, run.algorithm, run.sources), []).append(run)
    return groups


def _asked(run: Run, policy: Policy) -> bool:
    if run.algorithm == "baseline":
        return True
    named = policy.named.get(run.target)
    if named is not None:
        return (run.algorithm, run.sources) == (named.algorithm, named.sources)
    return policy.algorithm in {None, run.algorithm}


def _candidates(
    study: Study, planned: dict[Group, list[Run]]
) -> tuple[dict[Group, Candidate], tuple[Run, ...]]:
    found: dict[Group, Candidate] = {}
    left_out: list[Run] = []
    problems: list[str] = []
    for group, runs in planned.items():
        seeds = []
        for run in runs:
            try:
                seeds.append(finished(study, run))
            except RecordError as error:
                problems.append(str(error))
        there = [one for one in seeds if one is not None]
        if len(there) == len(runs):
            found[group] = Candidate(group[1], group[2], tuple(there))
        else:
            left_out += runs
    if problems:
        raise RecordError(
            f"{len(problems)} records cannot be used; run their stages again, or leave them out of "
            "the config:\n  " + "\n  ".join(problems)
        )
    return found, tuple(left_out)


def _best(candidates: Iterable[Candidate]) -> Candidate:
    order = list(ALGORITHMS)

    def rank(one: Candidate) -> tuple[Any, ...]:
        return -one.dev_score, len(one.sources), order.index(one.algorithm), one.sources

    return min(candidates, key=rank)


def _pick(candidate: Candidate, ensemble: Ensemble | None, seed: int | None) -> Picked:
    ordered = sorted(candidate.seeds, key=lambda one: (-one.dev_score, one.run.seed))
    if ensemble is not None:
        return Picked(candidate, tuple(ordered))
    if seed is None:
        return Picked(candidate, (ordered[0],))
    for one in ordered:
        if one.run.seed == seed:
            return Picked(candidate, (one,))
    run, seeds = ordered[0].run, sorted(one.run.seed for one in ordered)
    raise ConfigError(
        f"{run.target}: {run.algorithm} has no run with seed {seed} in this study; its seeds are "
        f"{', '.join(map(str, seeds))}"
    )


def _missing(
    task: str,
    no_baseline: bool,
    no_transfer: bool,
    planned: dict[Group, list[Run]],
    policy: Policy,
) -> list[str]:
    """What is missing for a task, why, and what to do."""
    runs = [run for (target, _, _), group in planned.items() if target == task for run in group]
    if not runs:
        return [f"{task}: it is not in the study: add it to datasets, and a source for it"]
    told = []
    if no_baseline:
        told.append(f"{task}: its baseline is not finished for all seeds: run snakemake first")
    transfers = sum(run.algorithm != "baseline" for run in runs)
    if no_transfer and transfers:
        told.append(
            f"{task}: of {transfers} planned transfer runs none is finished for all seeds: run "
            "snakemake first"
        )
    elif no_transfer:
        told.append(f"{task}: {_not_planned(policy, policy.named.get(task))}")
    return told


def _not_planned(policy: Policy, named: NamedRun | None) -> str:
    if named is not None:
        return f"the plan has no {_shown(named)}: add it to the config, or name another run"
    by = f" by {policy.algorithm}" if policy.algorithm else ""
    return f"nothing is transferred to it{by}: add a pair or an algorithm to the config"


def _shown(named: NamedRun) -> str:
    return f"{named.algorithm} from {' + '.join(named.sources)}"
