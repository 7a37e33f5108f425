"""Records in a results folder that are not at the path of their node."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tasktransfer.core.nodes import SHORT, Node
from tasktransfer.errors import RecordError
from tasktransfer.results.records import read_record
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study

_ADDRESS = re.compile(rf"(?:.*-)?([0-9a-f]{{{SHORT}}})")
"""Name of a node's folder, which ends in the first digits of the node's digest."""


def find_misplaced(study: Study, nodes: Mapping[str, Node]) -> Iterator[tuple[str, str]]:
    """Yield path and problem of records of these nodes that are in another folder."""
    results = Path(study.config.results)
    by_digits = {digest[:SHORT]: node for digest, node in nodes.items()}
    places = {study.record(node) for node in nodes.values()}
    for root in sorted({node.path.split("/", 1)[0] for node in nodes.values()}):
        for path in list_records(results / root):
            address = _ADDRESS.fullmatch(path.parent.name)
            if str(path) in places or (address and address[1] not in by_digits):
                continue
            node = nodes.get(_read_digest(path) or "")
            if node is not None:
                belongs = f"{node.path}/{RECORD}"
                error = f"{path}: {node.label} belongs at {belongs}; this one is left out"
                yield path.relative_to(results).as_posix(), error


def list_records(folder: Path) -> list[Path]:
    """List all paths below a folder with a record's name, sorted, including folders and links."""
    return sorted(
        Path(path, RECORD)
        for path, folders, files in os.walk(folder)
        if RECORD in files or RECORD in folders
    )


def _read_digest(path: Path) -> str | None:
    """Return the node digest in a record, or None if the record cannot be read."""
    try:
        return read_record(path)["node"]["digest"]
    except RecordError:
        return None
