"""The regret of selectors on the matrix's first seed, as docs/selection.md says it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from shipped_records import merged
from tasktransfer.designs.transfer import commands

ROOT = Path(__file__).parents[2]
PRESET = ROOT / "workflow" / "presets" / "minilm-matrix.yaml"
PAGE = (ROOT / "docs" / "selection.md").read_text().split("**On the shipped matrix**")[1]
ALGORITHMS = ("pretrain_finetune", "multitask", "multitask_finetune")
SELECTORS = (
    "random", "size", "kind", "source_mean", "tfidf", "embedding", "roe", "logme", "esm_logme",
    "leep", "nleep", "hscore", "taskemb", "gradient",
)  # fmt: skip


@pytest.fixture(scope="module")
def regret(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """regret@1 over both datasets' targets, made here from the records alone."""
    study = merged(
        "minilm-selectors.parquet",
        "minilm-matrix.yaml",
        tmp_path_factory.mktemp("selectors") / "results",
        seeds=1,
        selectors=list(SELECTORS),
    )
    commands.collect(study, complete=True)
    commands.statistics(study)
    frame = pd.read_parquet(Path(study.tables, "regret.parquet"))
    return frame[(frame["measure"] == "regret@1") & (frame["dataset"] == "all")]


def test_the_pages_table_is_of_these_records(regret: pd.DataFrame) -> None:
    values = regret.set_index(["selector", "algorithm"])
    expected = []
    for selector in SELECTORS:
        rows = [values.loc[(selector, algorithm)] for algorithm in ALGORITHMS]
        numbers = [f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]" for row in rows]
        expected.append([selector, *numbers])
    lines = re.findall(r"^\| \w+ \| \d.* \|$", PAGE, flags=re.MULTILINE)
    assert [line.strip("| ").split(" | ") for line in lines] == expected


def test_no_selector_is_told_from_random_or_source_mean(regret: pd.DataFrame) -> None:
    assert (regret["n_targets"] == 17).all()
    assert not (regret["to_random_q"] <= 0.05).any()
    assert not (regret["to_source_mean_q"] <= 0.05).any()
    least = regret.loc[regret.groupby("algorithm")["value"].idxmin(), "selector"]
    assert set(least) == {"source_mean"}
    q = regret[regret["selector"] == "source_mean"].set_index("algorithm")["to_random_q"]
    assert f"(q to random: {', '.join(f'{q[name]:.2f}' for name in ALGORITHMS)})" in " ".join(
        PAGE.split()
    )
