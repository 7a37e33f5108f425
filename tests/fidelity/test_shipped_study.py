"""The shipped study: its records match the preset's current plan, and contain no text."""

from __future__ import annotations

from pathlib import Path

import pytest

from shipped_records import list_lines, merged, signed
from tasktransfer.datasets import get_task
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.runs import get_algorithm_label
from tasktransfer.designs.transfer.tables.table2 import compute_table2
from tasktransfer.operate.commons.read_packs import Pack, read_pack
from tasktransfer.results.frames import Frames
from tasktransfer.results.records import parse_record, read_record
from tasktransfer.results.study import Study
from transfer_frames import write_collected_tables, write_statistics

ROOT = Path(__file__).parents[2]
PRESET = ROOT / "workflow" / "presets" / "minilm-study.yaml"


@pytest.fixture(scope="module")
def pack() -> Pack:
    return read_pack(ROOT / "shipped" / "minilm-study.parquet")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("shipped")
    return merged("minilm-study.parquet", "minilm-study.yaml", folder / "results")


@pytest.fixture(scope="module")
def results(study: Study) -> Frames:
    """Build its tables and statistics."""
    write_collected_tables(study, complete=True)
    return write_statistics(study)


def test_the_pages_table_is_of_these_tables(results: Frames) -> None:
    page = (ROOT / "docs" / "transfer.md").read_text()
    text = page.split("## Three tasks each, three seeds")[1].split("\n## ")[0]
    lines = list_lines(text, r"^.* of 6 \|.*$")
    cells = results["cells"]
    gains = cells[cells["delta"] > 0].groupby(["dataset", "algorithm"]).size()
    printed = compute_table2(results)
    assert printed is not None
    sigma = printed.set_index(["dataset", "algorithm"])["average_delta_sigma"]
    expected = []
    for row in results["summary"].itertuples():
        place = (row.dataset, row.algorithm)
        expected.append(
            [
                str(row.dataset),
                get_algorithm_label(str(row.algorithm)).lower(),
                signed(row.mean),
                f"{signed(row.joint_low)} to {signed(row.joint_high)}",
                f"{sigma[place]:.1f}",
                f"{gains.get(place, 0)} of {row.n_cells}",
            ]
        )
    told = [[name, method.lower(), *numbers] for name, method, *numbers in lines]
    assert told == expected


def test_what_the_page_says_of_its_cells(results: Frames) -> None:
    cells = results["cells"]
    marked = cells[cells["significant"]]
    assert cells.groupby("dataset").size().tolist() == [18, 18]
    (row,) = marked.itertuples()
    assert (row.dataset, row.source) == ("Friends", "character_identification")
    assert (row.algorithm, round(row.delta, 1), round(row.q, 3)) == ("multitask", -3.6, 0.037)
    emotions = cells[cells["source"].str.contains("emotion") & cells["target"].str.contains("emo")]
    emotions = emotions[emotions["dataset"] == "Friends"]
    assert (len(emotions), (emotions["delta"] > 0).sum()) == (6, 5)


def test_the_standard_error_of_a_share_of_right_answers_is_the_closed_form(results: Frames) -> None:
    """The cell is one whose error was once estimated as 0.569 by resampling."""
    cells = results["cells"]
    of_cell = (
        cells["target"].eq("adversarial_response_selection")
        & cells["source"].eq("dialogue_act_classification")
        & cells["algorithm"].eq("multitask")
    )
    (row,) = cells[of_cell].itertuples()
    assert row.standard_error == pytest.approx(0.632, abs=0.0005)


def test_its_108_trainings_are_126_runs(pack: Pack, study: Study) -> None:
    """A training on two tasks serves a run for each of them."""
    assert len(pack.table) == 108
    records = [read_record(path) for path in Path(study.config.results).rglob("metrics.json")]
    assert {record["node"]["digest"] for record in records} == {s.digest for s in study.plan.stages}
    assert len(records) == 108
    assert sum(len(record["training"]["selections"]) for record in records) == 126


def test_its_inputs_are_those_at_hand(pack: Pack, shared: Path) -> None:
    """Otherwise the preset would plan other trainings on a machine with the data."""
    study = open_study(PRESET, {"data": {"release": str(shared / "feta")}}, need_inputs=False)
    assert pack.facts["data"] == study.revisions.data


def test_answers_are_labels_and_nothing_else_is_text(pack: Pack) -> None:
    for row in pack.table.to_pylist():
        dataset = parse_record(Path(row["path"]), row["record"].encode())["node"]["dataset"]
        for told in row["rows"]:
            labels = get_task(dataset, told["task"]).labels
            assert {*told["prediction"], *told["gold"]} <= set(labels)
            assert len(told["instance_id"]) < 60 and " " not in told["instance_id"]


def test_sources_and_licences_travel_with_it(pack: Pack) -> None:
    assert pack.facts["provenance"] == (ROOT / "shipped" / "PROVENANCE.md").read_text()


def test_its_cuts_are_in_its_tables(results: Frames) -> None:
    assert results.metadata.cuts == "limit_train 900, limit_test 1200"
