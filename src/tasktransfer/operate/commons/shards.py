"""Import of shards: packed parts of one study from several labs, in a folder or git repository.

Imported nodes are checked as in any merge: records against their own identity, rows against the
pack's checksums, and both against existing local results. Local results are never replaced.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from tasktransfer.config import CommonConfig
from tasktransfer.core.nodes import SHORT, Node, Stage
from tasktransfer.errors import (
    ConfigError,
    RecordError,
    StorageError,
    TaskTransferError,
    escape_line,
    format_quantity,
)
from tasktransfer.files.progress import show_progress
from tasktransfer.operate.commons.checkout import read_commit
from tasktransfer.operate.commons.isolated import INPUTS, PackFacts, PackReader
from tasktransfer.operate.merge import OUTCOMES, MergeOutcome, merge_results
from tasktransfer.results.node_folders import has_valid_record
from tasktransfer.results.records import NOUNS
from tasktransfer.results.revisions import UNKNOWN, cache_revisions
from tasktransfer.results.study import Study

NOBODY = "unnamed"
"""Placeholder for the author of records whose pack does not name an author."""
LOST: tuple[MergeOutcome, ...] = ("conflict", "rejected")
"""Outcomes that need attention."""
MOST_SHARDS = 10_000
"""Largest number of files and folders in a folder of shards."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A file in a folder of shards, and the content of its footer."""

    file: Path
    says: PackFacts


