"""A study's records and rows in one file, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from finished_stages import finish, finish_all, opened
from tasktransfer import cli
from tasktransfer.designs import open_study
from tasktransfer.errors import RecordError
from tasktransfer.operate.commons.isolated import unpack_records
from tasktransfer.operate.commons.read_packs import read_pack
from tasktransfer.operate.merge import merge_results
from tasktransfer.operate.pack import pack_results
from tasktransfer.results.collect import gather_records
from tasktransfer.results.study import Study

FILE = Path("packed.parquet")
FOOTER = b"tasktransfer-pack"
MODEL = {"name": "tiny-bert", "family": "encoder", "max_length": 64}


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def theirs() -> Study:
    study = opened("theirs.yaml", results="theirs")
    finish_all(study)
    return study


@pytest.fixture
def packed(theirs: Study) -> Path:
    pack_results(theirs, FILE, provenance="made up", with_text=True)
    return FILE


def spoiled(change: Callable[[dict[str, Any]], None], row: int = 0) -> None:
    """Change a row of the file, and remove the checksums."""
    table = pq.read_table(FILE)
    rows = table.to_pylist()
    change(rows[row])
    facts = json.loads(table.schema.metadata[FOOTER])
    del facts["sha256"]
    schema = table.schema.with_metadata({FOOTER: json.dumps(facts)})
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), FILE)


def test_the_commands(theirs: Study, capsys: pytest.CaptureFixture[str]) -> None:
    Path("licences.md").write_text("CC BY 4.0\n")
    pack = ["pack", "--config", "theirs.yaml", "--out", "shipped/a.parquet", "--with-text"]
    assert cli.main([*pack, "--provenance", "licences.md"]) == 0
    assert "7 trainings" in capsys.readouterr().out
    assert read_pack(Path("shipped/a.parquet")).facts["provenance"] == "CC BY 4.0\n"
    opened()
    merge = ["merge", "shipped/a.parquet", "--config", "study.yaml"]
    assert cli.main(merge) == 0
    assert "7  copied" in capsys.readouterr().out
    assert cli.main(merge) == 0
    assert "7  identical" in capsys.readouterr().out


def test_answers_in_codes_are_those_that_they_were_made_of() -> None:
    """A lab can merge its own shipped pack, or continue from the pack elsewhere."""
    spans = {"datasets": {"DailyDialog": {"tasks": ["causal_emotion_span_extraction"]}}}
    ours = opened(**spans, algorithms=["baseline"])
    (stage,) = ours.plan.stages
    finish(ours, stage, answer="I have lost my keys")
    pack_results(ours, FILE)

    def merged_again() -> dict[str, int]:
        with unpack_records(FILE, ours.config) as folder:
            (file,) = folder.rglob("rows.parquet")
            assert "keys" not in str(pq.read_table(file)["prediction"].to_pylist())
            counts: dict[str, int] = merge_results(ours, folder)["counts"]
        return {outcome: count for outcome, count in counts.items() if count}

    assert merged_again() == {"identical": 1}
    finish(ours, stage, answer="I have lost his keys twice")
    assert merged_again() == {"conflict": 1}


def test_what_is_trained_after_a_merge_is_shown_next_to_it() -> None:
    """Three seeds of a task with generated answers: two from a pack, in codes."""
    spans = {"datasets": {"DailyDialog": {"tasks": ["causal_emotion_span_extraction"]}}}
    theirs = opened("theirs.yaml", results="theirs", **spans, algorithms=["baseline"], seeds=2)
    finish_all(theirs, measured=True)
    pack_results(theirs, FILE)
    ours = opened(**spans, algorithms=["baseline"], seeds=3)
    with unpack_records(FILE, ours.config) as folder:
        merge_results(ours, folder)
    finish(ours, ours.plan.stages[-1], measured=True)
    collected = gather_records(ours)
    assert (len(collected.records), collected.problems) == (3, ())


def test_only_what_stays_is_waited_for_on_the_disk(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder into which a pack is unpacked is removed."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    ours = opened()
    nodes = len(ours.plan.stages)
    with unpack_records(packed, ours.config) as folder:
        unpacking = len(synced)  # what is remembered of its inputs stays
        merge_results(ours, folder)
    assert unpacking < nodes
    assert len(synced) - unpacking > 2 * nodes


def test_inputs_that_are_elsewhere_are_remembered(tmp_path: Path, theirs: Study) -> None:
    """Without data and models the records of the study could not be identified."""
    pack_results(theirs, FILE, with_text=True)
    facts = dict(read_pack(FILE).facts)
    config = {"data": {"release": "gone"}, "models": [{**MODEL, "checkpoint": "./nowhere"}]}
    study = opened_without_inputs(config)
    assert study.has_unknown_inputs
    with unpack_records(FILE, study.config):
        pass
    again = opened_without_inputs(config)
    assert not again.has_unknown_inputs
    assert again.revisions.data == facts["data"]
    assert again.revisions.models["tiny-bert"].weights == facts["models"]["tiny-bert"]


def opened_without_inputs(keys: dict[str, Any]) -> Study:
    datasets = {"DailyDialog": {"tasks": ["emotion_recognition", "dialogue_nli"]}}
    Path("bare.yaml").write_text(
        yaml.safe_dump({"study": "s", "results": "bare", "datasets": datasets, **keys})
    )
    return open_study("bare.yaml", need_inputs=False)


def test_text_of_dialogues_is_not_packed_by_mistake(theirs: Study) -> None:
    """The invented answers are not labels of the second task."""
    with pytest.raises(RecordError, match=r"'joy' is not a label of the task .*--with-text"):
        pack_results(theirs, FILE)
    assert not FILE.exists()


def test_what_is_not_finished_is_left_out_and_said(theirs: Study) -> None:
    Path(theirs.get_record_path(theirs.plan.stages[-1])).unlink()
    said: list[str] = []
    seen = pack_results(theirs, FILE, with_text=True, say=said.append)
    assert (seen["packed"], seen["lacking"]) == ({"stage": 6}, 1)
    assert said == ["The pack does not contain 1 unfinished node of theirs.yaml."]


def test_nothing_finished_is_refused() -> None:
    with pytest.raises(RecordError, match=r"No node of study\.yaml is finished"):
        pack_results(opened(), FILE)


def test_a_damaged_record_is_not_packed(theirs: Study) -> None:
    file = Path(theirs.get_node_folder(theirs.plan.stages[0]), "rows.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(RecordError, match=r"rows\.parquet"):
        pack_results(theirs, FILE, with_text=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row.update(path="../../escaped"), "is outside the results folder"),
        (lambda row: row.update(path="/tmp/escaped"), "is outside the results folder"),
        (lambda row: row.update(record="{"), "not valid JSON"),
        (lambda row: row["rows"].pop(0), "in place of the split's instance 0"),
    ],
)
def test_a_damaged_row_is_named(
    packed: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    spoiled(change)
    with pytest.raises(RecordError, match=message), unpack_records(packed, opened().config):
        pass


def test_a_node_that_lost_its_last_rows_is_refused(packed: Path) -> None:
    spoiled(lambda row: row["rows"].pop())
    study = opened()
    with unpack_records(packed, study.config) as folder:
        seen = merge_results(study, folder)
    assert seen["counts"]["rejected"] == 1
    assert seen["counts"]["copied"] == 6


def test_other_files_are_no_packs(theirs: Study, packed: Path) -> None:
    Path("text").write_text("no Parquet")
    with pytest.raises(RecordError, match="cannot be read as Parquet"):
        read_pack(Path("text"))
    other = next(Path("theirs").rglob("rows.parquet"))
    with pytest.raises(RecordError, match="not written by `tasktransfer pack`"):
        read_pack(other)
    table = pq.read_table(packed)
    facts = {FOOTER: json.dumps({"schema": 99}).encode()}
    pq.write_table(table.replace_schema_metadata(facts), "later.parquet")
    with pytest.raises(RecordError, match="schema 99 instead of 2"):
        read_pack(Path("later.parquet"))
