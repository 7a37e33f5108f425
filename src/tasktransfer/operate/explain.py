"""Facts about a node: its state, record, dependencies, dependents and commands to recompute it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from tasktransfer.core.nodes import SHORT, Evaluation, Node, Stage
from tasktransfer.errors import ConfigError, DataError, ModelError, RecordError
from tasktransfer.results.costs import compute_seconds
from tasktransfer.results.finished import read_folder_state
from tasktransfer.results.places import STAGES, NodeFolder, iterate_node_folders
from tasktransfer.results.prepared import as_prepared
from tasktransfer.results.records import NOUNS, read_record
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD, log_in
from tasktransfer.results.study import Study

Facts = dict[str, Any]


def explain(study: Study, word: str, instance: int = 0) -> Facts:
    """Return all facts about a node of a study or of its results folder.

    Args:
        word: 6 or more hex digits of the node's digest, or its folder.
        instance: number of the test instance whose prompt is shown, for a prompted model.

    Raises:
        ConfigError: no node or several nodes match.
    """
    folder = Path(word)
    digest = folder.name[-SHORT:] if folder.is_dir() else word
    nodes = [] if study.unknown else study.plan.nodes
    if folder.is_dir():
        planned = [node for node in nodes if Path(study.folder(node)).resolve() == folder.resolve()]
    else:
        planned = [node for node in nodes if node.digest.startswith(digest)]
    results = Path(study.config.results)
    of_digest = [p for p in iterate_node_folders(results) if p.digest.startswith(digest[:SHORT])]
    if len(planned) == 1:
        return collect_facts(study, planned[0], instance)
    if not planned and len(of_digest) == 1:
        return {**_read_unplanned_facts(of_digest[0]), "uses": [], "users": []}
    several = [node.path for node in planned] or [node_folder.path for node_folder in of_digest]
    raise ConfigError(
        f"{word}: {'several nodes' if several else 'no node'} in {study.config_file} or in "
        f"{results}/ with this digest or folder"
        + (
            f": {', '.join(several)}; give more digits"
            if several
            else "; check whether the config was changed"
        )
    )


def _collect_prompt_facts(study: Study, node: Node, instance: int) -> Facts:
    """Return the prompt of a prompted model, if data and tokenizer are available."""
    if not isinstance(node, Evaluation) or node.asked is None:
        return {}
    from tasktransfer.jobs.asked_job import shown  # noqa: PLC0415  # imports transformers

    try:
        return {"asked": shown(study, node, instance)}
    except (DataError, ModelError) as error:
        return {"asked": {"lacking": str(error)}}


def collect_facts(study: Study, node: Node, instance: int = 0) -> Facts:
    """Return all facts about a node of a study's plan. ``instance``: see ``explain``."""
    results = Path(study.config.results)
    facts = _read_folder_facts(NodeFolder(results, node.path, node.digest[:SHORT]))
    # The plan overrides the record, which may be damaged or belong to another node.
    return {
        **facts,
        **_collect_plan_facts(study, node),
        "identity": node.identity,
        "uses": [_collect_node_facts(study, used) for used in node.uses],
        "users": [_collect_node_facts(study, user) for user in study.users(node)],
        "commands": list_commands(study, node),
        "in_plan": True,
        **_collect_prompt_facts(study, node, instance),
    }


def format_snakemake_command(study: Study, *targets: str) -> str:
    """Return a Snakemake command that creates files.

    Targets come first, because ``--config`` and ``--configfile`` consume all following words.
    """
    words = ["snakemake", *targets, "--cores", "1"]
    if study.overrides:
        values = (f"{key}={json.dumps(value)}" for key, value in study.overrides.items())
        words += ["--config", *values]
    return shlex.join([*words, "--configfile", study.config_file])


def list_commands(study: Study, node: Node) -> list[str]:
    """Return the commands that compute a node again.

    The record is deleted first, since a node with a record counts as done regardless of its age.
    """
    record = study.record(node)
    return [shlex.join(["rm", "-f", record]), format_snakemake_command(study, record)]