def find_shards(folder: Path, reader: PackReader) -> list[Shard]:
    """Return every Parquet file below a folder, sorted by name.

    Raises:
        ConfigError: it is not a folder, contains no Parquet file, or contains too many files.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: The path is not a folder. Clone the repository with the shards and specify "
            "its folder (for a single file, use `tasktransfer merge`)."
        )
    files = sorted(_iterate_parquet_files(folder))
    if not files:
        raise ConfigError(
            f"{folder}: The folder contains no shard (*.parquet). Write one with "
            "`tasktransfer pack --by NAME`."
        )
    return [Shard(file, reader.read_facts(file)) for file in show_progress(files, "reading shards")]


def _iterate_parquet_files(folder: Path) -> Iterator[Path]:
    """Yield all paths that match ``*.parquet``, of any file type.

    Links to folders are not followed, and folders that cannot be listed are skipped.
    """
    folders, count = [folder], 0
    while folders:
        for entry in _list_entries(folders.pop()):
            count += 1
            if count > MOST_SHARDS:
                raise ConfigError(
                    f"{folder}: The folder contains more than {MOST_SHARDS:,} files. Specify the "
                    "folder of the shards."
                )
            if entry.name.endswith(".parquet"):
                yield Path(entry.path)
            elif entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))


def _list_entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def cache_inputs(config: CommonConfig, shards: Sequence[Shard]) -> None:
    """Cache the revisions of inputs that are missing on this machine, without replacing any.

    For each input, the revision in most shards is used, so that a single wrong shard does not
    decide.
    """
    agreed: dict[str, dict[str, str]] = {}
    for kind in INPUTS:
        votes: dict[str, Counter[str]] = {}
        for shard in shards:
            for name, revision in shard.says.facts.get(kind, {}).items():
                votes.setdefault(name, Counter())[revision] += revision != UNKNOWN
        agreed[kind] = {
            name: counts.most_common(1)[0][0] for name, counts in votes.items() if counts.total()
        }
    cache_revisions(config, *(agreed[kind] for kind in INPUTS))


class ShardResult(TypedDict):
    """Result of importing one shard.

    Attributes:
        file: path of the shard.
        sha256: SHA-256 of the file.
        by: author of the shard; empty if it cannot be read.
        made: digest of a node, as in paths → its author.
        counts: outcome → number of nodes.
        elsewhere: number of nodes from other studies.
        inputs: datasets and models with another revision than here.
        problem: error for a shard that cannot be read; empty otherwise.
        reasons: one line per node that was not copied.
    """

    file: str
    sha256: str
    by: str
    made: dict[str, str]
    counts: dict[MergeOutcome, int]
    elsewhere: int
    inputs: list[str]
    problem: str
    reasons: list[str]


class Contribution(TypedDict):
    """Nodes of a study from one author: number by kind, models and seeds of the trainings."""

    models: list[str]
    seeds: list[int]
    nodes: dict[str, int]


class ImportResult(TypedDict):
    """Result of importing shards.

    Attributes:
        results: the study's results folder.
        dry_run: whether nothing was copied.
        commit: commit of the checkout of the shards' folder; empty if there is none.
        shards: result of each shard.
        by: author → nodes of the study.
        lacking: number of the study's nodes that are neither here nor in a shard.
    """

    results: str
    dry_run: bool
    commit: str
    shards: list[ShardResult]
    by: dict[str, Contribution]
    lacking: int


def import_shards(
    study: Study,
    folder: Path,
    shards: Sequence[Shard],
    reader: PackReader,
    *,
    tables: Iterable[str] = (),
    dry_run: bool = False,
) -> ImportResult:
    """Copy the nodes of a study from shards, one shard after the other.

    A damaged shard is left out completely, and the others are copied.

    Args:
        study: study whose inputs are known or cached (``results.revisions``).
        folder: folder with the shards.
        shards: shards from ``find_shards``.
        reader: process that unpacks them.
        tables: as in ``merge_results``.
        dry_run: report the outcome without copying.
    """
    tables = list(tables)
    seen = [
        _import_shard(study, reader, shard, tables, dry_run=dry_run)
        for shard in show_progress(shards, "copying shards")
    ]
    offered = {digest for shard in seen for digest in shard["made"]}
    lacking = [node for node in study.plan.nodes if node.digest[:SHORT] not in offered]
    return {
        "results": study.config.results,
        "dry_run": dry_run,
        "commit": read_commit(folder),
        "shards": seen,
        "by": _summarise_labs(study, seen),
        "lacking": sum(not has_valid_record(study, node) for node in lacking),
    }


def _import_shard(
    study: Study, reader: PackReader, shard: Shard, tables: Sequence[str], *, dry_run: bool
) -> ShardResult:
    by = shard.says.facts.get("by") or NOBODY
    outcome: ShardResult = {
        "file": str(shard.file),
        "sha256": shard.says.sha256,
        "by": "" if shard.says.problem else by,
        "made": {},
        "counts": dict.fromkeys(OUTCOMES, 0),
        "elsewhere": 0,
        "inputs": _list_differing_inputs(study, shard.says.facts),
        "problem": shard.says.problem,
        "reasons": [],
    }
    if shard.says.problem:
        return outcome
    try:
        with TemporaryDirectory(prefix="tasktransfer-") as folder:
            reader.unpack_nodes(shard.file, Path(folder))
            merged = merge_results(study, Path(folder), tables=tables, dry_run=dry_run)
    except StorageError:
        raise
    except TaskTransferError as error:
        return {**outcome, "problem": str(error)}
    lost = [node for node in merged["stages"] if node["outcome"] in LOST]
    return {
        **outcome,
        "counts": merged["counts"],
        "elsewhere": merged["elsewhere"],
        "made": {
            node["stage"][-SHORT:]: node["made_by"] or by
            for node in merged["stages"]
            if node["outcome"] not in LOST
        },
        "reasons": [f"{e['stage']}: {e['outcome']}: {'; '.join(e['reasons'])}" for e in lost],
    }


def _list_differing_inputs(study: Study, facts: Mapping[str, Any]) -> list[str]:
    """Return the datasets and models whose revisions differ, so that nodes cannot match."""
    models = {name: model.weights for name, model in study.revisions.models.items()}
    pairs = ((study.revisions.data, facts.get("data", {})), (models, facts.get("models", {})))
    return sorted(
        name
        for ours, theirs in pairs
        for name in ours.keys() & theirs.keys()
        if ours[name] != theirs[name]
    )


def _summarise_labs(study: Study, seen: Sequence[ShardResult]) -> dict[str, Contribution]:
    """Count each lab's nodes in this study by kind, and list their models and seeds.

    If several labs computed the same node, the first one counts.
    """
    nodes = dict(study.plan.by_digest)
    labs: dict[str, list[Node]] = {}
    for shard in seen:
        for digest, by in shard["made"].items():
            if digest in nodes:
                labs.setdefault(by, []).append(nodes.pop(digest))
    return {
        by: {
            "models": sorted({node.model.name for node in own if isinstance(node, Stage)}),
            "seeds": sorted({node.seed for node in own if isinstance(node, Stage)}),
            "nodes": dict(Counter(NOUNS[type(node)] for node in own)),
        }
        for by, own in labs.items()
    }


def find_error(seen: ImportResult) -> RecordError | None:
    """Return the error for unreadable shards, conflicts or rejected records, or None."""
    damaged = [escape_line(shard["file"]) for shard in seen["shards"] if shard["problem"]]
    lost = sum(shard["counts"][name] for shard in seen["shards"] for name in LOST)
    if not damaged and not lost:
        return None
    named = f"{', '.join(damaged)}: Nothing was copied from these files. " if damaged else ""
    return RecordError(
        f"{named}The import has {format_quantity(lost, 'rejected or conflicting record')}. "
        "Everything else was copied, and your records are unchanged."
    )


def as_text(seen: ImportResult) -> str:
    """Format the result of an import and each lab's contributions."""
    mark = " (dry run: nothing is copied)" * seen["dry_run"]
    commit = f", commit {seen['commit'][:SHORT]}" * bool(seen["commit"])
    lines = [f"{format_quantity(len(seen['shards']), 'shard')}{commit} -> {seen['results']}{mark}"]
    for shard in seen["shards"]:
        lines += _format_shard(shard)
    lines.append("contributions to this study:")
    for by, lab in seen["by"].items():
        names = {"stage": "training", "data": "derived dataset"}
        nodes = [
            format_quantity(count, names.get(kind, kind)) for kind, count in lab["nodes"].items()
        ]
        of = [f"models {', '.join(lab['models'])}"] * bool(lab["models"])
        of += [f"seeds {', '.join(map(str, lab['seeds']))}"] * bool(lab["seeds"])
        lines.append(f"  {by}: {'; '.join([', '.join(nodes), *of])}")
    if not seen["by"]:
        lines.append("  none: no shard contains a node of it")
    if seen["lacking"]:
        lines.append(f"  still missing: {format_quantity(seen['lacking'], 'node')}")
    return "".join(f"{escape_line(line)}\n" for line in lines)


def _format_shard(shard: ShardResult) -> list[str]:
    by = ", ".join(dict.fromkeys(shard["made"].values())) or shard["by"] or "unknown"
    sha256 = f"; sha256 {shard['sha256'][:12]}" * bool(shard["sha256"])
    lines = [f"  {shard['file']}: by {by}{sha256}"]
    counts = [f"{count:,} {name}" for name, count in shard["counts"].items() if count]
    if shard["elsewhere"]:
        counts.append(f"{shard['elsewhere']:,} from other studies")
    lines += [f"    {', '.join(counts)}"] * bool(counts)
    if shard["inputs"]:
        lines.append(f"    computed with another {', '.join(shard['inputs'])} than here")
    lines += [f"    not copied: {shard['problem']}"] * bool(shard["problem"])
    return [*lines, *(f"    {reason}" for reason in shard["reasons"])]
