"""The positive control with two emotion tasks agrees with docs/transfer.md."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from shipped_records import build_shipped_tables
from tasktransfer.results.study import Study

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "transfer.md").read_text().split("### A positive control")[1]
SECTION = PAGE.split("### Larger models")[0]
NAMES = {"emory_emotion_recognition": "EmoryNLP", "MELD_emotion_recognition": "MELD"}
ALGORITHMS = {
    "pretrain_finetune": "pre-train → fine-tune",
    "multitask": "multitask",
    "multitask_finetune": "multitask → fine-tune",
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    pack, preset = "minilm-emotions.parquet", "minilm-emotions.yaml"
    return build_shipped_tables(pack, preset, tmp_path_factory.mktemp("known"))


def read_table(study: Study, name: str) -> pd.DataFrame:
    return pd.read_parquet(Path(study.tables) / f"{name}.parquet")


def format_effect(delta: float, low: float, high: float) -> str:
    return f"{delta:+.1f} [{low:+.1f}, {high:+.1f}]".replace("-", "−")


def test_the_table_has_these_cells(study: Study) -> None:
    keys = ["algorithm", "source", "target"]
    cells = read_table(study, "cells").set_index(keys)
    longer = read_table(study, "control_cells").set_index(keys)
    assert set(longer["control"]) == {"longer_baseline"}
    expected = []
    for key, row in cells.iterrows():
        algorithm, source, target = key
        beyond = longer.loc[key]
        expected.append(
            f"| {NAMES[source]} → {NAMES[target]} | {ALGORITHMS[algorithm]} | {row['score']:.1f} | "
            f"{format_effect(row['delta'], row['low'], row['high'])} | "
            f"{format_effect(beyond['delta'], beyond['low'], beyond['high'])} |"
        )
    lines = re.findall(r"^\| (?:EmoryNLP|MELD) → .*\|$", SECTION, flags=re.M)
    assert sorted(lines) == sorted(expected), "\n".join(expected)


def test_the_baselines_have_these_scores(study: Study) -> None:
    references = read_table(study, "references")
    longer = read_table(study, "control_cells").set_index("target")["baseline_score"]
    best = references.loc[references.groupby("target")["reference_score"].idxmax()]
    expected = [
        f"| {NAMES[row.target]} | {row.score:.1f} | {longer.loc[row.target].mean():.1f} | "
        f"{row.reference_score:.1f} |"
        for row in best.itertuples()
    ]
    lines = re.findall(r"^\| (?:EmoryNLP|MELD) \| .*\|$", SECTION, flags=re.M)
    assert sorted(lines) == sorted(expected), "\n".join(expected)
    assert set(best["reference"]) == {"frozen_logistic"}


def test_the_findings_are_in_the_tables(study: Study) -> None:
    cells, longer = read_table(study, "cells"), read_table(study, "control_cells")
    text = " ".join(SECTION.split())
    tuned, joint = (
        {name: rows[rows["algorithm"] == name] for name in ALGORITHMS} for rows in (cells, longer)
    )
    gains = read_table(study, "deltas").query("algorithm == 'pretrain_finetune'")
    for target, name in NAMES.items():
        first, second = gains[gains["target"] == target].sort_values("seed")["delta"]
        assert f"{first:.1f} and {second:.1f} points on {name}" in text
        assert min(first, second) > 0
    assert (tuned["pretrain_finetune"]["low"] < 0).all()
    means = joint["pretrain_finetune"].set_index("target")["delta"]
    assert "only {:.1f} and {:.1f} points".format(*means.loc[[*NAMES][::-1]]) in text
    assert not (longer["low"] > 0).any(), "no transfer is better than the longer baseline"
    for name in ("multitask", "multitask_finetune"):
        assert (joint[name]["delta"] < 0).all()
    references = read_table(study, "references")
    best = references.groupby("target")["reference_score"].max()
    above = cells[cells["score"] > cells["target"].map(best)]
    assert [*zip(above["algorithm"], above["target"], strict=True)] == [
        ("pretrain_finetune", "MELD_emotion_recognition")
    ]
    collapsed = read_table(study, "collapsed").set_index(["algorithm", "target"])
    row = collapsed.loc[("baseline", "emory_emotion_recognition")]
    assert list(row["seeds"]) == [0]
    assert f"the label neutral for {100 * row['share']:.0f} % of the test instances" in text


def test_the_readme_has_these_gains(study: Study) -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    for name in ("cells", "control_cells"):
        rows = read_table(study, name)
        for row in rows[rows["algorithm"] == "pretrain_finetune"].itertuples():
            low, high = (f"{end:.1f}".replace("-", "−") for end in (row.low, row.high))
            interval = rf"\((95 % interval )?{low} to {high}\)"
            assert re.search(rf"{re.escape(f'{row.delta:+.1f}')} (points )?{interval}", readme)
