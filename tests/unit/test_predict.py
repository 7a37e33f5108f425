"""The command predict, and models that are loaded from exported folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import tasktransfer as tt
from exported_study import CONFIG, finish_study, list_training_dialogues, write_dialogues
from tasktransfer import cli
from tasktransfer.designs import get_design
from tasktransfer.errors import DataError, ModelError
from tasktransfer.jobs.export_model import ExportRequest, export_model
from tasktransfer.results.exported import FILE, read_exported_model


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with exported models: intent by words, mood by an encoder."""
    out = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("study"))
        patch.setitem(CONFIG, "models", CONFIG["models"][:1])
        patch.setitem(CONFIG, "references", ["tfidf_logistic"])
        study = finish_study()
        for task, method in (("intent", "tfidf_logistic"), ("mood", "baseline")):
            export_model(study, get_design(study.config), out / task, ExportRequest(task, method))
    return out


def run_predict(folder: Path, file: Path, out: Path, *words: str) -> list[dict[str, Any]]:
    assert cli.main(["predict", str(folder), str(file), "--out", str(out), *words]) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_a_file_of_dialogues_is_predicted(folders: Path, tmp_path: Path) -> None:
    rows = list_training_dialogues(30, seed=9)
    unlabelled = [{"id": r["id"], "messages": r["messages"]} for r in rows]
    file = write_dialogues(tmp_path / "new.jsonl", unlabelled)
    words = ("--top-k", "3", "--min-probability", "0.5", "--batch-size", "4")
    lines = run_predict(folders / "intent", file, tmp_path / "out.jsonl", *words)
    assert [line["id"] for line in lines] == [row["id"] for row in rows]
    best = [line["top"][0]["label"] for line in lines]
    assert sum(label == row["intent"] for label, row in zip(best, rows, strict=True)) > 25
    for line in lines:
        assert sum(top["probability"] for top in line["top"]) == pytest.approx(1, abs=1e-5)
        assert (line["label"] is None) == (line["probability"] < 0.5)
    least = read_exported_model(folders / "intent").min_probability
    assert least is not None
    assert all(line["confident"] == (line["probability"] >= least) for line in lines)
    model = tt.load_model(folders / "intent")
    turns = [[{"speaker": m["role"], "text": m["text"]} for m in r["messages"]] for r in rows]
    assert [p.top[0][0] for p in model.predict(turns, top_k=1)] == best


def test_every_turn_gets_a_label_if_labels_are_about_turns(folders: Path, tmp_path: Path) -> None:
    rows = list_training_dialogues(10, seed=9)
    file = write_dialogues(tmp_path / "new.jsonl", rows)
    lines = run_predict(folders / "mood", file, tmp_path / "out.jsonl")
    expected = [(row["id"], n) for row in rows for n in range(len(row["messages"]))]
    assert [(line["id"], line["turn"]) for line in lines] == expected
    model = tt.load_model(folders / "mood")
    first = [{"speaker": m["role"], "text": m["text"]} for m in rows[0]["messages"]]
    prefixes = [first[: n + 1] for n in range(len(first))]
    own = [(p.label, p.probability) for p in model.predict(prefixes)]
    for (label, probability), line in zip(own, lines, strict=False):
        assert (label, pytest.approx(probability, abs=1e-5)) == (line["label"], line["probability"])


