"""The shipped matrix: its records match its preset, and the pages agree with its tables."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from statistics import median

import pandas as pd
import pytest
from PIL import Image

from benchmarks.source_differences import compare_sources
from benchmarks.source_order import compare_models, compare_seeds, compute_share
from printed_intervals import list_intervals, list_wrong_intervals
from shipped_records import merged
from tasktransfer.core.nodes import Outcome
from tasktransfer.core.references import COLLAPSED, FROZEN, LEARNED
from tasktransfer.datasets import get_task
from tasktransfer.designs import get_design
from tasktransfer.designs.commands import read_frames
from tasktransfer.designs.transfer.choices import COMPARED
from tasktransfer.designs.transfer.recommend import read_tables_evidence
from tasktransfer.designs.transfer.report.blocks import build_changes_table
from tasktransfer.designs.transfer.report.learned import describe_unlearned_list
from tasktransfer.designs.transfer.statistics.by_dialogue import compute_dialogue_scores
from tasktransfer.designs.transfer.tables.names import get_algorithm_label
from tasktransfer.operate.commons.read_packs import Pack, read_pack
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.forecast.rates import Rates
from tasktransfer.present.numbers import DIFFERENCES, format_value_with_interval
from tasktransfer.present.tables import PrintedTable, build_printed_tables
from tasktransfer.results.frames import Frames
from tasktransfer.results.records import read_record
from tasktransfer.results.study import Study
from tasktransfer.selection.evidence import (
    add_source_mean,
    compute_selector_regret,
    read_shipped_evidence,
)
from tasktransfer.selection.nodes import is_selection_run
from transfer_frames import write_collected_tables, write_statistics

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PRESET = ROOT / "workflow" / "presets" / "minilm-matrix.yaml"
PAGE = (ROOT / "docs" / "transfer.md").read_text().split("## The whole matrix")[1]
AVERAGES, SOURCES, LEARNING = re.split(
    r"Do the sources of a target differ in their effects\?|### Which", PAGE
)[:3]
WORDS = " ".join(PAGE.split())
"""Text of the section as one line, to find wrapped sentences."""
SELECTION = (ROOT / "docs" / "selection.md").read_text().split("### On the shipped matrix")[1]
PROMPTED = (ROOT / "docs" / "prompted.md").read_text().split("## First numbers")[1]
ALGORITHMS = ("pretrain_finetune", "multitask", "multitask_finetune")


@pytest.fixture(scope="module")
def pack() -> Pack:
    return read_pack(ROOT / "shipped" / "minilm-matrix.parquet")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("matrix")
    return merged("minilm-matrix.parquet", "minilm-matrix.yaml", folder / "results")


@pytest.fixture(scope="module")
def results(study: Study) -> Frames:
    """Build its tables and statistics from the existing records."""
    write_collected_tables(study, complete=False)
    return write_statistics(study)


def test_both_seeds_are_whole(study: Study) -> None:
    asked = [run.outcome for run in study.plan.runs if is_selection_run(run)]
    probes = {stage for one in asked if isinstance(one, Outcome) for stage in one.stages}
    for stages, each in ((probes, 132), (set(study.plan.stages) - probes, 347)):
        seeds = [stage.seed for stage in stages if Path(study.get_record_path(stage)).exists()]
        assert (seeds.count(0), seeds.count(1), len(stages)) == (each, each, 2 * each)
    assert all(Path(study.get_record_path(fit)).exists() for fit in study.plan.fits)


def test_it_is_small(pack: Pack) -> None:
    assert Path(ROOT, "shipped", "minilm-matrix.parquet").stat().st_size < 2_100_000
    assert pack.facts["provenance"] == (ROOT / "shipped" / "MATRIX.md").read_text()


def test_the_picture_of_the_readme_shows_these_numbers(results: Frames) -> None:
    script = ROOT / "docs" / "first_picture.py"
    spec = importlib.util.spec_from_file_location("first_picture", script)
    assert spec is not None
    assert spec.loader is not None
    first_picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(first_picture)
    with Image.open(ROOT / first_picture.PICTURE) as picture:
        plotted = json.loads(picture.info["Description"])
    numbers = first_picture.list_numbers(results["summary"], results["cells"])
    assert (len(plotted["effects"]), len(plotted["cells"])) == (6, 42)
    assert plotted == json.loads(json.dumps(numbers))
    assert (ROOT / first_picture.PICTURE).stat().st_size < 200_000


def test_the_pages_table_is_of_these_tables(results: Frames) -> None:
    shares = results["variance"].set_index(["dataset", "algorithm", "component"])["share"]
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
        for row in results["summary"].itertuples()
    ]
    lines = re.findall(r"^\| (?:DailyDialog|Friends) \| .* % \|$", AVERAGES, flags=re.MULTILINE)
    told = [line.strip("| ").split(" | ") for line in lines]
    assert told == expected


def signed(value: float) -> str:
    """Format a delta as on the page."""
    return f"{value:+.1f}".replace("-", "−")


def test_what_the_page_says_of_its_cells(results: Frames) -> None:
    cells = results["cells"]
    assert (int(cells["q"].notna().sum()), len(cells)) == (396, 396)
    assert not cells["significant"].any()
    assert f"(smallest q: {cells['q'].min():.2f})" in WORDS
    asymmetry = results["asymmetry"]
    assert not (asymmetry["q"] <= 0.05).any()
    ways = [
        group["a_to_b"].corr(group["b_to_a"], method="spearman")
        for _, group in asymmetry.groupby(["dataset", "algorithm"])
    ]
    assert f"two directions is {signed_2(min(ways))} to {signed_2(max(ways))}, depending" in WORDS
    gains = cells[cells["algorithm"] == "multitask_finetune"].groupby("target")["delta"].mean()
    most = {"emotion_recognition", "topic_classification", "character_identification"}
    assert set(gains.nlargest(3).index) == most


def test_what_the_page_says_of_variance_and_algorithms(results: Frames) -> None:
    shares = results["variance"].groupby("component")["share"].agg(["min", "max"]) * 100
    low, high = shares["min"].round(), shares["max"].round()
    assert f"targets explain {low['target']:.0f} to {high['target']:.0f} % of the variance" in WORDS
    assert f"at most {high['source']:.0f} % of the variance" in WORDS
    assert f"seeds explain {low['seed']:.0f} to {high['seed']:.0f} %" in WORDS
    pairs = f"{low['source x target']:.0f} to {high['source x target']:.0f} %"
    assert f"Pairs of source and target explain {pairs}" in WORDS
    assert not (results["summary"]["joint_q"] <= 0.05).any()
    assert f"six tests (smallest q: {results['summary']['joint_q'].min():.2f})" in WORDS
    surely = results["summary"][
        (results["summary"]["joint_low"] > 0) | (results["summary"]["joint_high"] < 0)
    ]
    assert set(surely["dataset"]) == {"Friends"}
    assert len(surely) == 3
    gain = surely.set_index("algorithm").loc["multitask_finetune"]
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"gains {gain['mean']:.1f} points on average" in readme
    assert f"dialogues {gain['joint_low']:+.1f} to {gain['joint_high']:+.1f})" in readme


def signed_2(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def test_two_tasks_are_not_learnt(results: Frames) -> None:
    collapsed = results["collapsed"]
    baselines = collapsed[collapsed["algorithm"] == "baseline"]
    always = set(baselines[baselines["n_collapsed"] == baselines["n_runs"]]["target"])
    assert always == {"dialogue_nli", "dialogue_reasoning_commonsense_relation_prediction"}


# --- learned or not -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def references(results: Frames) -> pd.DataFrame:
    return results["references"]


def test_the_table_of_baselines_is_of_these_records(references: pd.DataFrame) -> None:
    expected = []
    for (dataset, target), rows in references.groupby(["dataset", "target"], sort=False):
        scores = rows.set_index("reference")["reference_score"]
        (best,) = rows[rows["is_best"]].to_dict("records")
        expected.append(
            [
                f"{target} ({dataset})".replace("_", " "),
                f"{best['score']:.1f}",
                *(f"{scores[name]:.1f}" if name in scores else "–" for name in COMPARED),
                signed(best["delta"]),
                f"{signed(best['low'])} to {signed(best['high'])}",
                best["state"],
            ]
        )
    lines = re.findall(r"^\| .* \|$", LEARNING.split("###")[0], flags=re.MULTILINE)[1:]
    assert [line.strip("| ").split(" | ") for line in lines] == expected


def test_what_the_page_says_of_learning(references: pd.DataFrame, results: Frames) -> None:
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
    cells = results["cells"]
    gains = cells[
        (cells["dataset"] == "DailyDialog") & (cells["algorithm"] == "multitask_finetune")
    ]
    places = pd.MultiIndex.from_frame(gains[["dataset", "target"]])
    in_vain = places.isin(unlearned.index)
    told = [signed(gains[mask]["delta"].mean()) for mask in (in_vain, ~in_vain)]
    assert f"average is {told[0]} points over the targets whose baseline has not" in WORDS
    assert f"has not learned, and {told[1]} over the other targets" in WORDS


def test_the_guide_to_the_report_quotes_its_answer(
    results: Frames, references: pd.DataFrame
) -> None:
    guide = (ROOT / "docs" / "explanation" / "reading-the-report.md").read_text("utf-8")
    quotes = " ".join(line.removeprefix(">") for line in guide.splitlines())
    words = " ".join(quotes.split())
    changes = build_changes_table(results["summary"])
    assert changes is not None
    lines = [row for block in changes.blocks for row in block]
    assert len(lines) == 6
    for line in lines:
        assert f"| {' | '.join(line)} |" in guide
    best = references[references["is_best"]]
    names, _ = describe_unlearned_list(best)
    assert names in words


def test_the_table_of_source_differences_is_of_these_records(results: Frames, study: Study) -> None:
    runs = results["transfer_runs"]
    found = compare_sources(runs, compute_dialogue_scores(runs, Path(study.config.results)))
    expected = [
        [
            row.dataset,
            get_algorithm_label(str(row.algorithm)).lower(),
            signed_2(row.correlation),
            f"{row.p:.3f}",
            *(
                (
                    f"{row.most.replace('_', ' ')}, {100 * row.fraction:.0f} %",
                    f"{row.p_without:.3f}",
                )
                if row.most
                else ("–", "–")
            ),
        ]
        for row in found.itertuples()
    ]
    lines = re.findall(r"^\| (?:DailyDialog|Friends) \| .* \|$", SOURCES, flags=re.MULTILINE)
    assert [line.strip("| ").split(" | ") for line in lines] == expected


def test_its_cuts_are_in_its_tables(results: Frames) -> None:
    assert results.metadata.cuts == (
        "limit_train 500, limit_dev 200, prompted.limit_test 200, training.limit_test 1200"
    )


# --- selectors ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def regret(study: Study, results: Frames) -> pd.DataFrame:
    """Return regret@1 over both datasets' targets."""
    frame = pd.read_parquet(Path(study.tables, "regret.parquet"))
    return frame[(frame["measure"] == "regret@1") & (frame["dataset"] == "all")]


