"""Commands on a study with every kind of node: derived data, stages, fits, evaluations."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from toy_study import finish_all, finish_node, opened

from tasktransfer.cli import main
from tasktransfer.core.nodes import Data, Evaluation, Fit, Node
from tasktransfer.operate.commons.isolated import unpack_records
from tasktransfer.operate.garbage import find_garbage, remove_garbage
from tasktransfer.operate.merge import merge_results
from tasktransfer.operate.overview import summarise_study
from tasktransfer.operate.pack import pack_results
from tasktransfer.operate.pilot import count_unfinished_nodes, find_shard
from tasktransfer.operate.status import ProgressWatcher
from tasktransfer.operate.status_text import as_text
from tasktransfer.results.node_folders import describe_missing_files, inspect_nodes
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import read_record_rows
from tasktransfer.results.schema import PROJECTION
from tasktransfer.results.state import claim_folder
from tasktransfer.results.study import Study

KINDS = ("derived", "fits", "evaluations")


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def study() -> Study:
    made = opened()
    finish_all(made)
    return made


def first(study: Study, kind: str) -> Node:
    return getattr(study.plan, kind)[0]  # type: ignore[no-any-return]


def content(folder: str | Path) -> dict[str, bytes]:
    files = (file for file in Path(folder).rglob("*") if file.is_file())
    return {str(file): file.read_bytes() for file in files}


def merged(study: Study, other: str, **options: Any) -> dict[str, int]:
    counts = merge_results(study, Path(other), **options)["counts"]
    return {name: count for name, count in counts.items() if count}


# --- finished -----------------------------------------------------------------------------------

ARROW = "dialogues.arrow"
DAMAGES: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "no record": ("evaluations", lambda f: (f / "metrics.json").unlink(), ""),
    "rows lost": ("evaluations", lambda f: (f / "rows.parquet").unlink(), "The file is missing"),
    "rows changed": ("fits", lambda f: (f / "rows.parquet").write_bytes(b"x"), "SHA-256"),
    "Arrow lost": ("derived", lambda f: (f / ARROW).unlink(), f"{ARROW}: The file is missing"),
    "classifier of another fit": (
        "fits",
        lambda f: (f / "topic_classification/weights").write_text("topic_classificatiox"),
        "topic_classification/weights: The SHA-256",
    ),
    "Arrow cut off": ("derived", lambda f: (f / ARROW).write_text("dia"), "The file has 3 bytes"),
}


@pytest.mark.parametrize(("kind", "harm", "said"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_node_is_finished_nowhere(
    kind: str, harm: Callable[[Path], Any], said: str, study: Study, capsys: Any
) -> None:
    node = first(study, kind)
    harm(Path(study.get_node_folder(node)))
    seen = inspect_nodes(study)
    assert node.digest not in seen.finished
    assert said in seen.damaged.get(node.digest, "")
    assert sum(count_unfinished_nodes(study).values()) == len(study.plan.nodes) - len(seen.finished)
    assert main(["explain", node.digest[:12], "--config", "study.yaml", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["nodes"]
    assert told["state"] == ("damaged" if said else "interrupted")


def test_what_others_read_may_be_gone_once_nothing_needs_it(study: Study) -> None:
    fit = first(study, "fits")
    shutil.rmtree(Path(study.get_node_folder(fit), "topic_classification"))
    assert fit.digest in inspect_nodes(study).finished
    users = [node for node in study.list_dependents(fit) if isinstance(node, Evaluation | Data)]
    Path(study.get_record_path(users[0])).unlink()
    seen = inspect_nodes(study)
    assert fit.digest not in seen.finished
    assert seen.damaged == {}
    assert "topic_classification" in str(describe_missing_files(study, fit))


# --- plan, status, pilot ------------------------------------------------------------------------


def test_all_kinds_are_counted(study: Study) -> None:
    rows = [("fit", 2), ("data", 2), ("evaluation", 4)]
    expected = [{"kind": kind, "total": n, "done": n, "left": 0} for kind, n in rows]
    for seen in (summarise_study(study), ProgressWatcher(study).get_progress()):
        assert sorted(seen["others"], key=str) == sorted(expected, key=str)
    text = as_text(ProgressWatcher(study).get_progress())
    assert "4 of 4 trainings done" in text
    assert "4 of 4 evaluations" in text
    assert "nothing is left to compute" in text


def test_what_is_left_runs_and_fails_is_told_of_any_node(study: Study) -> None:
    failed, running = (e for e in study.plan.evaluations if isinstance(e.of, Fit))
    for node in (failed, running):
        Path(study.get_record_path(node)).unlink()
    Path(study.get_node_folder(failed), "job.log").write_text("error: no such measure\n")
    with claim_folder(Path(study.get_node_folder(running)), print):
        seen = ProgressWatcher(study).get_progress()
    assert (seen["left"], seen["totals"]["done"]) == (2, 4)
    (told,) = seen["failed"]
    assert (told["kind"], told["error"]) == ("evaluation", "no such measure")
    assert told["log"] == f"{study.get_node_folder(failed)}/job.log"
    assert [item["digest"] for item in seen["running"]] == [running.digest]
    text = as_text(seen)
    assert f"no such measure\n    {told['log']}" in text
    assert "2 of 4 evaluations" in text


def test_a_shard_has_every_node_of_its_trainings(capsys: pytest.CaptureFixture[str]) -> None:
    study = opened()
    # Fits on texts, the data derived by them and evaluations of them are of no model.
    assert count_unfinished_nodes(study) == {("tiny-bert", 0): 3, ("tiny-bert", 1): 3, None: 6}
    assert main(["records", "--config", "study.yaml", "--seed", "1"]) == 0
    mine = [study.get_record_path(n) for n in study.plan.nodes if find_shard(n) == ("tiny-bert", 1)]
    assert capsys.readouterr().out.splitlines() == mine
    assert any("/evaluations/" in record for record in mine)


# --- merge --------------------------------------------------------------------------------------


@pytest.fixture
def theirs() -> Study:
    study = opened("theirs.yaml", results="theirs")
    finish_all(study)
    return study


def test_what_differs_is_lost_or_damaged(theirs: Study) -> None:
    ours = opened()
    evaluation, fit = theirs.plan.evaluations[0], theirs.plan.fits[0]
    finish_node(ours, evaluation, value=0.5)
    Path(theirs.get_node_folder(fit), "rows.parquet").write_bytes(b"")
    seen = merge_results(ours, Path("theirs"))
    reasons = {told["stage"]: (told["outcome"], *told["reasons"]) for told in seen["stages"]}
    outcome, reason = reasons[evaluation.path]
    assert outcome == "conflict"
    assert "results.topic_classification.measures.spearman: 0.5 here, 0.25 there" in reason
    outcome, reason = reasons[fit.path]
    assert outcome == "rejected"
    assert "rows.parquet: The SHA-256" in reason
    assert seen["counts"]["copied"] == 10
    before = content("results")
    assert merged(ours, "theirs") == {"identical": 10, "conflict": 1, "rejected": 1}
    assert content("results") == before
    lost = Path(ours.get_node_folder(theirs.plan.derived[0]), "dialogues.arrow")
    lost.unlink()
    assert merged(ours, "theirs")["completed"] == 1
    assert lost.exists()


def test_nodes_of_other_settings_are_taken_when_asked_for(theirs: Study) -> None:
    ours = opened(seeds=[7])
    assert merge_results(ours, Path("theirs"))["elsewhere"] == 12
    assert merged(ours, "theirs", everything=True, dry_run=True) == {"copied": 12}
    assert not Path("results/stages").exists()
    assert merged(ours, "theirs", everything=True) == {"copied": 12}
    assert (Path("results") / theirs.plan.fits[0].path / "topic_classification").is_dir()


# --- pack ---------------------------------------------------------------------------------------


def test_every_kind_of_node_is_packed_with_its_rows_and_small_files(study: Study) -> None:
    projection = Path(study.get_node_folder(study.plan.fits[0]), PROJECTION)
    np.savez(projection, points=np.zeros((3, 2)))
    small = projection.read_bytes()
    table = Path(study.tables, "ratings.parquet")
    table.parent.mkdir(parents=True)
    pq.write_table(pa.table({"rating": [1.0]}), table)
    named = ["tables/ratings.parquet", "tables/not there.parquet"]
    seen = pack_results(study, Path("all.parquet"), tables=named, with_text=True)
    assert seen["packed"] == {"stage": 4, "fit": 2, "evaluation": 4, "data": 2}
    assert (seen["lacking"], seen["tables"]) == (0, 1)
    with unpack_records(Path("all.parquet"), study.config) as folder:
        for node in study.plan.nodes:
            here, there = Path(study.get_record_path(node)), folder / node.path / "metrics.json"
            assert read_record(there) == read_record(here)
            assert read_record_rows(there).equals(read_record_rows(here))
        assert (folder / study.plan.fits[0].path / PROJECTION).read_bytes() == small
        assert (folder / named[0]).read_bytes() == table.read_bytes()
        assert len(list(folder.rglob("metrics.json"))) == len(study.plan.nodes)
    assert not folder.exists()


# --- gc -----------------------------------------------------------------------------------------


def test_what_is_wanted_stays_but_for_half_written_files(study: Study) -> None:
    folder = Path(study.get_node_folder(study.plan.fits[0]))
    (folder / ".metrics.json.7.part").touch()
    (item,) = find_garbage([study], records=True).items
    assert (item.kind, item.held_by) == ("half-written files", str(folder))


def test_nodes_of_other_settings_stay_unless_records_are_asked_for(study: Study) -> None:
    other = opened("other.yaml", seeds=[7])
    encoded = Path(study.get_encoded_folder(study.plan.derived[0], "tiny-bert"))
    encoded.mkdir(parents=True)
    mine = Path(study.get_node_folder(study.plan.fits[0]), "topic_classification", "weights")
    kept = {path for path, _ in find_garbage([other]).kept}
    assert kept == {study.get_node_folder(node) for node in study.plan.nodes}
    garbage = find_garbage([other], records=True)
    kinds = [item.kind for item in garbage.items]
    assert kinds.count("records and predictions of other settings") == 12
    assert str(encoded) in [path for item in garbage.items for path in item.paths]
    assert mine.exists()
    remove_garbage(garbage)
    for kind in KINDS:
        assert not Path(study.get_node_folder(first(study, kind))).exists()
    assert not list(Path("results").rglob("metrics.json"))


# --- explain ------------------------------------------------------------------------------------


def test_any_node_is_explained_by_digest_or_folder(study: Study, capsys: Any) -> None:
    for node in study.plan.nodes:
        texts = []
        for word in (node.digest, node.digest[:12], study.get_node_folder(node)):
            assert main(["explain", word, "--config", "study.yaml"]) == 0
            texts.append(capsys.readouterr().out.partition("\n")[2])
        assert texts[0] == texts[1] == texts[2]
        if node == study.plan.fits[0]:
            used = f"{study.plan.derived[0].digest[:12]}  data DailyDialog (prepend_labels): done"
            assert "spearman 0.25" in texts[0] and used in texts[0]


def test_a_node_that_the_plan_lost_is_explained_from_its_record(study: Study, capsys: Any) -> None:
    gone = study.plan.evaluations[0]
    opened(seeds=[7])
    assert main(["explain", gone.digest[:8], "--config", "study.yaml"]) == 0
    assert "not in this study's plan" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["0123456789ab", "cell"])
def test_what_is_no_node_is_refused(word: str, study: Study, capsys: Any) -> None:
    assert main(["explain", word, "--config", "study.yaml"]) == 2
    assert word in capsys.readouterr().err
