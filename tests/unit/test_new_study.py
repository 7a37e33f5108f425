"""``tasktransfer init``: it asks for missing options at a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from forecast_studies import set_forecast, write_own

import tasktransfer as tt
from releases import tiny_release
from small_gguf import write_gguf
from small_models import make_model
from tasktransfer.cli import main
from tasktransfer.cli.new_study import (
    StudyRequest,
    choose_model_names,
    find_target,
    list_references,
)
from tasktransfer.cli.study_sizes import SIZES, SMALLER_SIZES, Size
from tasktransfer.core.references import CONTRASTIVE, REFERENCES, SVM
from tasktransfer.datasets.declared.check import check_files
from tasktransfer.designs import load_config, open_study
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.errors import ConfigError

QUESTIONS = ("File with your dialogues", "Label to predict", "Model", "Time budget in hours")


def at_a_terminal(folder: Path, answers: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run ``init`` at a terminal, and return its exit code and output.

    Each question is answered when it is asked.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tasktransfer", "init", *arguments],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said, asked = "", list(answers)
    while True:
        try:
            said += os.read(ours, 4096).decode()
        except OSError:  # the other end is closed
            break
        if asked and asked[0] in said:
            os.write(ours, f"{answers[asked.pop(0)]}\n".encode())
    os.close(ours)
    return process.wait(), said


def test_each_answer_that_is_left_out_is_asked_for(tmp_path: Path) -> None:
    write_own(tmp_path)
    answers = {QUESTIONS[0]: "own.jsonl", QUESTIONS[1]: "urgency", QUESTIONS[3]: "500"}
    given = ("--model", "tiny", "--out", "study", "--cores", "1")
    code, said = at_a_terminal(tmp_path, answers, *given)
    assert code == 0 and QUESTIONS[2] not in said, said
    assert "Label to predict (urgency, intent): " in said
    config = yaml.safe_load((tmp_path / "study" / "config.yaml").read_text())
    assert config["targets"] == ["Own/urgency"]
    assert config["datasets"]["Own"]["files"] == {"train": "../own.jsonl"}
    assert config["models"][0]["checkpoint"] == "tiny"


@pytest.mark.parametrize("label", ["caf\u00e9", "cafe\u0301", "turns[].caf\u00e9"])
def test_a_label_is_found_in_any_unicode_form(label: str) -> None:
    declared = {"tasks": {"x": {"label": "turns[].cafe\u0301"}, "mood": {"label": "mood"}}}
    assert find_target(label, declared) == "x"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a: b", "--name 'a: b': The name becomes part of file names"),
        ("\x1b[1m", "--name '\\x1b[1m': The name becomes part of file names"),
        ("-x", "--name '-x': The name becomes part of file names"),
        ("Friends", "--name Friends: The package already contains a dataset"),
    ],
)
def test_a_name_that_no_dataset_can_have_is_refused(
    name: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_own(tmp_path, 12)
    for command in (["init", "--file"], ["data", "check"]):
        assert main([*command, str(file), f"--name={name}"]) == 2
        assert words in capsys.readouterr().err


def test_a_file_named_like_a_dataset_of_the_package_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_own(tmp_path, 12).rename(tmp_path / "friends.jsonl")
    assert main(["data", "check", str(file)]) == 0
    assert "OwnFriends" in yaml.safe_load(capsys.readouterr().out)["datasets"]


def test_without_a_terminal_nothing_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_own(tmp_path, 12)
    assert main(["init", "--file", str(file)]) == 2
    assert "--label: The option is missing, and there is no terminal" in capsys.readouterr().err


def test_every_size_has_seeds_to_test_and_none_shortens_the_training() -> None:
    assert all(size.seeds >= 3 for size in (*SIZES, *SMALLER_SIZES))
    assert not {"epochs", "updates"} & {field.name for field in fields(Size)}


@pytest.mark.parametrize("hours", ["0", "-1", "soon", "nan", "inf"])
def test_hours_that_are_no_time_are_refused(
    hours: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_own(tmp_path, 12)
    given = ["--file", str(file), "--label", "intent", "--model", "tiny", f"--hours={hours}"]
    assert main(["init", *given]) == 2
    assert f"--hours {hours}: The value must be a positive number" in capsys.readouterr().err


def test_each_model_has_a_name_of_its_own() -> None:
    models = ["tiny", "./a/bert base", "./b/Bert-Base", "org/e5"]
    assert choose_model_names(models) == ["tiny", "bert-base", "Bert-Base-3", "e5"]
    with pytest.raises(ConfigError, match="--model tiny: The model is given twice"):
        choose_model_names(["tiny", "e5", "tiny"])


def test_several_encoders_are_compared_in_one_study(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_own(here)
    for name in ("first", "second"):
        make_model("encoder", ["hello there"], here / name / "encoder")
    given = ["--file", "own.jsonl", "--label", "intent", "--hours", "50", "--out", "study"]
    models = ["--model", "tiny", "--model", "first/encoder", "--model", "second/encoder"]
    assert main(["init", *given, *models]) == 0
    printed = capsys.readouterr()
    assert "h of 50 h on this machine" in printed.out
    for words in (
        "`tasktransfer run` will end with this error: first/encoder: The tokenizer maps",
        "The model tiny is for trial runs",
    ):
        assert words in printed.err
    monkeypatch.chdir("study")
    config = get_transfer_config(open_study("config.yaml"))
    assert [(model.name, model.checkpoint, model.family) for model in config.models] == [
        ("tiny", "tiny", "encoder"),
        ("encoder", "../first/encoder", "encoder"),
        ("encoder-3", "../second/encoder", "encoder"),
    ]
    runs = open_study("config.yaml").plan.runs
    names = {model.name for model in config.models}
    assert {run.model for run in runs if run.method == "baseline"} == names
    embedded = [run for run in runs if run.about.get("reference") == "frozen_logistic"]
    assert {run.model for run in embedded} == names


@pytest.mark.parametrize(
    ("content", "is_tuned"),
    [
        ({"hidden_size": 384, "architectures": ["BertModel"]}, True),
        ({"hidden_size": 64, "architectures": ["BertModel"]}, False),
        ({"hidden_size": 384, "architectures": ["GPT2LMHeadModel"]}, False),
    ],
)
def test_contrastive_fine_tuning_needs_an_encoder_that_is_not_tiny(
    tmp_path: Path, content: dict[str, Any], is_tuned: bool
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(content))
    wish = StudyRequest("intent", ("tiny", str(tmp_path)), 1.0, tmp_path, "Own")
    cheap = [name for name in REFERENCES if name not in (SVM, CONTRASTIVE)]
    listed = list_references(wish, "dialogue_classification")
    assert listed == [*cheap, CONTRASTIVE] if is_tuned else cheap
    assert list_references(wish, "multi_label") == cheap


def test_a_short_study_leaves_contrastive_fine_tuning_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_own(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 384}))

    set_forecast(monkeypatch, lambda config: 4.0 if CONTRASTIVE in config["references"] else 1.0)
    given = ["--file", str(tmp_path / "own.jsonl"), "--label", "intent", "--model", str(tmp_path)]
    for hours, is_tuned in (("2", False), ("7", True)):
        folder = tmp_path / hours
        assert main(["init", *given, "--hours", hours, "--out", str(folder)]) == 0
        config = yaml.safe_load((folder / "config.yaml").read_text())
        assert (CONTRASTIVE in config["references"]) == is_tuned
        assert (len(config["datasets"]) > 1) == is_tuned, "sources are left out first"
        is_told = "too short for contrastive fine-tuning" in capsys.readouterr().err
        assert is_told != is_tuned


def write_for(
    hours: float,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: Path | None = None,
    model: str = "tiny",
) -> dict[str, Any]:
    """Write a study, with a forecast of one hour per source and one for the baseline."""
    file = file or write_own(folder)

    set_forecast(
        monkeypatch,
        lambda config: sum(len(section["tasks"]) for section in config["datasets"].values()),
    )
    arguments = ["--file", str(file), "--label", "intent", "--model", model]
    assert main(["init", *arguments, "--hours", str(hours), "--out", str(folder / "study")]) == 0
    config: dict[str, Any] = yaml.safe_load((folder / "study" / "config.yaml").read_text())
    return config


def test_the_baseline_and_references_come_before_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_for(2.0, tmp_path, monkeypatch)
    assert config["algorithms"] == ["baseline"]
    assert [*config["datasets"]] == ["Own"] and [*config["datasets"]["Own"]["tasks"]] == ["intent"]
    assert {*REFERENCES} - {*config["references"]} == {SVM, CONTRASTIVE}
    assert config["training"]["recipe"] == "auto" and "epochs" not in config["training"]
    assert "too short to train on source tasks" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path / "study")
    assert load_config("config.yaml").design == "transfer"


def test_a_gguf_file_is_a_decoder_of_the_studys_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_gguf(Path("small.Q4_1.gguf"))
    config = write_for(2.0, tmp_path, monkeypatch, model="./small.Q4_1.gguf")
    (model,) = config["models"]
    assert (model["family"], model["checkpoint"]) == ("decoder", "../small.Q4_1.gguf")


def test_the_most_sources_that_fit_are_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forecast is one hour for the target and for each source, and may be 1.5 times too low."""
    config = write_for(1.5 * 8, tmp_path, monkeypatch)
    sources = [len(section["tasks"]) for name, section in config["datasets"].items()]
    assert sources == [2, 3, 3]


