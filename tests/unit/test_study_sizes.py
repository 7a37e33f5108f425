"""Sizes of the studies that ``tasktransfer init`` writes: lengths, sources and instances."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from declared_files import dialogue, lines
from forecast_studies import set_forecast, write_own

from tasktransfer.cli import main
from tasktransfer.cli.study_sizes import (
    SIZES,
    InputLengths,
    Size,
    choose_input_lengths,
    propose_studies,
)
from tasktransfer.core.references import CONTRASTIVE
from tasktransfer.datasets.declared.lengths import DialogueLengths

REFERENCES = ["most_frequent", "frozen_logistic", CONTRASTIVE]
LENGTHS = InputLengths(needed=150, readable=512, chosen=160, least=64)
OWN = {
    "Own": {
        "urgent": "utterance_classification",
        **dict.fromkeys(("topic", "mood", "tone", "style"), "dialogue_classification"),
    }
}
"""The user's other tasks."""


def write_dialogues(file: Path, words: int, count: int = 40, longer: int = 0) -> Path:
    """Write dialogues with a number of words in addition to those of ``dialogue``.

    Args:
        longer: number of dialogues that are 200 words longer.
    """
    rows = [dialogue("a", number) for number in range(count)]
    for number, row in enumerate(rows):
        more = words + 200 * (number < longer)
        row["messages"][0]["content"] += "".join(f" word{n}" for n in range(more))
    file.write_text(lines(rows))
    return file


def run_init(file: Path, hours: object, *options: str) -> int:
    """Run ``init`` in a few words; further options take precedence."""
    models = [] if "--model" in options else ["--model", "tiny"]
    given = ["--file", str(file), "--label", "intent", "--hours", str(hours), "--cores", "2"]
    return main(["init", *given, *models, "--out", str(file.parent / "study"), *options])


def read_config(file: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((file.parent / "study" / "config.yaml").read_text())
    return config


# --- lengths ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("percent", "expected"), [(95, 95), (100, 100), (50, 50), (1, 1)])
def test_a_percentile_is_a_length_that_dialogues_have(percent: int, expected: int) -> None:
    assert DialogueLengths(tokens=[*range(100, 0, -1)]).compute_percentile(percent) == expected
    assert DialogueLengths().compute_percentile(percent) == 0


@pytest.mark.parametrize(
    ("tokens", "readable", "has_prompts", "chosen"),
    [
        ([20] * 100, 512, False, 64),
        ([64] * 100, 512, False, 64),
        ([65] * 100, 512, False, 96),
        ([100] * 100, 512, False, 128),
        ([100] * 95 + [250] * 5, 512, False, 128),
        ([100] * 94 + [250] * 6, 512, False, 256),
        ([900] * 100, 512, False, 256),
        ([900] * 100, 200, False, 200),
        ([20] * 100, 40, False, 40),
        ([20] * 100, 512, True, 128),
        ([100] * 100, 512, True, 192),
        ([], 512, False, 64),
    ],
)
def test_max_length_is_chosen_from_95_percent_of_the_inputs(
    tokens: list[int], readable: int, has_prompts: bool, chosen: int
) -> None:
    lengths = choose_input_lengths(DialogueLengths(tokens), readable, has_prompts=has_prompts)
    assert lengths.chosen == chosen


@pytest.mark.parametrize(
    ("config", "chosen"),
    [
        ({"max_position_embeddings": 512, "pad_token_id": 0}, 256),
        ({"max_position_embeddings": 130, "pad_token_id": 1}, 128),  # as in RoBERTa
        ({"max_position_embeddings": 100}, 100),
        ({"n_positions": 150, "architectures": ["GPT2LMHeadModel"]}, 150),
        ({}, 256),
    ],
)
def test_max_length_is_not_above_what_each_model_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], chosen: int
) -> None:
    file = write_dialogues(tmp_path / "own.jsonl", 300)
    (tmp_path / "config.json").write_text(json.dumps(config))
    set_forecast(monkeypatch, lambda _: 0.1)
    assert run_init(file, 1, "--model", str(tmp_path), "--model", "tiny") == 0
    assert [model["max_length"] for model in read_config(file)["models"]] == [chosen, chosen]


