"""Selection of the runs to submit, by dev scores alone.

A record is read completely, so that damage is detected. The selection only sees ``FinishedRun``,
which has no field with test results. The rules:

- Candidates for a task are the plan's transfer runs with this target, grouped over their seeds by
  (algorithm, sources). A candidate must be finished for all planned seeds, so that a lucky first
  seed does not win against five. Excluded candidates are reported.
- ``best-dev``: the candidate with the highest mean dev score over its seeds. Ties go to the one
  with fewer sources, then to the first algorithm (in the order of ``ALGORITHMS``), then to the
  first names of sources.
- ``selector:NAME``: the same among candidates with the source that a selector of the study ranks
  first. The selector has not used transfers to the target.
- For the chosen candidate and for the baseline, the seed with the best dev score is submitted (ties
  go to the lowest), or all seeds as an ensemble.

A dev score is that of the best epoch, which training kept (record: ``dev_score``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path
from typing import Any

from tasktransfer.core.runs import Run
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.challenge.by_selector import select_first_sources
from tasktransfer.designs.challenge.policy import Policy
from tasktransfer.designs.transfer.algorithms import ALGORITHMS
from tasktransfer.designs.transfer.challenge_rules import explain_ineligibility
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.errors import ConfigError, RecordError, format_quantity
from tasktransfer.results.records import (
    correct_synthetic_flag,
    describe_unrecorded_selections,
    get_selected_round,
    read_record,
)
from tasktransfer.results.schema import RowsFile
from tasktransfer.results.study import Study


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """Facts about a finished run that the selection may use; test scores are not among them."""

    run: Run
    record: str
    dev_score: float
    dev_instances: int
    predictions: RowsFile
    synthetic: bool
    rules: str | None

    @property
    def predictions_path(self) -> Path:
        """Parquet file with the run's predictions."""
        return Path(self.record).with_name(self.predictions["file"])


@dataclass(frozen=True, slots=True)
class Candidate:
    """An algorithm with its sources on one target, finished for all of its seeds.

    ``seeds`` are ordered by dev score, best first; ``picked`` of them are submitted.
    """

    algorithm: str
    sources: tuple[str, ...]
    seeds: tuple[FinishedRun, ...]
    picked: tuple[FinishedRun, ...] = ()

    @property
    def dev_score(self) -> float:
        """Mean dev score over seeds, 0-100."""
        return fsum(seed.dev_score for seed in self.seeds) / len(self.seeds)


@dataclass(frozen=True, slots=True)
class ChosenRuns:
    """Selected runs for each task's baseline and transfer files, in the order of the cards.

    ``left_out`` has the planned runs that were excluded, because they or other seeds of theirs are
    not finished.
    """

    tasks: dict[str, tuple[Candidate, Candidate]]
    left_out: tuple[Run, ...]

    @property
    def submitted(self) -> list[FinishedRun]:
        """Runs that are submitted."""
        return [run for both in self.tasks.values() for side in both for run in side.picked]


Group = tuple[str, str, tuple[str, ...]]
"""Target, algorithm and sources, which runs of several seeds share."""


def choose_runs(
    study: Study, dataset: str, model: str, policy: Policy, *, all_seeds: bool
) -> ChosenRuns:
    """Choose a baseline and a transfer run for every task of a dataset.

    ``all_seeds`` selects all seeds, for an ensemble, instead of the one with the best dev score.

    Raises:
        ConfigError: tasks have no finished baseline or transfer run (the message lists all, with
            remedies), or the plan does not contain a named run.
        RecordError: records are damaged or may not be submitted (the message lists all).
    """
    planned: dict[Group, list[Run]] = {}
    first: Mapping[str, str] = {}
    if policy.selector is not None:
        first = select_first_sources(study, dataset, model, policy.selector)
    for run in select_transfer_runs(study.plan):
        if (run.about["dataset"], run.model) == (dataset, model) and _is_candidate(
            run, policy, first
        ):
            planned.setdefault((run.about["target"], run.method, run.about["sources"]), []).append(
                run
            )
    candidates = _collect_candidates(study, planned)
    tasks: dict[str, tuple[Candidate, Candidate]] = {}
    missing: list[str] = []
    for task in DATASETS[dataset].tasks:
        baseline = candidates.get((task, "baseline", ()))
        transfers = [c for group, c in candidates.items() if group[0] == task and c.sources]
        if baseline is None or not transfers:
            missing += _describe_gaps(task, baseline, transfers, planned, policy)
            continue
        named = policy.named.get(task)
        seeds = (named.baseline_seed, named.seed) if named else (None, None)
        tasks[task] = (
            _pick_seeds(baseline, seeds[0], all_seeds=all_seeds),
            _pick_seeds(_choose_best_candidate(transfers), seeds[1], all_seeds=all_seeds),
        )
    if missing:
        raise ConfigError(
            f"{study.config_file}: A submission for {dataset} needs a baseline and a transfer run "
            f"for every task. With {model}, these are missing ({len(missing)}):\n  "
            + "\n  ".join(missing)
        )
    left_out = [run for group, runs in planned.items() if group not in candidates for run in runs]
    return ChosenRuns(tasks, tuple(left_out))


