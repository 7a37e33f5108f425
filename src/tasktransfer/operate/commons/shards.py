"""Shards: packed parts of one study, each by a lab, in a folder that a git repository may hold.

What is taken of them is checked as in any merge: a record against its own identity, its rows
against the checksums of the pack, and both against what is here already. Nothing that is here is
replaced.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tasktransfer.config import CommonConfig
from tasktransfer.core.nodes import SHORT, Node, Stage
from tasktransfer.errors import (
    ConfigError,
    RecordError,
    StorageError,
    TaskTransferError,
    escape_line,
)
from tasktransfer.files.progress import with_progress
from tasktransfer.operate.commons.checkout import read_commit
from tasktransfer.operate.commons.isolated import PackFacts, PackReader
from tasktransfer.operate.merge import OUTCOMES, merge_results
from tasktransfer.results.finished import is_whole
from tasktransfer.results.records import NOUNS
from tasktransfer.results.revisions import UNKNOWN, remember_revisions
from tasktransfer.results.study import Study
from tasktransfer.tables.numbers import counted

NOBODY = "unnamed"
"""Stands for who made records whose pack names nobody."""
LOST = ("conflict", "refused")
"""Outcomes that somebody has to look at."""
MOST_SHARDS = 10_000
"""Of a folder, and its files and folders in all."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A file in a folder of shards, and what it says."""

    file: Path
    says: PackFacts


def find_shards(folder: Path, reader: PackReader) -> list[Shard]:
    """Return every Parquet file below a folder, sorted by name.

    Raises:
        ConfigError: it is no folder, holds no Parquet file, or far too many files.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: no folder; clone the repository with the shards and give its folder "
            "(`tasktransfer merge` takes a single file)"
        )
    files = sorted(_parquet_files(folder))
    if not files:
        raise ConfigError(
            f"{folder}: holds no shard (*.parquet); `tasktransfer pack --by NAME` writes one"
        )
    return [Shard(file, reader.read_facts(file)) for file in with_progress(files, "looking")]


def _parquet_files(folder: Path) -> Iterator[Path]:
    """Yield what is called ``*.parquet``, whatever it is. Links to folders are not followed, and
    folders that cannot be listed are passed over."""
    folders, count = [folder], 0
    while folders:
        for entry in _entries(folders.pop()):
            count += 1
            if count > MOST_SHARDS:
                raise ConfigError(
                    f"{folder}: holds more than {MOST_SHARDS:,} files; give the folder of shards"
                )
            if entry.name.endswith(".parquet"):
                yield Path(entry.path)
            elif entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def remember_inputs(config: CommonConfig, shards: Sequence[Shard]) -> None:
    """Remember the revisions of inputs that are not on this machine, unless they are known: those
    that most shards name, so that a wrong shard does not decide for the others."""
    agreed: dict[str, dict[str, str]] = {}
    for kind in ("data", "models", "parameters"):
        votes: dict[str, Counter[str]] = {}
        for shard in shards:
            for name, revision in shard.says.facts.get(kind, {}).items():
                votes.setdefault(name, Counter())[revision] += revision != UNKNOWN
        agreed[kind] = {
            name: counts.most_common(1)[0][0] for name, counts in votes.items() if counts.total()
        }
    remember_revisions(config, agreed["data"], agreed["models"], agreed["parameters"])


def import_shards(
    study: Study,
    folder: Path,
    shards: Sequence[Shard],
    reader: PackReader,
    *,
    tables: Iterable[str] = (),
    dry_run: bool = False,
) -> dict[str, Any]:
    """Take the nodes of a study from shards, one after the other. A shard that is damaged is left
    out whole, and the others are taken.

    Args:
        study: its inputs must be known, or remembered (``results.revisions``).
        folder: where the shards were found.
        reader: unpacks them.
        tables: as of ``merge_results``.
        dry_run: tell what would happen.

    Returns:
        ``commit``: that the folder's checkout is at; empty if it is in none;
        ``shards``: of each the file, its SHA-256, ``by`` (who packed it), ``made``
        (digest of a node, as in paths → who made it), ``counts`` by outcome, how many nodes are of
        other studies (``elsewhere``) and on which other ``inputs``, ``problem`` and ``reasons``;
        ``by``: who made what of the study; ``lacking``: its nodes that are neither here nor in a
        shard.
    """
    tables = list(tables)
    seen = [
        _imported(study, reader, shard, tables, dry_run=dry_run)
        for shard in with_progress(shards, "taking shards")
    ]
    offered = {digest for shard in seen for digest in shard["made"]}
    lacking = [node for node in study.plan.nodes if node.digest[:SHORT] not in offered]
    return {
        "results": study.config.results,
        "dry_run": dry_run,
        "commit": read_commit(folder),
        "shards": seen,
        "by": _who_made_what(study, seen),
        "lacking": sum(not is_whole(study, node) for node in lacking),
    }


def _imported(
    study: Study, reader: PackReader, shard: Shard, tables: Sequence[str], *, dry_run: bool
) -> dict[str, Any]:
    by = shard.says.facts.get("by") or NOBODY
    outcome: dict[str, Any] = {
        "file": str(shard.file),
        "sha256": shard.says.sha256,
        "by": "" if shard.says.problem else by,
        "made": {},
        "counts": dict.fromkeys(OUTCOMES, 0),
        "elsewhere": 0,
        "inputs": _other_inputs(study, shard.says.facts),
        "problem": shard.says.problem,
        "reasons": [],
    }
    if shard.says.problem:
        return outcome
    try:
        with TemporaryDirectory(prefix="tasktransfer-") as folder:
            reader.unpack(shard.file, Path(folder))
            merged = merge_results(study, Path(folder), tables=tables, dry_run=dry_run)
    except StorageError:
        raise
    except TaskTransferError as error:
        return {**outcome, "problem": str(error)}
    lost = [each for each in merged["stages"] if each["outcome"] in LOST]
    return {
        **outcome,
        "counts": merged["counts"],
        "elsewhere": merged["elsewhere"],
        "made": {
            each["stage"][-SHORT:]: each["made_by"] or by
            for each in merged["stages"]
            if each["outcome"] not in LOST
        },
        "reasons": [f"{e['stage']}: {e['outcome']}: {'; '.join(e['reasons'])}" for e in lost],
    }


def _other_inputs(study: Study, facts: Mapping[str, Any]) -> list[str]:
    """The datasets and models that were other ones there than here: their nodes are not ours."""
    models = {name: model.weights for name, model in study.revisions.models.items()}
    pairs = ((study.revisions.data, facts.get("data", {})), (models, facts.get("models", {})))
    return sorted(
        name
        for ours, theirs in pairs
        for name in ours.keys() & theirs.keys()
        if ours[name] != theirs[name]
    )


def _who_made_what(study: Study, seen: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Lab → its nodes of this study by kind, and their models and seeds. Where several labs have
    made a node, the first of them counts."""
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


