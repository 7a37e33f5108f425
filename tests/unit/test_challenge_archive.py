"""The archive's format, to the byte, and ensembles of several seeds."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from challenge_records import IDS, finish_all, make_study, right_answers

from tasktransfer.cli import main
from tasktransfer.datasets import ALL_TASKS, DATASETS, get_task
from tasktransfer.designs.challenge.ensemble import combine_answers
from tasktransfer.designs.challenge.format import (
    NO_ANSWER,
    Strings,
    Value,
    format_csv,
    get_value_kind,
    list_row_ids,
    to_values,
    write_archive,
)
from tasktransfer.designs.challenge.parse import INVALID, parse_prediction
from tasktransfer.designs.challenge.submit import SubmissionOptions as Options
from tasktransfer.designs.challenge.submit import write_submission
from tasktransfer.errors import DataError

TASKS = tuple(DATASETS["Friends"].tasks)
QA = get_task("Friends", "question_answering")
RC = get_task("Friends", "reading_comprehension")
RE = get_task("Friends", "relation_extraction")
PD = get_task("Friends", "personality_detection")
CI = get_task("Friends", "character_identification")

RANGES = {
    "adversarial_response_selection": 3,
    "causal_emotion_entailment": 2,
    "dialogue_act_classification": 4,
    "dialogue_nli": 2,
    "dialogue_reasoning_commonsense_relation_prediction": 32,
    "dialogue_reasoning_multiple_choice_span_selection": 4,
    "emotion_recognition": 7,
    "topic_classification": 10,
    "character_identification": 7,
    "emory_emotion_recognition": 7,
    "MELD_emotion_recognition": 7,
    "personality_detection": 2,
}
"""The challenge's page: how many integers a task's predictions may be, from 0."""
STRINGS = {
    "causal_emotion_span_extraction",
    "dialogue_reasoning_span_extraction",
    "question_answering",
    "reading_comprehension",
}


def test_columns_are_those_of_the_challenge_page() -> None:
    kinds = {task.name: get_value_kind(task) for task in ALL_TASKS}
    integers = {t.name: t.classes for t in ALL_TASKS if kinds[t.name] == "integer"}
    assert integers == RANGES
    assert {name for name, kind in kinds.items() if kind == "string"} == STRINGS
    assert {n for n, kind in kinds.items() if kind == "list"} == {"relation_extraction"}
    assert RE.classes == 37


@pytest.mark.parametrize("strings", ["csv", "tlidb"])
@pytest.mark.parametrize("task", ALL_TASKS, ids=lambda task: task.name)
def test_every_answer_comes_back_from_its_spelling(task: Any, strings: Strings) -> None:
    for answer in right_answers(task):
        answer = answer[:1] if task.kind == "span" else answer  # noqa: PLW2901
        values = to_values(task, answer)
        assert len(values) == len(list_row_ids(task, "i"))
        text = format_csv([("i", value) for value in values], strings).decode()
        rows = csv.reader(io.StringIO(text, newline="")) if strings == "csv" else None
        spelled = [r[1] for r in rows] if rows else [r[2:] for r in text.splitlines()]
        read = sum((parse_prediction(task, one) for one in spelled), ())  # type: ignore[misc]
        assert read == tuple(a.replace(",", " ") if strings == "tlidb" else a for a in answer)


def test_traits_have_rows_of_their_own() -> None:
    traits = ("aggreeable", "conscientious", "extroverted", "open", "neurotic")
    name = "s01_e02_c03_Chandler-Bing"
    assert list_row_ids(PD, name) == tuple(f"{name}_{trait}" for trait in traits)
    assert to_values(PD, ("1", "0", "0", "1", "0")) == (1, 0, 0, 1, 0)


def test_what_is_not_a_label_is_minus_one_and_stays_no_label() -> None:
    assert to_values(CI, ("rachael",)) == (NO_ANSWER,)
    assert parse_prediction(CI, "-1") == (INVALID,) and INVALID not in CI.labels
    assert to_values(PD, ("1", "maybe", "0", "1", "0")) == (1, NO_ANSWER, 0, 1, 0)
    assert to_values(RE, ()) == ((0,) * 37,)


ROWS: list[tuple[str, Value]] = [
    ("i0", "plain "),
    ("i1", 'he said "no", twice'),
    ("i2", " a\nb "),
    ("i3", ""),
    ("i4", 3),
    ("i5", -1),
    ("i6", (0, 1, 0)),
    ("i,7", "é’s"),
]


def test_csv_quotes_what_has_to_be() -> None:
    text = format_csv(ROWS, "csv").decode()
    assert text == (
        'i0,"plain "\n'
        'i1,"he said ""no"", twice"\n'
        'i2," a\nb "\n'
        "i3,\ni4,3\ni5,-1\ni6,[0 1 0]\n"
        '"i,7",é’s\n'
    )


def test_tlidb_writes_as_the_toolkit_does() -> None:
    text = format_csv(ROWS[:-1], "tlidb").decode()
    assert text == (
        'i0,plain \ni1,he said "no"  twice\ni2, a b \ni3,\ni4,3\ni5,-1\ni6,[0.0 1.0 0.0]\n'
    )
    with pytest.raises(DataError, match=r"'i,7': .* --strings csv"):
        format_csv(ROWS, "tlidb")


# --- archives ---


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    study = make_study(folder)
    finish_all(study, lambda run: 40.0 + run.seed)
    return write_submission(study, Options("Friends", "tiny-bert"), folder / "a.zip").archive


def members(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info).decode() for info in archive.infolist()}


def test_what_the_archive_holds(made: Path) -> None:
    """A folder per task with two files, and one row per instance in order.

    Repeated ids are repeated; values are as on the challenge's page.
    """
    files = ("baseline_predictions.csv", "predictions.csv")
    assert list(members(made)) == [f"{task}/{file}" for task in TASKS for file in files]
    for name, text in members(made).items():
        task = get_task("Friends", name.split("/")[0])
        ids, values = zip(*csv.reader(io.StringIO(text, newline="")), strict=True)
        assert list(ids) == [row for instance in IDS for row in list_row_ids(task, instance)]
        for value in values:
            if task.kind == "multi_label":
                assert re.fullmatch(r"\[([01] ){36}[01]\]", value)
            elif task.kind != "span":
                assert 0 <= int(value) < RANGES[task.name]
    assert 'd1_i1,"a, b"' in members(made)["question_answering/predictions.csv"]


def test_the_choice_is_shown_next_to_the_archive(made: Path) -> None:
    said = json.loads(Path(f"{made}.json").read_text())
    assert (said["dataset"], said["model"], said["policy"]) == ("Friends", "tiny-bert", "best-dev")
    assert said["synthetic"] is True and said["rules"] == "challenge"
    assert set(said["tasks"]) == set(TASKS)
    transfer = said["tasks"]["question_answering"]["transfer"]
    assert (transfer["algorithm"], transfer["sources"]) == (
        "pretrain_finetune",
        ["relation_extraction"],
    )
    (run,) = transfer["runs"]
    assert (run["seed"], run["dev_score"], transfer["mean_dev_score"]) == (1, 41.0, 40.5)
    assert re.fullmatch("[0-9a-f]{64}", run["stage"])
    assert re.fullmatch("[0-9a-f]{64}", run["predictions"])
    assert "test" not in json.dumps(said).replace("whether a checkpoint has seen the test", "")


def test_an_archive_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with pytest.raises(TypeError):
        write_archive(path, {"a/b.csv": b"1", "a/c.csv": 3})  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("strings", ["csv", "tlidb"])
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], strings: Strings) -> None:
    study = make_study(tmp_path)
    finish_all(study, lambda run: 40.0 + run.seed)
    arguments = ["--config", study.config_file, "--dataset", "Friends", "--model", "tiny-bert"]
    assert main(["submit", *arguments, "--strings", strings, "--ensemble", "mean"]) == 0
    told = capsys.readouterr().out
    assert "Friends, tiny-bert, chosen by best-dev, mean of all seeds (SYNTHETIC data" in told
    row = next(line for line in told.splitlines() if line.startswith("question_answering"))
    assert row.split() == [
        *("question_answering", "pretrain_finetune", "RE", "0,1", "40.50", "0,1", "40.50", "7")
    ]
    assert "It is not checked whether a checkpoint has seen the test data, because no file" in told
    path = Path(study.config.results) / "submissions" / "Friends-tiny-bert.zip"
    assert "[1.0 0.0" in str(members(path)) or strings == "csv"
    assert main(["submit", *arguments, "--policy", "best-test"]) == 2


# --- ensembles ---

YES, NO = (1, 0, 0), (0, 0, 1)


@pytest.mark.parametrize(
    ("task", "values", "majority", "mean"),
    [
        (CI, [2, 1, 1], 1, 1),
        (CI, [2, 1], 2, 2),  # a tie: the best seed's
        (CI, [0, 1, 2], 0, 0),
        (CI, [-1, -1, 4], 4, 4),
        (CI, [-1, -1], -1, -1),
        (RE, [YES, NO, NO], NO, NO),
        (RE, [(1, 1, 0), (1, 0, 1), (0, 1, 1)], (1, 1, 0), (1, 1, 1)),
        (RE, [(1, 1, 0), (0, 1, 1)], (1, 1, 0), (1, 1, 0)),
        (RE, [(1, 0, 0), (0, 1, 0), (0, 0, 1)], (1, 0, 0), (1, 0, 0)),
        (QA, ["Ross", "the ross", "Rachel"], "Ross", "Ross"),
        (QA, ["in the park", "on the red sofa", "the red sofa"], "in the park", "on the red sofa"),
        (QA, ["a b", "c d"], "a b", "a b"),
        (QA, ["", "x", ""], "", ""),
        (RC, ["ross", "monica geller", "monica"], "ross", "ross"),
        (RC, ["ross", "monica", "Monica"], "monica", "monica"),
        (CI, [-1], -1, -1),
        (RE, [YES], YES, YES),
        (QA, ["a, b"], "a, b", "a, b"),
    ],
)
def test_ensembles(task: Any, values: list[Value], majority: Value, mean: Value) -> None:
    assert combine_answers(task, values, "majority") == majority
    assert combine_answers(task, values, "mean") == mean