def test_the_table_of_selectors_is_of_these_records(study: Study, regret: pd.DataFrame) -> None:
    values = regret.set_index(["selector", "algorithm"])
    expected = []
    for selector in study.config.selectors:  # type: ignore[attr-defined]
        rows = [values.loc[(selector, algorithm)] for algorithm in ALGORITHMS]
        numbers = [f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]" for row in rows]
        expected.append([selector, *numbers])
    floors = [f"{values.loc[('random', algorithm)]['floor']:.2f}" for algorithm in ALGORITHMS]
    expected.append(["(noise floor)", *floors])
    lines = re.findall(r"^\| [\w() ]+ \| \d.* \|$", SELECTION, flags=re.MULTILINE)
    assert [line.strip("| ").split(" | ") for line in lines] == expected


def test_no_selector_is_told_from_random_or_source_mean(regret: pd.DataFrame) -> None:
    assert (regret["n_targets"] == 9).all()
    assert not (regret["to_source_mean_q"] <= 0.05).any()
    assert regret["to_random_q"].min() > 0.05
    assert f"(smallest q against random: {regret['to_random_q'].min():.2f})" in " ".join(
        SELECTION.split()
    )
    least = regret.loc[regret.groupby("algorithm")["value"].idxmin()]
    assert dict(zip(least["algorithm"], least["selector"], strict=True)) == {
        **dict.fromkeys(ALGORITHMS[:2], "taskemb"),
        "multitask_finetune": "roe",
    }
    random = regret[regret["selector"] == "random"].set_index("algorithm").loc[[*ALGORITHMS]]
    better = [f"{value:.1f}".replace("-", "−") for value in random["value"] - random["floor"]]
    words = " ".join(SELECTION.split())
    first, second, third = better
    assert f"by only {first} points for pre-train → fine-tune and {second} points for" in words
    worse = third.removeprefix("−")
    assert third != worse
    assert f"has a regret@1 that is {worse} points higher than random" in words


