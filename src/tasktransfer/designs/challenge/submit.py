"""Submission from a study's finished records: selection, predictions and the archive."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.challenge.choose import Candidate, ChosenRuns, FinishedRun, choose_runs
from tasktransfer.designs.challenge.ensemble import Ensemble, combine_answers
from tasktransfer.designs.challenge.format import (
    FILES,
    NO_ANSWER,
    Strings,
    SubmittedRow,
    format_csv,
    list_row_ids,
    to_values,
    write_archive,
)
from tasktransfer.designs.challenge.policy import Policy, parse_policy
from tasktransfer.designs.transfer.challenge_rules import OUT_OF_SCOPE
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.errors import ConfigError, RecordError, format_quantity, suggest_name
from tasktransfer.files import replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.present.columns import format_table
from tasktransfer.results.rows import read_rows, select_task_rows
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Task


@dataclass(frozen=True, slots=True)
class SubmissionOptions:
    """Options of the command ``submit``; ``runs`` is the file of the ``named`` policy."""

    dataset: str
    model: str
    policy: str = "best-dev"
    runs: Path | None = None
    ensemble: Ensemble | None = None
    strings: Strings = "csv"


@dataclass(frozen=True, slots=True)
class WrittenSubmission:
    """Files of a submission: the archive, its JSON file, and a summary to print."""

    archive: Path
    choice: Path
    text: str


def write_submission(
    study: Study, options: SubmissionOptions, out: Path | None = None
) -> WrittenSubmission:
    """Write the archive ``out``, and list the chosen runs and their records in ``<out>.json``.

    ``out`` is by default below the study's results.

    Raises:
        ConfigError: the study is free, a name is unknown, or a task has no finished run.
        RecordError: records or predictions are damaged, incomplete or not eligible.
    """
    _check_options(study, options)
    policy = parse_policy(options.policy, options.dataset, options.runs)
    if options.ensemble:
        _check_named_seeds(policy)
    all_seeds = options.ensemble is not None
    chosen = choose_runs(study, options.dataset, options.model, policy, all_seeds=all_seeds)
    members, notes = _build_members(chosen, options)
    name = f"{options.dataset}-{options.model}.zip"
    archive = out or Path(study.config.results) / "submissions" / name
    write_archive(archive, members)
    beside = archive.with_name(f"{archive.name}.json")
    with replace_file(beside) as part:
        report = _build_choice_file(study, options, chosen, archive, notes)
        part.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return WrittenSubmission(
        archive, beside, _format_summary(study, options, chosen, archive, notes)
    )


def _check_options(study: Study, options: SubmissionOptions) -> None:
    file, rules = study.config_file, get_transfer_config(study).rules
    if rules != "challenge":
        raise ConfigError(
            f"{file}: A study with rules: {rules} cannot be submitted. Set rules: "
            "challenge and run the study again, which repeats the training runs that finished "
            "without these rules."
        )
    datasets = list(study.config.dataset_names)
    if options.dataset not in datasets:
        raise ConfigError(
            f"{file}: The study does not contain the dataset "
            f"{options.dataset!r}.{suggest_name(options.dataset, datasets)} Choose one of "
            f"{', '.join(datasets)}."
        )
    study.get_model_config(options.model)
    if study.has_unknown_inputs:
        raise ConfigError(
            f"{file}: The records cannot be located ({'; '.join(study.absent)}). Provide the "
            "missing inputs."
        )


def _check_named_seeds(policy: Policy) -> None:
    seeded = [
        task
        for task, run in policy.named.items()
        if run.seed is not None or run.baseline_seed is not None
    ]
    if seeded:
        raise ConfigError(
            f"--runs: The file gives a seed for {', '.join(seeded)}, but --ensemble uses all "
            "seeds. Remove the seeds from the file, or omit --ensemble."
        )


# --- the answers --------------------------------------------------------------------------------


def _build_members(
    chosen: ChosenRuns, options: SubmissionOptions
) -> tuple[dict[str, bytes], list[str]]:
    """Return the contents of the archive by ``folder/file``, and notes on the answers."""
    members: dict[str, bytes] = {}
    notes: list[str] = []
    problems: list[str] = []
    for task, both in show_progress(chosen.tasks.items(), "reading answers of tasks"):
        try:
            files = _read_task_rows(DATASETS[options.dataset].tasks[task], both, options.ensemble)
        except RecordError as error:
            problems.append(str(error))
            continue
        for file, rows in files.items():
            name = f"{task}/{file}"
            members[name] = format_csv(rows, options.strings)
            invalid = sum(value == NO_ANSWER for _, value in rows)
            if invalid:
                notes.append(
                    f"{name}: Answers that are not labels ({invalid:,} of {len(rows):,}) are "
                    f"written as {NO_ANSWER} and count as wrong."
                )
    if problems:
        raise RecordError(
            f"The predictions of {format_quantity(len(problems), 'task')} cannot be used:\n  "
            + "\n  ".join(problems)
        )
    return members, notes


def _read_task_rows(
    task: Task, both: tuple[Candidate, Candidate], ensemble: Ensemble | None
) -> dict[str, list[SubmittedRow]]:
    """Return the rows of the baseline and transfer files, and check that instances match."""
    files, first = {}, None
    for file, candidate in zip(FILES, both, strict=True):
        by_seed = [_read_run_rows(task, seed_run) for seed_run in candidate.picked]
        for seed_run, rows in zip(candidate.picked, by_seed, strict=True):
            first = first or (seed_run, rows)
            _check_same_instances(*first, seed_run, rows)
        files[file] = by_seed[0]
        if ensemble and len(by_seed) > 1:
            files[file] = [
                (answers[0][0], combine_answers(task, [value for _, value in answers], ensemble))
                for answers in zip(*by_seed, strict=True)
            ]
    return files


def _read_run_rows(task: Task, seed_run: FinishedRun) -> list[SubmittedRow]:
    path = seed_run.predictions_path
    # Read only these two columns: neither gold answers nor scores are used.
    table = select_task_rows(read_rows(path, seed_run.predictions), task.name)
    if not table.num_rows:
        raise RecordError(f"{path}: There are no predictions for {task.name}. Run its stage again.")
    ids, answers = table["instance_id"].to_pylist(), table["prediction"].to_pylist()
    rows: list[SubmittedRow] = []
    for instance, answer in zip(ids, answers, strict=True):
        names, values = list_row_ids(task, instance), to_values(task, answer)
        if len(names) != len(values):
            raise RecordError(
                f"{path}: Instance {instance} of {task.name} has {len(values)} answers {answer!r}, "
                f"but it must have {len(names)}. Run the stage of these predictions again."
            )
        rows += zip(names, values, strict=True)
    return rows


def _check_same_instances(
    first: FinishedRun,
    first_rows: list[SubmittedRow],
    other: FinishedRun,
    other_rows: list[SubmittedRow],
) -> None:
    ids, other_ids = [name for name, _ in first_rows], [name for name, _ in other_rows]
    if ids == other_ids:
        return
    difference = f"{len(ids)} rows and {len(other_ids)}"
    for number, (a, b) in enumerate(zip(ids, other_ids, strict=False), start=1):
        if a != b:
            difference = f"row {number}: {a}, {b}"
            break
    raise RecordError(
        f"{first.predictions_path}: The instances differ from the instances in the file "
        f"{other.predictions_path} ({difference}). Run both stages again on the same data."
    )


# --- output -------------------------------------------------------------------------------------


def _build_choice_file(
    study: Study, options: SubmissionOptions, chosen: ChosenRuns, archive: Path, notes: list[str]
) -> dict[str, Any]:
    return {
        "archive": archive.name,
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "study": study.config.study,
        "config_digest": study.config.digest,
        "rules": get_transfer_config(study).rules,
        "synthetic": any(submitted.synthetic for submitted in chosen.submitted),
        **{key: value for key, value in asdict(options).items() if key != "runs"},
        "tasks": {
            task: {
                "baseline": _build_candidate_json(baseline),
                "transfer": _build_candidate_json(transfer),
            }
            for task, (baseline, transfer) in chosen.tasks.items()
        },
        "not_finished": [run.stages[-1].path for run in chosen.left_out],
        "notes": [*notes, OUT_OF_SCOPE],
    }


class SubmittedRun(TypedDict):
    """A run whose predictions are submitted: its dev score, record, stage and predictions."""

    seed: int
    dev_score: float
    record: str
    stage: str
    predictions: str
    """SHA-256 of the predictions."""
    rules: str | None


class SubmittedRuns(TypedDict):
    """A task's baseline or transfer in the file of chosen runs."""

    algorithm: str
    sources: list[str]
    mean_dev_score: float
    dev_instances: int
    runs: list[SubmittedRun]


