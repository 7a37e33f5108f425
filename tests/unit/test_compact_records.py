"""Records in little memory are equal to those that were read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finished_stages import make, opened
from tasktransfer.results.records import PackedRounds, compact_record
from tasktransfer.results.schema import Record


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.chdir(tmp_path)
    return make(opened().plan.stages[0])


def test_a_compact_record_has_every_value(record: Record) -> None:
    compact = compact_record(record, {})
    rounds = compact["training"]["rounds"]
    assert isinstance(rounds, PackedRounds)
    assert [*rounds] == record["training"]["rounds"]
    assert (len(rounds), rounds[-1]) == (len([*rounds]), record["training"]["rounds"][-1])
    whole = {**compact, "training": {**compact["training"], "rounds": [*rounds]}}
    assert json.dumps(whole) == json.dumps(record), "same values, types and order of keys"


def test_equal_texts_of_records_are_one_object(record: Record) -> None:
    texts: dict[str, str] = {}
    one, two = (compact_record(json.loads(json.dumps(record)), texts) for _ in range(2))
    assert one["node"]["digest"] is two["node"]["digest"]
    first, second = (next(iter(each["provenance"])) for each in (one, two))
    assert first is second
