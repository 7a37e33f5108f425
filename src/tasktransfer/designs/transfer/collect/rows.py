"""Conversion of runs and their records to rows of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tasktransfer.core.nodes import Data, Fit, Stage
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.runs import PROMPTED, is_prompted, is_reference, name_of
from tasktransfer.results.collect import NO_RECORD, Collected, Missing
from tasktransfer.results.finished import read_state
from tasktransfer.results.records import NOUNS, get_selected_round
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD
from tasktransfer.results.tallies import get_fidelity
from tasktransfer.selection.nodes import is_selector

Values = tuple[Any, ...]


def identity(dataset: str, model: str, algorithm: str, sources: Iterable[str]) -> Values:
    """Return the first six columns of every table of runs."""
    listed = list(sources)
    return dataset, model, algorithm, listed, "+".join(listed), len(listed)


def names(run: Run) -> Values:
    """Return the columns that identify a run in tables: ``identity``, target and seed."""
    dataset, model, method, sources, target, seed = name_of(run)
    return *identity(dataset, model, method, sources), target, seed


def scored(run: Run) -> Stage:
    """Return the stage of a run's test score, with the selection that chose its round."""
    (stage,) = run.results_in
    assert isinstance(stage, Stage)
    return stage


def run_row(collected: Collected, run: Run) -> Values:
    """Return the row of a run in ``runs``."""
    stage, target = scored(run), run.about["target"]
    record = collected.record(stage)
    provenance = record["provenance"]
    cost, size = provenance["training"], record["sizes"][target]
    chosen = get_selected_round(record, stage.selection.tasks)
    return (
        *names(run),
        stage.model.family,
        record["results"][target]["score"],
        chosen.dev_score,
        chosen.number,
        len(record["training"]["rounds"]),
        size["train"],
        size["dev"],
        size["test"],
        stage.digest,
        stage.parents[0].digest if stage.parents else None,
        f"{stage.path}/{RECORD}",
        record["rows"] is not None,
        _sum_seconds(provenance["seconds"]),
        cost["tokens"],
        cost["samples_per_second"],
        cost["peak_memory_mb"],
        cost["peak_gpu_memory_mb"],
        provenance["commit"],
        provenance["recipe"],
        record["data_revision"],
        record["synthetic"],
        record["few_sample"],
        stage.model.weights,
        get_fidelity(record["node"]["identity"]),
        *_summarise_predictions(stage, record),
        collected.test_sets.get(stage.digest, {}).get(target),
    )


def _summarise_predictions(stage: Stage, record: Record) -> Values:
    """Return path, number of rows and SHA-256 of the predictions."""
    file = record["rows"]
    if file is None:
        return None, None, None
    return f"{stage.path}/{file['file']}", file["rows"], file["sha256"]


def _sum_seconds(seconds: dict[str, float]) -> float:
    """Return the trainer's total, which includes time between phases, or the sum of the phases."""
    return seconds["total"] if "total" in seconds else sum(seconds.values())


def score_rows(collected: Collected, run: Run) -> list[Values]:
    """Return a run's rows in ``scores``: its target on test, and its selection tasks on dev."""
    stage, (dataset, model, method, sources, target, seed) = scored(run), name_of(run)
    record = collected.record(stage)
    result, chosen = record["results"][target], get_selected_round(record, stage.selection.tasks)
    values: list[Values] = [("test", target, *score) for score in result["measures"].items()]
    values.append(("test", target, "score", result["score"]))
    for task, measures in chosen.dev.items():
        values += [("dev", task, *score) for score in measures.items()]
    values.append(("dev", target, "score", chosen.dev_score))
    return [(dataset, model, method, "+".join(sources), target, seed, *score) for score in values]


def missing_row(hole: Missing) -> Values:
    """Return the row in ``missing`` of a run without a score."""
    path = f"{hole.wanted.path}/{RECORD}"
    return *names(hole.run), path, hole.reason, hole.state, hole.node.path, hole.error


def other_missing_rows(collected: Collected) -> Iterator[Values]:
    """Yield a row for each other planned node without a usable record.

    These are evaluations of prompted models, values of selectors, references, and nodes that are
    not the end of a run.
    """
    for hole in collected.missing:
        run, path = hole.run, f"{hole.wanted.path}/{RECORD}"
        if is_prompted(run) or is_selector(run) or is_reference(run):
            what = f"{PROMPTED}, {run.about['shots']} shots" if is_prompted(run) else run.variant
            about = run.about
            row = identity(about["dataset"], run.model, f"{what}", about["sources"])
            told = (path, hole.reason, hole.state, hole.node.path, hole.error)
            yield (*row, about["target"], run.seed, *told)
    for node in collected.without_run:
        state, error = read_state(collected.study, node)
        yield (
            *identity(
                node.name if isinstance(node, Data) else node.data.name,
                node.model.name if isinstance(node, Stage) else "",
                NOUNS[type(node)],
                (),
            ),
            *(node.label, node.seed if isinstance(node, Stage | Fit) else None),
            *(f"{node.path}/{RECORD}", error or NO_RECORD, state, node.path, error),
        )
