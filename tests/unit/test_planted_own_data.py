"""The planted worlds of own data (benchmarks/planted_own_data.py).

The files contain what is planted, and tests/fixtures/planted_own_data.csv is summarised correctly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from benchmarks.planted_own_data import (
    FOUND,
    NONE,
    RECOMMENDED,
    TRUTH,
    UNLEARNED,
    WORLDS,
    build_config,
    generate_dialogues,
    is_right,
    sample_words,
    write_study,
)
from tasktransfer.datasets import replace_declared_datasets
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.report.advice import describe_first_sources

ROOT = Path(__file__).resolve().parents[2]
CELLS = ROOT / "tests" / "fixtures" / "planted_own_data.csv"
ANSWERS = ROOT / "tests" / "fixtures" / "planted_answers.csv"


def labels_of_words(dataset: str, subject: str, world: str) -> dict[str, set[str]]:
    """Return words of the target's subject → labels of the training dialogues with that word."""
    known, found = set(sample_words(0)["intent"]), defaultdict(set)
    for row in generate_dialogues(dataset, "train", world, 0):
        said = " ".join(turn["content"] for turn in row["messages"]).split()
        for word in known & set(said):
            found[word].add(row[subject].rpartition("-")[2])
    return found


def test_one_source_tells_what_the_target_needs_and_scrambled_it_does_not() -> None:
    target = labels_of_words("Tickets", "intent", "helped")
    source = labels_of_words("Sources", "kin", "helped")
    assert all(len(labels) == 1 for labels in source.values())
    assert all(source[word] == labels for word, labels in target.items())
    assert len(source) == len(sample_words(0)["intent"]) > len(target)
    scrambled = labels_of_words("Sources", "kin", "scrambled")
    assert sum(len(labels) > 1 for labels in scrambled.values()) > 0.9 * len(scrambled)
    assert not labels_of_words("Sources", "weather", "unhelped")


@pytest.mark.parametrize("world", WORLDS)
def test_a_world_is_a_study(world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_study(tmp_path, world, 0, 1)
    assert yaml.safe_load((tmp_path / "config.yaml").read_text()) == build_config(world, 0, 1)
    monkeypatch.chdir(tmp_path)
    try:
        runs = open_study("config.yaml").plan.runs
    finally:
        replace_declared_datasets(())
    assert len([run for run in runs if run.about["sources"]]) == 2


def test_an_answer_is_right_only_if_it_recommends_what_helps() -> None:
    unlearned = f"{UNLEARNED}. For Tickets/intent, use TF-IDF with logistic regression (score 79)."
    found = f"{UNLEARNED}. For Tickets/intent, {RECOMMENDED} (pretrain_finetune) (score 98.1)."
    other = f"{UNLEARNED}. For Tickets/intent, use transfer from Sources/mood (pretrain_finetune)."
    assert [is_right("helped", text) for text in (found, f"{FOUND}: +30", NONE, other)] == [
        *(True, True, False, False)
    ]
    for world in ("unhelped", "scrambled", "crippled"):
        assert is_right(world, unlearned)
        assert not any(is_right(world, text) for text in (found, FOUND, other))
    assert is_right("unhelped", NONE) and not is_right("crippled", NONE)


def answers(cells: pd.DataFrame, world: str) -> list[str]:
    """Return the answers of the studies of a kind of world."""
    runs = pd.DataFrame(columns=["dataset", "model", "algorithm", "source", "target", "seconds"])
    of_world: Any = cells[cells["world"] == world].groupby("world_seed")
    return [" ".join(describe_first_sources(group, runs)) for _, group in of_world]


@pytest.mark.parametrize("world", TRUTH)
def test_the_truth_is_found_in_four_of_five(world: str) -> None:
    said = answers(pd.read_csv(CELLS), world)
    assert len(said) == 5
    assert sum(text.startswith(TRUTH[world]) for text in said) >= 4


def test_nothing_is_found_where_what_helps_was_scrambled() -> None:
    """Otherwise finding the source would prove nothing."""
    assert not any(text.startswith(FOUND) for text in answers(pd.read_csv(CELLS), "scrambled"))


def test_the_page_counts_the_right_answers() -> None:
    rows = pd.read_csv(ANSWERS).to_dict("records")
    right = Counter(row["world"] for row in rows if is_right(row["world"], row["answer"]))
    assert right == dict.fromkeys(WORLDS, 5) and len(rows) == 20
    assert all(row["answer"].startswith(UNLEARNED) for row in rows)
    page = (ROOT / "docs" / "your-own-data.md").read_text(encoding="utf-8")
    lines = [
        line for line in page.splitlines() if line.startswith(tuple(f"| {w}:" for w in WORLDS))
    ]
    assert [line.split(" | ")[1:] for line in lines] == [
        ["5", "the transfer from the helpful source in 5 of 5 |"],
        *[["5", "no source |"]] * 3,
    ]
