"""Frames 1 and 2 from constructed records with known results, and all written formats."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pyarrow.parquet as pq
import pytest
from paper_studies import (
    MODELS,
    SEEDS,
    Paper,
    gather,
    several_runs,
    several_score,
    some,
)
from record_factory import single_source_runs

from shown_results import printed as every_table
from shown_results import write_all_tables, write_table_text
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.collect import SOURCES_CHOSEN_BY
from tasktransfer.designs.transfer.tables import paper_tables
from tasktransfer.designs.transfer.tables import table2 as second
from tasktransfer.designs.transfer.tables.paper_tables import (
    compute_table1,
    compute_table2,
    compute_table3,
    compute_table6,
)
from tasktransfer.present.declared import TABLE_ENDINGS
from tasktransfer.present.kit.style import format_heading
from tasktransfer.present.tables import AbsentOutput
from tasktransfer.results.frames import Frames
from tasktransfer.tasks.card import TaskKind


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """Return the paper's 17 tasks, three models and algorithms, with two seeds."""
    paper = Paper()
    runs = [
        run
        for dataset in DATASETS
        for run in single_source_runs(dataset, MODELS, DATASETS[dataset].tasks, SEEDS)
    ]
    return gather(tmp_path_factory.mktemp("single"), runs, paper.score)


