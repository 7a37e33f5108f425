"""Function that plans a transfer study with the choices that have been made so far (ADR 0028).

This module is pure and light, like ``plan``: choices are read from small files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tasktransfer.core.nodes import Stage
from tasktransfer.core.plan import Choice, Plan, get_relative_choice_path
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.algorithms import order_sources
from tasktransfer.designs.transfer.choices import (
    LEARNED_TARGETS,
    SELECTION,
    CheckedTarget,
    TargetName,
    format_choice_name,
    group_targets_by_dataset,
    list_compared_nodes,
    list_learned_targets,
    read_checked_targets,
    read_race,
    read_selection,
)
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.multi_source_section import SPLITS_THAT_CHOOSE
from tasktransfer.designs.transfer.plan import build_plan, plan_run
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.errors import RecordError
from tasktransfer.results.revisions import Revisions

ANNOUNCED_MULTI_SOURCE = "further multi-source trainings follow when their sources are selected"
ANNOUNCED_RACE = "trainings with more seeds follow when the sources of the next round are selected"
ANNOUNCED_TRANSFERS = "transfers are trained once the baselines have been checked"


def plan_study(config: TransferConfig, revisions: Revisions) -> Plan:
    """Return the plan of a study, including all runs that depend on choices already made.

    Raises:
        ConfigError: the study is under the challenge's rules and a run would break one.
        RecordError: the file of a choice is damaged, or does not match the config.
    """
    if config.checks_baselines:
        return _plan_with_check(config, revisions)
    if config.racing is not None:
        return _plan_race(config, revisions)
    if config.multi_source.mode != "auto" or not config.trained_models:
        return build_plan(config, revisions)
    single_source = build_plan(config, revisions)
    read = build_plan(
        config.model_copy(update={"controls": (), "prompted": (), "learning_curve": False}),
        revisions,
    )
    picked = read_selection(config)
    like = _plan_multi_source_examples(config, revisions)
    chosen_by_split = config.multi_source.choose_by in SPLITS_THAT_CHOOSE
    after = read.stages if chosen_by_split else read.nodes
    choice = Choice(SELECTION, after, picked is not None, like, ANNOUNCED_MULTI_SOURCE)
    grown = single_source if picked is None else build_plan(config, revisions, picked)
    return replace(grown, choices=(choice,))


def _plan_race(
    config: TransferConfig, revisions: Revisions, learned: frozenset[TargetName] | None = None
) -> Plan:
    """Return the plan of a race up to its current round.

    Later rounds only add stages of kinds that the plan already has.

    Args:
        config: a study with racing.
        revisions: content digests of data and models.
        learned: targets that have transfers; None for all.
    """
    race = read_race(config.racing, config.seeds, config.results)
    assert race is not None
    racing = config.model_copy(update={"selectors": (), "learning_curve": False})
    rounds = range(1, min(len(race.kept) + 2, len(race.seeds)))
    choices = [
        Choice(
            format_choice_name(number),
            build_plan(racing, revisions, race=race.rewind(number - 1), learned=learned).stages,
            made=number <= len(race.kept),
            announcement=ANNOUNCED_RACE,
        )
        for number in rounds
    ]
    planned = build_plan(config, revisions, race=race, learned=learned)
    return replace(planned, choices=tuple(choices))


def _plan_with_check(config: TransferConfig, revisions: Revisions) -> Plan:
    """Return the plan of a study that skips transfers to targets that were not learned.

    Before the check, it has no transfers. A race starts after the check, which reads the baselines
    of its first round.
    """
    checked = read_checked_targets(config.results)
    like = () if checked is not None else build_plan(config, revisions).stages
    learned = list_learned_targets(checked or ())
    race = read_race(config.racing, config.seeds, config.results)
    first = None if race is None else race.rewind(0)
    planned = build_plan(config, revisions, race=first, learned=learned)
    if checked is not None and not revisions.has_unknown:
        _refuse_outdated_check(checked, planned.runs, config)
    after = list_compared_nodes(planned.runs, group_targets_by_dataset(config))
    choice = Choice(LEARNED_TARGETS, after, checked is not None, like, ANNOUNCED_TRANSFERS)
    if race is not None and learned:
        planned = _plan_race(config, revisions, learned)
    return replace(planned, choices=(choice, *planned.choices))


def _refuse_outdated_check(
    checked: Iterable[CheckedTarget], runs: Iterable[Run], config: TransferConfig
) -> None:
    """Raise an error if the check lacks a target of the study, or read none of its baselines.

    Raises:
        RecordError: the study has changed since the check.
    """
    compared = {(row["dataset"], row["model"], row["target"]): row["baselines"] for row in checked}
    targets = group_targets_by_dataset(config)
    planned: dict[TargetName, set[str]] = {}
    for run in runs:
        dataset, target = run.about["dataset"], run.about["target"]
        if run.method == BASELINE and target in targets.get(dataset, ()):
            digests = planned.setdefault((dataset, run.model, target), set())
            digests.update(node.digest for node in run.judged)
    for key, digests in planned.items():
        former = compared.get(key)
        if former is None or (former and digests.isdisjoint(former)):
            dataset, model, target = key
            where = f"{dataset}/{target} with {model}"
            problem = f"does not contain {where}"
            if former:
                problem = f"does not match the current baselines for {where}"
            path = Path(config.results, get_relative_choice_path(LEARNED_TARGETS))
            raise RecordError(
                f"{path}: The config has changed since the baselines were checked: the file "
                f"{problem}. Delete the file to repeat the check, or set check_baselines: false."
            )


def _plan_multi_source_examples(config: TransferConfig, revisions: Revisions) -> tuple[Stage, ...]:
    """Return stages of each multi-source algorithm on the first tasks, for forecasts."""
    dataset, model = config.datasets[0], config.trained_models[0].name
    target, *others = dataset.tasks
    sources = tuple(others[: config.multi_source.sources_per_target])
    stages: list[Stage] = []
    for algorithm in config.multi_source.algorithms:
        ordered = order_sources(algorithm, sources)
        run = plan_run(config, revisions, (dataset.name, model, algorithm, ordered, target, 0))
        stages += run.stages
    return tuple(stages)
