"""Inputs of ``tasktransfer recommend`` from a transfer study: question, values and evidence.

``selection.recommend`` ranks the sources. This module is part of the design because it reads the
study's config, plan and tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from tasktransfer.core.nodes import Fit, Node, Stage
from tasktransfer.core.runs import Run, add_ancestors
from tasktransfer.data.cache import read_manifest
from tasktransfer.datasets import get_task, resolve_task, shorten_task_name
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.report.advice import describe_methods
from tasktransfer.designs.transfer.report.learned import describe_unlearned_baselines
from tasktransfer.designs.transfer.runs import BASELINE, get_algorithm_label
from tasktransfer.errors import ConfigError, RecordError, suggest_name
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.results.node_folders import has_valid_record
from tasktransfer.results.records import read_record
from tasktransfer.results.store import build_frame, read_statistic_frame
from tasktransfer.results.study import Study
from tasktransfer.selection.declared import VALUES
from tasktransfer.selection.evidence import build_evidence, list_targets, read_shipped_evidence
from tasktransfer.selection.expected_gain import FEWEST_TARGETS
from tasktransfer.selection.inputs import SelectorInput
from tasktransfer.selection.methods import SELECTORS
from tasktransfer.selection.nodes import is_selection_run
from tasktransfer.selection.recommend import (
    Question,
    Recommendation,
    as_text,
    list_useful_selectors,
    recommend_sources,
)

CHEAPEST_FIRST = (
    *("source_mean", "kind", "size", "tfidf", "roe", "embedding", "gradient"),
    *("hscore", "leep", "logme", "nleep", "esm_logme", "taskemb", "warmup_drop"),
)
"""Selectors in the order of their cost: those that need no data come before those that read texts,
the base model, or baselines."""
REFERENCES, METHODS = "references", "methods"
SECONDS_OF_FIT = 30.0
"""Approximate time of a selector's job, without trainings."""


def parse_question(study: Study, target: str, sources: Sequence[str]) -> Question:
    """Parse the question of the command line: a target and the sources to rank.

    ``target`` is DATASET/TASK, or a task that only one dataset has. Without ``sources``, all
    sources of the target in the study are ranked.

    Raises:
        ConfigError: the study has no such target or source.
    """
    config = get_transfer_config(study)
    dataset, _, task = target.rpartition("/")
    matches = [
        (section.name, [s for s, t in section.pairs if t == task])
        for section in config.datasets
        if dataset in ("", section.name) and task in section.targets
    ]
    if len(matches) != 1:
        targets = [f"{each.name}/{name}" for each in config.datasets for name in each.targets]
        if not targets:
            raise ConfigError(
                f"--target {target}: The study has no source tasks to rank. Add source tasks to "
                "the config. To choose a method, see the recommendation in the study's report."
            )
        problem = "a target in several datasets" if matches else "not a target of the study"
        raise ConfigError(
            f"--target: The task {target!r} is {problem}.{suggest_name(target, targets)} Choose "
            f"one of {', '.join(targets)}."
        )
    ((name, known),) = matches
    sources = [shorten_task_name(name, resolve_task(name, source)) for source in sources]
    unknown = [source for source in sources if source not in known]
    if unknown:
        raise ConfigError(
            f"--sources: The task {unknown[0]!r} is not a source of this target. Choose from "
            f"{', '.join(known)}."
        )
    return Question(name, task, tuple(sources) or tuple(known))


def _is_in_dataset(question: Question, run: Run) -> bool:
    return bool(run.about["dataset"] == question.dataset)


def select_affordable_nodes(
    study: Study, question: Question, hours: float, evidence: pd.DataFrame
) -> list[Node]:
    """Return the missing nodes of informative selectors that can be computed within ``hours``.

    Cheap selectors come first. A selector is useful if its values can change the ranking.
    """
    useful = list_useful_selectors(question, evidence, list_transfer_algorithms(study))
    estimates, spent = Estimates(study), 0.0
    fits = {
        run.variant: run.outcome
        for run in study.plan.runs
        if is_selection_run(run) and isinstance(run.outcome, Fit) and _is_in_dataset(question, run)
        if run.model == study.config.models[0].name and run.seed == study.config.seeds[0]
    }
    needed: dict[str, Node] = {}
    for name in (*CHEAPEST_FIRST, *(name for name in fits if name not in CHEAPEST_FIRST)):
        if name not in fits or name not in useful:
            continue
        missing = [n for n in add_ancestors((fits[name],)) if not has_valid_record(study, n)]
        missing = [node for node in missing if node.digest not in needed]
        seconds = sum(
            estimates.estimate_cost(node).seconds if isinstance(node, Stage) else SECONDS_OF_FIT
            for node in missing
        )
        if spent + seconds <= 3600 * hours:
            spent += seconds
            needed |= {node.digest: node for node in missing}
    return list(needed.values())