def _build_candidate_json(candidate: Candidate) -> SubmittedRuns:
    return {
        "algorithm": candidate.algorithm,
        "sources": list(candidate.sources),
        "mean_dev_score": candidate.dev_score,
        "dev_instances": candidate.seeds[0].dev_instances,
        "runs": [
            {
                "seed": seed_run.run.seed,
                "dev_score": seed_run.dev_score,
                "record": f"{seed_run.run.stages[-1].path}/metrics.json",
                "stage": seed_run.run.stages[-1].digest,
                "predictions": seed_run.predictions["sha256"],
                "rules": seed_run.rules,
            }
            for seed_run in candidate.picked
        ],
    }


def _format_summary(
    study: Study, options: SubmissionOptions, chosen: ChosenRuns, archive: Path, notes: list[str]
) -> str:
    how = options.policy + (f", {options.ensemble} of all seeds" if options.ensemble else "")
    synthetic = any(submitted.synthetic for submitted in chosen.submitted)
    mark = " (SYNTHETIC data, for practice only)" if synthetic else ""
    notes = list(notes)
    if chosen.left_out:
        notes.append(
            f"{format_quantity(len(chosen.left_out), 'planned run')} "
            f"{'was' if len(chosen.left_out) == 1 else 'were'} not considered, because not all "
            "seeds are finished."
        )
    without_rules = sum(submitted.rules is None for submitted in chosen.submitted)
    if without_rules:
        notes.append(
            f"{format_quantity(without_rules, 'record')} from an earlier version "
            f"{'does' if without_rules == 1 else 'do'} not contain the rules of the study. The "
            "training data and settings satisfy the rules."
        )
    fidelity = (
        get_transfer_config(study).get_training_hyperparameters(options.dataset).fidelity.scoring
    )
    option = "" if fidelity == "default" else f" --fidelity {fidelity}"
    lines = [
        f"{options.dataset}, {options.model}, chosen by {how}{mark}",
        "",
        _format_table(options, chosen),
        "",
        *(f"note: {note}" for note in (*notes, OUT_OF_SCOPE)),
        "",
        f"{archive}: {2 * len(chosen.tasks)} files",
        f"score it: tasktransfer score {archive} --data {study.release}{option}",
    ]
    return "\n".join(lines)


def _format_table(options: SubmissionOptions, chosen: ChosenRuns) -> str:
    """Return a table of chosen runs, with mean dev score (0-100) and number of dev instances."""
    cards = DATASETS[options.dataset].tasks
    rows = [
        {
            "task": task,
            "algorithm": transfer.algorithm,
            "sources": "+".join(cards[name].short for name in transfer.sources),
            "seed": _format_seeds(transfer),
            "dev": f"{transfer.dev_score:.2f}",
            "baseline seed": _format_seeds(baseline),
            "baseline dev": f"{baseline.dev_score:.2f}",
            "dev n": str(transfer.seeds[0].dev_instances),
        }
        for task, (baseline, transfer) in chosen.tasks.items()
    ]
    return "\n".join(format_table(rows))


def _format_seeds(candidate: Candidate) -> str:
    return ",".join(
        str(seed) for seed in sorted(seed_run.run.seed for seed_run in candidate.picked)
    )
