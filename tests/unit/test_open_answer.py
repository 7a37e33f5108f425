"""The open answer: mean changes of the algorithms, and baselines that have not learned."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from tasktransfer.designs.transfer.figures.forest import (
    explain_hollow_intervals,
    has_hollow_interval,
)
from tasktransfer.designs.transfer.report import blocks
from tasktransfer.designs.transfer.report.advice import (
    describe_better_transfers,
    select_transfer_targets,
)
from tasktransfer.designs.transfer.report.answer import write_answer
from tasktransfer.designs.transfer.report.blocks import (
    build_changes_table,
    build_open_answer,
    build_unlearned_table,
)
from tasktransfer.designs.transfer.report.grid import build_payload, find_best_algorithms
from tasktransfer.designs.transfer.report.learned import (
    describe_baseline,
    describe_better_baselines,
    describe_unlearned_baselines,
    describe_unlearned_list,
)
from tasktransfer.designs.transfer.runs import format_task_name
from tasktransfer.present.numbers import format_signed
from tasktransfer.results.study import Study
from unlearned_results import RESULTS, UNLEARNED, A, B, C, compare, with_states

NAN = float("nan")


def summary(*rows: tuple[str, float, float, float, float], **more: Any) -> pd.DataFrame:
    """Return algorithm, mean, low, high and q of one dataset and model."""
    names = ["algorithm", "mean", "joint_low", "joint_high", "joint_q"]
    frame = pd.DataFrame(rows, columns=names)
    values = {"dataset": "Friends", "model": "m", "n_seeds": 2, "mean_low": -9.0, "mean_high": 9.0}
    return frame.assign(**{**values, **more})


PRE, MULTI, BOTH = "pretrain_finetune", "multitask", "multitask_finetune"


def rows_of(table: pd.DataFrame) -> list[list[str]]:
    """Return the printed lines of the answer's table."""
    changes = build_changes_table(table)
    assert changes is not None
    return [list(row) for block in changes.blocks for row in block]


def test_the_table_of_changes_has_the_best_algorithm_first_with_its_result() -> None:
    table = summary(
        (PRE, -2.5, -5, -0.03, 0.2), (MULTI, -1.8, -3, 0.4, 0.1), (BOTH, 2.49, 1.3, 3.6, 0.073)
    )
    assert rows_of(table) == [
        ["Friends", "Multitask → fine-tune", "+2.5 [+1.3, +3.6]", "0.073",
         "weak evidence of a gain"],
        ["Friends", "Multitask", "−1.8 [−3.0, +0.4]", "0.100", "no significant change"],
        ["Friends", "Pre-train → fine-tune", "−2.5 [−5.0, −0.03]", "0.200",
         "weak evidence of a loss"],
    ]  # fmt: skip
    changes = build_changes_table(table)
    assert changes is not None
    assert changes.caption.endswith(
        "A change is significant if q ≤ 0.05, adjusted for 3 means. Evidence is weak if the "
        "interval does not contain 0, but q > 0.05."
    )
    sure = summary((MULTI, -1.8, -3, -0.4, 0.01), (BOTH, 2.0, 1.3, 3.6, 0.03))
    assert [row[-1] for row in rows_of(sure)] == ["significant gain", "significant loss"]


def test_one_seed_is_not_tested_and_models_are_named() -> None:
    rows = (MULTI, 1.0, NAN, NAN, NAN), (BOTH, -1.0, NAN, NAN, NAN)
    one = summary(*rows, n_seeds=1, mean_low=NAN, mean_high=NAN)
    assert next(row[2:] for row in rows_of(one)) == ["+1.0", "not tested (one seed)"]
    two = pd.concat([summary(*rows), one.assign(model="n")])
    first, _, third, _ = rows_of(two)
    assert first[:2] == ["Friends", "m"] and third[:2] == ["Friends", "n"]
    assert first[3:] == ["+1.0 [−9.0, +9.0]", "not tested"]
    changes = build_changes_table(two)
    assert changes is not None and changes.caption.endswith("are over seeds only.")


def test_a_study_of_two_targets_has_no_table_of_algorithms() -> None:
    assert build_open_answer(RESULTS)[0].table is not None
    cells = RESULTS["cells"]
    few = cells[cells["target"] != A]
    assert build_open_answer(RESULTS.replace({"cells": few})) == []