def collect_values(study: Study, question: Question) -> dict[str, dict[str, float]]:
    """Map each selector to its values by source, omitting selectors without values.

    Selectors that read transfers to other targets are left to ``selection.recommend``, and
    ``probe`` has no values before its own training runs.
    """
    found: dict[str, dict[str, float]] = {}
    tasks = (*question.sources, question.target)
    kinds = {task: str(get_task(question.dataset, task).kind) for task in tasks}
    sizes = _read_sizes(study, question)
    runs = [
        run for run in study.plan.runs if is_selection_run(run) and _is_in_dataset(question, run)
    ]
    fits = {run.variant: run.outcome for run in reversed(runs) if isinstance(run.outcome, Fit)}
    for name, selector in SELECTORS.items():
        if selector.is_fit:
            values = _read_values(study, question, fits.get(name))
        elif selector.reads or (name == "size" and not sizes):
            continue
        else:
            assert selector.values is not None
            asked = SelectorInput(question.target, question.sources, kinds, sizes)
            values = {s: v for s, v in selector.values(asked).items() if v is not None}
        if values:
            found[name] = values
    return found


def _read_values(study: Study, question: Question, fit: Fit | None) -> dict[str, float]:
    if fit is None or not has_valid_record(study, fit):
        return {}
    record = read_record(Path(study.get_record_path(fit)))
    values = record.get("report", {}).get(question.target, {})
    return {source: values[source] for source in question.sources if source in values}


def _read_sizes(study: Study, question: Question) -> dict[str, int]:
    counted = {}
    for owner in {owner for owner, _ in question.source_tasks.values()}:
        cache = Path(study.get_instances_folder(owner))
        if not (cache / "manifest.json").exists():
            return {}
        counted[owner] = read_manifest(cache).tasks
    return {
        source: counted[owner][name]["train"].samples
        for source, (owner, name) in question.source_tasks.items()
        if name in counted[owner]
    }


def read_evidence(study: Study, folder: Path | None) -> tuple[pd.DataFrame, str]:
    """Return the first model's transfer results in the study, and a text on their origin.

    They are read from ``folder``, a folder of tables. If it is None, they are the study's own
    results if these cover enough targets, and otherwise the shipped matrix.

    Raises:
        RecordError: the folder has no tables, or tables of another model.
    """
    weights = study.revisions.models[study.config.models[0].name].weights
    if folder is not None:
        evidence = read_tables_evidence(folder)
        if evidence is None:
            raise RecordError(
                f"{folder}: The table deltas.parquet is missing. Specify a folder of collected "
                "tables."
            )
        own = evidence if study.has_unknown_inputs else evidence[evidence["weights"] == weights]
        if own.empty:
            theirs = ", ".join(sorted(set(evidence["weights"])))
            raise RecordError(
                f"{folder}: The results were computed with model weights ({theirs}) that differ "
                f"from those of the study ({weights}). Specify tables of the same model."
            )
        return own, str(folder)
    evidence = read_tables_evidence(Path(study.tables))
    if evidence is not None:
        own = evidence[evidence["weights"] == weights]
        if len(list_targets(own)) > FEWEST_TARGETS:
            return own, study.tables
    shipped = read_shipped_evidence()
    if weights in set(shipped["weights"]):
        return shipped, "the shipped matrix (FETA's tasks, the same model, two seeds)"
    return shipped[:0], (
        "none. The shipped matrix was computed with another model, and it was not shown that "
        "rankings carry over between models. Specify tables of the same model with --matrix"
    )


def read_tables_evidence(folder: Path) -> pd.DataFrame | None:
    """Return transfer results from a folder of tables, or None if it has no tables."""
    if not (folder / "deltas.parquet").exists():
        return None
    frames = {
        name: read_statistic_frame(folder / f"{name}.parquet")
        for name in ("transfer_runs", "deltas", "sizes")
    }
    values, references = (_read_optional(folder, name) for name in ("selectors", REFERENCES))
    values = build_frame([], VALUES) if values is None else values
    return build_evidence(frames, values, references)


def _read_optional(folder: Path, name: str) -> pd.DataFrame | None:
    path = folder / f"{name}.parquet"
    return read_statistic_frame(path) if path.exists() else None


def rank_sources(
    study: Study, question: Question, evidence: pd.DataFrame, origin: str
) -> Recommendation:
    """Rank the sources of a target for each of the study's algorithms.

    Args:
        evidence: results of other transfers, from ``read_evidence``.
        origin: text on the origin of the evidence, from ``read_evidence``.
    """
    values = collect_values(study, question)
    references = _read_optional(Path(study.tables), REFERENCES)
    notes = [] if references is None else list_baseline_warnings(question, references)
    methods = _read_optional(Path(study.tables), METHODS)
    if methods is not None:
        is_target = (methods["dataset"] == question.dataset) & (
            methods["target"] == question.target
        )
        notes = [*describe_methods(methods[is_target]), *notes]
    algorithms = list_transfer_algorithms(study)
    return recommend_sources(question, values, evidence, origin, algorithms, notes)


def list_transfer_algorithms(study: Study) -> list[str]:
    """Return the algorithms whose sources are ranked, in the order of the study."""
    return [name for name in get_transfer_config(study).planned_algorithms if name != BASELINE]


def list_baseline_warnings(question: Question, references: pd.DataFrame) -> list[str]:
    """Return a list with a warning if the target's baseline has not learned.

    Args:
        references: the table ``references``.
    """
    best = references[references["is_best"] & (references["dataset"] == question.dataset)]
    best = best[best["target"] == question.target]
    return [f"warning: {line}" for line in describe_unlearned_baselines(best)]


def format_recommendation(recommendation: Recommendation) -> str:
    """Format a recommendation as text with readable names of algorithms."""
    return as_text(recommendation, get_algorithm_label)