def test_the_evidence_of_recommend_is_of_these_tables(study: Study, regret: pd.DataFrame) -> None:
    built = read_tables_evidence(Path(study.tables))
    assert built is not None
    shipped = read_shipped_evidence()
    pd.testing.assert_frame_equal(built, shipped)
    judging = add_source_mean(shipped)
    for algorithm, rows in judging[judging["learned"]].groupby("algorithm"):
        of_table = regret[regret["algorithm"] == algorithm].set_index("selector")
        judged = compute_selector_regret(rows).loc[of_table.index]
        for column in ("value", "low", "high", "to_random_q"):
            assert judged[column].to_numpy() == pytest.approx(
                of_table[column].to_numpy(), nan_ok=True
            )
    emotions = shipped[shipped["learned"] & (shipped["algorithm"] == ALGORITHMS[0])]
    means = emotions.groupby(["dataset", "source", "target"])["delta"].mean()
    lowest = means["DailyDialog"].groupby("source").mean()
    assert lowest.idxmin() == "emotion_recognition"
    words = " ".join((ROOT / "docs" / "selection.md").read_text().split())
    assert f"(−{-lowest.min():.1f} points over six targets)" in words


# --- a prompted language model ------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(study: Study, results: Frames) -> pd.DataFrame:
    """Return the rows of prompted runs by dataset, target and shots."""
    frame = pd.read_parquet(Path(study.tables, "prompted.parquet"))
    return frame[frame["target"] != ""].set_index(["dataset", "target", "shots"])