def test_more_hours_give_sources_before_larger_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_for(500.0, tmp_path, monkeypatch)
    assert "pretrain_finetune" in config["algorithms"]
    assert len(config["datasets"]) == 3


def test_more_methods_are_comments_that_can_be_uncommented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_for(2.0, tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path / "study")
    config = Path("config.yaml")
    before, mark, rest = config.read_text().partition("# More methods: ")
    comments, references, after = rest.partition("references:\n")
    entries = re.sub(r"(?m)^# (?=- |  |prompted:)", "", comments)
    config.write_text("".join([before, mark, entries, references, after]))
    runs = tt.plan(config).runs
    trained = runs[runs["method"] == "baseline"]
    assert {*trained["model"]} == {"tiny", "tiny-lora"}
    prompted = runs[runs["method"] == "prompted"]
    assert {*prompted["model"]} == {"prompted"} and {*prompted["shots"]} == {0, 4}


@pytest.mark.parametrize(("is_new", "left"), [(True, None), (False, [])])
def test_a_refused_study_leaves_no_folder(
    is_new: bool, left: list[Path] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    if not is_new:
        folder.mkdir()
    with pytest.raises(AssertionError):
        write_for(0.001, tmp_path, monkeypatch)
    assert (list(folder.iterdir()) if folder.exists() else None) == left


@pytest.fixture
def edited(here: Path) -> Path:
    """Write dialogues whose label `intent` is edited into a task `hurry`, and return the YAML."""
    write_own(here)
    checked = check_files([Path("own.jsonl")], "Own", None)
    document = yaml.safe_load(checked.text)
    tasks = document["datasets"]["Own"]["tasks"]
    tasks["hurry"] = {**tasks.pop("intent"), "keeps": "start", "description": "is it urgent?"}
    document["datasets"]["Own"]["shares"] = {"test": 0.25, "dev": 0.2}
    path = here / "own.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_problem_in_another_label_field_does_not_prevent_a_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [json.loads(line) for line in write_own(tmp_path).read_text().splitlines()]
    del rows[5]["intent"]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    set_forecast(monkeypatch, lambda _: 0.1)
    given = ["init", "--file", str(tmp_path / "own.jsonl"), "--model", "tiny", "--hours", "1"]
    folder = tmp_path / "study"
    assert main([*given, "--label", "urgency", "--out", str(folder)]) == 0
    said = capsys.readouterr().err
    assert "Only the label field urgency (--label) is used" in said and "own.jsonl:6" in said
    own = yaml.safe_load((folder / "config.yaml").read_text())["datasets"]["Own"]
    assert [*own["tasks"]] == ["urgency"]
    assert main([*given, "--label", "intent", "--out", str(tmp_path / "other")]) == 3
    assert "own.jsonl:6" in capsys.readouterr().err


def test_a_study_is_built_from_an_edited_declaration(
    edited: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_forecast(monkeypatch, lambda _: 0.1)
    words = ["--label", "hurry", "--model", "tiny", "--hours", "1", "--out", "my 'study'"]
    assert main(["init", "--dataset", "own.yaml", *words]) == 0, capsys.readouterr().err
    command = capsys.readouterr().out.partition("run it: ")[2].partition(" && ")[0]
    assert shlex.split(command) == ["cd", "my 'study'"]
    own = yaml.safe_load(Path("my 'study'/config.yaml").read_text())["datasets"]["Own"]
    assert own["files"] == {"train": "../own.jsonl"}
    assert own["shares"] == {"test": 0.25, "dev": 0.2}
    assert own["tasks"]["hurry"]["description"] == "is it urgent?"
    assert own["tasks"]["hurry"]["keeps"] == "start"


@pytest.mark.parametrize(
    ("options", "command"),
    [([], "tasktransfer run"), (["--cores", "1"], "tasktransfer run --cores 1")],
)
def test_the_command_that_runs_the_study_has_its_number_of_cores(
    options: list[str],
    command: str,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_forecast(monkeypatch, lambda _: 0.1)
    given = ["--file", str(write_own(here)), "--label", "intent", "--model", "tiny", "--hours", "1"]
    assert main(["init", *given, *options]) == 0
    assert f"run it: {command}; results" in capsys.readouterr().out
    lines = Path("config.yaml").read_text("utf-8").splitlines()
    (listed,) = (line for line in lines if "run it; results" in line)
    assert listed.removeprefix("#").partition("  run it")[0].strip() == command


def test_a_release_that_was_found_is_named(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for dataset in ("DailyDialog", "Friends"):
        tiny_release(dataset).write(here / "data")
    set_forecast(monkeypatch, lambda _: 0.1)
    given = ["--file", str(write_own(here)), "--label", "intent", "--model", "tiny", "--hours", "1"]
    note = "note: The source tasks come from FETA's datasets in data. To use another folder"
    for options, is_named in (([], True), (["--release", "data"], False)):
        out = f"study-{is_named}"
        assert main(["init", *given, *options, "--out", out]) == 0
        assert (note in capsys.readouterr().err) == is_named
        assert yaml.safe_load(Path(out, "config.yaml").read_text())["data"]["release"] == "../data"
    with pytest.raises(SystemExit):
        main(["init", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "first of the folders releases, data, ../shared/feta, ../shared/feta/full" in printed


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        ({}, ["--file", "own.jsonl"], "--file: The option cannot be combined with --dataset"),
        ({"study": "x"}, [], "must contain one dataset under the key datasets, and no other key"),
        ({"datasets": {"Friends": {}}}, [], "own.yaml"),
        ({"datasets": {"Own": {"files": "gone.jsonl"}}}, [], "datasets.Own.tasks"),
    ],
)
def test_wrong_declarations_are_refused_with_their_key(
    edited: Path,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, Any],
    words: list[str],
    message: str,
) -> None:
    edited.write_text(yaml.safe_dump({**yaml.safe_load(edited.read_text()), **change}))
    options = ["--label", "hurry", "--model", "tiny", "--hours", "1", "--out", "study"]
    assert main(["init", "--dataset", "own.yaml", *options, *words]) in (2, 3)
    assert message in capsys.readouterr().err
    assert not Path("study").exists()


def test_an_edited_declaration_is_tested_on_its_dialogues(
    edited: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = yaml.safe_load(edited.read_text())
    document["datasets"]["Own"]["tasks"]["hurry"]["label"] = "gone"
    edited.write_text(yaml.safe_dump(document))
    options = ["--label", "hurry", "--model", "tiny", "--hours", "1", "--out", "study"]
    assert main(["init", "--dataset", "own.yaml", *options]) == 3
    assert "own.jsonl:1: The field gone of task hurry is missing" in capsys.readouterr().err