@pytest.fixture(scope="module")
def printed(single: Frames, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("printed")
    write_all_tables(single, folder)
    return folder


def test_the_18_rows_of_table_2_come_out_as_published(single: Frames) -> None:
    frame = some(compute_table2(single))
    assert list(frame.columns) == list(second.COLUMNS)
    paper = published.read_table2()
    assert len(frame) == 18
    assert frame["model"].map(MODELS).tolist() == paper["model"].tolist()
    for key in ("dataset", "algorithm"):
        assert frame[key].tolist() == paper[key].tolist()
    for name in ("average_score", "average_delta", "top1_score", "top1_delta", "average_sigma"):
        assert [f"{x:.2f}" for x in frame[name]] == [f"{x:.2f}" for x in paper[name]], name
        assert frame[f"published_{name}"].tolist() == paper[name].tolist()
    for name in second.MEASURES:
        pd.testing.assert_series_equal(
            frame[f"difference_{name}"], frame[name] - paper[name], check_names=False
        )
        assert frame[f"difference_{name}"].abs().max() < 0.005
    assert frame["complete"].all()
    assert set(zip(frame["dataset"], frame["n_pairs"], frame["n_cells"], strict=True)) == {
        ("DailyDialog", 90, 180),
        ("Friends", 42, 84),
    }
    assert frame["published_average_score"].notna().all()
    bottom = frame.dropna(subset="published_bottom1_score")
    assert set(zip(bottom["dataset"], bottom["model"].map(MODELS), strict=True)) == {
        ("DailyDialog", "T5")
    }
    assert bottom["published_bottom1_score"].tolist() == [46.78, 46.69, 48.26]


def test_bottom_1_is_that_of_the_constructed_study(single: Frames) -> None:
    paper = Paper()
    for row in some(compute_table2(single)).itertuples():
        tasks = len(DATASETS[row.dataset].tasks)
        _, rest, _ = paper.deltas[row.dataset, row.model, row.algorithm]
        worst = (-1 + (tasks - 1) * rest) / tasks
        assert row.bottom1_delta == pytest.approx(worst)
        assert row.bottom1_score == pytest.approx(paper.baseline[row.dataset, row.model] + worst)


def test_averages_over_other_pairs_are_not_compared(tmp_path: Path) -> None:
    tasks = list(DATASETS["DailyDialog"].tasks)[:3]
    runs = single_source_runs("DailyDialog", ["bert"], tasks, [0], ["multitask"])
    results = gather(tmp_path, runs, lambda run: 40.0 + len(run[3]))
    assert not some(compute_table2(results)).filter(like="published_").notna().any(axis=None)
    text = write_table_text(results, tmp_path / "printed", "table2")
    assert "| difference" not in text
    assert "| published | ‡ | ‡ | ‡ | ‡ |" in text
    assert "DailyDialog: 6 of the paper's 90 ordered pairs of tasks" in text


def test_table_1_is_beside_the_paper_s(single: Frames) -> None:
    frame = some(compute_table1(single))
    assert list(frame.columns) == list(paper_tables.COLUMNS1)
    assert len(frame) == 17
    rows = frame.set_index("short")
    # The constructed records have 100 training, 10 dev and 4 test instances.
    nli = rows.loc["DNLI"]
    assert (nli.train, nli.published_train, nli.difference_train) == (100, 569, 100 - 569)
    assert (nli.difference_dev, nli.difference_test) == (10 - 52, 4 - 1302)
    assert nli.published_original_samples == 5817
    assert (nli.task_type, nli.metrics) == ("dialogue classification", "micro-F1;macro-F1")
    assert rows.loc["RC", "task_type"] == "span extraction"
    assert rows.loc["RC", "published_task_type"] == "multiple choice"


def test_a_task_without_records_keeps_its_row(tmp_path: Path) -> None:
    tasks = list(DATASETS["Friends"].tasks)[:2]
    runs = single_source_runs("Friends", ["bert"], tasks, [0], ["multitask"])
    results = gather(tmp_path, runs, lambda run: 50.0, leave_out=lambda run: run[4] == tasks[0])
    frame = some(compute_table1(results))
    assert frame["task"].tolist() == tasks
    assert math.isnan(frame.loc[0, "train"])
    assert frame.loc[0, "published_train"] == 844
    assert "| ours |  | – | – | – |" in write_table_text(results, tmp_path / "printed", "table1")


def test_each_table_is_five_files_that_agree(single: Frames, printed: Path) -> None:
    names = {path.stem for path in printed.iterdir()}
    assert names >= {"table1", "table2", "published_check", "summary", "agreement"}
    assert {path.name for path in printed.iterdir()} == {
        f"{name}.{ending}" for name in names for ending in TABLE_ENDINGS
    }
    frame = some(compute_table2(single))
    stored = pq.read_table(printed / "table2.parquet")
    for read in (stored.to_pandas(), pd.read_csv(printed / "table2.csv")):
        assert set(read.pop("study")) == {"constructed"}
        assert not read.pop("synthetic").any()
        empty = [name for name in read if name.startswith("differs_")]
        read[empty] = read[empty].fillna("")
        pd.testing.assert_frame_equal(read, frame, check_dtype=False, rtol=0, atol=1e-12)
    described = stored.schema.field("bottom1_delta").metadata[b"description"]
    assert b"worst source's delta" in described
    assert b'"study": "constructed"' in stored.schema.metadata[b"tasktransfer"]
    lines = (printed / "table2.md").read_text().splitlines()
    row = "| DailyDialog | bert | Multitask | ours | 50.95 (0.24) | −0.59 (0.24) | 52.40 | +0.86 |"
    place = next(place for place, line in enumerate(lines) if line.startswith(row))
    assert lines[place + 1] == (
        "|  |  |  | published | 50.95 (0.24) | −0.59 | 52.40 | +0.86 |  |  |  |"
    )
    assert lines[place + 2].startswith("|  |  |  | difference | +0.00 | +0.00 | +0.00 | +0.00 |")
    widths = {line.count("|") for line in lines[2:]}
    assert len(widths) == 1
    latex = (printed / "table2.tex").read_text()
    assert "bert & Multitask & ours & 50.95 (0.24) & $-$0.59 (0.24) & 52.40 & +0.86 &" in latex


def test_the_check_of_the_paper_belongs_to_no_study(printed: Path) -> None:
    text = (printed / "published_check.md").read_text()
    assert text.startswith("**Published Table 2.** A consistency check of the paper's own Table 2")
    assert "SYNTHETIC" not in text and "constructed" not in text
    assert text.count("| yes |") == 18
    assert "study" not in pq.read_schema(printed / "published_check.parquet").names


def gather_friends(folder: Path, **changes: Any) -> Frames:
    """Return the results of one model on Friends, with several sources."""
    runs = [run for run in several_runs() if run[1] == "bert" and run[0] == "Friends"]
    return gather(folder, runs, several_score, **changes)


def list_texts(results: Frames, folder: Path, *names: str) -> list[str]:
    write_all_tables(results, folder)
    return [(folder / f"{name}.md").read_text() for name in names]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"synthetic": ["Friends"]},
            [
                "SYNTHETIC¹ ",
                "1 SYNTHETIC (tiny world): generated dialogues",
                "not compared with the paper, because the dialogues are synthetic.",
            ],
        ),
        (
            {"stage_of": {"few_sample": False}},
            ["not compared with the paper, because the paper's numbers are for few-sam"],
        ),
    ],
)
def test_what_is_not_the_paper_s_is_not_compared(
    tmp_path: Path, changes: dict[str, Any], said: list[str]
) -> None:
    results = gather_friends(tmp_path, **changes)
    for make in (compute_table1, compute_table2, compute_table3, compute_table6):
        names = some(make(results)).columns
        assert not [name for name in names if name.startswith(("published", "difference"))]
    for text in list_texts(results, tmp_path / "printed", "table1", "table2", "table3", "table6"):
        assert all(words in text for words in said)


