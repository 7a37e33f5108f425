"""Conversion of records from older releases to current digests, if their numbers are unchanged.

A release may change the content of identities, and thus every digest, without changing any computed
number (``core.former``, ADR 0029). Such records are written again for the current nodes, into a
folder that is then merged like any other. Two former trainings that differ only in their selection
become one. Records whose equality cannot be established are refused and reported.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa

from tasktransfer.core.ancestors import add_ancestors
from tasktransfer.core.former import Former, find_changed_cards
from tasktransfer.core.nodes import SHORT, Node, Stage
from tasktransfer.errors import RecordError
from tasktransfer.operate.offered import check_files
from tasktransfer.results.artefacts import Artefact
from tasktransfer.results.places import NodeFolder, iterate_node_folders
from tasktransfer.results.records import describe_node, list_selections, read_record, write_record
from tasktransfer.results.rounds import CHECKPOINT, get_choice_folder
from tasktransfer.results.rows import read_rows, write_table
from tasktransfer.results.schema import Record, TrainingResult
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study

Tasks = tuple[str, ...]


class Half(NamedTuple):
    """A former record of a node, and the tasks that selected its round."""

    node_folder: NodeFolder
    record: Record
    select_on: Tasks


@dataclass
class Rekeyed:
    """Records written under current digests.

    ``folder``: results folder with them. ``nodes``, ``records``: number of current nodes and of
    former records. ``taken``: former digests (12 hex digits) that were converted or refused.
    ``refused``: path in the other folder → reason.
    """

    folder: Path
    nodes: int = 0
    records: int = 0
    taken: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)


@contextmanager
def convert_records(study: Study, other: Path) -> Iterator[Rekeyed]:
    """Convert a results folder's old records of planned nodes into a temporary results folder."""
    with tempfile.TemporaryDirectory(prefix="tasktransfer-") as folder:
        outcome = Rekeyed(Path(folder))
        for node, halves in _find_former_records(study, other):
            outcome.taken |= {node_folder.digest for node_folder, _ in halves}
            try:
                _refuse_other_cards(node)
                _write(node, [Half(p, _record(p), tasks) for p, tasks in halves], outcome.folder)
                outcome.nodes, outcome.records = outcome.nodes + 1, outcome.records + len(halves)
            except RecordError as error:
                outcome.refused |= {node_folder.path: str(error) for node_folder, _ in halves}
        yield outcome


def _find_former_records(
    study: Study, other: Path
) -> Iterator[tuple[Node, list[tuple[NodeFolder, Tasks]]]]:
    """Yield planned nodes that have records under former digests, with these records."""
    now = study.plan.by_digest
    there = {
        node_folder.digest: node_folder
        for node_folder in iterate_node_folders(other)
        if node_folder.digest not in now
    }
    if not there:
        return
    former = Former()
    for node in study.plan.nodes:
        digests = {digest[:SHORT]: tasks for digest, tasks in former.digests(node).items()}
        found = [
            (there[digest], tasks)
            for digest, tasks in digests.items()
            if digest in there and (there[digest].folder / RECORD).is_file()
        ]
        if found:
            yield node, sorted(found, key=lambda half: half[1])


def _refuse_other_cards(node: Node) -> None:
    for one in add_ancestors((node,)):
        if changed := find_changed_cards(one):
            raise RecordError(
                f"{node.path}: the task card of {changed[0]} has changed since these records were "
                "written, so their numbers may differ"
            )


def _record(node_folder: NodeFolder) -> Record:
    record = read_record(node_folder.folder / RECORD)
    if not record["node"]["digest"].startswith(node_folder.digest):
        raise RecordError(f"{node_folder.folder / RECORD}: is the record of another node")
    check_files(node_folder, record)
    return record