def test_fields_of_another_file_are_guessed(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "new.csv"
    table.write_text("utterance\nthe parcel and the courier\nthe password is locked\n")
    lines = run_predict(folders / "intent", table, tmp_path / "out.jsonl")
    assert [line["label"] for line in lines] == ["shipping", "login"]
    assert lines[0]["id"] == "new-2"
    error = capsys.readouterr().err
    assert "of the training files (messages): text: utterance" in error
    rows = [{"messages": [{"from": "me", "content": f"the invoice {n}"}]} for n in range(4)]
    file = write_dialogues(tmp_path / "a.jsonl", rows)
    lines = run_predict(folders / "intent", file, tmp_path / "b")
    assert [line["label"] for line in lines] == ["billing"] * 4


LINE = '{"id": "a", "messages": [{"text": "hi"}]}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINE + '{"id": "b", messages}', "new.jsonl:2: The text is not valid"),
        (LINE + '{"id": "b"}', "new.jsonl:2, messages: The list of turns is missing"),
        (LINE.replace("hi", ""), "new.jsonl:1, messages[0].text: The text is empty"),
        ("no JSON\n", "new.jsonl:1: The text is not valid JSON"),
        ("", "new.jsonl: "),
    ],
)
def test_malformed_files_are_refused_with_their_line(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    file, out = tmp_path / "new.jsonl", tmp_path / "out.jsonl"
    file.write_text(text)
    out.write_text("earlier")
    assert cli.main(["predict", str(folders / "intent"), str(file), "--out", str(out)]) == 3
    error = capsys.readouterr().err
    assert message in error
    assert out.read_text() == "earlier", "the output is replaced at the end only"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_skip_empty_skips_turns_without_text(folders: Path, tmp_path: Path) -> None:
    texts = ("the invoice", "", "the invoice")
    file = write_dialogues(tmp_path / "new.jsonl", [{"messages": [{"text": t} for t in texts]}])
    [line] = run_predict(folders / "intent", file, tmp_path / "out", "--skip-empty")
    assert line["label"] == "billing"


def test_options_that_do_not_fit_are_refused(folders: Path, tmp_path: Path) -> None:
    file = write_dialogues(tmp_path / "new.jsonl", list_training_dialogues(2))
    words = ["predict", str(folders / "intent"), str(file)]
    assert cli.main([*words, "--top-k", "4"]) == 2
    assert cli.main([*words, "--out", str(file)]) == 2
    for option in ("--min-probability", "--batch-size"):
        with pytest.raises(SystemExit):
            cli.main([*words, option, "-1"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("one text", "The value is one dialogue"),
        ([3], r"dialogues\[0\]: The dialogue has the type int"),
        (["hi", []], r"dialogues\[1\]: The dialogue has no text"),
        ([[{"text": 3}]], r"dialogues\[0\]: A turn has the type dict"),
    ],
)
def test_bad_dialogues_are_refused_with_their_index(
    folders: Path, value: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        tt.load_model(folders / "intent").predict(value)


def unlink(name: str) -> Any:
    return lambda folder: (folder / name).unlink()


def write(name: str, content: bytes) -> Any:
    return lambda folder: (folder / name).write_bytes(content)


def cut(name: str) -> Any:
    return lambda folder: write(name, (folder / name).read_bytes()[:-8])(folder)


def change(**changes: Any) -> Any:
    def damage(folder: Path) -> None:
        exported = json.loads((folder / FILE).read_text())
        (folder / FILE).write_text(json.dumps(exported | changes))

    return damage


WEIGHTS = "classifier.safetensors"


@pytest.mark.parametrize(
    ("task", "damage", "message"),
    [
        ("intent", unlink(FILE), r"tasktransfer\.json: The file cannot be read"),
        ("intent", write(FILE, b"{"), "not valid JSON"),
        ("intent", change(exported=9), "the export is 9"),
        ("intent", change(labels=["a", "b"]), "do not match the 2 labels"),
        ("intent", change(temperature=0.0), "positive temperature"),
        ("intent", change(more=1), "The value of more"),
        ("intent", write("vocabulary.json", b"[]"), "damaged"),
        ("intent", write(WEIGHTS, b"12"), r"classifier\.safetensors: The file is damaged"),
        ("mood", unlink("model.safetensors"), "cannot be read"),
        ("mood", cut("model.safetensors"), "cannot be read"),
        ("mood", unlink("tokenizer.json"), "vocabulary is missing"),
        ("mood", change(labels=["a", "b", "c"]), "2 outputs for 3"),
    ],
)
def test_damaged_folders_are_refused(
    folders: Path, tmp_path: Path, task: str, damage: Any, message: str
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(folders / task, folder)
    damage(folder)
    with pytest.raises(ModelError, match=message):
        tt.load_model(folder)
