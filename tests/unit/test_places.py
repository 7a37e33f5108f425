"""Folders that a config names: a leading ~, special characters, and unsuitable results folders."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
import yaml
from small_study import SMALL, changed, parse, refusal

from tasktransfer import cli
from tasktransfer.config.places import expand_path, has_hub_form
from tasktransfer.designs import open_study
from tasktransfer.errors import ConfigError
from tasktransfer.results.revisions import is_hub_name
from tasktransfer.results.study import Study

ROOT = Path(__file__).resolve().parents[2]
ODD = ["a b/mödel", "~/mödel", "-x", "it's", 'say "x"', "a#b", "{name}", "$HOME", "a*?", "plain"]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def checkpoint(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")


def opened(**changes: object) -> Study:
    Path("study.yaml").write_text(yaml.safe_dump({**SMALL, **changes}, allow_unicode=True))
    return open_study("study.yaml")


@pytest.mark.parametrize("name", ODD)
def test_a_checkpoint_may_be_called_anything(name: str) -> None:
    checkpoint(Path(expand_path(name)))
    study = opened(models=[{"name": "m", "family": "encoder", "checkpoint": name}])
    spec = study.revisions.models["m"]
    assert spec.weights.startswith("sha256:")
    assert Path(study.get_checkpoint_source("m")).is_dir()
    assert not study.get_checkpoint_source("m").startswith(("~", "-"))
    assert study.get_hub_revision("m") is None
    assert shlex.split(shlex.join([study.get_checkpoint_source("m")])) == [
        study.get_checkpoint_source("m")
    ]


def test_equal_weights_are_equal_wherever_they_are() -> None:
    digests = set()
    for name in ("~/mödel", "plain", "./a b"):
        checkpoint(Path(expand_path(name)))
        study = opened(models=[{"name": "m", "family": "encoder", "checkpoint": name}])
        digests |= {stage.digest for stage in study.plan.stages}
        assert study.config.models[0].checkpoint == name
    assert len(digests) == len(study.plan.stages)


def test_what_is_spelled_as_on_the_hub_is_a_folder_where_there_is_one() -> None:
    for name in ("bert-base-uncased", "google-t5/t5-small", "a.b/c_d"):
        assert has_hub_form(name)
        assert is_hub_name(name)
        checkpoint(Path(name))
        assert not is_hub_name(name)
    for name in ("a b", "mödel", "a/b/c", "./x", "/x", "~/x", "-x", "tiny"):
        assert not is_hub_name(name)


def test_results_and_release_may_begin_at_home(tmp_path: Path) -> None:
    parsed = parse({**SMALL, "results": "~/res"})
    assert parsed.results == str(tmp_path / "home" / "res")
    Path("study.yaml").write_text(yaml.safe_dump({**SMALL, "data": {"release": "~/data"}}))
    assert open_study("study.yaml", need_inputs=False).release == str(tmp_path / "home" / "data")


def test_a_home_of_an_unknown_user() -> None:
    place = "~nobody-here/x"
    for study in (
        {**SMALL, "results": place},
        {**SMALL, "data": {"release": place}},
        changed("models", 0, "checkpoint", to=place),
    ):
        assert "has no such user" in refusal(study)


def test_results_are_kept_in_a_folder_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    root = str(ROOT)
    for place in ("/", "//", "/tmp/..", "file", "file/below", "./file", root, f"{root}/"):
        assert "results: " in refusal({**SMALL, "results": place}), place
    for inside in ("src", "src/tasktransfer/x", "workflow", "docs/x", "tests", "results/../src"):
        assert "source tree" in refusal({**SMALL, "results": f"{root}/{inside}"}), inside
    (tmp_path / "link").symlink_to(ROOT / "src")
    assert "source tree" in refusal({**SMALL, "results": "link"})
    for place in ("results", ".", "a/b c", "ergebnisse-ü", f"{root}/results", f"{root}/mine"):
        parse({**SMALL, "results": place})


def test_the_working_directory_may_hold_results_but_for_the_checkout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    assert "source tree" in refusal({**SMALL, "results": "."})
    assert parse({**SMALL, "results": "./results"}).results == "results"


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("./results", "results"),
        ("a//b/./c/", "a/b/c"),
        (".", "{cwd}"),
        ("././", "{cwd}"),
        ("{cwd}//x/", "{cwd}/x"),
        ("~/x/.", "{cwd}/home/x"),
        ("a/../b", "a/../b"),
        ("a b/ü(1)", "a b/ü(1)"),
    ],
)
def test_results_are_spelled_as_snakemake_spells_them(
    tmp_path: Path, written: str, plain: str
) -> None:
    parsed = parse({**SMALL, "results": written.format(cwd=tmp_path)})
    assert parsed.results == plain.format(cwd=tmp_path)


@pytest.mark.parametrize("name", ["a<c>b", "runs>", "<results>", "a/b<1"])
def test_results_have_no_path_variables_of_snakemake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    said = refusal({**SMALL, "results": name})
    assert "results: " in said and "special meaning" in said and "without such characters" in said
    (tmp_path / "in<side>").mkdir()
    monkeypatch.chdir(tmp_path / "in<side>")
    assert "contains the characters < >, which have a special meaning" in refusal(
        {**SMALL, "results": "."}
    )
    parse({**SMALL, "results": "results"})


def test_results_do_not_begin_as_options_do() -> None:
    for name in ("-x", "./-x", "--results"):
        assert "begins with a dash" in refusal({**SMALL, "results": name})
    assert parse({**SMALL, "results": "a/-x"}).results == "a/-x"


@pytest.mark.parametrize(
    ("key", "value"),
    [("results", "a\x00b"), ("results", "a\x1bb"), ("data.release", "a\x00b"), ("study", "\x07x")],
)
def test_no_path_or_title_holds_control_characters(key: str, value: str) -> None:
    study = {**SMALL, "data": {"release": value}} if "." in key else {**SMALL, key: value}
    assert f"{key}: " in refusal(study)
    assert "unprintable character" in refusal(study)
    model = {"name": "m", "family": "encoder", "checkpoint": value}
    with pytest.raises(ConfigError, match=r"models\[0\]\.checkpoint: .*unprintable character"):
        parse({**SMALL, "models": [model]})


def test_validate_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    opened()
    assert cli.main(["validate", "--config", "study.yaml", "--set", "results=/"]) == 2
    assert "root of the file system" in capsys.readouterr().err


def test_a_name_that_is_no_utf8_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["data", "check", os.fsdecode(b"caf\xe9.jsonl")])
    assert r"caf\udce9.jsonl: The name is not valid UTF-8" in capsys.readouterr().err
