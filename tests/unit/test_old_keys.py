"""Records with old keys are read with the present ones."""

from __future__ import annotations

import copy
import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tasktransfer.results.records import parse_record
from tasktransfer.results.schema import rename_old_keys

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            {"report": {"asked": {"questions": 2, "written_tokens": 7}}},
            {"report": {"prompting": {"questions": 2, "generated_tokens": 7}}},
        ),
        (
            {"report": {"Harbour train": {"asked": 9.0, "pairs": 4.0}}},
            {"report": {"Harbour train": {"requested": 9.0, "pairs": 4.0}}},
        ),
        (
            {"provenance": {"stand_ins": {"DEB": "none"}}},
            {"provenance": {"substitutes": {"DEB": "none"}}},
        ),
        (
            {"node": {"identity": {"settings": {"asked": {"shots": 0}}}}},
            {"node": {"identity": {"settings": {"asked": {"shots": 0}}}}},
        ),
        ({"report": [], "provenance": None}, {"report": [], "provenance": None}),
    ],
    ids=["prompting", "pairs", "substitutes", "identity stays", "wrong types stay"],
)
def test_old_keys_are_renamed_once(old: dict[str, Any], new: dict[str, Any]) -> None:
    rename_old_keys(old)
    assert old == new
    rename_old_keys(old)
    assert old == new


def test_packed_records_with_old_keys_are_valid() -> None:
    with zipfile.ZipFile(ROOT / "tests" / "fixtures" / "panel-demo.zip") as archive:
        packed = pd.read_parquet(BytesIO(archive.read("demo.parquet")), columns=["path", "record"])
    (text,) = packed["record"][packed["record"].str.contains('"asked"')][:1]
    before = json.loads(text)
    after: Any = parse_record(Path("record"), text.encode())
    reported = copy.deepcopy(before["report"])
    for counts in reported.values():
        if "asked" in counts:
            counts["requested"] = counts.pop("asked")
    assert after["report"] == reported != before["report"]