def failure(seen: Mapping[str, Any]) -> RecordError | None:
    """What makes the command fail: shards that cannot be read, conflicts, what was refused."""
    damaged = [escape_line(shard["file"]) for shard in seen["shards"] if shard["problem"]]
    lost = sum(shard["counts"][name] for shard in seen["shards"] for name in LOST)
    if not damaged and not lost:
        return None
    named = f"{', '.join(damaged)}: not taken; " if damaged else ""
    return RecordError(
        f"{named}{counted(lost, 'record')} refused or with other numbers than here; everything "
        "else was taken, and nothing here was changed by them"
    )


def as_text(seen: Mapping[str, Any]) -> str:
    """What came of the shards, and who made what, for people."""
    mark = " (dry run: nothing is copied)" * seen["dry_run"]
    commit = f", commit {seen['commit'][:SHORT]}" * bool(seen["commit"])
    lines = [f"{counted(len(seen['shards']), 'shard')}{commit} -> {seen['results']}{mark}"]
    for shard in seen["shards"]:
        lines += _shard_text(shard)
    lines.append("who made what of this study")
    for by, lab in seen["by"].items():
        names = {"stage": "training", "data": "derived dataset"}
        nodes = [counted(count, names.get(kind, kind)) for kind, count in lab["nodes"].items()]
        of = [f"models {', '.join(lab['models'])}"] * bool(lab["models"])
        of += [f"seeds {', '.join(map(str, lab['seeds']))}"] * bool(lab["seeds"])
        lines.append(f"  {by}: {'; '.join([', '.join(nodes), *of])}")
    if not seen["by"]:
        lines.append("  nobody: no shard has a node of it")
    if seen["lacking"]:
        lines.append(f"  still nobody: {counted(seen['lacking'], 'node')}")
    return "".join(f"{escape_line(line)}\n" for line in lines)


def _shard_text(shard: Mapping[str, Any]) -> list[str]:
    by = ", ".join(dict.fromkeys(shard["made"].values())) or shard["by"] or "nobody can tell"
    sha256 = f"; sha256 {shard['sha256'][:12]}" * bool(shard["sha256"])
    lines = [f"  {shard['file']}: by {by}{sha256}"]
    counts = [f"{count:,} {name}" for name, count in shard["counts"].items() if count]
    if shard["elsewhere"]:
        counts.append(f"{shard['elsewhere']:,} not of this study")
    lines += [f"    {', '.join(counts)}"] * bool(counts)
    if shard["inputs"]:
        lines.append(f"    made with another {', '.join(shard['inputs'])} than here")
    lines += [f"    not taken: {shard['problem']}"] * bool(shard["problem"])
    return [*lines, *(f"    {reason}" for reason in shard["reasons"])]