def test_the_table_of_asked_scores_is_of_these_records(
    asked: pd.DataFrame, results: Frames
) -> None:
    runs = results["transfer_runs"]
    trained = runs[runs["algorithm"] == "baseline"].groupby(["dataset", "target"])["score"].mean()
    expected = []
    for dataset, target in asked.index.droplevel("shots").unique():
        rows = [asked.loc[(dataset, target, shots)] for shots in (0, 4)]
        told = [f"{row['score']:.1f} [{row['low']:.1f}, {row['high']:.1f}]" for row in rows]
        name = target.replace("_", " ").replace("dialogue reasoning ", "reasoning, ")
        spread = max(row["spread"] for row in rows)
        expected.append(
            [f"{name} ({dataset})", *told, f"{spread:.1f}", f"{trained[dataset, target]:.1f}"]
        )
    lines = [
        line.strip("| ").split(" | ")
        for line in re.findall(r"^\| \w[^|]*\([DF]\w+\) \|.*\|$", PROMPTED, flags=re.MULTILINE)
    ]
    # The most frequent answer of the same 200 instances needs the dialogues.
    assert [[*line[:4], line[5]] for line in lines] == expected


def test_what_the_page_says_of_asking(asked: pd.DataFrame, results: Frames) -> None:
    runs = results["transfer_runs"]
    trained = runs[runs["algorithm"] == "baseline"].groupby(["dataset", "target"])["score"].mean()
    best = asked.groupby(["dataset", "target"])[["score", "high"]].max()
    assert (trained.reindex(best.index) > best["score"]).all()
    beyond = int((trained.reindex(best.index) > best["high"]).sum())
    page = " ".join(PROMPTED.split())
    assert f"higher than the prompted model on all {len(best)} tasks**" in page
    assert f"above the prompted model's interval on {beyond} of these tasks" in page
    assert f"up to {asked['spread'].max():.0f} points apart" in page


