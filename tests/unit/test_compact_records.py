"""Records in little memory are equal to those that were read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finished_stages import finish, make, opened
from tasktransfer.metrics import texts
from tasktransfer.results import collect
from tasktransfer.results.compact import PackedRounds, SharedParts, compact_record
from tasktransfer.results.schema import Record


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.chdir(tmp_path)
    return make(opened().plan.stages[0])


def test_a_compact_record_has_every_value(record: Record) -> None:
    compact = compact_record(record, SharedParts())
    rounds = compact["training"]["rounds"]
    assert isinstance(rounds, PackedRounds)
    assert [*rounds] == record["training"]["rounds"]
    assert (len(rounds), rounds[-1]) == (len([*rounds]), record["training"]["rounds"][-1])
    whole = {**compact, "training": {**compact["training"], "rounds": [*rounds]}}
    assert json.dumps(whole) == json.dumps(record), "same values, types and order of keys"


def test_equal_texts_and_sections_of_records_are_one_object(record: Record) -> None:
    shared = SharedParts()
    one, two = (compact_record(json.loads(json.dumps(record)), shared) for _ in range(2))
    assert one["node"]["digest"] is two["node"]["digest"]
    first, second = (next(iter(each["provenance"])) for each in (one, two))
    assert first is second
    assert one["sizes"] is two["sizes"]
    assert one["node"]["identity"]["model"] is two["node"]["identity"]["model"]


def test_compared_texts_are_forgotten_when_all_records_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spans = ["causal_emotion_span_extraction", "dialogue_reasoning_span_extraction"]
    study = opened(datasets={"DailyDialog": {"tasks": spans}})
    for stage in study.plan.stages:
        finish(study, stage, measured=True)
    compared = []

    def count_and_clear() -> None:
        compared.append(texts._count_overlap.cache_info().currsize)
        texts.clear_caches()

    monkeypatch.setattr(collect, "clear_caches", count_and_clear)
    assert collect.gather_records(study).records
    assert compared[-1] > 0
    assert texts._count_overlap.cache_info().currsize == 0
