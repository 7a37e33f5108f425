"""Outcomes: one model or several, evaluated without training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from small_models import Loader, small_stage
from tasktransfer.core.nodes import Evaluation, Outcome, Start
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError
from tasktransfer.evaluation.measures import compute_measures
from tasktransfer.evaluation.outcome import EvaluationInputs, predict_split
from tasktransfer.metrics.measures import convert_answers_to_numbers
from tasktransfer.training.hardware import Hardware

TASK = "emotion_recognition"
STAGES = [small_stage(TASK, seed=seed) for seed in range(3)]


@pytest.fixture(scope="module")
def places(
    load: Loader, models_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> EvaluationInputs:
    """Write three checkpoints, each of which always predicts another label."""
    folder = tmp_path_factory.mktemp("outcomes")
    for label, stage in enumerate(STAGES):
        model, _ = load("encoder", "DailyDialog", TASK)
        with torch.no_grad():
            for name, parameter in model.get_parts()[f"head.{TASK}"].items():
                parameter.zero_()
                if name.endswith("bias"):
                    parameter[label] = 10.0 * (label + 1)
        (folder / stage.digest).mkdir()
        model.save(folder / stage.digest)
    return EvaluationInputs(
        {(STAGES[0].data, STAGES[0].model.name): models_folder / "DailyDialog-encoder"},
        lambda start: str(folder / start.stage.digest) if start.stage else "",
        base=lambda model: "",
        beside=lambda model: None,
        revision=lambda model: None,
        hardware=Hardware(),
    )


def evaluation(outcome: Outcome, **settings: object) -> Evaluation:
    return Evaluation(outcome, STAGES[0].data, TASK, ("micro_f1",), settings=settings)


def label_of(outcome: Outcome, places: EvaluationInputs, **settings: object) -> str:
    """Return the label that an outcome predicts for every instance."""
    told = predict_split(evaluation(outcome, **settings), outcome, places)
    (answer,) = {answer[0] for answer in told.predictions}
    return answer


def test_one_model_answers(places: EvaluationInputs) -> None:
    labels = get_task("DailyDialog", TASK).labels
    for number, stage in enumerate(STAGES):
        assert label_of(Outcome((Start(stage),)), places) == labels[number]


def test_answers_are_averaged_as_numbers(places: EvaluationInputs) -> None:
    outcome = Outcome((Start(STAGES[0]), Start(STAGES[2])), "mean")
    told = predict_split(evaluation(outcome), outcome, places)
    assert set(told.values) == {1.0}
    assert label_of(outcome, places) == get_task("DailyDialog", TASK).labels[1]


def test_an_instance_goes_to_the_model_of_its_domain(places: EvaluationInputs) -> None:
    outcome = Outcome(tuple(map(Start, STAGES)), "route", ("a", "b", "c"))
    assert label_of(outcome, places, domain="b") == get_task("DailyDialog", TASK).labels[1]
    with pytest.raises(
        ConfigError, match=r"settings\.domain: .* no domain 'd'\. Choose one of a, b, c"
    ):
        label_of(outcome, places, domain="d")


@pytest.mark.parametrize(("how", "label"), [("mean", 2), ("max", 2)])
def test_parameters_are_merged(places: EvaluationInputs, how: str, label: int) -> None:
    """The biases of the head are 10, 20 and 30 for labels 0, 1 and 2, and 0 otherwise."""
    part = (f"head.{TASK}",)
    starts = tuple(Start(stage, parts=part, merged=how) for stage in STAGES)  # type: ignore[arg-type]
    outcome = Outcome(starts)
    assert label_of(outcome, places) == get_task("DailyDialog", TASK).labels[label]


def test_merging_by_minimum_leaves_no_label_before_another(places: EvaluationInputs) -> None:
    starts = tuple(Start(stage, parts=(f"head.{TASK}",), merged="min") for stage in STAGES)
    assert label_of(Outcome(starts), places) == get_task("DailyDialog", TASK).labels[0]


def test_a_base_model_has_nothing_to_be_judged_by(places: EvaluationInputs) -> None:
    outcome = Outcome((Start(None),))
    with pytest.raises(ConfigError, match="A base model has no head"):
        predict_split(evaluation(outcome), outcome, places)


def test_measures_are_those_of_the_card_and_correlations() -> None:
    task = get_task("DailyDialog", TASK)
    golds = [(label,) for label in task.labels]
    same = compute_measures(
        task, ("spearman", "micro_f1"), golds, golds, convert_answers_to_numbers(task, golds)
    )
    assert same["spearman"] == pytest.approx(1.0)
    reverse = golds[::-1]
    turned = compute_measures(
        task, ("spearman",), reverse, golds, convert_answers_to_numbers(task, reverse)
    )
    assert turned["spearman"] == pytest.approx(-1.0)
    with pytest.raises(ConfigError, match=r"has no measure 'bleu'. Choose one of .*spearman"):
        compute_measures(task, ("bleu",), golds, golds, [])