# --- baselines ------------------------------------------------------------------------------------


def test_all_baselines_that_have_not_learned_are_listed_worst_first() -> None:
    compared = compare(("x", 39.0, "not better"), ("y", 20.0, "collapsed"), ("z", 70.0, "learned"))
    assert [*describe_unlearned_list(compared)] == [
        "Baselines that have not learned: y (collapsed) and x of D.",
        "A baseline has not learned if its mean score is not above the best simple reference, or "
        "if it has collapsed (one answer only). No baseline is significantly below its best "
        "simple reference (q > 0.05). No baseline is significantly above the best simple reference "
        "of the task.",
    ]
    assert [*describe_unlearned_list(compare(("z", 70.0, "learned")))] == []
    sure = compared.assign(q=[0.2, 0.01, 0.01])
    _, meaning = describe_unlearned_list(sure)
    assert (
        "significantly below their best simple reference (q ≤ 0.05): y of D. 1 of 3 baselines is "
        "significantly above the best simple reference of the task."
    ) in meaning
    untested = compared.assign(q=NAN)
    assert "significant" not in " ".join(describe_unlearned_list(untested))
    names, _ = describe_unlearned_list(compared, has_sources=False)
    assert names == "2 of 3 baselines have not learned: y (collapsed) and x of D."


def test_a_study_whose_baselines_have_not_learned_makes_no_claim() -> None:
    (answer,) = write_answer(with_states("not better", "collapsed", "not better"))
    assert answer.startswith("3 of 3 baselines have not learned.")
    assert (
        "cannot show which sources help" in answer
        and "Train for longer (training.updates" in answer
    )
    assert answer.endswith("so that the baselines learn their tasks.")
    assert "Averaged" not in answer and "→" not in answer


def test_baselines_are_compared_with_the_best_reference_if_one_has_learned() -> None:
    learned, unlearned = ("x", 50.0, "learned"), ("y", 20.0, "collapsed")
    same = "than the best simple reference on the same test instances (q ≤ 0.05)."
    compared = compare(learned, unlearned).assign(delta=[10.0, -20.0])
    assert [*describe_better_baselines(compared)] == [f"No baseline is significantly better {same}"]
    assert [*describe_better_baselines(compared[:1])] == [
        f"The baseline is not significantly better {same}"
    ]
    assert [*describe_better_baselines(compared[1:])] == []
    assert [*describe_better_baselines(compared[:0])] == []


def test_a_study_of_one_combination_is_described_in_the_singular() -> None:
    cells = RESULTS["cells"].iloc[:1].assign(q=0.4, significant=False)
    means = RESULTS["summary"].iloc[:1].assign(joint_q=0.4)
    text = " ".join(write_answer(RESULTS.replace({"cells": cells, "summary": means})))
    assert "(q > 0.05 in the only combination of source, target, model and algorithm)." in text
    assert "no algorithm changes scores significantly (q > 0.05)." in text


def test_only_targets_of_transfers_count() -> None:
    runs = [
        SimpleNamespace(method=PRE, about={"dataset": "DailyDialog", "target": A, "sources": (C,)}),
        SimpleNamespace(method="baseline", about={"dataset": "DailyDialog", "target": B}),
    ]
    study = SimpleNamespace(config=RESULTS.study.config, plan=SimpleNamespace(runs=runs))
    states = with_states("not better", "not better", "learned")
    of_a = select_transfer_targets(states["references"], cast(Study, study))
    assert list(of_a["target"]) == [A]
    assert select_transfer_targets(states["references"], RESULTS.study).equals(states["references"])


def list_methods(*rows: tuple[str, str | None, float, bool, float, float, float, float]) -> Any:
    """Return compared methods of a target: method, variant, score, recommended, delta, ends, q."""
    names = [
        *("method", "variant", "score", "recommended", "delta", "delta_low", "delta_high", "q")
    ]
    return pd.DataFrame(rows, columns=names).assign(dataset="D", target="x", model="m")


