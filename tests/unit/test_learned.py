"""Baselines that have not learned are named before anything about transfer."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tasktransfer.designs.transfer.report.answer import write_answer
from tasktransfer.designs.transfer.report.blocks import build_unlearned_table
from tasktransfer.designs.transfer.report.learned import (
    compare_scores,
    compare_with_best_reference,
    describe_baseline,
    describe_unlearned_baselines,
    list_unlearned_targets,
    select_learned_cells,
)
from tasktransfer.results.frames import Frames
from unlearned_results import RESULTS, A, B, C

REFERENCE = pd.DataFrame(
    [
        ("D", "topics", "most_frequent", 20.0),
        ("D", "topics", "tfidf_logistic", 31.0),
        ("D", "acts", "most_frequent", 40.0),
        ("D", "acts", "tfidf_logistic", 38.0),
        ("D", "never_trained", "most_frequent", 1.0),
    ],
    columns=["dataset", "target", "reference", "score"],
)


def runs(**scores: tuple[float, ...]) -> pd.DataFrame:
    rows: list[dict[str, Any]] = [
        {"dataset": "D", "model": "bert", "algorithm": "baseline", "target": target, "score": score}
        for target, found in scores.items()
        for score in found
    ]
    transfer = {"algorithm": "finetune", "target": "topics", "score": 90.0}
    return pd.DataFrame([*rows, {**rows[0], **transfer}])


def test_a_baseline_is_compared_with_the_best_reference_by_its_mean() -> None:
    compared = compare_scores(runs(topics=(30.0, 31.9), acts=(40.0,)), REFERENCE)
    rows = compared.set_index("target").to_dict("index")
    assert rows["topics"]["reference"] == "tfidf_logistic"
    assert (rows["topics"]["score"], rows["topics"]["n_runs"]) == (30.95, 2)
    assert rows["topics"]["state"] == "not better"
    assert rows["acts"]["reference"] == "most_frequent"
    assert rows["acts"]["state"] == "not better", "equal is not better"


def test_the_sentence_names_scores_references_and_what_to_do() -> None:
    (sentence,) = describe_unlearned_baselines(
        compare_scores(runs(topics=(30.0,), acts=(61.0,)), REFERENCE)
    )
    assert sentence.startswith("1 of 2 baselines has not learned. Scores of baselines")
    assert "D/topics (baseline: 30.0; TF-IDF with logistic regression: 31.0)" in sentence
    assert "training.updates" in sentence
    assert "acts" not in sentence
    assert "cannot show which sources help" in sentence


def test_a_study_without_sources_is_not_said_to_be_about_transfer() -> None:
    compared = compare_scores(runs(topics=(30.0,), acts=(61.0,)), REFERENCE)
    (sentence,) = describe_unlearned_baselines(compared, has_sources=False)
    assert "transfers" not in sentence
    assert "Use a reference, or train for longer (training.updates or training.epochs)." in sentence


def test_nothing_is_said_if_all_have_learned_or_nothing_is_known() -> None:
    learned = compare_scores(runs(topics=(50.0,), acts=(61.0,)), REFERENCE)
    for compared in (learned, pd.DataFrame()):
        assert not [*describe_unlearned_baselines(compared)]


def test_cells_of_targets_that_are_not_learned_get_no_recommendation() -> None:
    cells = pd.DataFrame({"dataset": "D", "model": "m", "target": ["x", "y"], "source": "a"})
    compared = cells.assign(state=["not better", "learned"], q=[0.5, 0.01])
    for known in (compared, compared.drop(columns="q")):
        assert select_learned_cells(cells, known)["target"].tolist() == ["y"]
    assert select_learned_cells(cells, pd.DataFrame()) is cells, "no reference is known"


def test_models_are_named_if_there_are_several() -> None:
    several = pd.concat([runs(topics=(1.0,)), runs(topics=(50.0,)).assign(model="gpt")])
    (sentence,) = describe_unlearned_baselines(compare_scores(several, REFERENCE))
    assert "1 of 2 baselines" in sentence
    assert "D/topics with bert (baseline: 1.0;" in sentence


# --- without references -------------------------------------------------------------------------


def collapse(*targets: str) -> Frames:
    """Return results without references in which the baselines of these targets have collapsed."""
    count = len(targets)
    table = pd.DataFrame({"target": targets, "n_collapsed": 2, "n_runs": 2}).assign(
        dataset="DailyDialog", model="bert", algorithm="baseline", source=count * [""]
    )
    empty = {"references": pd.DataFrame(), "reference": pd.DataFrame()}
    return RESULTS.replace({"collapsed": table, **empty})


def test_without_references_a_collapsed_baseline_has_not_learned() -> None:
    frames = collapse(A, B)
    compared = compare_with_best_reference(frames).set_index("target")
    assert compared["state"].to_dict() == {A: "collapsed", B: "collapsed", C: "learned"}
    assert list_unlearned_targets(frames, "DailyDialog", "bert") == [A, B]
    answer = write_answer(frames)[0]
    assert answer.startswith("2 of 3 baselines have not learned. Scores of baselines that have not")
    assert f"DailyDialog/{A} (baseline: " in answer
    assert "; collapsed)" in answer
    assert "references" not in answer.partition("Train for longer")[0]
    learned = select_learned_cells(frames["cells"], compare_with_best_reference(frames))
    assert set(learned["target"]) == {C}
    state = describe_baseline(frames, ("DailyDialog", "bert", A), 30.0)
    assert state.state == "has not learned its task (collapsed in 2 of 2 seeds)"
    assert not state.has_learned
    assert describe_baseline(frames, ("DailyDialog", "bert", C), 30.0).has_learned


def test_without_references_the_table_has_no_differences() -> None:
    frames = collapse(A, B)
    many = pd.concat([compare_with_best_reference(frames)] * 2)
    table = build_unlearned_table(many)
    assert table is not None
    assert "difference" not in str(table)
    assert "Best reference" not in str(table)


def test_without_references_and_collapsed_baselines_nothing_is_known() -> None:
    assert compare_with_best_reference(collapse()).empty
