"""The shipped matrix: its records are of its preset, and the page says what its tables do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shipped_records import merged
from tasktransfer.designs.transfer import commands
from tasktransfer.designs.transfer.collect.results import Results, read_results
from tasktransfer.designs.transfer.tables.names import algorithm_label
from tasktransfer.operate.pack import Pack, read_pack
from tasktransfer.results.study import Study

ROOT = Path(__file__).parents[2]
PRESET = ROOT / "workflow" / "presets" / "minilm-matrix.yaml"
PAGE = (ROOT / "docs" / "transfer.md").read_text().split("## The whole matrix")[1]


@pytest.fixture(scope="module")
def pack() -> Pack:
    return read_pack(ROOT / "shipped" / "minilm-matrix.parquet")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("matrix")
    return merged("minilm-matrix.parquet", "minilm-matrix.yaml", folder / "results")


@pytest.fixture(scope="module")
def results(study: Study) -> Results:
    """Its tables and statistics, made here, of what is there."""
    commands.collect(study, complete=False)
    commands.statistics(study)
    return read_results(study.tables)


def test_the_first_seed_is_whole(study: Study) -> None:
    stages = study.plan.stages
    seeds = [stage.seed for stage in stages if Path(study.record(stage)).exists()]
    assert (seeds.count(0), seeds.count(1), len(stages)) == (347, 252, 694)


def test_it_is_small(pack: Pack) -> None:
    assert Path(ROOT, "shipped", "minilm-matrix.parquet").stat().st_size < 2_000_000
    assert pack.facts["provenance"] == (ROOT / "shipped" / "MATRIX.md").read_text()


def test_the_pages_table_is_of_these_tables(results: Results) -> None:
    statistics = results.statistics
    shares = statistics.variance.set_index(["dataset", "algorithm", "component"])["share"]
    expected = [
        [
            str(row.dataset),
            algorithm_label(str(row.algorithm)).lower(),
            signed(row.mean),
            f"{signed(row.mean_low)} to {signed(row.mean_high)}",
            f"{100 * row.positive:.0f} %",
            *(
                f"{100 * shares[row.dataset, row.algorithm, component]:.0f} %"
                for component in ("target", "source", "seed")
            ),
        ]
        for row in statistics.summary.itertuples()
    ]
    lines = re.findall(r"^\| (?:DailyDialog|Friends) \| .* % \|$", PAGE, flags=re.MULTILINE)
    told = [line.strip("| ").split(" | ") for line in lines]
    assert told == expected


def signed(value: float) -> str:
    """As the page prints a delta."""
    return f"{value:+.1f}".replace("-", "−")


def test_what_the_page_says_of_its_cells(results: Results) -> None:
    cells = results.statistics.cells
    assert (int(cells["q"].notna().sum()), len(cells)) == (241, 396)
    assert not cells["significant"].any()
    assert f"(smallest q: {cells['q'].min():.2f})" in PAGE
    asymmetry = results.statistics.asymmetry
    assert not (asymmetry["q"] <= 0.05).any()
    ways = [
        group["a_to_b"].corr(group["b_to_a"], method="spearman")
        for _, group in asymmetry.groupby(["dataset", "algorithm"])
    ]
    assert f"correlate {signed_2(min(ways))} to\n  {signed_2(max(ways))} (rank" in PAGE
    shares = results.statistics.variance.groupby("component")["share"]
    assert f"at most {100 * shares.max()['source']:.0f} %" in PAGE
    gains = cells[cells["algorithm"] == "multitask_finetune"].groupby("target")["delta"].mean()
    most = {"emotion_recognition", "topic_classification", "character_identification"}
    assert set(gains.nlargest(3).index) == most
    seed = shares.agg(["min", "max"]).loc["seed"]
    assert f"seeds {100 * seed['min']:.0f} to {100 * seed['max']:.0f} %" in PAGE


def signed_2(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def test_two_tasks_are_not_learnt(results: Results) -> None:
    collapsed = results.statistics.collapsed
    baselines = collapsed[collapsed["algorithm"] == "baseline"]
    always = set(baselines[baselines["n_collapsed"] == baselines["n_runs"]]["target"])
    assert always == {"dialogue_nli", "dialogue_reasoning_commonsense_relation_prediction"}


def test_its_cuts_are_in_its_tables(results: Results) -> None:
    assert results.metadata.cuts == "limit_train 500, limit_dev 200, limit_test 1200"
