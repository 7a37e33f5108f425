"""Typos at the command line, and the ways to name a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasktransfer import cli


@pytest.mark.parametrize(
    ("line", "suggestion"),
    [
        ("plna", "'plan'"),
        ("data chek x.csv", "'check'"),
        ("plan --devces 2", "'--devices'"),
        ("data check x.csv --max-lenght=3", "'--max-length'"),
        ("ls presset", "'presets'"),
    ],
)
def test_a_typo_gets_a_suggestion(
    line: str, suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.parse_arguments(line.split())
    assert ended.value.code == 2
    assert f"Did you mean {suggestion}?" in capsys.readouterr().err


def test_an_unknown_option_shows_the_usage_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.parse_arguments(["status", "--zzz"])
    assert capsys.readouterr().err.startswith("usage: tasktransfer status")


@pytest.mark.parametrize("words", [["s.yaml"], ["--config", "s.yaml"], ["--configfile", "s.yaml"]])
def test_a_study_is_named_in_three_ways(words: list[str]) -> None:
    assert cli.parse_arguments(["plan", *words]).config == "s.yaml"
    assert cli.parse_arguments(["merge", "other", *words]).config == "s.yaml"
    assert cli.parse_arguments(["plan"]).config == "config.yaml"


def test_two_studies_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.parse_arguments(["plan", "a.yaml", "--config", "b.yaml"])
    assert "does not have the arguments a.yaml" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.parse_arguments(["merge", "other", "a.yaml", "b.yaml"])
    assert not Path("a.yaml").exists()
