"""A submission from a study's finished records: choose, read the answers, write the archive."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.designs.transfer.challenge.archive import Row, Strings, csv_file, write_archive
from tasktransfer.designs.transfer.challenge.choose import Choice, Chosen, Finished, Picked, choose
from tasktransfer.designs.transfer.challenge.ensemble import combined
from tasktransfer.designs.transfer.challenge.format import (
    BASELINE_FILE,
    NO_ANSWER,
    TRANSFER_FILE,
    folders,
    row_ids,
    to_values,
)
from tasktransfer.designs.transfer.challenge.guard import refuse_free
from tasktransfer.designs.transfer.challenge.policy import NAMED, Ensemble, Policy, parse_policy
from tasktransfer.designs.transfer.challenge.rules import OUT_OF_SCOPE
from tasktransfer.designs.transfer.config import transfer_config
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.files import replacing
from tasktransfer.results.predictions import read_predictions, rows_of
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Task
from tasktransfer.validation import nearest

Rows = list[Row]


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for. ``runs`` is the file of the ``named`` policy."""

    dataset: str
    model: str
    policy: str = "best-dev"
    runs: Path | None = None
    ensemble: Ensemble | None = None
    strings: Strings = "csv"


@dataclass(frozen=True, slots=True)
class Submission:
    """An archive that was written, the file beside it, and a table for people."""

    archive: Path
    choice: Path
    text: str


def default_archive(study: Study, dataset: str, model: str) -> Path:
    """Where an archive goes if nothing else is said."""
    return Path(study.config.results) / "submissions" / f"{dataset}-{model}.zip"


def make(study: Study, wish: Wish, out: Path | None = None) -> Submission:
    """Write ``out`` (the archive) and ``<out>.json`` (what was chosen, from which records).

    Raises:
        ConfigError: a free study, unknown names, or tasks without finished runs.
        RecordError: records or predictions that are damaged, incomplete or not eligible.
    """
    refuse_free(transfer_config(study), study.config_file)
    _check_names(study, wish)
    policy = parse_policy(wish.policy, wish.dataset, wish.runs)
    if policy.name == NAMED and wish.ensemble:
        _refuse_named_seeds(policy)
    chosen = choose(study, wish.dataset, wish.model, policy, wish.ensemble)
    members, notes = _members(chosen, wish)
    archive = out or default_archive(study, wish.dataset, wish.model)
    write_archive(archive, members)
    beside = archive.with_name(f"{archive.name}.json")
    with replacing(beside) as part:
        said = _choice_file(study, wish, chosen, archive, notes)
        part.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return Submission(archive, beside, _as_text(study, wish, chosen, archive, notes))


def _check_names(study: Study, wish: Wish) -> None:
    datasets = list(study.config.dataset_names)
    if wish.dataset not in datasets:
        raise ConfigError(
            f"{study.config_file}: {wish.dataset!r} is no dataset of this study"
            f"{nearest(wish.dataset, datasets)}; it has {', '.join(datasets)}"
        )
    study.model(wish.model)
    if study.unknown:
        raise ConfigError(
            f"{study.config_file}: where its records are cannot be told: {'; '.join(study.absent)}"
        )


def _refuse_named_seeds(policy: Policy) -> None:
    seeded = [
        task
        for task, run in policy.named.items()
        if run.seed is not None or run.baseline_seed is not None
    ]
    if seeded:
        raise ConfigError(
            f"--runs names a seed for {', '.join(seeded)}, and --ensemble takes all seeds: leave "
            "one of the two out"
        )


# --- the answers --------------------------------------------------------------------------------


def _members(chosen: Chosen, wish: Wish) -> tuple[dict[str, bytes], list[str]]:
    """``folder/file`` → content, and what people should know of the answers."""
    members: dict[str, bytes] = {}
    notes: list[str] = []
    problems: list[str] = []
    cards = folders(wish.dataset)
    for choice in chosen.choices:
        task = cards[choice.task]
        try:
            for name, rows in _both(task, choice, wish.ensemble).items():
                members[f"{task.name}/{name}"] = csv_file(rows, wish.strings)
                notes += _no_answers(f"{task.name}/{name}", rows)
        except RecordError as error:
            problems.append(str(error))
    if problems:
        raise RecordError(
            f"the predictions of {len(problems)} tasks cannot be used:\n  " + "\n  ".join(problems)
        )
    return members, notes


def _both(task: Task, choice: Choice, ensemble: Ensemble | None) -> dict[str, Rows]:
    baseline = _rows(task, choice.baseline, ensemble)
    transfer = _rows(task, choice.transfer, ensemble)
    _refuse_different_instances(
        choice.baseline.seeds[0], baseline, choice.transfer.seeds[0], transfer
    )
    return {BASELINE_FILE: baseline, TRANSFER_FILE: transfer}


def _rows(task: Task, picked: Picked, ensemble: Ensemble | None) -> Rows:
    by_seed = [_rows_of_run(task, one) for one in picked.seeds]
    if ensemble is None or len(by_seed) == 1:
        return by_seed[0]
    for one, rows in zip(picked.seeds, by_seed, strict=True):
        _refuse_different_instances(picked.seeds[0], by_seed[0], one, rows)
    return [
        (answers[0][0], combined(task, [value for _, value in answers], ensemble))
        for answers in zip(*by_seed, strict=True)
    ]


