"""Source runs of an explanation: those of the plan, and those that only the tables have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import SHORT, Node, Outcome
from tasktransfer.core.runs import Run
from tasktransfer.designs.explain.explanation import ComparedScores, Means, NodeFacts, RunFacts
from tasktransfer.designs.explain.nodes import describe_node, trace_folder
from tasktransfer.errors import RecordError
from tasktransfer.results.collect import MissingResult, gather_records
from tasktransfer.results.node_folders import NodeFolder, iterate_node_folders
from tasktransfer.results.schema import Record
from tasktransfer.results.state import DONE, RECORD, WAITING
from tasktransfer.results.study import Study


@dataclass(frozen=True, slots=True, eq=False)
class KnownRun:
    """A run of the plan or of the tables.

    Attributes:
        in_plan: whether the current plan has the run, with known paths of its records.
        records: its records according to the tables, relative to the results folder.
        is_reference: whether other runs are compared with it.
    """

    run: Run
    in_plan: bool
    records: frozenset[str]
    is_reference: bool = False

    @property
    def has_other_records(self) -> bool:
        """True if the tables were collected from other records than the plan's."""
        planned = {f"{node.path}/{RECORD}" for node in self.run.result_nodes}
        return self.in_plan and bool(self.records) and self.records != planned


def get_run_names(run: Run) -> dict[str, str]:
    """Return a run's names (method, model, seed and the values of ``about``, joined by +)."""
    about = {
        key: "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for key, value in run.about.items()
        if value is not None
    }
    return {"method": run.method, "model": run.model, "seed": str(run.seed), **about}


def list_known_runs(study: Study, rows: Iterable[Mapping[str, Any]]) -> list[KnownRun]:
    """Return the runs of the plan, and those that only the table ``runs`` has.

    Args:
        study: the study.
        rows: the rows of the table; empty if it cannot be read.
    """
    planned = study.plan.runs
    about = {key: value for run in planned for key, value in run.about.items()}
    stored = {}
    for row in rows:
        names = {key: _split_joined_names(row[key], about[key]) for key in about if key in row}
        run = Run(row["method"], row["model"], int(row["seed"]), names, Outcome(()))
        stored[_get_identity(run)] = KnownRun(run, False, frozenset(row["records"]))
    known = []
    for run in planned:
        same = stored.pop(_get_identity(run), None)
        known.append(
            KnownRun(run, not study.has_unknown_inputs, same.records if same else frozenset())
        )
    return [*known, *stored.values()]


def _get_identity(run: Run) -> frozenset[tuple[str, str]]:
    return frozenset((key, name) for key, name in get_run_names(run).items() if name)


def _split_joined_names(value: object, like: object) -> object:
    """Convert several names in a table to a tuple, as in ``Run.about``."""
    text = value if isinstance(value, str) else ""
    if isinstance(like, list | tuple):
        return tuple(filter(None, text.split("+")))
    return text or None


def describe_runs(
    study: Study, runs: Sequence[KnownRun], instance: int, nodes: dict[str, NodeFacts]
) -> tuple[dict[KnownRun, RunFacts], list[str]]:
    """Return the facts about runs, and remarks on their records.

    Args:
        study: the study.
        runs: the runs.
        instance: see ``nodes.find_node``.
        nodes: facts about nodes by digest, to which those of the runs are added.
    """
    notes: list[str] = []
    holes: dict[int, MissingResult] = {}
    facts = {}
    traced = {known: _trace_nodes(study, known, instance, nodes) for known in runs}
    try:
        collected = gather_records(study, [known.run for known in runs if known.in_plan])
    except RecordError as error:
        notes.append(f"the records cannot be compared: {error}")
    else:
        holes = {id(hole.run): hole for hole in reversed(collected.missing)}
        records = {node.record for node in nodes.values()}
        paths = ((f"{study.config.results}/{path}", error) for path, error in collected.problems)
        notes += [f"left out: {error}" for path, error in paths if path not in records]
    for known, own in traced.items():
        state, reason = _find_state(known, own, holes.get(id(known.run)))
        score = _find_score(known, own) if state == DONE else None
        digests = tuple(node.digest for node in own)
        facts[known] = RunFacts(
            get_run_names(known.run), state, reason, score, known.is_reference, digests
        )
    return facts, notes


