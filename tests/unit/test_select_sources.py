from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from record_factory import constructed, single_source_runs

from constructed_records import result
from tasktransfer.errors import RecordError
from tasktransfer.results.collect import Collected
from tasktransfer.selection.choose import (
    ChosenSources,
    select_sources_from_tables,
    select_targets_and_sources,
)
from tasktransfer.selection.selector import ChooseBy
from transfer_frames import compute_frames

TASKS = "abcd"
# Delta of source -> target; benefit of a target is the mean of its column: a 2, b 5, c 5, d -1.
DELTAS = {
    ("b", "a"): 6.0, ("c", "a"): 0.0, ("d", "a"): 0.0,
    ("a", "b"): 1.0, ("c", "b"): 9.0, ("d", "b"): 5.0,
    ("a", "c"): 5.0, ("b", "c"): 5.0, ("d", "c"): 5.0,
    ("a", "d"): -1.0, ("b", "d"): -1.0, ("c", "d"): -1.0,
}  # fmt: skip


def deltas(dataset: str = "DailyDialog") -> pd.DataFrame:
    """Return two models, algorithms and seeds, with noise around DELTAS that cancels."""
    rows = [
        (dataset, model, algorithm, source, 1, target, seed, delta + sign * (model_n + algorithm_n))
        for (source, target), delta in DELTAS.items()
        for model_n, model in enumerate(("bert", "t5"))
        for algorithm_n, algorithm in enumerate(("multitask", "pretrain_finetune"))
        for seed, sign in enumerate((-3.7, 3.7))
    ]
    columns = ["dataset", "model", "algorithm", "source", "n_sources", "target", "seed", "delta"]
    return pd.DataFrame(rows, columns=columns)


def test_the_best_targets_and_their_best_sources_ties_by_name() -> None:
    assert select_targets_and_sources(deltas(), targets_per_dataset=3, sources_per_target=2) == [
        {"dataset": "DailyDialog", "target": "b", "sources": ["c", "d"], "chosen_by": "test"},
        {"dataset": "DailyDialog", "target": "c", "sources": ["a", "b"], "chosen_by": "test"},
        {"dataset": "DailyDialog", "target": "a", "sources": ["b", "c"], "chosen_by": "test"},
    ]


def test_row_order_does_not_matter_and_datasets_are_apart() -> None:
    both = pd.concat([deltas("Friends"), deltas()], ignore_index=True)
    shuffled = both.sample(frac=1, random_state=3)
    one = sorted(select_targets_and_sources(shuffled), key=lambda each: each["dataset"])
    other = sorted(select_targets_and_sources(both), key=lambda each: each["dataset"])
    assert one == other
    assert [(each["dataset"], each["target"]) for each in one] == [
        ("DailyDialog", "b"),
        ("DailyDialog", "c"),
        ("Friends", "b"),
        ("Friends", "c"),
    ]
    assert all(len(each["sources"]) == 3 for each in one)


def test_runs_of_several_sources_do_not_vote() -> None:
    several = deltas().assign(n_sources=2, source="a+b", target="d", delta=1000.0)
    assert select_targets_and_sources(pd.concat([deltas(), several])) == select_targets_and_sources(
        deltas()
    )


@pytest.mark.parametrize("how", ["absent", "nan"])
def test_one_missing_cell_is_refused(how: str) -> None:
    frame = deltas()
    if how == "absent":
        frame = frame.drop(index=17)
    else:
        frame.loc[17, "delta"] = float("nan")
    with pytest.raises(RecordError, match="lack the deltas of 1 cells, for example"):
        select_targets_and_sources(frame)


def test_asking_for_too_much_is_refused() -> None:
    with pytest.raises(RecordError, match="b has 3 sources, but 4"):
        select_targets_and_sources(deltas(), sources_per_target=4)
    with pytest.raises(RecordError, match="4 targets, but 5"):
        select_targets_and_sources(deltas(), targets_per_dataset=5)
    with pytest.raises(RecordError, match="no single-source runs"):
        select_targets_and_sources(deltas().assign(n_sources=2))


def with_other_test_scores(collected: Collected) -> Collected:
    """Change every record's test score at random, and keep its dev scores."""
    random = np.random.default_rng(7)
    records = copy.deepcopy(dict(collected.records))
    for record in records.values():
        for task in record["results"]:
            record["results"][task] = result(float(random.uniform(0, 100)))
    return replace(collected, records=records)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_split_that_is_requested_chooses(tmp_path: Path, split: ChooseBy) -> None:
    runs = single_source_runs("DailyDialog", ["bert"], TASKS, [0], ["multitask"])
    collected = constructed(
        tmp_path, runs, lambda run: 50.0 + (DELTAS[run[3][0], run[4]] if run[3] else 0.0)
    )
    wanted = {
        "dataset": "DailyDialog",
        "target": "b",
        "sources": ["c", "d"],
        "chosen_by": split,
    }

    def chosen(collected: Collected) -> list[ChosenSources]:
        return select_sources_from_tables(compute_frames(collected), 1, 2, split)

    assert chosen(collected) == [wanted]
    assert (chosen(with_other_test_scores(collected)) == [wanted]) == (split == "dev")


def test_a_model_that_failed_altogether_is_not_overlooked(tmp_path: Path) -> None:
    runs = single_source_runs("DailyDialog", ["bert", "t5"], TASKS, [0], ["multitask"])
    tables = compute_frames(
        constructed(tmp_path, runs, lambda run: 50.0, leave_out=lambda run: run[1] == "t5")
    )
    with pytest.raises(RecordError, match="lack 16 single-source or baseline runs"):
        select_sources_from_tables(tables)
