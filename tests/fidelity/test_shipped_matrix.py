"""The shipped matrix: its records match its preset, and the pages agree with its tables."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from PIL import Image

from benchmarks.source_differences import compare_sources
from benchmarks.source_order import compare_models, compare_seeds, compute_share
from printed_intervals import list_intervals, list_wrong_intervals
from shipped_records import list_lines, merged, signed
from tasktransfer.core.nodes import Outcome
from tasktransfer.core.references import COLLAPSED, FROZEN, LEARNED, REFERENCES
from tasktransfer.datasets import get_task
from tasktransfer.designs import get_design
from tasktransfer.designs.commands import read_frames
from tasktransfer.designs.transfer.report.answer import write_answer
from tasktransfer.designs.transfer.report.blocks import build_changes_table
from tasktransfer.designs.transfer.report.learned import describe_unlearned_list
from tasktransfer.designs.transfer.runs import get_algorithm_label
from tasktransfer.designs.transfer.statistics.by_dialogue import compute_dialogue_scores
from tasktransfer.designs.transfer.tables.table2 import compute_table2
from tasktransfer.operate.commons.read_packs import Pack, read_pack
from tasktransfer.present.numbers import DIFFERENCES, format_value_with_interval
from tasktransfer.present.tables import build_printed_tables
from tasktransfer.results.frames import Frames
from tasktransfer.results.study import Study
from tasktransfer.selection.nodes import is_selection_run
from transfer_frames import write_collected_tables, write_statistics

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "transfer.md").read_text().split("## The whole matrix")[1]
AVERAGES, SOURCES, LEARNING = re.split(
    r"Do the sources of a target differ in their effects\?|### Which", PAGE
)[:3]
WORDS = " ".join(PAGE.split())
"""Text of the section as one line, to find wrapped sentences."""


@pytest.fixture(scope="module")
def pack() -> Pack:
    return read_pack(ROOT / "shipped" / "minilm-matrix.parquet")


def test_both_seeds_are_whole(matrix: Study) -> None:
    asked = [run.outcome for run in matrix.plan.runs if is_selection_run(run)]
    probes = {stage for one in asked if isinstance(one, Outcome) for stage in one.stages}
    for stages, each in ((probes, 132), (set(matrix.plan.stages) - probes, 347)):
        seeds = [stage.seed for stage in stages if Path(matrix.get_record_path(stage)).exists()]
        assert (seeds.count(0), seeds.count(1), len(stages)) == (each, each, 2 * each)
    assert all(Path(matrix.get_record_path(fit)).exists() for fit in matrix.plan.fits)


def test_it_is_small(pack: Pack) -> None:
    assert Path(ROOT, "shipped", "minilm-matrix.parquet").stat().st_size < 2_100_000
    assert pack.facts["provenance"] == (ROOT / "shipped" / "MATRIX.md").read_text()


def test_the_picture_of_the_readme_shows_these_numbers(frames: Frames) -> None:
    script = ROOT / "docs" / "first_picture.py"
    first_picture = SimpleNamespace(**runpy.run_path(str(script)))
    with Image.open(ROOT / first_picture.PICTURE) as picture:
        plotted = json.loads(picture.info["Description"])
    numbers = first_picture.list_numbers(frames["summary"], frames["cells"])
    assert (len(plotted["effects"]), len(plotted["cells"])) == (6, 42)
    assert plotted == json.loads(json.dumps(numbers))
    assert (ROOT / first_picture.PICTURE).stat().st_size < 200_000


def test_the_pages_table_is_of_these_tables(frames: Frames) -> None:
    shares = frames["variance"].set_index(["dataset", "algorithm", "component"])["share"]
    expected = [
        [
            str(row.dataset),
            get_algorithm_label(str(row.algorithm)).lower(),
            signed(row.mean),
            f"{signed(row.joint_low)} to {signed(row.joint_high)}",
            f"{row.joint_q:.2f}",
            f"{100 * row.positive:.0f} %",
            *(
                f"{100 * shares[row.dataset, row.algorithm, component]:.0f} %"
                for component in ("target", "source", "source x target", "seed")
            ),
        ]
        for row in frames["summary"].itertuples()
    ]
    assert list_lines(AVERAGES, r"^\| (?:DailyDialog|Friends) \| .* % \|$") == expected


def test_what_the_page_says_of_its_cells(frames: Frames) -> None:
    cells = frames["cells"]
    assert (int(cells["q"].notna().sum()), len(cells)) == (396, 396)
    assert not cells["significant"].any()
    assert f"(smallest q: {cells['q'].min():.2f})" in WORDS
    asymmetry = frames["asymmetry"]
    assert not (asymmetry["q"] <= 0.05).any()
    ways = [
        group["a_to_b"].corr(group["b_to_a"], method="spearman")
        for _, group in asymmetry.groupby(["dataset", "algorithm"])
    ]
    assert (
        f"two directions is {signed(min(ways), '.2f')} to {signed(max(ways), '.2f')}, depending"
        in WORDS
    )
    gains = cells[cells["algorithm"] == "multitask_finetune"].groupby("target")["delta"].mean()
    most = {"emotion_recognition", "topic_classification", "character_identification"}
    assert set(gains.nlargest(3).index) == most


def test_what_the_page_says_of_variance_and_algorithms(frames: Frames) -> None:
    shares = frames["variance"].groupby("component")["share"].agg(["min", "max"]) * 100
    low, high = shares["min"].round(), shares["max"].round()
    assert f"targets explain {low['target']:.0f} to {high['target']:.0f} % of the variance" in WORDS
    assert f"at most {high['source']:.0f} % of the variance" in WORDS
    assert f"seeds explain {low['seed']:.0f} to {high['seed']:.0f} %" in WORDS
    pairs = f"{low['source x target']:.0f} to {high['source x target']:.0f} %"
    assert f"Pairs of source and target explain {pairs}" in WORDS
    assert not (frames["summary"]["joint_q"] <= 0.05).any()
    assert f"six tests (smallest q: {frames['summary']['joint_q'].min():.2f})" in WORDS
    surely = frames["summary"][
        (frames["summary"]["joint_low"] > 0) | (frames["summary"]["joint_high"] < 0)
    ]
    assert set(surely["dataset"]) == {"Friends"}
    assert len(surely) == 3
    gain = surely.set_index("algorithm").loc["multitask_finetune"]
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"gains {gain['mean']:.1f} points on average" in readme
    assert f"dialogues {gain['joint_low']:+.1f} to {gain['joint_high']:+.1f})" in readme


def test_two_tasks_are_not_learnt(frames: Frames) -> None:
    collapsed = frames["collapsed"]
    baselines = collapsed[collapsed["algorithm"] == "baseline"]
    always = set(baselines[baselines["n_collapsed"] == baselines["n_runs"]]["target"])
    assert always == {"dialogue_nli", "dialogue_reasoning_commonsense_relation_prediction"}


# --- learned or not -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def references(frames: Frames) -> pd.DataFrame:
    return frames["references"]


def test_the_table_of_baselines_is_of_these_records(references: pd.DataFrame) -> None:
    expected = []
    names = [name for name in REFERENCES if name in set(references["reference"])]
    for (dataset, target), rows in references.groupby(["dataset", "target"], sort=False):
        scores = rows.set_index("reference")["reference_score"]
        (best,) = rows[rows["is_best"]].to_dict("records")
        expected.append(
            [
                f"{target} ({dataset})".replace("_", " "),
                f"{best['score']:.1f}",
                *(f"{scores[name]:.1f}" if name in scores else "–" for name in names),
                signed(best["delta"]),
                f"{signed(best['low'])} to {signed(best['high'])}",
                best["state"],
            ]
        )
    assert list_lines(LEARNING.split("###")[0], r"^\| .* \|$")[1:] == expected


def test_what_the_page_says_of_learning(references: pd.DataFrame, frames: Frames) -> None:
    best = references[references["is_best"]].set_index(["dataset", "target"])
    unlearned = best[best["state"] != LEARNED]
    significant = best[best["q"] <= 0.05]
    assert (len(best), len(unlearned)) == (17, 8)
    assert (unlearned["state"] == COLLAPSED).sum() == 3
    assert "**8 of 17 baselines do not beat the best reference**" in WORDS
    assert "1 of 17 baselines is significantly better than the best reference (q ≤ 0.05)" in WORDS
    assert "(q ≤ 0.05), and 2 are significantly worse" in WORDS
    assert (significant["delta"] > 0).sum() == 1
    worse = significant[significant["delta"] < 0]
    assert set(worse["reference"]) == {FROZEN}
    topics, emotions = -worse["delta"]
    assert (
        f"score {topics:.1f} points more than fine-tuning the same encoder on DailyDialog's topics"
        in WORDS
    )
    assert f"and {emotions:.1f} points more on EmoryNLP's emotions" in WORDS
    frozen = (best["reference"] == FROZEN).sum()
    assert f"logistic regression are the best reference for {frozen} of 17 tasks" in WORDS
    cells = frames["cells"]
    gains = cells[
        (cells["dataset"] == "DailyDialog") & (cells["algorithm"] == "multitask_finetune")
    ]
    places = pd.MultiIndex.from_frame(gains[["dataset", "target"]])
    in_vain = places.isin(unlearned.index)
    told = [signed(gains[mask]["delta"].mean()) for mask in (in_vain, ~in_vain)]
    assert f"average is {told[0]} points over the targets whose baseline has not" in WORDS
    assert f"has not learned, and {told[1]} over the other targets" in WORDS


def test_the_guide_to_the_report_quotes_its_answer(
    frames: Frames, references: pd.DataFrame
) -> None:
    guide = (ROOT / "docs" / "explanation" / "reading-the-report.md").read_text("utf-8")
    quotes = " ".join(line.removeprefix(">") for line in guide.splitlines())
    words = " ".join(quotes.split())
    changes = build_changes_table(frames["summary"])
    assert changes is not None
    lines = [row for block in changes.blocks for row in block]
    assert len(lines) == 6
    for line in lines:
        assert f"| {' | '.join(line)} |" in guide
    names, _ = describe_unlearned_list(references[references["is_best"]])
    assert names in words
    assert write_answer(frames)[0] in words


def test_the_table_of_source_differences_is_of_these_records(frames: Frames, matrix: Study) -> None:
    runs = frames["transfer_runs"]
    found = compare_sources(runs, compute_dialogue_scores(runs, Path(matrix.config.results)))
    expected = [
        [
            row.dataset,
            get_algorithm_label(str(row.algorithm)).lower(),
            signed(row.correlation, ".2f"),
            f"{row.p:.3f}",
            f"{row.q:.3f}",
            *(
                (
                    f"{row.most.replace('_', ' ')}, {100 * row.fraction:.0f} %",
                    f"{row.q_without:.3f}",
                )
                if row.most
                else ("–", "–")
            ),
        ]
        for row in found.itertuples()
    ]
    assert list_lines(SOURCES, r"^\| (?:DailyDialog|Friends) \| .* \|$") == expected
    q = found.set_index(["algorithm", "dataset"])[["q", "q_without"]]
    assert (q.loc["multitask"] <= 0.05).all(axis=None)
    assert (q.loc["pretrain_finetune", "q"] <= 0.05).to_dict() == {
        "DailyDialog": True,
        "Friends": False,
    }
    assert (q.loc["pretrain_finetune", "q_without"] > 0.05).all()
    assert (q.loc["multitask_finetune", "q"] > 0.05).all()


def test_its_cuts_are_in_its_tables(frames: Frames) -> None:
    assert frames.metadata.cuts == (
        "limit_train 500, limit_dev 200, prompted.limit_test 200, training.limit_test 1200"
    )


# --- larger models ------------------------------------------------------------------------------

LARGER = PAGE.split("### Larger models")[1]
LARGER_WORDS = " ".join(LARGER.split())


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("larger")
    study = merged("base-models.parquet", "base-models.yaml", folder / "results")
    write_collected_tables(study, complete=False)
    return study


def test_how_much_of_the_larger_models_is_there(larger: Study) -> None:
    stages = larger.plan.stages
    lacking = [stage for stage in stages if not Path(larger.get_record_path(stage)).exists()]
    assert {stage.model.name for stage in lacking} == {"smollm2-135m"}
    assert all("_from_" in stage.label for stage in lacking)
    assert len(lacking) == 4
    assert "four transfers of the decoder are missing" in LARGER_WORDS
    assert f"Of the {len(stages)} training runs, {len(stages) - 4} are available" in LARGER_WORDS


def test_what_the_page_says_of_larger_models(larger: Study, matrix: Study, frames: Frames) -> None:
    own, matrix = (
        pd.read_parquet(Path(of.tables, "transfer_runs.parquet")) for of in (larger, matrix)
    )
    mpnet, smollm = (own[own["model"] == name] for name in ("mpnet", "smollm2-135m"))
    for who, rows in (
        ("mpnet, MiniLM", compare_models(mpnet, matrix)),
        ("SmolLM2, MiniLM", compare_models(smollm, matrix)),
        ("mpnet, SmolLM2", compare_models(mpnet, smollm)),
        ("MiniLM's first seed, its second", compare_seeds(matrix, mpnet)),
    ):
        mean, low, high = (100 * value for value in compute_share(rows))
        counted = f"{rows['same'].sum():g} of {len(rows)}"
        line = f"| {who} | {counted} | {mean:.0f} % | {low:.0f} to {high:.0f} % |"
        assert line in LARGER, line
    for row in write_statistics(larger)["summary"].itertuples():
        assert signed(row.mean) in LARGER
        assert pd.isna(row.joint_low)  # one seed
    collapsed = pd.read_parquet(Path(larger.tables, "collapsed.parquet"))
    alike = collapsed[(collapsed["algorithm"] == "baseline") & (collapsed["n_collapsed"] > 0)]
    assert {(row.model, get_task(row.dataset, row.target).short) for row in alike.itertuples()} == {
        ("mpnet", short) for short in ("ER", "DNLI", "CRE")
    }


def test_printed_intervals_end_where_the_scale_does(matrix: Study, frames: Frames) -> None:
    analysis = get_design(matrix.config).analysis(matrix)
    tables = build_printed_tables(analysis, read_frames(matrix, analysis))
    assert len([*list_intervals(tables)]) > 1000
    assert list_wrong_intervals(tables) == []
    raw = frames["cells"]
    assert (raw["high"] > 100).any(), "the tables keep the computed ends"


def test_the_page_on_heatmaps_is_of_these_cells(frames: Frames) -> None:
    text = (ROOT / "docs" / "analysis.md").read_text().split("## Heatmaps")[1].split("\n## ")[0]
    cells = frames["cells"]
    cells = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    clear = int(((cells["low"] > 0) | (cells["high"] < 0)).sum())
    words = " ".join(text.split())
    assert f"{clear} of {len(cells)} cells are not faded, and no cell is significant" in words
    assert not cells["significant"].any()
    (row,) = cells[
        (cells["source"] == "dialogue_act_classification")
        & (cells["target"] == "emotion_recognition")
        & (cells["algorithm"] == "pretrain_finetune")
    ].to_dict("records")
    assert f"a baseline of {row['baseline_score']:.1f} by {row['improvement']:.1f} %" in words
    interval = format_value_with_interval(
        row["delta"], row["low"], row["high"], "+.1f", DIFFERENCES
    )
    assert interval.replace(" [", " points [") in words


def test_runs_of_table_2_are_cells_times_seeds(frames: Frames) -> None:
    keys = ["dataset", "algorithm"]
    table2, summary = compute_table2(frames), frames["summary"].set_index(keys)
    assert table2 is not None
    trained = table2[table2["n_pairs"] > 0].set_index(keys)
    assert trained["complete"].all()
    assert trained["n_cells"].to_dict() == (summary["n_cells"] * summary["n_seeds"]).to_dict()