def test_asking_takes_about_what_is_forecast(study: Study) -> None:
    """The median is used, since some of the processor cores were busy with other work."""
    rates = Rates("cpu", {"float32": 185e9, "bfloat16": 1184e9}, "its machine", "measured")
    estimates = Estimates(study, "cpu", rates)
    factors = []
    for node in study.plan.evaluations:
        record = Path(study.get_record_path(node))
        if node.asked is not None and record.exists():
            made = read_record(record)["provenance"]
            if made["host"]["device"] == "cpu":
                factors.append(made["seconds"]["total"] / estimates.estimate_seconds(node))
    assert len(factors) > 50
    assert 1 / 1.5 < median(factors) < 1.5


def test_what_the_page_of_speed_says_of_its_minutes(study: Study) -> None:
    """The minutes are per task, and for all trainings on two tasks."""
    page = (ROOT / "docs" / "development" / "performance.md").read_text()
    minutes: dict[tuple[str, str], float] = {}
    for stage in study.plan.stages:
        made = read_record(Path(study.get_record_path(stage)))["provenance"]
        if made["host"]["device"] == "cpu":
            continue  # the probe's
        task, *others = (get_task(stage.dataset, name).short for name in stage.train_tasks)
        key = (stage.dataset, "two tasks" if others else task)
        minutes[key] = minutes.get(key, 0.0) + made["seconds"]["total"] / 60
    assert len(minutes) == 17 + 2
    for (_, name), value in minutes.items():
        assert f" {name} {value:.1f}" in page


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


def test_what_the_page_says_of_larger_models(larger: Study, study: Study, results: Frames) -> None:
    own, matrix = (
        pd.read_parquet(Path(of.tables, "transfer_runs.parquet")) for of in (larger, study)
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
        assert f"| {who} | {counted} | {mean:.0f} % | {low:.0f} to {high:.0f} % |" in LARGER
    for row in write_statistics(larger)["summary"].itertuples():
        assert signed(row.mean) in LARGER
        assert pd.isna(row.joint_low)  # one seed
    collapsed = pd.read_parquet(Path(larger.tables, "collapsed.parquet"))
    alike = collapsed[(collapsed["algorithm"] == "baseline") & (collapsed["n_collapsed"] > 0)]
    assert {(row.model, get_task(row.dataset, row.target).short) for row in alike.itertuples()} == {
        ("mpnet", short) for short in ("ER", "DNLI", "CRE")
    }


def test_printed_intervals_end_where_the_scale_does(study: Study, results: Frames) -> None:
    analysis = get_design(study.config).analysis(study)
    tables = build_printed_tables(analysis, read_frames(study, analysis))
    assert len([*list_intervals(tables)]) > 1000
    assert list_wrong_intervals(tables) == []
    raw = results["cells"]
    assert (raw["high"] > 100).any(), "the tables keep the computed ends"


def test_the_page_on_heatmaps_is_of_these_cells(results: Frames) -> None:
    text = (ROOT / "docs" / "analysis.md").read_text().split("## Heatmaps")[1].split("\n## ")[0]
    cells = results["cells"]
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


def test_runs_of_table_2_are_cells_times_seeds(study: Study, results: Frames) -> None:
    analysis = get_design(study.config).analysis(study)
    tables = {t.name: t for t in build_printed_tables(analysis, read_frames(study, analysis))}
    counts = {}
    for name, heads in (("table2", ["Runs"]), ("summary", ["Cells", "Seeds"])):
        table = tables[name]
        assert isinstance(table, PrintedTable)
        lines = [line for block in table.layout.blocks for entry in block for line in entry]
        rows = [dict(zip(table.layout.head, line, strict=True)) for line in lines]
        counts[name] = {
            (row["Dataset"], row["Algorithm"]): [row[head] for head in heads] for row in rows
        }
    for key, (cells, seeds) in counts["summary"].items():
        runs = int(cells) * int(seeds)
        assert counts["table2"][key] == [f"{runs}/{runs}"]