def _write(node: Node, halves: Sequence[Half], folder: Path) -> None:
    """Write the record of a current node, its rows, and its weights if available."""
    if isinstance(node, Stage):
        _refuse_unequal(node, halves)
    out, first = folder / node.path, halves[0]
    out.mkdir(parents=True, exist_ok=True)
    record = cast(dict[str, Any], {**first.record, "node": describe_node(node)})
    record["results"] = _merge_mappings(half.record["results"] for half in halves)
    record["sizes"] = _find_largest_sizes(halves)
    if "training" in first.record:
        record["training"] = _combine_rounds(halves)
    record["rows"] = None
    tables = [
        read_rows(half.node_folder.folder / rows["file"], rows)
        for half in halves
        if (rows := half.record["rows"])
    ]
    if tables:
        table = pa.concat_tables([part.replace_schema_metadata() for part in tables])
        dataset = first.record["node"]["dataset"]
        record["rows"] = write_table(out, table, digest=node.digest, dataset=dataset)
    record.pop("artefacts", None)
    if artefacts := _copy_weights(node, halves, out):
        record["artefacts"] = artefacts
    note = "re-keyed: the same numbers had the digest " + " and ".join(
        half.record["node"]["digest"] for half in halves
    )
    made = first.record["provenance"]
    record["provenance"] = {**made, "notes": [*made["notes"], note]}
    write_record(out / RECORD, cast(Record, record))


def _refuse_unequal(stage: Stage, halves: Sequence[Half]) -> None:
    """Raise RecordError unless the former trainings have equal losses and complete selections."""
    for half in halves:
        if list_selections(half.record) != [half.select_on]:
            raise RecordError(f"{half.node_folder.path}: its round was selected on other tasks")
    lacks = {entry.tasks for entry in stage.selections} - {half.select_on for half in halves}
    if lacks:
        tasks = ", ".join("+".join(each) for each in sorted(lacks))
        raise RecordError(
            f"{halves[0].node_folder.path}: this training now includes the selection on {tasks}, "
            "which has no record, so it must be trained again"
        )
    losses = [
        [entry["train_loss"] for entry in half.record["training"]["rounds"]] for half in halves
    ]
    rounds = min(map(len, losses))
    if any(course[:rounds] != losses[0][:rounds] for course in losses):
        paths = " and ".join(half.node_folder.path for half in halves)
        raise RecordError(f"{paths}: now count as one training, but their losses differ")


def _combine_rounds(halves: Sequence[Half]) -> TrainingResult:
    """Return the rounds of the longest training, with the dev measures of all.

    Raises:
        RecordError: one training ended earlier than another, so its selection has fewer scores.
    """
    longest = max((half.record["training"]["rounds"] for half in halves), key=len)
    selections = [entry for half in halves for entry in half.record["training"]["selections"]]
    if any(len(entry["scores"]) != len(longest) for entry in selections):
        paths = " and ".join(half.node_folder.path for half in halves)
        raise RecordError(
            f"{paths}: now count as one training, but have different numbers of rounds"
        )
    dev = [
        _merge_mappings(half.record["training"]["rounds"][index]["dev"] for half in halves)
        for index in range(len(longest))
    ]
    rounds = [{**entry, "dev": measured} for entry, measured in zip(longest, dev, strict=True)]
    return cast(TrainingResult, {"rounds": rounds, "selections": selections})


def _merge_mappings(parts: Any) -> dict[str, Any]:
    """Merge mappings by task into one, sorted by task."""
    united = {task: value for part in parts for task, value in part.items()}
    return {task: united[task] for task in sorted(united)}


def _find_largest_sizes(halves: Sequence[Half]) -> dict[str, dict[str, int]]:
    """Return the largest sizes by task and split; a training records 0 for an unread split."""
    sizes: dict[str, dict[str, int]] = defaultdict(dict)
    for half in halves:
        for task, of_task in half.record["sizes"].items():
            for split, count in of_task.items():
                sizes[task][split] = max(count, sizes[task].get(split, 0))
    return {task: sizes[task] for task in sorted(sizes)}


def _copy_weights(node: Node, halves: Sequence[Half], out: Path) -> Mapping[str, Artefact]:
    """Copy the weights of a stage's best rounds to their current paths; return known checksums.

    Numbered rounds are the same for all selections.
    """
    artefacts: dict[str, Artefact] = {}
    if not isinstance(node, Stage):
        return artefacts
    for half in halves:
        source, recorded = (
            half.node_folder.folder / CHECKPOINT,
            half.record.get("artefacts", {}),
        )
        if not source.is_dir():
            return {}
        own = next(entry for entry in node.selections if entry.tasks == half.select_on)
        chosen = get_choice_folder(Path(CHECKPOINT), node.list_identifying_tasks(own))
        shutil.copytree(source, out / chosen, symlinks=True, dirs_exist_ok=True)
        for name, entry in recorded.items():
            if name.startswith(f"{CHECKPOINT}/"):
                artefacts[(chosen / name.removeprefix(f"{CHECKPOINT}/")).as_posix()] = entry
    return artefacts