def _rows_of_run(task: Task, one: Finished) -> Rows:
    path = one.predictions_path
    # Of the file's columns only these two: neither right answers nor scores are looked at.
    table = rows_of(read_predictions(path, one.predictions), task.name)
    if not table.num_rows:
        raise RecordError(f"{path}: no prediction of {task.name}; run its stage again")
    ids, answers = table["instance_id"].to_pylist(), table["prediction"].to_pylist()
    rows: Rows = []
    for instance, answer in zip(ids, answers, strict=True):
        names, values = row_ids(task, instance), to_values(task, answer)
        if len(names) != len(values):
            raise RecordError(
                f"{path}: {task.name} instance {instance}: {len(values)} answers {answer!r}, "
                f"expected {len(names)}; run its stage again"
            )
        rows += zip(names, values, strict=True)
    return rows


def _refuse_different_instances(
    one: Finished, rows: Rows, other: Finished, other_rows: Rows
) -> None:
    here, there = [name for name, _ in rows], [name for name, _ in other_rows]
    if here == there:
        return
    at = next((i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), None)
    what = (
        f"{len(here)} rows and {len(there)}"
        if at is None
        else f"row {at + 1}: {here[at]}, {there[at]}"
    )
    raise RecordError(
        f"{one.predictions_path} and {other.predictions_path} answer different instances ({what}); "
        "run their stages again on the same data"
    )


def _no_answers(name: str, rows: Rows) -> list[str]:
    count = sum(value == NO_ANSWER for _, value in rows)
    if not count:
        return []
    return [
        f"{name}: {count:,} of {len(rows):,} answers are no label, written as {NO_ANSWER}: they "
        "count as wrong"
    ]


# --- what is said about it ----------------------------------------------------------------------


def _choice_file(
    study: Study, wish: Wish, chosen: Chosen, archive: Path, notes: list[str]
) -> dict[str, Any]:
    return {
        "archive": archive.name,
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "study": study.config.study,
        "config_digest": study.config.digest,
        "rules": transfer_config(study).rules,
        "synthetic": _is_synthetic(chosen),
        "dataset": wish.dataset,
        "model": wish.model,
        "policy": wish.policy,
        "ensemble": wish.ensemble,
        "strings": wish.strings,
        "tasks": {
            choice.task: {"baseline": _said(choice.baseline), "transfer": _said(choice.transfer)}
            for choice in chosen.choices
        },
        "not_finished": [run.scored.path for run in chosen.left_out],
        "notes": [*notes, OUT_OF_SCOPE],
    }


def _said(picked: Picked) -> dict[str, Any]:
    candidate = picked.candidate
    return {
        "algorithm": candidate.algorithm,
        "sources": list(candidate.sources),
        "mean_dev_score": candidate.dev_score,
        "dev_instances": candidate.seeds[0].dev_instances,
        "runs": [
            {
                "seed": one.run.seed,
                "dev_score": one.dev_score,
                "record": f"{one.run.scored.path}/metrics.json",
                "stage": one.run.scored.digest,
                "predictions": one.predictions["sha256"],
                "rules": one.rules,
            }
            for one in picked.seeds
        ],
    }


def _is_synthetic(chosen: Chosen) -> bool:
    return any(one.synthetic for one in _all_finished(chosen))


def _all_finished(chosen: Chosen) -> Iterator[Finished]:
    for choice in chosen.choices:
        yield from choice.baseline.seeds
        yield from choice.transfer.seeds


def _as_text(study: Study, wish: Wish, chosen: Chosen, archive: Path, notes: list[str]) -> str:
    how = wish.policy + (f", {wish.ensemble} of all seeds" if wish.ensemble else "")
    mark = " (SYNTHETIC data: practice only)" if _is_synthetic(chosen) else ""
    lines = [f"{wish.dataset}, {wish.model}, chosen by {how}{mark}", "", *_table(wish, chosen), ""]
    lines += [f"note: {note}" for note in notes]
    if chosen.left_out:
        lines.append(
            f"note: {len(chosen.left_out):,} planned runs took no part, since not all of their "
            "seeds are finished"
        )
    unsaid = sum(one.rules is None for one in _all_finished(chosen))
    if unsaid:
        lines.append(
            f"note: {unsaid} of the records are from before records said under which rules they "
            "were made; by what they say of their training they keep the rules"
        )
    lines += [f"note: {OUT_OF_SCOPE}", "", f"{archive}: {2 * len(chosen.choices)} files"]
    fidelity = transfer_config(study).training_for(wish.dataset).fidelity
    option = "" if fidelity == "default" else f" --fidelity {fidelity}"
    lines.append(f"score it: tasktransfer score {archive} --data {study.release}{option}")
    return "\n".join(lines)


HEADER = ("task", "algorithm", "sources", "seed", "dev", "baseline seed", "baseline dev", "dev n")


def _table(wish: Wish, chosen: Chosen) -> list[str]:
    """What was chosen. dev: mean dev score over seeds, 0-100; dev n: instances it is taken on."""
    cards = folders(wish.dataset)
    rows = [HEADER]
    for choice in chosen.choices:
        transfer, baseline = choice.transfer, choice.baseline
        sources = "+".join(cards[name].short for name in transfer.candidate.sources)
        rows.append(
            (
                choice.task,
                transfer.candidate.algorithm,
                sources,
                _seeds(transfer),
                f"{transfer.candidate.dev_score:.2f}",
                _seeds(baseline),
                f"{baseline.candidate.dev_score:.2f}",
                str(transfer.candidate.seeds[0].dev_instances),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _seeds(picked: Picked) -> str:
    return ",".join(str(seed) for seed in sorted(one.run.seed for one in picked.seeds))
