"""Resampled test sets, and their official scores."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tasktransfer import metrics
from tasktransfer.datasets import get_task
from tasktransfer.stats import draws
from tasktransfer.stats.draws import build_dialogue_units, build_instance_units

CHOICE = get_task("DailyDialog", "dialogue_reasoning_multiple_choice_span_selection")
accuracy = partial(metrics.compute_score_from_sums, CHOICE)


def test_units_are_the_dialogues_wherever_their_instances_stand() -> None:
    units = build_dialogue_units(["b", "a", "b", "c", "a"])
    assert units.of_instance.tolist() == [0, 1, 0, 2, 1]
    assert (units.count, units.instances, units.kind) == (3, 5, "dialogue")
    tally = np.arange(20.0).reshape(2, 5, 2)
    summed = units.sum_tally(tally)
    assert summed.shape == (2, 3, 2)
    assert (summed[:, 0] == tally[:, 0] + tally[:, 2]).all()
    assert (summed[:, 2] == tally[:, 3]).all()


def test_a_digest_says_which_instances_are_drawn_together() -> None:
    assert (
        build_dialogue_units(["x", "y", "x"]).digest == build_dialogue_units(["p", "q", "p"]).digest
    )
    assert (
        build_dialogue_units(["x", "y", "x"]).digest != build_dialogue_units(["x", "x", "y"]).digest
    )
    # Dialogues of one instance each are known to be that.
    assert build_dialogue_units(["x", "y"]).digest != build_instance_units(2).digest


def test_draws_depend_on_the_test_set_alone() -> None:
    weights = draws.sample_unit_weights("Friends", "question_answering", 70)
    assert weights.shape == (draws.RESAMPLES, 70)
    assert (weights.sum(axis=1) == 69).all()
    assert (weights == draws.sample_unit_weights("Friends", "question_answering", 70)).all()
    assert (weights != draws.sample_unit_weights("Friends", "reading_comprehension", 70)).any()


def test_leaving_units_out_gives_the_textbook_standard_error_exactly() -> None:
    """For a difference of two accuracies over 500 instances, without random sampling."""
    right = (np.random.default_rng(0).random((2, 500)) < [[0.6], [0.5]]).astype(float)
    without = draws.compute_jackknife_scores(np.stack([right, np.ones_like(right)], 2), accuracy)
    assert without.shape == (2, 500)
    error = (without[0] - without[1]).std(ddof=1)
    differences = 100 * (right[0] - right[1])
    assert error == pytest.approx(differences.std(ddof=1) / 500**0.5, rel=1e-12)


def test_leaving_dialogues_out_is_the_jackknife_worked_by_hand() -> None:
    """Three dialogues of 1, 2 and 3 instances, of which 1, 1 and 0 are correct."""
    without = draws.compute_jackknife_scores(np.array([[1.0, 1], [1, 2], [0, 3]]), accuracy)
    left = 100 * np.array([1 / 5, 1 / 4, 2 / 3])
    assert without.var(ddof=1) == pytest.approx(2 / 3 * ((left - left.mean()) ** 2).sum())


def test_unequal_dialogues_have_fewer_degrees_of_freedom() -> None:
    assert build_dialogue_units([str(i // 7) for i in range(70)]).degrees == 9
    assert build_instance_units(806).degrees == 805
    one_large = build_dialogue_units(["large"] * 60 + [str(i) for i in range(9)])
    assert 1 <= one_large.degrees < 1.1
    # As the trace of the jackknife's matrix says (Bell and McCaffrey 2002).
    sizes = np.array([1.0, 4, 9, 30, 2])
    share = sizes / sizes.sum()
    scale = np.diag(1 / (1 - share))
    matrix = scale @ (np.diag(share) - np.outer(share, share)) @ scale
    units = build_dialogue_units([str(i) for i, size in enumerate(sizes) for _ in range(int(size))])
    assert units.degrees == pytest.approx(np.trace(matrix) ** 2 / (matrix**2).sum())


@pytest.mark.parametrize("ids", [[], ["one"], ["one"] * 30])
def test_fewer_than_two_dialogues_tell_nothing(ids: list[str]) -> None:
    units = build_dialogue_units(ids)
    tally = units.sum_tally(np.ones((3, len(ids), 2)))
    weights = draws.sample_unit_weights("Friends", "question_answering", units.count)
    scores = draws.resample_scores(tally, weights, accuracy)
    assert scores.shape == (3, draws.RESAMPLES)
    assert np.isnan(scores).all()
    assert np.isnan(draws.compute_jackknife_scores(tally, accuracy)).all()


def test_two_dialogues_are_enough() -> None:
    tally = np.array([[1.0, 1], [0, 1]])
    weights = draws.sample_unit_weights("Friends", "question_answering", 2)
    assert {*draws.resample_scores(tally, weights, accuracy)} == {0.0, 100.0}
    assert np.isfinite(draws.compute_jackknife_scores(tally, accuracy)).all()


def test_resampling_goes_through_the_official_score() -> None:
    """Macro-F1 of the resampled instances, not a mean of instance scores."""
    task = get_task("DailyDialog", "dialogue_nli")
    golds = [("entailment",)] * 9 + [("contradiction",)]
    each = metrics.tally_instances(task, [("entailment",)] * 10, golds)
    weights = np.ones((1, 10), np.float32)
    weights[0, 9] = 0
    scores = draws.resample_scores(each, weights, partial(metrics.compute_score_from_sums, task))
    wanted = metrics.evaluate_predictions(task, [("entailment",)] * 9, golds[:9])
    assert scores == pytest.approx([metrics.compute_task_score(task, wanted)])
