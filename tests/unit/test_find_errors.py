"""Confident errors and probable label errors, by file and line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from exported_study import CONFIG, WORDS
from tasktransfer import cli
from tasktransfer.data.cache import cache_dataset
from tasktransfer.designs import open_study
from tasktransfer.jobs.find_errors import FoundErrors, LabelledPlace, find_errors, list_method_fits
from tasktransfer.stats.label_errors import crossfit_probabilities, find_label_errors

WRONG = (3, 20, 41, 55)
"""Lines of the file, from 1, that have a wrong label."""
STUDY: dict[str, Any] = {
    **CONFIG,
    "models": [{"name": "bert", "family": "encoder", "checkpoint": "tiny"}],
    "references": ["most_frequent", "tfidf_logistic"],
    "training": {"epochs": 1},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a study with prepared dialogues, four of them with a wrong label."""
    folder, chance = tmp_path_factory.mktemp("study"), random.Random(0)
    rows = []
    for line in range(1, 61):
        intent = list(WORDS)[line % 3]
        words = " ".join(chance.choice(WORDS[intent]) for _ in range(4))
        if line in WRONG:
            intent = list(WORDS)[(line + 1) % 3]
        messages = [
            {"role": "a", "text": f"about the {words} number {line}", "mood": "calm"},
            {"role": "b", "text": "this is fine", "mood": "calm"},
        ]
        if line % 2:
            messages[1] |= {"text": "this is awful", "mood": "angry"}
        rows.append({"id": f"t{line}", "intent": intent, "messages": messages})
    (folder / "tickets.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        study = open_study("study.yaml")
        cache_dataset(
            "Tickets", study.get_release("Tickets"), False, study.get_instances_folder("Tickets")
        )
    return folder


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_wrong_labels_are_found_by_file_and_line() -> None:
    found = find_errors(open_study("study.yaml"), "intent", None)
    assert found.method == "tfidf_logistic" and found.instances == 60
    probable = {error.place for error in found.errors if error.probable_label_error}
    assert {f"tickets.jsonl:{line}" for line in WRONG} <= probable
    assert len(probable) <= len(WRONG) + 3
    probabilities = [error.probability for error in found.errors]
    assert probabilities == sorted(probabilities, reverse=True)
    lines = Path("tickets.jsonl").read_text().splitlines()
    for error in found.errors:
        row = json.loads(lines[int(error.place.rpartition(":")[2]) - 1])
        assert row["intent"] == error.label != error.predicted
        assert row["messages"][0]["text"] in error.text
        assert error.label_probability < error.probability


def test_turns_of_a_dialogue_are_never_in_two_folds() -> None:
    clusters = [f"d{number // 3}" for number in range(60)]
    seen = []

    def predict(train: Any, asked: Any) -> Any:
        assert not {clusters[n] for n in train} & {clusters[n] for n in asked}
        seen.extend(asked.tolist())
        return np.full((len(asked), 2), 0.5)

    probabilities = crossfit_probabilities(clusters, 2, predict)
    assert sorted(seen) == list(range(60)) and (probabilities == 0.5).all()


def test_no_fold_has_all_dialogues_of_a_label() -> None:
    """Two of 40 dialogues have the second label; sampled folds may put both into one."""
    given = np.array([0] * 38 + [1] * 2)
    clusters = [f"d{number}" for number in range(40)]

    def predict(train: Any, asked: Any) -> Any:
        known.append(len(set(given[train])))
        return np.full((len(asked), 2), 0.5)

    lacking = 0
    for seed in range(20):
        known: list[int] = []
        crossfit_probabilities(clusters, 2, predict, seed=seed)
        lacking += 1 in known
        known.clear()
        crossfit_probabilities(clusters, 2, predict, seed=seed, given=given)
        assert known == [2] * 5
    assert lacking > 0


def test_a_label_error_exceeds_the_threshold_of_another_label() -> None:
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.2, 0.8], [0.95, 0.05]])
    given = np.array([0, 0, 1, 1, 1])
    assert find_label_errors(probabilities, given).tolist() == [False] * 4 + [True]
    # 0.55 is the most probable label, and below what the label's instances usually have
    probabilities[4] = [0.55, 0.45]
    assert not find_label_errors(probabilities, given).any()


def test_the_command_writes_texts_only_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "errors.csv"
    words = ["errors", "study.yaml", "--task", "intent", "--out", str(out), "--top", "2"]
    assert cli.main(words) == 0
    printed = capsys.readouterr().out
    assert "labels differ from the prediction" in printed and "about the" not in printed
    frame = pd.read_csv(out)
    assert "text" not in frame and len(frame) >= len(WRONG)
    assert len(printed.strip().splitlines()) == 2 + 2
    assert cli.main([*words, "--texts"]) == 0
    assert pd.read_csv(out)["text"].str.contains("about the").all()
    assert "about the" in capsys.readouterr().out


def test_unknown_tasks_and_methods_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["errors", "study.yaml"]) != 0
    assert "Choose one of Tickets/intent, Tickets/mood" in capsys.readouterr().err
    assert cli.main(["errors", "study.yaml", "--task", "mood", "--method", "frozen_logistic"]) != 0
    assert "The study does not list this method" in capsys.readouterr().err


def test_a_fit_that_predicts_dev_is_not_a_method_of_its_own() -> None:
    checked = {
        **STUDY,
        "references": ["frozen_logistic"],
        "algorithms": ["baseline", "sequential"],
        "targets": ["Tickets/intent"],
        "check_baselines": True,
    }
    Path("checked.yaml").write_text(yaml.safe_dump(checked))
    study = open_study("checked.yaml")
    splits = {fit.settings.get("split", "test") for fit in study.plan.fits if "intent" in fit.tasks}
    assert splits == {"dev", "test"}
    tfidf, frozen = list_method_fits(study, "Tickets", "intent", None)
    assert tfidf is None
    assert frozen is not None and "split" not in frozen.settings


@pytest.mark.parametrize(("instances", "warns"), [(10, True), (100, False)])
def test_a_weak_method_is_not_evidence_against_labels(instances: int, warns: bool) -> None:
    place = LabelledPlace("own.jsonl:1", "train", "a", "b", 0.6, 0.1, True, "hello")
    summary = FoundErrors("Own", "intent", "tfidf_logistic", instances, [place] * 6).summary
    assert f"6 of {instances} labels differ" in summary
    assert ("predicts only 40 % of the labels" in summary) == warns