def _trace_nodes(
    study: Study, known: KnownRun, instance: int, nodes: dict[str, NodeFacts]
) -> list[NodeFacts]:
    """Return the distinct nodes of a run: its trainings, evaluated nodes and result nodes."""
    run, results = known.run, Path(study.config.results)
    if known.in_plan:
        own: dict[str, Node] = {n.digest: n for n in (*run.stages, *run.judged, *run.result_nodes)}
        for node in own.values():
            if node.digest not in nodes:
                nodes[node.digest] = describe_node(study, node, instance)
        return [nodes[digest] for digest in own]
    folders = {each.digest: each for each in iterate_node_folders(results)} if known.records else {}
    traced = []
    for record in sorted(known.records):
        path = Path(record).parent.as_posix()
        traced += trace_folder(NodeFolder(results, path, path[-SHORT:]), folders)
    nodes |= {node.digest: node for node in traced}
    return traced


def _find_state(
    known: KnownRun, nodes: Sequence[NodeFacts], hole: MissingResult | None
) -> tuple[str, str]:
    """Return a run's state, and the reason why it has no result."""
    if hole is not None:
        return hole.state, hole.reason
    if not nodes:
        return WAITING, "not planned and not collected"
    last = nodes[-1]
    return last.state, "" if last.state == DONE else f"{last.state}: {last.error or 'no record'}"


def _find_score(known: KnownRun, nodes: Sequence[NodeFacts]) -> float | None:
    """Return the test score of a training run, or None if the run has no single task."""
    record: Record | None = nodes[-1].content
    if record is None or record["node"]["kind"] != "stage" or len(known.run.result_nodes) > 1:
        return None
    results = record["results"]
    named = [name for name in known.run.about.values() if isinstance(name, str) and name in results]
    (task,) = named if len(named) == 1 else (next(iter(results), ""),)
    return results[task]["score"] if task and (named or len(results) == 1) else None


def compute_means(runs: Sequence[RunFacts]) -> Means | None:
    """Compute mean scores over seeds, and compare them with the means of the reference runs.

    A reference counts if its seed has the other score too, or if no compared run has its seed: then
    it is an additional reference.

    Returns:
        None if the runs, or the references, differ in more than their seeds, or have no score.
    """
    compared = {int(run.names["seed"]): run.score for run in runs if not run.is_reference}
    references = {int(run.names["seed"]): run.score for run in runs if run.is_reference}
    kinds = {frozenset({**run.names, "seed": str(run.is_reference)}.items()) for run in runs}
    if not compared or len(kinds) > 1 + bool(references):
        return None
    by_seed = {
        seed: _compare_scores(compared[seed], references.get(seed)) for seed in sorted(compared)
    }
    used = [
        s for s, each in by_seed.items() if (each.delta if references else each.score) is not None
    ]
    if not used and not references:
        return None
    counted = [
        score
        for seed, score in references.items()
        if score is not None and used and (seed in used or seed not in compared)
    ]
    mean = _average_scores([score for s in used if (score := compared[s]) is not None])
    method = next((run.names["method"] for run in runs if run.is_reference), "")
    return Means(
        _compare_scores(mean, _average_scores(counted)), tuple(used), method, len(counted), by_seed
    )


def _compare_scores(score: float | None, reference: float | None) -> ComparedScores:
    if score is None or reference is None:
        return ComparedScores(score, reference, None, None)
    delta = score - reference
    return ComparedScores(score, reference, delta, 100 * delta / reference if reference else None)


def _average_scores(values: Iterable[float]) -> float | None:
    listed = list(values)
    return sum(listed) / len(listed) if listed else None
