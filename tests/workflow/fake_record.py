"""The record that the fake ``tasktransfer`` writes for a stage, with empty rows.

``Sandbox.write`` prepares a study's records in advance, since a Python process per training takes
longer than the training. For other stages, the fake command calls ``python fake_record.py STAGE
OUT``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from constructed_records import constructed_record, result
from tasktransfer.core.node_json import from_json
from tasktransfer.core.nodes import Stage
from tasktransfer.datasets import get_card_digests
from tasktransfer.results.schema import RowsFile


def fake_record(stage: Stage) -> str:
    """Return the text of a stage's record, whose rows file is empty."""
    test = {task: result(50.0) for task in stage.tested}
    rows: RowsFile | None = None
    if test:
        sha256 = hashlib.sha256(b"").hexdigest()
        rows = {"file": "rows.parquet", "rows": 4 * len(test), "sha256": sha256}
    return json.dumps(constructed_record(stage, test=test, synthetic=True, rows=rows))


if __name__ == "__main__":
    stage = from_json(Stage, json.loads(sys.argv[1]), "STAGE", get_card_digests)
    Path(sys.argv[2], "metrics.json").write_text(fake_record(stage))