def test_the_forecast_is_for_the_chosen_length(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hours = []
    for words, chosen in ((0, 64), (250, 256)):
        (tmp_path / str(words)).mkdir()
        file = write_dialogues(tmp_path / str(words) / "own.jsonl", words)
        assert run_init(file, 900) == 0
        assert read_config(file)["models"][0]["max_length"] == chosen
        printed = capsys.readouterr().out
        assert f"all instances, {chosen} tokens" in printed
        hours.append(float(printed.partition("forecast: ")[2].partition(" h")[0]))
    assert hours[0] < 0.9 * hours[1]


def test_a_longer_length_than_the_largest_is_left_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_dialogues(tmp_path / "own.jsonl", 100, longer=10)
    set_forecast(monkeypatch, lambda _: 0.1)
    assert run_init(file, 1) == 0
    printed = capsys.readouterr().err
    assert "10 dialogues (25 %) are longer than 256 tokens and are truncated" in printed
    assert "Raise models[].max_length in the config" in printed
    assert read_config(file)["datasets"]["Own"]["tasks"]["intent"]["keeps"] == "both"


def test_dialogues_are_truncated_last_and_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_dialogues(tmp_path / "own.jsonl", 90)
    set_forecast(monkeypatch, lambda config: config["models"][0]["max_length"] / 100, train=5000)
    for hours, length in ((3, 160), (2, 128), (1, 64)):
        assert run_init(file, hours, "--out", str(tmp_path / f"{hours}" / "study")) == 0
        config = read_config(tmp_path / f"{hours}" / "own.jsonl")
        assert config["models"][0]["max_length"] == length
        printed = capsys.readouterr().err
        is_short = length < 160
        assert (f"40 dialogues (100 %) are longer than {length} tokens" in printed) == is_short
        told = f"The time budget of {hours} h is too short to read 160 tokens of each dialogue"
        assert (told in printed) == is_short
        assert "limit_train" not in config["training"], "fewer instances would not save time"


def test_labels_of_turns_are_read_up_to_the_labelled_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each dialogue has hundreds of words, but its only labelled turn is the first."""
    rows = [dialogue("a", number) for number in range(40)]
    for row in rows:
        first, *others = row["messages"]
        first["kind"] = row.pop("intent")
        others[0]["content"] += " word" * 300
        row["messages"] = [first, *({**turn, "kind": None} for turn in others)]
    file = tmp_path / "own.jsonl"
    file.write_text(lines(rows))
    set_forecast(monkeypatch, lambda _: 0.1)
    assert run_init(file, 1, "--label", "kind", "--skip-missing") == 0
    assert read_config(file)["models"][0]["max_length"] == 64
    assert "longer than" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["multi_label", "rating"])
@pytest.mark.parametrize(("label", "keeps"), [("messages[].acts", None), ("acts", "both")])
def test_inputs_that_end_with_a_labelled_turn_keep_their_end(
    kind: str, label: str, keeps: str | None
) -> None:
    tasks: dict[str, Any] = {"acts": {"kind": kind, "label": label}}
    lengths = DialogueLengths([300] * 10, ["own.jsonl:1"] * 10)
    notes = lengths.set_truncation(tasks, 256, "messages")
    assert notes[0].endswith("are truncated: own.jsonl:1: 300 tokens")
    assert len(notes) == (2 if keeps else 1) and tasks["acts"].get("keeps") == keeps


# --- sources and instances ----------------------------------------------------------------------


def test_what_is_reduced_first() -> None:
    proposals = list(propose_studies("dialogue_classification", OWN, REFERENCES, LENGTHS))
    of_sources = [study for study in proposals if study.sources]
    assert proposals[: len(of_sources)] == of_sources, "sources are left out first"
    assert all((study.size.limit_train or 5000) >= 5000 for study in of_sources)
    lacks = [CONTRASTIVE not in study.references for study in proposals]
    limited = [(study.size.limit_train or 5000) < 5000 for study in proposals]
    truncated = [study.size.max_length < 160 for study in proposals]
    assert lacks == sorted(lacks) and truncated == sorted(truncated)
    assert lacks.index(True) < limited.index(True) < truncated.index(True)
    assert {study.size.max_length for study in proposals} == {160, 128, 96, 64}


def test_own_tasks_do_not_displace_all_others() -> None:
    """The last selection of sources has none of the user's other tasks."""
    proposals = propose_studies("dialogue_classification", OWN, REFERENCES, LENGTHS)
    selections = [*dict.fromkeys(json.dumps(study.sources) for study in proposals)]
    largest, _, three, _, one, foreign, none = map(json.loads, selections)
    assert largest["Own"] == [*OWN["Own"]] and len(largest["Friends"]) > 3
    assert three["Own"] == ["topic", "mood", "tone"], "tasks of the target's kind come first"
    assert one["Own"] == ["topic"] and len(one["Friends"]) == 1
    assert foreign == {name: tasks for name, tasks in one.items() if name != "Own"}
    assert none == {}


def test_no_length_is_below_the_smallest() -> None:
    lengths = LENGTHS._replace(least=128)
    proposals = propose_studies("dialogue_classification", OWN, REFERENCES, lengths)
    assert {study.size.max_length for study in proposals} == {160, 128}


def forecast_by_size(config: Mapping[str, Any]) -> float:
    """Return 0.01 h per 1,000 training instances and seed, and 1 h per source."""
    sources = sum(len(section["tasks"]) for section in config["datasets"].values()) - 1
    limit = config["training"].get("limit_train", 20_000)
    return float(sources) + config["seeds"] * limit / 100_000


@pytest.mark.parametrize(
    ("hours", "limit", "told"),
    [
        (2, None, None),
        (0.3, 5000, "intent: The study trains on 5,000 of the 14,000 labelled dialogues"),
        (0.1, 2000, "intent: The study trains on 2,000 of the 14,000 labelled dialogues"),
    ],
)
def test_a_limit_on_the_targets_training_data_is_noted(
    hours: float,
    limit: int | None,
    told: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = write_own(tmp_path)
    set_forecast(monkeypatch, forecast_by_size, train=14_000)
    assert run_init(file, hours) == 0
    assert read_config(file)["training"].get("limit_train") == limit
    assert read_config(file)["algorithms"] == ["baseline"], "sources do not displace own data"
    printed = capsys.readouterr().err
    assert "too short to train on source tasks" in printed and (told or "") in printed
    assert ("labelled dialogues in the training split. Allow more --hours" in printed) == bool(told)


def test_turns_are_not_called_dialogues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_own(tmp_path)
    set_forecast(monkeypatch, forecast_by_size, train=14_000)
    assert run_init(file, 0.1, "--label", "urgency") == 0
    told = "urgency: The study trains on 2,000 of the 14,000 labelled turns in the training split"
    assert told in capsys.readouterr().err


def test_limits_without_effect_are_left_out() -> None:
    size = Size(3, 5000, 300, 1000, 96)
    instances = {"train": 5000, "dev": 299, "test": 1001}
    assert size.drop_limits(instances) == Size(3, None, None, 1000, 96)
    assert str(size.drop_limits(instances)) == (
        "3 seeds, at most 1,000 test instances per task, 96 tokens"
    )
    assert str(replace(size, limit_train=None, limit_dev=None, limit_test=None)) == (
        "3 seeds, all instances, 96 tokens"
    )


# --- too few hours ------------------------------------------------------------------------------


def forecast_by_length(config: Mapping[str, Any]) -> float:
    """Return hours with many digits, which grow with length and seeds."""
    sources = sum(len(section["tasks"]) for section in config["datasets"].values()) - 1
    return sources + 0.000_123_456 * config["models"][0]["max_length"] * config["seeds"]


def test_too_few_hours_are_refused_with_what_fits_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_dialogues(tmp_path / "own.jsonl", 90)
    set_forecast(monkeypatch, forecast_by_length)
    assert run_init(file, 0.001) == 2
    refused = capsys.readouterr().err
    assert "The time budget of 0.001 h is too short. Training tiny on intent alone" in refused
    assert "(3 seeds, all instances, 64 tokens) takes 0.024 h" in refused
    assert "train no language model, and take about 2 min" in refused  # 0.02 h
    assert "`tasktransfer run -- --until fit`" in refused
    hours = (
        re.search(r"Set --hours to (\S+) or more", refused),
        re.search(r"write a study with --hours (\S+),", refused),
    )
    for match, length in zip(hours, (64, 160), strict=True):
        assert match is not None
        folder = tmp_path / match[1]
        assert run_init(file, match[1], "--out", str(folder / "study")) == 0, "the remedy works"
        config = read_config(folder / "own.jsonl")
        assert config["models"][0]["max_length"] == length
        assert not {"limit_train", "limit_test"} & {*config["training"]}


def test_the_largest_sizes_use_all_of_5000_instances() -> None:
    assert all(size.limit_train is None or size.limit_train == 5000 for size in SIZES)
