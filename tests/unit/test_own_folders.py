"""The folder of `--out` is replaced only if it is empty or was written by the same command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from releases import tiny_release
from tasktransfer import cli
from tasktransfer.core.identity import ENCODING_VERSION
from tasktransfer.datasets.tiny_world import generate_releases
from tasktransfer.errors import DataError
from tasktransfer.files import Maker, replace_folder

MAKER = Maker("collection", "made.json", "version")
STUDY = (
    "study: s\n"
    "datasets: {Friends: {tasks: [question_answering]}}\n"
    "models: [{name: m, family: encoder, checkpoint: tiny}]\n"
    "algorithms: [baseline]\n"
    "data: {release: release}\n"
)


def fill(folder: Path, text: str = "new") -> None:
    with replace_folder(folder, MAKER) as fresh:
        (fresh / "made.json").write_text('{"version": 1}')
        (fresh / "content").write_text(text)


def test_only_empty_and_own_folders_are_replaced(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    fill(out, "first")
    fill(out, "second")
    assert (out / "content").read_text() == "second"
    empty = tmp_path / "empty"
    empty.mkdir()
    fill(empty)
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"]


def a_file(out: Path) -> None:
    out.write_text("work")


def a_thesis(out: Path) -> None:
    out.mkdir()
    (out / "thesis.tex").write_text("work")


def a_manifest_of_something_else(out: Path) -> None:
    out.mkdir()
    (out / "made.json").write_text('{"name": "a web page"}')


def a_link_to_nowhere(out: Path) -> None:
    out.symlink_to("nowhere")


@pytest.mark.parametrize("lay", [a_file, a_thesis, a_manifest_of_something_else, a_link_to_nowhere])
def test_others_work_is_left_alone(tmp_path: Path, lay: Callable[[Path], None]) -> None:
    out = tmp_path / "out"
    lay(out)
    began = []
    told = r"out: The folder contains no made\.json, so it is not a collection"
    with pytest.raises(DataError, match=told), replace_folder(out, MAKER):
        began.append(1)
    assert not began
    assert out.is_symlink() or out.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_fails_leaves_all_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fill(out, "first")
    with pytest.raises(KeyboardInterrupt), replace_folder(out, MAKER) as fresh:
        (fresh / "content").write_text("half")
        raise KeyboardInterrupt
    assert (out / "content").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a study with a release of Friends into the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    tiny_release("Friends").write(tmp_path / "release")
    return tmp_path


def prepare(out: str, *options: str) -> int:
    where = ["--config", "study.yaml", "--dataset", "Friends", "--out", out]
    return cli.main(["data", "prepare", *where, *options])


def test_data_of_a_changed_release_is_recomputed(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare("out") == 0
    manifest = study / "out" / "manifest.json"
    first = json.loads(manifest.read_text())["revision"]
    assert "already" not in capsys.readouterr().err
    assert prepare("out") == 0
    assert "is complete" in capsys.readouterr().err
    assert prepare("out", "--set", "data.few_sample=false") == 0
    assert "already" not in capsys.readouterr().err
    path = study / "release" / "TLiDB_Friends" / "TLiDB_Friends.json"
    path.write_text(path.read_text() + "\n")
    assert prepare("out") == 0
    assert "already" not in capsys.readouterr().err
    assert json.loads(manifest.read_text())["revision"] != first


def test_data_is_not_prepared_over_others_work(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (study / "thesis").mkdir()
    (study / "thesis" / "manifest.json").write_text("{}")
    assert prepare("thesis") == 3
    assert (
        "thesis: The folder contains no manifest.json, so it is not a cache"
        in capsys.readouterr().err
    )
    generate_releases(study / "world", dialogues=120)
    assert prepare("world") == 3
    assert (study / "world" / "tiny_world.json").exists()


def test_what_snakemake_leaves_of_a_named_folder_is_made_again(study: Path) -> None:
    """Snakemake removes the outputs of a job, here the manifest, before the job starts."""
    from tasktransfer.designs import open_study  # noqa: PLC0415

    place = open_study("study.yaml").get_instances_folder("Friends")
    assert prepare(place) == 0
    (study / place / "manifest.json").unlink()
    assert prepare(place) == 0
    shutil.rmtree(study / "release")  # remembered: what is there is right
    assert prepare(place) == 0


@pytest.mark.parametrize("command", ["encode", "data prepare"])
def test_an_unknown_dataset(study: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*command.split(), "--config", "study.yaml", "--dataset", "Foo", "--out", "out"]
    assert cli.main(words + (["--model", "m"] if command == "encode" else [])) == 2
    assert "Foo" in capsys.readouterr().err
    assert not list(study.glob(".out*"))


def test_token_ids_of_another_model_are_recomputed(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasktransfer.data.cache import read_manifest  # noqa: PLC0415
    from tasktransfer.designs import open_study  # noqa: PLC0415
    from tasktransfer.encoding import encode  # noqa: PLC0415

    def fake(instances: Path, dataset: str, tasks: list[str], *rest: Any) -> None:
        out, _, model = rest[4:7]
        with replace_folder(out, encode.MAKER) as folder:
            facts: dict[str, Any] = {"encoding": ENCODING_VERSION}
            facts["max_answer_tokens"] = dict.fromkeys(tasks, 0)
            facts |= {"lost_answers": {}, "longer_answers": {}, "examples": {}}
            facts |= encode.build_identity(read_manifest(instances), model)
            (folder / "manifest.json").write_text(json.dumps(facts))

    monkeypatch.setattr(encode, "encode_dataset", fake)
    assert prepare(open_study("study.yaml").get_instances_folder("Friends")) == 0
    words = ["encode", "--config", "study.yaml", "--dataset", "Friends", "--model", "m"]
    shorter = 'models=[{"name": "m", "family": "encoder", "checkpoint": "tiny", "max_length": 64}]'
    for options, already in (([], False), ([], True), (["--set", shorter], False)):
        capsys.readouterr()
        assert cli.main([*words, "--out", "out", *options]) == 0
        assert ("is complete" in capsys.readouterr().err) == already
    assert cli.main([*words, "--out", "release"]) == 3
    assert (study / "release" / "TLiDB_Friends").is_dir()


def test_a_tiny_model_is_not_built_over_a_checkpoint(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {"config.json": "{}", "model.safetensors": "years of work"}.items():
        (study / "bert").mkdir(exist_ok=True)
        (study / "bert" / name).write_text(text)
    assert cli.main(["tiny-model", "--config", "study.yaml", "--model", "m", "--out", "bert"]) == 3
    assert "contains no tiny_model.json, so it is not a tiny model" in capsys.readouterr().err
    assert (study / "bert" / "model.safetensors").read_text() == "years of work"
