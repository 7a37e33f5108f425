"""The hours of the shipped studies with ``recipe: auto`` agree with docs/transfer.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tasktransfer.designs import load_config
from tasktransfer.operate.commons.isolated import unpack_records
from tasktransfer.results.records import read_record

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs" / "transfer.md").read_text().split("### Computing time")[1]
LINES = re.findall(
    r"^\| \[([\w-]+)\]\(\S+\) \| (\d+) \| ([\d.]+) \| [\d.]+ \|$",
    SECTION.split("\n### ")[0],
    flags=re.M,
)


@pytest.mark.parametrize(("name", "count", "hours"), LINES)
def test_the_hours_are_those_of_the_records(name: str, count: str, hours: str) -> None:
    config = load_config(ROOT / "workflow" / "presets" / f"{name}.yaml")
    with unpack_records(ROOT / "shipped" / f"{name}.parquet", config) as folder:
        records = [read_record(file) for file in Path(folder).rglob("stages/**/metrics.json")]
    seconds = [record["provenance"]["seconds"]["total"] for record in records]
    assert (len(seconds), round(sum(seconds) / 3600, 1)) == (int(count), float(hours))


def test_the_page_has_lines() -> None:
    assert len(LINES) >= 4
