"""Facts about nodes: their states, records, related nodes and commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tasktransfer.core.nodes import SHORT, Evaluation, Node
from tasktransfer.designs.explain.explanation import NodeFacts
from tasktransfer.errors import ConfigError, DataError, ModelError, RecordError
from tasktransfer.results import records
from tasktransfer.results.node_folders import NodeFolder, iterate_node_folders, read_folder_state
from tasktransfer.results.records import correct_synthetic_flag
from tasktransfer.results.schema import OtherNode, Record, StageNode
from tasktransfer.results.state import RECORD, find_log
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.jobs.prompt_job import RenderedPrompts


def find_node(study: Study, word: str, instance: int = 0) -> NodeFacts:
    """Return the facts about a node of a study's plan or of its results folder.

    Args:
        study: the study.
        word: 6 or more hex digits of the node's digest, or its folder.
        instance: number of the test instance whose prompt is rendered, for a prompted model.

    Raises:
        ConfigError: no node or several nodes match.
    """
    folder = Path(word)
    digest = folder.name[-SHORT:] if folder.is_dir() else word
    planned = [
        node
        for node in ([] if study.has_unknown_inputs else study.plan.nodes)
        if (
            Path(study.get_node_folder(node)).resolve() == folder.resolve()
            if folder.is_dir()
            else node.digest.startswith(digest)
        )
    ]
    if len(planned) == 1:
        return describe_node(study, planned[0], instance)
    results = Path(study.config.results)
    folders = [f for f in iterate_node_folders(results) if f.digest.startswith(digest[:SHORT])]
    if not planned and len(folders) == 1:
        return describe_folder(folders[0])
    matches = ", ".join([node.path for node in planned] or [each.path for each in folders])
    places = f"{study.config_file} or in {results}/"
    if matches:
        raise ConfigError(
            f"{word}: Several nodes in {places} match this digest or folder ({matches}). Give "
            "more digits of the digest."
        )
    raise ConfigError(
        f"{word}: No node in {places} has this digest or folder. Check whether the config has "
        "changed."
    )


def describe_node(study: Study, node: Node, instance: int = 0) -> NodeFacts:
    """Return the facts about a node of a study's plan. ``instance``: see ``find_node``."""
    return replace(
        _describe_planned_node(study, node),
        content=_read_content(NodeFolder(Path(study.config.results), node.path, "")),
        commands=list_commands(study, node),
        uses=tuple(_describe_planned_node(study, used) for used in node.uses),
        users=tuple(_describe_planned_node(study, user) for user in study.list_dependents(node)),
        prompt=_render_prompt(study, node, instance),
    )


def _describe_planned_node(study: Study, node: Node) -> NodeFacts:
    """Describe a node from the plan, because its record may be damaged or another node's."""
    description = records.describe_node(node)
    facts = _describe_state(Path(study.get_node_folder(node)), node.digest, description)
    return replace(facts, in_plan=True)


def describe_folder(node_folder: NodeFolder) -> NodeFacts:
    """Return the facts from the folder of a node that is not in the plan."""
    content = _read_content(node_folder)
    node = content["node"] if content else None
    digest = node["digest"] if node else node_folder.digest
    return replace(_describe_state(node_folder.folder, digest, node), content=content)


def _describe_state(folder: Path, digest: str, node: StageNode | OtherNode | None) -> NodeFacts:
    log = find_log(folder)
    state, error = read_folder_state(folder)
    return NodeFacts(
        digest, node, str(folder), str(folder / RECORD), str(log) if log else None, state, error
    )


def _read_content(node_folder: NodeFolder) -> Record | None:
    try:
        return correct_synthetic_flag(
            records.read_record(node_folder.folder / RECORD), node_folder.results
        )
    except RecordError:
        return None


def trace_folder(node_folder: NodeFolder, folders: Mapping[str, NodeFolder]) -> list[NodeFacts]:
    """Return a node that is not in the plan and the trainings that it starts from, in order.

    Args:
        node_folder: the node's folder.
        folders: first digits of a digest → folder, for all nodes in the results folder.
    """
    facts = describe_folder(node_folder)
    node = facts.node
    parents = node["parents"] if node and node["kind"] == "stage" else []
    earlier = [folders[digest[:SHORT]] for digest in parents if digest[:SHORT] in folders]
    return [*(each for parent in earlier for each in trace_folder(parent, folders)), facts]


def format_snakemake_command(study: Study, *targets: str) -> str:
    """Return a Snakemake command that creates files.

    Targets come first, because ``--config`` and ``--configfile`` consume all following words.
    """
    words = ["snakemake", *targets, "--cores", "1"]
    if study.overrides:
        values = (f"{key}={json.dumps(value)}" for key, value in study.overrides.items())
        words += ["--config", *values]
    return shlex.join([*words, "--configfile", study.config_file])


def list_commands(study: Study, node: Node) -> tuple[str, ...]:
    """Return the commands that recompute a node.

    The record is deleted first, since a node with a record counts as done regardless of its age.
    """
    record = study.get_record_path(node)
    return shlex.join(["rm", "-f", record]), format_snakemake_command(study, record)


def _render_prompt(study: Study, node: Node, instance: int) -> RenderedPrompts | str | None:
    """Return the prompts of an instance, or the reason why they cannot be rendered."""
    if not isinstance(node, Evaluation) or node.asked is None:
        return None
    from tasktransfer.jobs.prompt_job import render_prompts  # noqa: PLC0415  # imports transformers

    try:
        return render_prompts(study, node, instance)
    except (DataError, ModelError) as error:
        return str(error)
