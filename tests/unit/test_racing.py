"""Races between sources: runs, remaining pairs, and rows with an interval."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from delta_frames import make_cells, make_deltas
from small_study import changed, parse, refusal

from tasktransfer.designs.transfer.choices import (
    NAMES,
    Race,
    RacingConfig,
    count_continuing_sources,
    count_transfers,
    format_choice_name,
)
from tasktransfer.designs.transfer.design import TRANSFER
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.statistics.deltas import (
    compute_race_table,
    drop_intervals,
    drop_selection_seeds,
    select_continuing_pairs,
)
from tasktransfer.designs.transfer.study_plan import plan_study
from tasktransfer.results.planned_study import write_choice
from tasktransfer.results.revisions import find_revisions

RACING = {"seeds": [1, 2, 5], "keep": [0.5, 0.34]}
USUAL = RacingConfig.model_validate(RACING)


def study(folder: Path, **more: Any) -> dict[str, Any]:
    raced = changed("racing", to=RACING)
    return {**raced, "algorithms": ["multitask"], "seeds": 5, "results": str(folder), **more}


def planned(folder: Path) -> Any:
    config = parse(study(folder))
    revisions, _ = find_revisions(config, need_inputs=False)
    return plan_study(config, revisions)


def transfers(of: Any) -> Counter[int]:
    """Return seed → single-source transfers."""
    return Counter(run.seed for run in of.runs if run.method != BASELINE)


def test_a_round_adds_seeds_of_what_went_on(tmp_path: Path) -> None:
    first = planned(tmp_path)
    assert transfers(first) == {0: 8}
    assert [(one.name, one.made) for one in first.choices] == [("race_1", False)]
    cells = [
        ("DailyDialog", "tiny-bert", "multitask", "dialogue_nli", "topic_classification"),
        ("Friends", "tiny-bert", "multitask", "question_answering", "relation_extraction"),
    ]
    kept = [dict(zip(NAMES, cell, strict=True)) for cell in cells]
    write_choice(str(tmp_path), format_choice_name(1), kept)
    second = planned(tmp_path)
    assert transfers(second) == {0: 8, 1: 2}
    assert [(one.name, one.made) for one in second.choices] == [("race_1", True), ("race_2", False)]
    write_choice(str(tmp_path), format_choice_name(2), kept[:1])
    third = planned(tmp_path)
    assert transfers(third) == {0: 8, 1: 2, 2: 1, 3: 1, 4: 1}
    assert all(one.made for one in third.choices)
    # What a choice was made from is what was there before it, whatever came later.
    assert {n.digest for n in third.choices[0].after} == {n.digest for n in first.stages}


def test_the_best_of_each_target_continue_by_dev() -> None:
    cell = [("D", "m", "a", source, target) for target in "xy" for source in "pqrs"]
    dev = dict(zip(cell, [1.0, 4, 3, 2, 5, 5, 0, 0], strict=True))
    counts = dict.fromkeys(cell, 4)
    assert {one[3:] for one in select_continuing_pairs(dev, 0.5, counts)} == {
        *(("q", "x"), ("r", "x"), ("p", "y"), ("q", "y"))
    }
    assert [count_continuing_sources(n, 0.34) for n in (1, 2, 5, 8)] == [1, 1, 2, 3]


@pytest.mark.parametrize("sources", [5, 6, 9, 16])
def test_a_race_takes_less_than_half_of_the_runs(sources: int) -> None:
    assert count_transfers(USUAL, [sources]) / (5 * sources) <= 0.45


@pytest.mark.parametrize("spread", [(1.0, 1.0), (2.0, 2.0), (3.0, 2.0), (3.0, 3.0)])
def test_a_race_finds_nearly_as_good_a_source_as_the_whole_grid(
    spread: tuple[float, float],
) -> None:
    """Simulated targets with six, nine and sixteen sources: at most half a point is lost."""
    random = np.random.default_rng(4)
    for sources in (6, 9, 16):
        truth = random.normal(0, spread[0], (600, sources))
        dev = truth[..., None] + random.normal(0, spread[1], (600, sources, 5))
        lost = []
        for true, seen in zip(truth, dev, strict=True):
            left = list(range(sources))
            for seeds, share in zip(USUAL.seeds, (*USUAL.keep, 0.0), strict=True):
                means = {("", "", "", f"{s:02}", ""): seen[s, :seeds].mean() for s in left}
                kept = select_continuing_pairs(means, share, dict.fromkeys(means, len(left)))
                left = [int(cell[3]) for cell in kept]
            lost.append(true[seen.mean(1).argmax()] - true[left[0]])
        assert np.mean(lost) <= 0.5, (sources, np.mean(lost))


def test_no_interval_is_of_seeds_that_chose() -> None:
    deltas = make_deltas(lambda m, a, s, t, seed: float(seed), tasks="abc", seeds=range(5))
    cell = ("DailyDialog", "bert", "multitask", "a", "b")
    race = Race(((0,), (0, 1), (0, 1, 2, 3, 4)), (frozenset([cell]), frozenset([cell])))
    in_it = (deltas["source"] == "a") & (deltas["target"] == "b")
    raced = deltas[in_it | (deltas["seed"] == 0)]
    fresh = drop_selection_seeds(raced, race)
    assert sorted(fresh[fresh["target"] == "b"]["seed"]) == [0, 2, 3, 4]
    cells = make_cells(deltas).assign(low=-1.0, high=1.0, p=0.01, q=0.01, significant=True)
    found = drop_intervals(cells, race).set_index(["source", "target"])
    assert found.loc[("a", "b"), "low"] == -1
    assert found["low"].notna().sum() == 1
    assert set(found["no_interval"].dropna()) == {"left the race"}
    table = compute_race_table(raced, race).set_index(["source", "target"])
    assert table.loc[("a", "b"), "delta_chosen"] == 0.5
    assert table.loc[("a", "b"), "delta_fresh"] == 3
    assert table.loc[("b", "a"), "left_after"] == 1
    assert np.isnan(table.loc[("b", "a"), "delta_fresh"])


@pytest.mark.parametrize(
    ("racing", "told"),
    [
        ({"seeds": [1, 2], "keep": [0.5, 0.5]}, "2 fractions for 2 rounds"),
        ({"seeds": [2, 1], "keep": [0.5]}, "must increase"),
        ({"seeds": [1, 9], "keep": [0.5]}, "Set seeds: 9"),
        ({"seeds": [1, 2], "keep": [1.5]}, "racing.keep"),
    ],
)
def test_races_that_cannot_be_are_refused(
    tmp_path: Path, racing: dict[str, Any], told: str
) -> None:
    assert told in refusal(study(tmp_path, racing=racing))


def test_what_cannot_race_is_refused_and_the_saving_is_reported(tmp_path: Path) -> None:
    assert "controls" in refusal(study(tmp_path, controls=["self_transfer"]))
    (line,) = (
        one for one in TRANSFER.notes(parse(study(tmp_path))) if one.startswith("With racing")
    )
    assert line == "With racing, the study trains 28 single-source transfers instead of 40 (70 %)."