def test_a_transfer_that_beats_all_references_is_named_although_the_baseline_does_not() -> None:
    compared = compare(("x", 39.0, "not better"), ("z", 70.0, "learned"))
    transfer = ("transfer", f"{PRE}:Sources/kin", 60.0, True, NAN, NAN, NAN, NAN)
    frequent = ("most_frequent", None, 20.0, False, -40.0, -45.0, -35.0, 0.001)
    tfidf = ("tfidf_logistic", None, 40.0, False, -20.0, -25.0, -14.0, 0.01)
    assert [*describe_better_transfers(list_methods(frequent, tfidf, transfer), compared)] == [
        "A transfer is nevertheless significantly better than every simple reference for D/x (from "
        "Sources/kin, Pre-train → fine-tune: +20.0 [+14.0, +25.0] points over the best reference, "
        "TF-IDF with logistic regression). A baseline that is trained for longer might reach the "
        "same score."
    ]
    not_sure = (*tfidf[:-1], 0.06)
    assert not [*describe_better_transfers(list_methods(frequent, not_sure, transfer), compared)]
    not_chosen = (*transfer[:3], False, *transfer[4:])
    assert not [*describe_better_transfers(list_methods(frequent, tfidf, not_chosen), compared)]
    prompted = ("prompted", "4 shots", 30.0, False, -30.0, -35.0, -25.0, 0.001)
    assert not [*describe_better_transfers(list_methods(prompted, transfer), compared)]
    learned = compare(("x", 50.0, "learned"))
    assert not [*describe_better_transfers(list_methods(frequent, tfidf, transfer), learned)]


def test_claims_are_about_targets_whose_baselines_have_learned() -> None:
    everything, some = write_answer(RESULTS), write_answer(UNLEARNED)
    assert everything[0].startswith("Averaged over all pairs, 3 of 3 means differ significantly")
    assert everything[1].startswith("Of 18 combinations of source, target, model and algorithm, ")
    assert some[0].startswith("2 of 3 baselines have not learned.")
    assert f" For DailyDialog/{C}, none of the 2 sources helps significantly." in some[0]
    (averages,) = (line for line in some if line.startswith("Averaged over all pairs"))
    assert averages.endswith(
        "; 12 of the 18 averaged cells have a target whose baseline has not learned."
    )
    (counts,) = (line for line in some if line.startswith("Of "))
    assert counts.startswith(
        "Of 6 combinations of source, target, model and algorithm, none is significantly better"
    )
    assert counts.endswith(
        " Another 12 are not counted, because the baseline of their target has not learned."
    )
    assert any(line.startswith("The largest significant gain is TC → DN") for line in everything)
    (largest,) = (line for line in some if line.startswith("The largest"))
    assert largest.startswith("The largest significant loss is DN → TC")


def test_the_answer_has_whole_task_names() -> None:
    *_, names, _ = build_open_answer(UNLEARNED)
    assert f"{format_task_name(A)} and dialogue NLI of DailyDialog." in names.text


def test_tasks_that_are_only_sources_are_listed_after_the_targets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        blocks, "select_transfer_targets", lambda table, study: table[table["target"] != B]
    )
    *_, names, _, sources = build_open_answer(UNLEARNED)
    assert "dialogue NLI" not in names.text
    assert sources.text == (
        "Tasks that are only sources, and that their own models have not learned: dialogue NLI "
        "(DailyDialog)."
    )


def test_more_than_three_baselines_that_have_not_learned_have_a_table() -> None:
    rows = [(f"task_{n}", 10.0 * n, "not better") for n in range(3)]
    assert build_unlearned_table(compare(*rows, ("z", 70.0, "learned"))) is None
    states = compare(*rows, ("dialogue_nli", 39.0, "collapsed"), ("z", 70.0, "learned"))
    with_intervals = states.assign(
        delta=states["score"] - states["reference_score"], low=-45.0, high=5.0
    )
    table = build_unlearned_table(with_intervals)
    assert table is not None and table.folded
    lines = [row for block in table.blocks for row in block]
    label = "most frequent answer"
    assert lines[0] == [
        *("D", "task 0", "0.0", label, "40.0", "−40.0 [−45.0, +5.0]", "0.200", "has not learned")
    ]
    assert [line[1] for line in lines] == ["task 0", "task 1", "task 2", "dialogue NLI"]
    assert lines[-1][-1] == "has not learned (collapsed)"
    without = build_unlearned_table(states.drop(columns="q"))
    assert without is not None and "interval" not in without.caption
    assert next(row for block in without.blocks for row in block)[5:] == [
        "−40.0",
        "has not learned",
    ]
    short, *_ = describe_unlearned_baselines(with_intervals, has_table=True)
    assert short.startswith(f"4 of 5 baselines have not learned, see the table “{table.title}”. If")


