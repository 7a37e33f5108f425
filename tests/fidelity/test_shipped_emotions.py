"""The positive controls with emotion tasks agree with docs/transfer.md and the README."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from shipped_records import build_shipped_tables
from tasktransfer.designs.transfer.report.answer import write_answer
from tasktransfer.results.records import read_record
from tasktransfer.results.study import Study
from transfer_frames import read_frames

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "transfer.md").read_text().split("### A positive control")[1]
SECTION = PAGE.split("### Larger models")[0]
TEXT = " ".join(SECTION.split())
STUDIES = ("minilm-emotions", "dailydialog-to-meld")
NAMES = {
    "emory_emotion_recognition": "EmoryNLP",
    "MELD_emotion_recognition": "MELD",
    "DailyDialog/emotion_recognition": "DailyDialog",
}
ALGORITHMS = {
    "pretrain_finetune": "pre-train → fine-tune",
    "multitask": "multitask",
    "multitask_finetune": "multitask → fine-tune",
}
KEYS = ["algorithm", "source", "target"]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> list[Study]:
    return [
        build_shipped_tables(f"{name}.parquet", f"{name}.yaml", tmp_path_factory.mktemp("known"))
        for name in STUDIES
    ]


def read_tables(studies: list[Study], name: str) -> pd.DataFrame:
    tables = (pd.read_parquet(Path(study.tables) / f"{name}.parquet") for study in studies)
    return pd.concat(tables, ignore_index=True)


def format_number(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def format_effect(row: pd.Series) -> str:
    low, high = format_number(row["low"]), format_number(row["high"])
    return f"{format_number(row['delta'])} [{low}, {high}]"


def test_the_table_has_these_cells(studies: list[Study]) -> None:
    cells = read_tables(studies, "cells").set_index(KEYS)
    longer = read_tables(studies, "control_cells").set_index(KEYS)
    assert set(longer["control"]) == {"longer_baseline"}
    runs = read_tables(studies, "transfer_runs").set_index(KEYS)
    expected, kept = [], 0
    for key, row in cells.iterrows():
        algorithm, source, target = key
        rounds = runs.loc[key, "best_epoch"]
        kept += (rounds == 0).sum()
        expected.append(
            f"| {NAMES[source]} → {NAMES[target]} | {ALGORITHMS[algorithm]} | {row['score']:.1f} | "
            f"{format_effect(row)} | {format_effect(longer.loc[key])} | {(rounds == 0).sum()} of "
            f"{len(rounds)} |"
        )
    lines = re.findall(r"^\| (?:EmoryNLP|MELD|DailyDialog) → .*\|$", SECTION, flags=re.M)
    assert sorted(lines) == sorted(expected), "\n".join(expected)
    transfers = runs[runs["n_sources"] > 0]
    assert f"In {kept} of the {len(transfers)} training runs of transfers, round 0" in TEXT
    controls = read_tables(studies[:1], "control_runs")
    rounds = controls[controls["target"] == "emory_emotion_recognition"]["best_epoch"]
    counts = f"{(rounds == 0).sum()} of {len(rounds)}"
    assert f"the baseline with twice the updates selects round 0 in {counts} seeds" in TEXT


def test_the_baselines_have_these_scores(studies: list[Study]) -> None:
    references = read_tables(studies[:1], "references")
    longer = read_tables(studies[:1], "control_cells").set_index("target")["baseline_score"]
    best = references.loc[references.groupby("target")["reference_score"].idxmax()]
    expected = [
        f"| {NAMES[row.target]} | {row.score:.1f} | {longer.loc[row.target].mean():.1f} | "
        f"{row.reference_score:.1f} |"
        for row in best.itertuples()
    ]
    lines = re.findall(r"^\| (?:EmoryNLP|MELD) \| .*\|$", SECTION, flags=re.M)
    assert sorted(lines) == sorted(expected), "\n".join(expected)
    assert set(best["reference"]) == {"frozen_logistic"}


def test_the_findings_are_in_the_tables(studies: list[Study]) -> None:
    cells, longer = read_tables(studies, "cells"), read_tables(studies, "control_cells")
    smallest = min(cells["q"].min(), longer["q"].min())
    assert len(cells) == 7
    assert f"from the baseline with twice the updates (smallest q: {smallest:.2f})" in TEXT
    assert not cells["significant"].any() and not (longer["q"] <= 0.05).any()
    differences = pd.concat([cells, longer])
    (apart,) = differences.query("low > 0 or high < 0").to_dict("records")
    assert len(differences) == 14 and "One of the fourteen intervals excludes 0" in TEXT
    assert [apart[key] for key in KEYS] == [
        *("pretrain_finetune", "MELD_emotion_recognition", "emory_emotion_recognition")
    ]
    assert f"scores {apart['delta']:.1f} points more than the baseline with twice" in TEXT
    of_target = dict(iter(read_tables(studies[:1], "cells").groupby("target")))
    most = of_target["emory_emotion_recognition"]["high"].max()
    assert f"gains of more than {most:.1f} points over the baseline" in TEXT
    most = of_target["MELD_emotion_recognition"]["high"].max()
    assert f"on MELD, gains of more than {most:.1f} points from EmoryNLP" in TEXT
    (other,) = read_tables(studies[1:], "cells").to_dict("records")
    widths = of_target["MELD_emotion_recognition"].eval("high - low")
    assert other["high"] - other["low"] > widths.max() and "after DailyDialog is wider" in TEXT
    assert [len(study.config.seeds) for study in studies] == [5, 4]
    references = read_tables(studies[:1], "references").query("is_best").set_index("target")
    assert set(references["state"]) == {"learned"} and (references["q"] > 0.05).all()
    above = [references.loc[name, "delta"] for name in list(NAMES)[1::-1]]
    assert "({:.1f} points on MELD and {:.1f} on EmoryNLP)".format(*above) in TEXT


def test_the_source_dailydialog_has_not_been_learned(studies: list[Study]) -> None:
    references = read_tables(studies[1:], "references").query("is_best").set_index("dataset")
    source = references.loc["DailyDialog"]
    assert source["state"] == "not better" and source["reference"] == "frozen_logistic"
    assert f"have a mean score of {source['score']:.1f}, which is {-source['delta']:.1f}" in TEXT
    ends = ", ".join(format_number(source[end]) for end in ("low", "high"))
    assert f"frozen embeddings ([{ends}])" in TEXT


def test_the_rounds_are_those_of_the_findings(studies: list[Study]) -> None:
    rounds, losses = {}, []
    for stage in studies[0].plan.stages:
        if stage.kind == "baseline":
            training = read_record(Path(studies[0].get_record_path(stage)))["training"]
            (selection,) = training["selections"]
            rounds.setdefault(stage.seed, []).append(selection["round"])
            losses += training["rounds"][-1]["train_loss"].values()
    assert rounds.keys() == {0, 1, 2, 3, 4}
    assert rounds[1] == [0, 0]
    assert [seed for seed, each in rounds.items() if 0 in each] == [1, 3]
    assert f"has a training loss of at most {max(losses):.2f}" in TEXT
    runs = read_tables(studies[:1], "deltas").query("algorithm == 'pretrain_finetune'")
    unchanged = runs[runs["seed"].isin([1, 3])].set_index(["seed", "source"])["delta"]
    assert unchanged[3]["MELD_emotion_recognition"] != 0
    assert [*unchanged[1], unchanged[3]["emory_emotion_recognition"]] == [0.0, 0.0, 0.0]


def list_first_scores(study: Study, label: str) -> list[float]:
    """Return the dev scores of round 0 with changed encoders, in the order of the seeds."""
    found = []
    for stage in study.plan.stages:
        if stage.label == label:
            record = read_record(Path(study.get_record_path(stage)))
            (source,) = stage.parents
            parent = read_record(Path(study.get_record_path(source)))
            if parent["training"]["selections"][0]["round"] > 0:
                found.append((stage.seed, record["training"]["selections"][0]["scores"][0]))
    return [score for _, score in sorted(found)]


def test_sources_raise_the_scores_before_the_first_update(studies: list[Study]) -> None:
    original = {"MER": 48.1, "EER": 36.6}
    for study, label, source in (
        (studies[0], "MER_from_EER", "EmoryNLP"),
        (studies[0], "EER_from_MER", "MELD"),
        (studies[1], "MER_from_ER", "DailyDialog"),
    ):
        scores = list_first_scores(study, label)
        *first, last = [f"{score:.1f}" for score in scores]
        assert f"{', '.join(first)} and {last} after {source}" in TEXT
        before = original[label.partition("_")[0]]
        assert min(scores) > before and f"compared with {before}" in TEXT
    for stage in studies[0].plan.stages:
        if stage.kind == "baseline":
            training = read_record(Path(studies[0].get_record_path(stage)))["training"]
            first_score = training["selections"][0]["scores"][0]
            assert round(first_score, 1) == original[stage.label]


def test_the_readme_has_these_gains(studies: list[Study]) -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    cells = read_tables(studies, "cells")
    for row in cells[cells["algorithm"] == "pretrain_finetune"].itertuples():
        low, high = (f"{end:.1f}".replace("-", "−") for end in (row.low, row.high))
        interval = rf"\((95 % interval )?{low} to {high}\)"
        assert re.search(rf"{re.escape(format_number(row.delta))} (points )?{interval}", readme)


def test_no_seed_of_a_baseline_has_failed(studies: list[Study]) -> None:
    """DailyDialog's study repeats MELD's baselines. Own dialogues are in test_own_data_page.py."""
    runs = read_tables(studies, "transfer_runs").query("algorithm == 'baseline'")
    runs = runs.drop_duplicates(["target", "seed"]).set_index("target")["score"]
    references = read_tables(studies, "references").query("reference == 'most_frequent'")
    constant = references.drop_duplicates("target").set_index("target")["reference_score"]
    margins = runs - constant.reindex(runs.index)
    page = (ROOT / "docs" / "recipes.md").read_text()
    assert len(margins) == 14
    assert f"the smallest margin is {margins.min():.1f} points" in page


def test_the_page_on_own_data_quotes_the_answer(studies: list[Study]) -> None:
    page = (ROOT / "docs" / "your-own-data.md").read_text()
    quoted = " ".join(page.split("**Read the answer**")[1].split("```")[1].split())
    assert quoted.startswith("For Friends/emory") and quoted in " ".join(
        write_answer(read_frames(studies[0]))
    )