def read_finished_run(study: Study, run: Run) -> FinishedRun | None:
    """Return the facts of a planned run that the selection may use, or None if it is not finished.

    Raises:
        RecordError: its record is damaged, belongs to another stage, or may not be submitted.
    """
    path = study.get_record_path(run.stages[-1])
    if not Path(path).exists():
        return None
    record = correct_synthetic_flag(read_record(Path(path)), Path(study.config.results))
    if record["node"]["digest"] != run.stages[-1].digest:
        raise RecordError(
            f"{path}: The record belongs to stage {record['node']['digest'][:12]}, but it must "
            f"belong to {run.stages[-1].digest[:12]}. Delete the folder of the record and run the "
            "stage again."
        )
    if describe_unrecorded_selections(run.stages[-1], record):
        return None
    reasons = explain_ineligibility(
        run.about["dataset"], run.about["sources"], run.about["target"], record
    )
    if reasons:
        raise RecordError(
            f"{path}: The run is not eligible for submission. {' '.join(reasons)} Choose another "
            "run, or repeat the run within the rules."
        )
    predictions = record["rows"]
    assert predictions is not None, "explain_ineligibility reports a record without predictions"
    return FinishedRun(
        run=run,
        record=path,
        dev_score=get_selected_round(record, run.stages[-1].select_on).dev_score,
        dev_instances=record["sizes"][run.about["target"]]["dev"],
        predictions=predictions,
        synthetic=record["synthetic"],
        rules=record["provenance"].get("rules"),
    )


def _is_candidate(run: Run, policy: Policy, first: Mapping[str, str]) -> bool:
    """Return whether a run can be chosen. ``first`` maps each target to the selector's source."""
    if run.method == "baseline":
        return True
    if policy.selector is not None:
        return bool(run.about["sources"] == (first.get(run.about["target"]),))
    named = policy.named.get(run.about["target"])
    if named is not None:
        return (run.method, run.about["sources"]) == (named.algorithm, tuple(sorted(named.sources)))
    return policy.algorithm in {None, run.method}


def _collect_candidates(study: Study, planned: dict[Group, list[Run]]) -> dict[Group, Candidate]:
    """Return the groups of runs in which the runs of all seeds are finished."""
    candidates: dict[Group, Candidate] = {}
    problems: list[str] = []
    for group, runs in planned.items():
        seeds = []
        for run in runs:
            try:
                seeds.append(read_finished_run(study, run))
            except RecordError as error:
                problems.append(str(error))
        finished = [seed_run for seed_run in seeds if seed_run is not None]
        if len(finished) == len(runs):
            finished.sort(key=lambda seed_run: (-seed_run.dev_score, seed_run.run.seed))
            candidates[group] = Candidate(group[1], group[2], tuple(finished))
    if problems := [*dict.fromkeys(problems)]:  # several runs may end with one stage
        raise RecordError(
            f"{format_quantity(len(problems), 'record')} cannot be used. Run the stages again, or "
            "remove them from the config:\n  " + "\n  ".join(problems)
        )
    return candidates


def _choose_best_candidate(candidates: Iterable[Candidate]) -> Candidate:
    order = list(ALGORITHMS)

    def get_rank_key(candidate: Candidate) -> tuple[Any, ...]:
        return (
            -candidate.dev_score,
            len(candidate.sources),
            order.index(candidate.algorithm),
            candidate.sources,
        )

    return min(candidates, key=get_rank_key)


def _pick_seeds(candidate: Candidate, seed: int | None, *, all_seeds: bool) -> Candidate:
    """Return the candidate with the runs to submit: all of its runs or a single one."""
    if all_seeds:
        return replace(candidate, picked=candidate.seeds)
    matching = [seed_run for seed_run in candidate.seeds if seed in {None, seed_run.run.seed}]
    if matching:
        return replace(candidate, picked=(matching[0],))
    seeds = sorted(seed_run.run.seed for seed_run in candidate.seeds)
    target = candidate.seeds[0].run.about["target"]
    raise ConfigError(
        f"{target}: The study has no run of {candidate.algorithm} with seed {seed}. Choose "
        f"one of the seeds {', '.join(map(str, seeds))}."
    )


def _describe_gaps(
    task: str,
    baseline: Candidate | None,
    transfers: list[Candidate],
    planned: dict[Group, list[Run]],
    policy: Policy,
) -> list[str]:
    """Return one line per problem of a task, with the reason and the remedy."""
    runs = [run for group, of_group in planned.items() if group[0] == task for run in of_group]
    if not runs:
        return [
            (f"{task}: The task is not in the study. Add the task and a source for it to datasets.")
        ]
    reasons = []
    if baseline is None:
        reasons.append(
            "The baseline of the task is not finished for all seeds. Run snakemake first."
        )
    count = sum(run.method != "baseline" for run in runs)
    named = policy.named.get(task)
    if transfers:
        pass
    elif count:
        reasons.append(
            f"None of the {count} planned transfer runs is finished for all seeds. Run snakemake "
            "first."
        )
    elif named is not None:
        run = f"{named.algorithm} from {' + '.join(sorted(named.sources))}"
        reasons.append(f"The plan has no {run}. Add this run to the config, or select another run.")
    else:
        how = f" with {policy.algorithm}" if policy.algorithm else ""
        how += f" from a source that {policy.selector} ranks" if policy.selector else ""
        reasons.append(
            f"The plan has no transfer to this task{how}. Add a pair or an algorithm to the config."
        )
    return [f"{task}: {reason}" for reason in reasons]
