"""The record that the fake ``tasktransfer`` writes for a stage, with empty rows.

``Sandbox.write`` prepares a study's records in advance, since a Python process per training takes
longer than the training. For other stages, the fake command calls ``python fake_record.py FOLDER``
with the options of ``train``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from constructed_records import constructed_record, result
from tasktransfer import cli
from tasktransfer.cli.options import find_node, open_design
from tasktransfer.core.nodes import SHORT, Stage
from tasktransfer.results.schema import RowsFile
from tasktransfer.results.study import Study


def fake_record(stage: Stage) -> str:
    """Return the text of a stage's record, whose rows file is empty."""
    test = {task: result(50.0) for task in stage.tested}
    rows: RowsFile | None = None
    if test:
        sha256 = hashlib.sha256(b"").hexdigest()
        rows = {"file": "rows.parquet", "rows": 4 * len(test), "sha256": sha256}
    return json.dumps(constructed_record(stage, test=test, synthetic=True, rows=rows))


def write_fake(study: Study, stage: Stage, folder: Path) -> None:
    """Write a stage's record under its digest, and a mark if the stage has a checkpoint."""
    folder.mkdir(exist_ok=True)
    name = stage.digest[:SHORT]
    if study.makes_checkpoint(stage.kind):
        (folder / f"{name}.checkpoint").touch()
    (folder / name).write_text(fake_record(stage))


if __name__ == "__main__":
    folder, *options = sys.argv[1:]
    args = cli.parse_arguments(["train", *options])
    study, _ = open_design(args)
    write_fake(study, find_node(study, args.node, Stage), Path(folder))
