"""Expected gains from a selector's values, and ``recommend`` on a finished matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_study import SMALL, parse

from tasktransfer.designs.transfer.recommend import (
    Question,
    _transfers,
    as_text,
    estimate_gain,
    list_better_than_random,
    parse_question,
    recommend_sources,
)
from tasktransfer.errors import ConfigError
from tasktransfer.results.revisions import find_revisions
from tasktransfer.results.study import Study
from tasktransfer.selection.expected_gain import fit_expected_gain
from tasktransfer.selection.values import find_unlearned

SOURCES = ("dialogue_nli", "emotion_recognition")
QUESTION = Question("DailyDialog", "topic_classification", SOURCES)


def study(**more: Any) -> Study:
    config = parse({**SMALL, **more})
    revisions, absent = find_revisions(config, need_inputs=False)
    from tasktransfer.designs.transfer.plan import plan  # noqa: PLC0415

    return Study(config, "study.yaml", {}, revisions, absent, plan)


def grid(slope: float, noise: float, targets: int = 20) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    values = random.normal(size=(targets, 8))
    gains = 1 + slope * values + random.normal(0, noise, (targets, 8))
    return values, gains


def test_a_selector_that_tells_gains_promises_them() -> None:
    values, gains = grid(slope=2.0, noise=0.5)
    found = fit_expected_gain(values, gains)
    assert found is not None
    assert found.slope == pytest.approx(1.8, abs=0.3)  # in deviations
    assert found.error < 0.6 * found.constant_error
    assert found.covered >= 0.9
    expected, low, high = found.of(np.array([-1.0, 0, 1]))
    assert list(expected) == sorted(expected)
    assert (low < expected).all() and (expected < high).all()


def test_noise_promises_the_mean_gain() -> None:
    values, gains = grid(slope=0.0, noise=1.0)
    found = fit_expected_gain(values, gains)
    assert found is not None
    assert abs(found.slope) < 0.25
    assert found.error == pytest.approx(found.constant_error, rel=0.05)


def test_two_targets_promise_nothing() -> None:
    values, gains = grid(1.0, 1.0, targets=2)
    assert fit_expected_gain(values, gains) is None


def matrix(slope: float, q: float) -> dict[str, pd.DataFrame]:
    """Write a finished matrix in which ``logme`` predicts gains."""
    rows, values = [], []
    random = np.random.default_rng(2)
    for t in range(8):
        for s in range(5):
            names = ("Friends", f"t{t}", f"s{s}")
            value = random.normal()
            gain = slope * value + random.normal(0, 0.1)
            rows.append((*names, 1, 0, gain))
            values.append((*names, "logme", value))
    keys = ["dataset", "target", "source"]
    deltas = pd.DataFrame(rows, columns=[*keys, "n_sources", "seed", "delta"])
    regret = pd.DataFrame(
        [("logme", "regret@1", 0.5, -1.0, q), ("size", "regret@1", 0.9, -1.0, 0.5)],
        columns=["selector", "measure", "value", "to_random", "to_random_q"],
    )
    selectors = pd.DataFrame(values, columns=[*keys, "selector", "value"])
    return {"deltas": deltas, "dev": deltas, "selectors": selectors, "regret": regret}


def test_only_what_the_intervals_tell_from_chance_is_sure() -> None:
    assert list_better_than_random(matrix(1, 0.01)) == ["logme"]
    assert list_better_than_random(matrix(1, 0.2)) == []
    assert list_better_than_random({}) == []


def test_nothing_is_learnt_of_the_target_itself() -> None:
    table = matrix(1, 0.01)
    whole = estimate_gain("logme", QUESTION, table)
    without = estimate_gain("logme", Question("Friends", "t0", ("s0",)), table)
    assert whole is not None and without is not None
    assert (whole.targets, without.targets) == (8, 7)


def test_a_source_of_another_dataset_has_its_gains_on_that_of_a_matrix() -> None:
    table = matrix(1, 0.01)
    asked = Question("DailyDialog", "topic_classification", ("Friends/s0", "dialogue_nli"))
    gains = _transfers(asked, table)
    of_s0 = table["dev"].query("source == 's0'")["delta"]
    assert gains["Friends/s0"].tolist() == of_s0.tolist()
    assert not len(gains["dialogue_nli"])
    its_own = Question("Friends", "t0", ("s0", "s1"))
    assert len(_transfers(its_own, table)["s0"]) == len(of_s0) - 1


def test_without_a_sure_selector_a_probe_is_named() -> None:
    told = recommend_sources(study(), QUESTION, ["kind"], {})
    assert told["ranked_by"] == "kind"
    assert told["sources"][0]["value"] >= told["sources"][1]["value"]
    assert told["learnt_from"] is None
    assert "selectors: [probe]" in told["next"][0]
    text = as_text(told)
    assert "not significantly better than random" in text
    assert "no expected gain" in text


def states(state: str) -> pd.DataFrame:
    """Return the table ``references`` of the question's target."""
    row = {"dataset": QUESTION.dataset, "model": "bert", "target": QUESTION.target}
    scores = {"reference": "frozen_logistic", "reference_score": 30.0, "score": 20.0}
    interval = {"delta": -10.0, "low": -15.0, "high": -5.0, "q": 0.01}
    return pd.DataFrame([{**row, **scores, **interval, "is_best": True, "state": state}])


@pytest.mark.parametrize(("state", "warns"), [("not better", True), ("learned", False)])
def test_a_target_that_no_baseline_has_learned_gets_a_warning(state: str, warns: bool) -> None:
    told = recommend_sources(study(), QUESTION, ["kind"], {"references": states(state)})
    text = as_text(told)
    assert ("warning: 1 of 1 baselines does not beat a reference" in text) is warns
    assert ("difference −10.0 [−15.0, −5.0]" in text) is warns


def test_targets_that_no_baseline_has_learned_are_found_by_model() -> None:
    rows = states("collapsed")[["dataset", "model", "target"]]
    other = rows.assign(model="gpt2")
    both = pd.concat([rows, other], ignore_index=True)
    assert find_unlearned(both, states("collapsed")).tolist() == [True, False]
    assert find_unlearned(both, None).tolist() == [False, False]


def test_targets_and_sources_have_to_be_the_studys() -> None:
    asked = parse_question(study(), "topic_classification", [])
    assert asked == Question("DailyDialog", "topic_classification", SOURCES[::-1])
    assert parse_question(
        study(), "DailyDialog/topic_classification", ["dialogue_nli"]
    ).sources == ("dialogue_nli",)
    with pytest.raises(ConfigError, match="DailyDialog/topic_classification"):
        parse_question(study(), "nothing", [])
    with pytest.raises(ConfigError, match="not a source"):
        parse_question(study(), "topic_classification", ["question_answering"])