def test_only_what_follows_the_twelfth_baseline_is_counted() -> None:
    eight, fourteen = (
        next(describe_unlearned_list(compare(*listed)))
        for listed in ([(f"t{i}", float(i), "not better") for i in range(n)] for n in (8, 14))
    )
    assert "more" not in eight and eight.endswith("t6 and t7 of D.")
    assert "t11 and 2 more of D." in fourteen


def test_a_state_says_whether_it_is_significant_and_how_many_seeds_collapsed() -> None:
    place = ("D", "m", "z")

    def describe(state: str, q: float, score: float, n_collapsed: int = 0) -> str:
        table = compare(("z", score, state)).assign(q=q)
        counts = {"algorithm": "baseline", "n_collapsed": n_collapsed, "n_runs": 2}
        collapsed = table[["dataset", "model", "target"]].assign(**counts)
        frames = RESULTS.replace({"references": table, "collapsed": collapsed})
        return describe_baseline(frames, place, score).state

    for q, words in (
        (0.01, "significantly above the best reference"),
        (0.3, "above the best reference, but not significantly"),
        (NAN, "above the best reference, not tested for significance"),
    ):
        assert describe("learned", q, 41) == f"has learned its task ({words})"
    assert describe("not better", 0.3, 13) == (
        "has not learned its task (score 13.0, compared with 40.0 for the best reference, most "
        "frequent answer)"
    )
    assert describe("collapsed", 0.3, 13, 1).startswith(
        "has not learned its task (collapsed in 1 of 2 seeds, score 13.0,"
    )


# --- the heatmap ----------------------------------------------------------------------------------


def test_the_heatmap_opens_on_the_algorithm_with_the_highest_mean_change() -> None:
    table = pd.concat(
        [
            summary((PRE, -2.5, -5, 0.1, 0.2), (BOTH, 2.0, 1, 3, 0.1)),
            summary((PRE, NAN, NAN, NAN, NAN), (MULTI, -1.0, -2, 1, 0.4), model="n"),
        ]
    )
    assert find_best_algorithms(table) == {"m": BOTH, "n": MULTI}


def test_the_card_of_a_target_has_the_state_of_its_baseline() -> None:
    (dataset,) = build_payload(UNLEARNED, "")["datasets"]
    assert dataset["opens"] == find_best_algorithms(RESULTS["summary"])
    facts = {name: dict(card["facts"]) for name, card in dataset["cards"].items()}
    assert facts[A]["baseline"].startswith("has not learned its task (score")
    assert facts[C]["baseline"] == (
        "has learned its task (above the best reference, but not significantly)"
    )


# --- numbers and marks ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (-0.03, "+.1f", "−0.03"),
        (0.03, "+.1f", "+0.03"),
        (-0.004, "+.2f", "−0.004"),
        (0.0, "+.1f", "+0.0"),
        (-1e-12, "+.1f", "+0.0"),
        (-0.06, "+.1f", "−0.1"),
        (0.03, ".1f", "0.0"),
        (NAN, "+.1f", "–"),
    ],
)
def test_the_sign_of_a_bound_is_visible(value: float, form: str, text: str) -> None:
    assert format_signed(value, form) == text


def test_hollow_marks_are_explained_only_if_an_interval_excludes_0() -> None:
    table = summary((MULTI, 2.5, 1.3, 3.6, 0.073), (PRE, 1.0, -1, 3, 0.4))
    ends = ("joint_low", "joint_high", "joint_q")
    assert has_hollow_interval(table, *ends)
    assert not has_hollow_interval(table.iloc[1:], *ends)
    assert not has_hollow_interval(table.assign(joint_q=0.01), *ends)
    assert not has_hollow_interval(table.iloc[:0], *ends)
    (note,) = explain_hollow_intervals(table, table.iloc[:0])
    assert "(Benjamini-Hochberg) for all 2 mean changes." in note
    assert explain_hollow_intervals(table.assign(joint_q=0.01), table.iloc[:0]) == []
