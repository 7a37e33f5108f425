"""The record that the fake ``tasktransfer`` leaves for a stage, beside empty predictions.

``Sandbox.write`` makes those of a study in advance, since a Python process for each training takes
longer than the training; the fake command makes the others by ``python fake_record.py STAGE OUT``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))
from finished_stages import make

from tasktransfer.core.nodes import Stage


def fake_record(stage: Stage) -> str:
    """The text of a stage's record. Its predictions are an empty file."""
    record = make(stage)
    if record["run"] is not None:
        sha256 = hashlib.sha256(b"").hexdigest()
        record["predictions"] = {"file": "predictions.parquet", "rows": 4, "sha256": sha256}
    return json.dumps(record)


if __name__ == "__main__":
    stage = Stage.from_json(json.loads(sys.argv[1]))
    Path(sys.argv[2], "metrics.json").write_text(fake_record(stage))