def _collect_plan_facts(study: Study, node: Node) -> Facts:
    facts = {"digest": node.digest, "node": NOUNS[type(node)], "label": node.label}
    if not isinstance(node, Stage):
        return facts
    return {
        **facts,
        "kind": node.kind,
        "seed": node.seed,
        "train_tasks": list(node.train_tasks),
        "select_on": [list(selection.tasks) for selection in node.selections],
        "parents": [parent.digest for parent in node.parents],
    }


def _collect_node_facts(study: Study, node: Node) -> Facts:
    folder = Path(study.folder(node))
    state, _ = read_folder_state(folder)
    return {**_collect_plan_facts(study, node), "folder": str(folder), "state": state}


# --- facts from a folder ------------------------------------------------------------------------


def _read_folder_facts(node_folder: NodeFolder) -> Facts:
    folder, log = node_folder.folder, log_in(node_folder.folder)
    state, error = read_folder_state(folder)
    facts: Facts = {
        "folder": str(folder),
        "record": str(folder / RECORD),
        "log": str(log) if log else None,
        "state": state,
        "error": error,
    }
    try:
        record = as_prepared(read_record(folder / RECORD), node_folder.results)
    except RecordError:
        return facts
    made, rows = record["provenance"], record["rows"]
    return {
        **facts,
        **_extract_record_facts(record),
        **(_extract_stage_facts(record) if node_folder.is_stage else {}),
        "rows": rows
        and {"path": str(folder / rows["file"]), "rows": rows["rows"], "sha256": rows["sha256"]},
        **{key: made[key] for key in ("commit", "dirty", "tasktransfer", "versions", "study")},
        **{key: made[key] for key in ("config_digest", "started", "notes")},
    }


def _extract_record_facts(record: Record) -> Facts:
    node, made, results = record["node"], record["provenance"], record["results"]
    return {
        "digest": node["digest"],
        "node": node["kind"],
        "label": node["label"],
        "identity": node["identity"],
        "measures": {task: result["measures"] for task, result in results.items()},
        "instances": {task: result["instances"] for task, result in results.items()},
        "sizes": record["sizes"],
        "report": record.get("report", {}),
        "synthetic": record["synthetic"],
        "few_sample": record["few_sample"],
        "data_revision": record["data_revision"],
        "recipe": made["recipe"],
        "cuts": made.get("cuts", {}),
        "stand_ins": made.get("stand_ins", {}),
        "made_by": made.get("made_by"),
        "host": made.get("host"),
        "seconds": compute_seconds(record),
    }


def _extract_stage_facts(record: Record) -> Facts:
    node, course = cast(Any, record["node"]), record["training"]
    return {
        "kind": node["step"],
        "seed": node["seed"],
        "train_tasks": node["train_tasks"],
        "parents": node["parents"],
        "hyperparameters": node["identity"].get("training"),
        "model": node["identity"].get("model"),
        "scores": {task: result["score"] for task, result in record["results"].items()},
        "selections": [
            {key: selection[key] for key in ("select_on", "round", "dev_score")}
            for selection in course["selections"]
        ],
        "epochs": len(course["rounds"]),
        "parameters": record["provenance"].get("training", {}).get("parameters"),
    }


def _read_unplanned_facts(node_folder: NodeFolder) -> Facts:
    """Return the facts that a node's folder contains by itself."""
    return {**_read_folder_facts(node_folder), "commands": [], "in_plan": False}


def trace_ancestors(results: Path, path: str, paths: Iterable[str]) -> list[Facts]:
    """Return a training outside the plan and its ancestors found in records, first to last.

    Args:
        path: the training's folder, relative to the results folder.
        paths: candidate folders of its ancestors.
    """
    by_digest = {each[-SHORT:]: each for each in paths if each.startswith(f"{STAGES}/")}
    trainings = [_read_unplanned_facts(NodeFolder(results, path, path[-SHORT:]))]
    while parents := trainings[0].get("parents"):
        before = by_digest.get(parents[0][:SHORT])
        if before is None:
            break
        trainings.insert(0, _read_unplanned_facts(NodeFolder(results, before, before[-SHORT:])))
    return trainings
