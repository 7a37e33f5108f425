"""Nodes of selectors: measurements of models on training instances, values, and probes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasktransfer.core.nodes import Data, Fit, Outcome, Stage, Start
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec
from tasktransfer.datasets import get_task, resolve_task
from tasktransfer.selection.selector import SELECTOR, Selector
from tasktransfer.tasks.card import SINGLE_LABEL

METHOD = "selector"
"""Method of runs with a selector's values; their ``variant`` is the selector's name."""
PROBE = "probe"
INSTANCES = 300
"""Number of a task's training instances that selectors read; see ``selection.inputs``."""


@dataclass(frozen=True)
class StudyPairs:
    """Pairs that selectors rank for a model and a seed, with targets in one dataset.

    Sources from other datasets are named ``Dataset/task``; ``others`` has their data by dataset.
    ``baseline`` returns a task's training; ``probe`` returns one epoch of a transfer.
    """

    data: Data
    others: Mapping[str, Data]
    model: ModelSpec
    seed: int
    pairs: Sequence[tuple[str, str]]
    baseline: Callable[[str], Stage]
    probe: Callable[[str, str], Stage]

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(sorted({task for pair in self.pairs for task in pair}))

    def group_tasks_by_data(self, tasks: Iterable[str]) -> list[tuple[Data, tuple[str, ...]]]:
        """Group tasks by their data node, with their names in that data."""
        found: dict[str, list[str]] = {}
        for task in tasks:
            home, name = resolve_task(self.data.name, task)
            found.setdefault(home, []).append(name)
        return [(self.others.get(home, self.data), tuple(of)) for home, of in found.items()]


def is_selection_run(run: Run) -> bool:
    """Return whether the run has a selector's values or is a probe."""
    return run.method == METHOD


def plan_selector_runs(study_pairs: StudyPairs, selectors: Sequence[Selector]) -> Iterator[Run]:
    """Yield the runs of selectors: one per selector, or one per pair for ``probe``.

    Selectors that need no node of their own have no run.
    """
    for selector in selectors:
        if PROBE in selector.reads:
            for source, target in study_pairs.pairs:
                stage = study_pairs.probe(source, target)
                outcome = Outcome((Start(stage),))
                yield _build_run(study_pairs, selector, (source,), target, outcome)
        elif selector.is_fit and (fit := build_selector_fit(study_pairs, selector)) is not None:
            yield _build_run(study_pairs, selector, study_pairs.tasks, "", fit)


def build_selector_fit(study_pairs: StudyPairs, selector: Selector) -> Fit | None:
    """Return the node that computes a selector's values, or None if no pair has a value."""
    sources: dict[str, list[str]] = {}
    for source, target in study_pairs.pairs:
        of_source, of_target = (
            get_task(study_pairs.data.name, task).kind for task in (source, target)
        )
        if selector.explain_absence(of_source, of_target, study_pairs.model.family) is None:
            sources.setdefault(target, []).append(source)
    if not sources:
        return None
    fits = tuple(_list_measurements(study_pairs, selector, sources))
    named = {source for of in sources.values() for source in of}
    others = tuple(
        data
        for data, _ in study_pairs.group_tasks_by_data(sorted(named))
        if data != study_pairs.data
    )
    settings: dict[str, Any] = {
        "selector": selector.name,
        "sources": sources,
        "instances": INSTANCES,
    }
    if selector.version > 1:
        settings["version"] = selector.version
    seed = study_pairs.seed if any(fit.on or fit.seed for fit in fits) else 0
    return Fit(SELECTOR, study_pairs.data, tuple(sources), seed, settings, reads=(*fits, *others))


def _list_measurements(
    study_pairs: StudyPairs, selector: Selector, sources: Mapping[str, Sequence[str]]
) -> Iterator[Fit]:
    """Yield the fits that measure a selector's inputs, by baseline or base model.

    Each covers all tasks that any selector may request, so that selectors share it.
    """
    named = sorted({source for of in sources.values() for source in of})
    if "embeddings" in selector.reads:
        yield from _build_measurement_fits(study_pairs, "embeddings", None, study_pairs.tasks)
    if "own_embeddings" in selector.reads:
        for source in named:
            yield from _build_measurement_fits(study_pairs, "embeddings", source, (source,))
    if "features" in selector.reads:
        for source in named:
            on = [t for s, t in study_pairs.pairs if s == source and _is_labelled(study_pairs, t)]
            yield from _build_measurement_fits(study_pairs, "features", source, dict.fromkeys(on))
    if "gradients" in selector.reads:
        yield from _build_measurement_fits(study_pairs, "gradients", None, study_pairs.tasks)
    if "fisher" in selector.reads:
        for task in study_pairs.tasks:
            yield from _build_measurement_fits(study_pairs, "fisher", task, (task,))
    if "losses" in selector.reads:
        yield from _build_measurement_fits(study_pairs, "losses", None, study_pairs.tasks)
        for target, of in sources.items():
            yield from _build_measurement_fits(study_pairs, "losses", target, of)


def _is_labelled(study_pairs: StudyPairs, task: str) -> bool:
    return get_task(study_pairs.data.name, task).kind in SINGLE_LABEL


def _build_measurement_fits(
    study_pairs: StudyPairs, what: str, of: str | None, on: Iterable[str]
) -> Iterator[Fit]:
    """Yield the fits that measure one input with a baseline or the base model, one per dataset."""
    start, seed = None, study_pairs.seed
    settings: dict[str, Any] = {"instances": INSTANCES}
    if of is not None:
        start = Start(study_pairs.baseline(of))
    else:
        settings["model"] = study_pairs.model.identity
        # The seed initialises parts missing in the base model; mean states do not need them.
        seed = study_pairs.seed if what == "gradients" else 0
    for data, tasks in study_pairs.group_tasks_by_data(on):
        yield Fit(what, data, tasks, seed, settings, start)


def _build_run(
    study_pairs: StudyPairs,
    selector: Selector,
    sources: tuple[str, ...],
    target: str,
    outcome: Outcome | Fit,
) -> Run:
    about = {"dataset": study_pairs.data.name, "sources": sources, "target": target}
    return Run(
        METHOD, study_pairs.model.name, study_pairs.seed, about, outcome, variant=selector.name
    )
