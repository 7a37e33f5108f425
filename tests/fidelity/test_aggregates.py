"""The four aggregates of the paper (section 3.3, Table 2) and bottom-1 (section 6.1).

They are compared with numbers computed by hand, and the published table with itself.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.published import Correspondence
from tasktransfer.designs.transfer.tables import table2
from tasktransfer.designs.transfer.tables.multi_source_tables import compute_multi_source_gains
from tasktransfer.designs.transfer.tables.table2 import compute_aggregates
from tasktransfer.present.marks import format_notes, list_marks
from tasktransfer.present.printed import to_latex, to_markdown
from tasktransfer.results.store import Metadata

# Two seeds, three tasks. Score of source -> target with seed 0 and with seed 1.
BASELINES = {"a": (40.0, 42.0), "b": (50.0, 50.0), "c": (60.0, 64.0)}
SCORES = {
    ("b", "a"): (44.0, 44.0),  # mean 44, delta +3
    ("c", "a"): (30.0, 50.0),  # mean 40, delta -1: best within seed 1, not over seeds
    ("a", "b"): (49.0, 47.0),  # mean 48, delta -2
    ("c", "b"): (46.0, 46.0),  # mean 46, delta -4: all of b's transfer is negative
    ("a", "c"): (63.0, 65.0),  # mean 64, delta +2
    ("b", "c"): (60.0, 58.0),  # mean 59, delta -3
}
METADATA = Metadata(study="by_hand", config_digest="0", synthetic=False, records=18)
NOTHING = pd.DataFrame(
    columns=["dataset", "model", "algorithm", "source", "n_sources", "target", "seed"]
)


def deltas(dataset: str = "DailyDialog", model: str = "bert", shift: float = 0) -> pd.DataFrame:
    rows = [
        {
            "dataset": dataset,
            "model": model,
            "algorithm": "multitask",
            "source": source,
            "n_sources": 1,
            "target": target,
            "seed": seed,
            "score": scores[seed] + shift,
            "baseline_score": BASELINES[target][seed],
            "delta": scores[seed] + shift - BASELINES[target][seed],
        }
        for (source, target), scores in SCORES.items()
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows)


def in_markdown(table: pd.DataFrame, metadata: Metadata = METADATA) -> str:
    return to_markdown(table2.lay_out_table(table, metadata), said(table, metadata), "Table 2")


def in_latex(table: pd.DataFrame, metadata: Metadata = METADATA) -> str:
    return to_latex(table2.lay_out_table(table, metadata), said(table, metadata), "table2")


def said(table: pd.DataFrame, metadata: Metadata) -> str:
    comparable = Correspondence(frozenset(), {}, "", metadata)
    texts = [*table2.describe_table(table, metadata, comparable)]
    return " ".join(format_notes(list_marks(metadata), [text for text in texts if text]))


def only_row(frame: pd.DataFrame) -> Any:
    assert len(frame) == 1
    return frame.iloc[0]


def test_aggregates_by_hand() -> None:
    row = only_row(compute_aggregates(deltas(), NOTHING))
    assert row.average_score == pytest.approx((44 + 40 + 48 + 46 + 64 + 59) / 6)
    assert row.average_delta == pytest.approx((3 - 1 - 2 - 4 + 2 - 3) / 6)
    # Targets a and c: their best source; b: its baseline, 50, beats every source.
    assert row.top1_score == pytest.approx((44 + 50 + 64) / 3)
    assert row.top1_delta == pytest.approx((3 + 0 + 2) / 3)
    assert row.bottom1_score == pytest.approx((40 + 46 + 59) / 3)
    assert row.bottom1_delta == pytest.approx((-1 - 4 - 3) / 3)
    # Averages within seed 0 and seed 1: scores 292/6 and 310/6, deltas -8/6 and -2/6.
    assert row.average_sigma == pytest.approx(statistics.stdev([292 / 6, 310 / 6]))
    assert row.average_delta_sigma == pytest.approx(statistics.stdev([-8 / 6, -2 / 6]))
    assert (row.n_cells, row.n_expected, row.n_seeds, row.complete) == (12, 12, 2, True)


def test_the_best_source_is_chosen_after_averaging_over_seeds() -> None:
    # Per seed, the best sources of a are b (44) and c (50): 47. If averaged first, it is b: 44.
    row = only_row(compute_aggregates(deltas().query("target == 'a'"), NOTHING))
    assert row.top1_score == 44.0
    assert row.top1_delta == 3.0


def test_score_minus_delta_is_the_mean_baseline_for_both_aggregates() -> None:
    row = only_row(compute_aggregates(deltas(), NOTHING))
    baseline = statistics.mean(statistics.mean(pair) for pair in BASELINES.values())
    assert row.average_score - row.average_delta == pytest.approx(baseline)
    assert row.top1_score - row.top1_delta == pytest.approx(baseline)


def test_one_seed_has_no_sigma() -> None:
    row = only_row(compute_aggregates(deltas().query("seed == 0"), NOTHING))
    assert math.isnan(row.average_sigma)
    assert row.average_score == pytest.approx(292 / 6)


def test_groups_are_apart_and_keep_their_order() -> None:
    frame = pd.concat([deltas(model="t5", shift=1), deltas(), deltas("Friends", shift=-1)])
    table = compute_aggregates(frame, NOTHING)
    assert table[["dataset", "model"]].to_numpy().tolist() == [
        ["DailyDialog", "t5"],
        ["DailyDialog", "bert"],
        ["Friends", "bert"],
    ]
    assert table.average_delta.tolist() == pytest.approx([1 - 5 / 6, -5 / 6, -1 - 5 / 6])
    table = compute_aggregates(frame, NOTHING, {"model": ["bert", "t5"], "dataset": ["Friends"]})
    assert table.dataset.tolist() == ["Friends", "DailyDialog", "DailyDialog"]
    assert table.model.tolist() == ["bert", "bert", "t5"]


def test_runs_of_several_sources_do_not_enter() -> None:
    several = deltas().assign(n_sources=2, source="x+y", score=100.0, delta=90.0)
    pd.testing.assert_frame_equal(
        compute_aggregates(pd.concat([deltas(), several]), NOTHING),
        compute_aggregates(deltas(), NOTHING),
    )


def test_incomplete_cells_are_counted_and_marked() -> None:
    frame = deltas()
    absent = frame.iloc[:1].assign(reason="no record")
    orphan = frame.copy()
    orphan.loc[1, ["baseline_score", "delta"]] = float("nan")
    lost = pd.concat([absent, frame.iloc[1:2], frame.iloc[:2].assign(model="t5")])
    table = compute_aggregates(orphan.iloc[1:], lost)
    assert table.model.tolist() == ["bert", "t5"]
    assert table.n_cells.tolist() == [10, 0]
    assert table.n_expected.tolist() == [12, 2]
    assert table.n_pairs.tolist() == [6, 1]
    assert table.complete.tolist() == [False, False]
    # A score without a baseline is also left out of the average score: b -> a is not used at all.
    assert table.average_score[0] == pytest.approx((40 + 48 + 46 + 64 + 59) / 5)
    assert math.isnan(table.average_score[1])
    for text in (in_markdown(table), in_latex(table)):
        assert "10/12" in text
        assert "0/2" in text
    assert "Multitask†" in in_markdown(table)
    assert "$^{\\dagger}$" in in_latex(table)
    assert "†" not in in_markdown(compute_aggregates(deltas(), NOTHING))


def test_no_transfer_run_at_all_gives_an_empty_table() -> None:
    table = compute_aggregates(deltas().iloc[:0], NOTHING)
    assert table.empty
    assert "Average score" in in_markdown(table)


def test_table_2_is_printed_as_in_the_paper() -> None:
    table = compute_aggregates(deltas(model="a_b|c"), NOTHING)
    text = in_markdown(table)
    assert "| DailyDialog | a_b\\|c | Multitask | 50.17 (2.12) | −0.83 (0.71) | 52.67 |" in text
    assert "sample standard deviation" in text
    latex = in_latex(table)
    assert (
        "a\\_b\\textbar{}c & Multitask & 50.17 (2.12) & $-$0.83 (0.71) & 52.67 & +1.67 &" in latex
    )
    assert latex.count("{") == latex.count("}")
    assert "SYNTHETIC" not in text
    synthetic = Metadata("by_hand", "0", synthetic=True, records=18)
    assert "SYNTHETIC (tiny world)" in in_markdown(table, synthetic)
    assert "SYNTHETIC (tiny world)" in in_latex(table, synthetic)


def test_published_score_minus_delta_is_equal_across_algorithms() -> None:
    """Score minus delta is the mean baseline, which is the same for all algorithms.

    This confirms our reading of both equations (delta from the same baseline, max(baseline, score),
    max(0, delta)), and that the two aggregates agree on the baseline. Two numbers with two decimals
    may each be off by 0.005, so two such differences may be off by 0.02.
    """
    check = published.check_consistency()
    assert list(check.columns) == list(published.CONSISTENCY)
    assert len(check) == 18
    assert check["consistent"].all()
    groups = check.groupby(["dataset", "model"])
    assert groups.ngroups == 6
    for _, group in groups:
        assert len(group) == 3
        baselines = [*group["average_baseline"], *group["top1_baseline"]]
        assert max(baselines) - min(baselines) <= published.ROUNDING + 1e-9
        assert group["spread"].tolist() == [round(max(baselines) - min(baselines), 2)] * 3
    bert = check.iloc[0]
    assert (bert.average_baseline, bert.top1_baseline) == (51.54, 51.54)


def test_an_inconsistent_table_2_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    table = published.read_table2()
    table.loc[4, "top1_delta"] += 0.05
    monkeypatch.setattr(published, "read_table2", lambda: table)
    check = published.check_consistency()
    assert check.index[~check["consistent"]].tolist() == [3, 4, 5]


def test_multi_source_gain_by_hand() -> None:
    several = pd.DataFrame(
        [
            {
                "dataset": "DailyDialog",
                "model": "bert",
                "algorithm": "multitask",
                "source": "b+c",
                "n_sources": 2,
                "target": "a",
                "seed": seed,
                "delta": delta,
            }
            for seed, delta in ((0, 5.0), (1, 3.0))
        ]
    )
    row = only_row(compute_multi_source_gains(pd.concat([deltas(), several])))
    assert (row.multi_delta, row.single_delta, row.difference) == (4.0, (3 - 1) / 2, 3.0)
    assert (row.n_sources, row.n_singles, row.complete) == (2, 2, True)
    without = deltas().query("source != 'c' or target != 'a'")
    row = only_row(compute_multi_source_gains(pd.concat([without, several])))
    assert (row.single_delta, row.n_singles, row.complete) == (3.0, 1, False)
    alone = only_row(compute_multi_source_gains(several))
    assert math.isnan(alone.difference)
    assert (alone.n_singles, alone.complete) == (0, False)
    assert compute_multi_source_gains(deltas()).empty


def test_published_multi_source_tables_agree() -> None:
    """Table 3 is the difference in Table 6, as computed by ``multi_source_gain``.

    The exceptions, cells that the paper prints differently, are noted in the data.
    """
    keys = ["dataset", "target", "short", "model", "algorithm"]
    check = published.read_table6().merge(published.read_table3(), on=keys, validate="one_to_one")
    assert len(check) == 36
    off = check["multi_source_delta"] - check["single_source_delta"] - check["gain"]
    odd = check[~(off.abs() <= published.ROUNDING + 1e-9)]
    assert odd["note"].notna().all()
    assert odd[["short", "model", "algorithm"]].to_numpy().tolist() == [
        ["DNLI", "BERT", "pretrain_finetune"],
        ["DNLI", "T5", "pretrain_finetune"],
        ["CI", "GPT-2", "multitask_finetune"],
    ]


PUBLISHED_FILES = {
    "table1": ("table1_tasks.csv", {"fewshot_train": "train", "fewshot_dev": "dev"}),
    "table2": ("table2_single_source.csv", {}),
    "table3": (
        "table3_multi_source.csv",
        {"delta_vs_top3_single_source": "gain", "target": "short"},
    ),
    "table6": (
        "table6_multi_source_full.csv",
        {"top3_average_delta": "single_source_delta", "target": "short"},
    ),
}


@pytest.mark.parametrize("name", list(PUBLISHED_FILES))
def test_the_package_s_copy_is_the_published_table(shared: Path, name: str) -> None:
    file, renamed = PUBLISHED_FILES[name]
    original = pd.read_csv(shared / "paper" / file).rename(columns=renamed)
    copy = getattr(published, f"read_{name}")()
    pd.testing.assert_frame_equal(copy[list(original.columns)], original, check_dtype=False)


@pytest.mark.parametrize("read", [published.read_table3, published.read_table6])
def test_published_targets_are_named_in_full(read: Callable[[], pd.DataFrame]) -> None:
    for row in read().itertuples():
        assert get_task(row.dataset, row.target).short == row.short