def test_tables_of_several_sources_say_what_chose_them_and_of_what_part_they_are(
    tmp_path: Path,
) -> None:
    results = gather_friends(tmp_path)
    for chosen_by, said in (
        ("test", "were selected by the test scores"),
        ("dev", "Targets and sources were selected by dev scores."),
        ("config", "targets and sources of this table are set in the config."),
    ):
        chosen = replace(
            results.metadata, facts={SOURCES_CHOSEN_BY: chosen_by}, cuts="limit_test 1200"
        )
        names = ("table3", "table6", "table2")
        *several, single = list_texts(results.replace({}, chosen), tmp_path / chosen_by, *names)
        assert all(said in text for text in several) and "chosen by" not in single
        for text in (*several, single):
            assert "SUBSAMPLED¹ " in text
            assert "1 SUBSAMPLED: at most 1,200 test instances per task." in text
            assert "| difference |" not in text
    assert format_heading("Deltas", None, chosen)[1].endswith("SUBSAMPLED")


def test_a_study_without_several_sources_says_so(single: Frames, printed: Path) -> None:
    assert compute_table3(single) is None
    assert compute_table6(single) is None
    tables = every_table(single)
    for name, title in (("table3", "Table 3"), ("table6", "Table 6")):
        table = tables[name]
        assert isinstance(table, AbsentOutput)
        assert table.why.endswith(
            f"“{title}” is not shown, because the study has no multi-source run."
        )
        assert not list(printed.glob(f"{name}.*"))


@pytest.mark.parametrize(
    ("weights", "compared"),
    [
        ("google-bert/bert-base-uncased@86b5e09", True),
        ("prajjwal1/bert-tiny@main", False),
    ],
)
def test_the_weights_in_the_records_decide(tmp_path: Path, weights: str, compared: bool) -> None:
    tasks = list(DATASETS["Friends"].tasks)  # all, as in the paper's averages
    name = "bert" if not compared else "whatever"
    runs = single_source_runs("Friends", [name], tasks, [0], ["multitask"])
    results = gather(tmp_path, runs, lambda _: 50.0, stage_of={"weights": weights})
    assert set(results["transfer_runs"]["weights"]) == {weights}
    assert ("published_average_score" in some(compute_table2(results)).columns) is compared


def test_table1_names_every_kind_of_task() -> None:
    assert paper_tables._KINDS.keys() == set(get_args(TaskKind))
