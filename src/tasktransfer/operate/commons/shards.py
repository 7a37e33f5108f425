"""Shards: packed parts of one study, each by a lab, in a folder that a git repository may hold.

What is taken of them is checked as in any merge: a record against its own identity, its rows
against the checksums of the pack, and both against what is here already. Nothing that is here is
replaced.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import SHORT, Node, Stage
from tasktransfer.errors import ConfigError, RecordError, TaskTransferError
from tasktransfer.files import sha256_of
from tasktransfer.files.progress import with_progress
from tasktransfer.operate.merge import OUTCOMES, merge_results
from tasktransfer.operate.pack import Pack, read_pack, unpacked
from tasktransfer.results.finished import is_whole
from tasktransfer.results.records import NOUNS
from tasktransfer.results.study import Study
from tasktransfer.tables.numbers import counted

NOBODY = "unnamed"
"""Stands for who made records whose pack names nobody."""
LOST = ("conflict", "refused")
"""Outcomes that somebody has to look at."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of a folder of shards. ``pack`` is None where it cannot be read, ``problem`` says why
    then. ``commit``: the git commit that brought the file, and whose it is; empty: not known."""

    file: Path
    pack: Pack | None
    problem: str
    commit: str


def find_shards(folder: Path) -> list[Shard]:
    """Every Parquet file below a folder, sorted by name.

    Raises:
        ConfigError: it is no folder, or has none.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: no folder; clone the repository with the shards and give its folder "
            "(`tasktransfer merge` takes a single file)"
        )
    files = sorted(file for file in folder.rglob("*.parquet") if ".git" not in file.parts)
    if not files:
        raise ConfigError(
            f"{folder}: holds no shard (*.parquet); `tasktransfer pack --by NAME` writes one"
        )
    return [_shard(file) for file in files]


def _shard(file: Path) -> Shard:
    try:
        return Shard(file, read_pack(file), "", _commit(file))
    except RecordError as error:
        return Shard(file, None, str(error), _commit(file))


def _commit(file: Path) -> str:
    """The last commit of a file, whose it is and when, and whether it was changed since."""
    last = _git(file, "log", "-1", "--format=%h by %an, %as", "--", file.name)
    changed = last and _git(file, "status", "--porcelain", "--", file.name)
    return f"{last}, changed since" if changed else last


def _git(file: Path, *words: str) -> str:
    command = ["git", "-C", str(file.absolute().parent), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # no git here
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def import_shards(
    study: Study,
    shards: Sequence[Shard],
    *,
    tables: Iterable[str] = (),
    dry_run: bool = False,
) -> dict[str, Any]:
    """Take the nodes of a study from shards, one after the other. A shard that is damaged is left
    out whole, and the others are taken.

    Args:
        study: its inputs must be known, or remembered (``results.revisions``).
        tables: as of ``merge_results``.
        dry_run: tell what would happen.

    Returns:
        ``shards``: of each the file, its SHA-256 and commit, ``by`` (who packed it), ``made``
        (digest of a node, as in paths → who made it), ``counts`` by outcome, how many nodes are of
        other studies (``elsewhere``) and on which other ``inputs``, ``problem`` and ``reasons``;
        ``by``: who made what of the study; ``lacking``: its nodes that are neither here nor in a
        shard.
    """
    tables = list(tables)
    seen = [
        _imported(study, shard, tables, dry_run=dry_run)
        for shard in with_progress(shards, "taking shards")
    ]
    offered = {digest for shard in seen for digest in shard["made"]}
    lacking = [node for node in study.plan.nodes if node.digest[:SHORT] not in offered]
    return {
        "results": study.config.results,
        "dry_run": dry_run,
        "shards": seen,
        "by": _who_made_what(study, seen),
        "lacking": sum(not is_whole(study, node) for node in lacking),
    }


def _imported(
    study: Study, shard: Shard, tables: Sequence[str], *, dry_run: bool
) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "file": str(shard.file),
        "sha256": sha256_of(shard.file),
        "commit": shard.commit,
        "by": "",
        "made": {},
        "counts": dict.fromkeys(OUTCOMES, 0),
        "elsewhere": 0,
        "inputs": [],
        "problem": shard.problem,
        "reasons": [],
    }
    if shard.pack is None:
        return facts
    facts["by"] = by = _printable(shard.pack.facts.get("by") or NOBODY)
    facts["inputs"] = _other_inputs(study, shard.pack)
    try:
        with unpacked(shard.pack, study.config) as folder:
            merged = merge_results(study, folder, tables=tables, dry_run=dry_run)
    except TaskTransferError as error:
        return {**facts, "problem": str(error)}
    lost = [each for each in merged["stages"] if each["outcome"] in LOST]
    return {
        **facts,
        "counts": merged["counts"],
        "elsewhere": merged["elsewhere"],
        "made": {
            each["stage"][-SHORT:]: _printable(each["made_by"] or by)
            for each in merged["stages"]
            if each["outcome"] not in LOST
        },
        "reasons": [f"{e['stage']}: {e['outcome']}: {'; '.join(e['reasons'])}" for e in lost],
    }


def _printable(name: str) -> str:
    """A name that may come from anybody, as a terminal can show it."""
    return name if name.isprintable() else ascii(name)


def _other_inputs(study: Study, pack: Pack) -> list[str]:
    """The datasets and models that were other ones there than here: their nodes are not ours."""
    models = {name: model.weights for name, model in study.revisions.models.items()}
    pairs = ((study.revisions.data, pack.facts["data"]), (models, pack.facts["models"]))
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
    damaged = [shard["file"] for shard in seen["shards"] if shard["problem"]]
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
    lines = [f"{counted(len(seen['shards']), 'shard')} -> {seen['results']}{mark}"]
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
    return "\n".join(lines) + "\n"


def _shard_text(shard: Mapping[str, Any]) -> list[str]:
    by = ", ".join(dict.fromkeys(shard["made"].values())) or shard["by"] or "nobody can tell"
    commit = f", commit {shard['commit']}" if shard["commit"] else ""
    lines = [f"  {shard['file']}: by {by}; sha256 {shard['sha256'][:12]}{commit}"]
    counts = [f"{count:,} {name}" for name, count in shard["counts"].items() if count]
    if shard["elsewhere"]:
        counts.append(f"{shard['elsewhere']:,} not of this study")
    lines += [f"    {', '.join(counts)}"] * bool(counts)
    if shard["inputs"]:
        lines.append(f"    made with another {', '.join(shard['inputs'])} than here")
    lines += [f"    not taken: {shard['problem']}"] * bool(shard["problem"])
    return [*lines, *(f"    {reason}" for reason in shard["reasons"])]
