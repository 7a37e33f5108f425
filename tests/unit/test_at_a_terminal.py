"""JSON output of every command, and completion."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from declared_files import WORLD, as_jsonl

from finished_stages import finish_all, opened
from tasktransfer import cli
from tasktransfer.cli.examples import EXAMPLES
from tasktransfer.cli.parsers import iterate_parsers

WITHOUT_JSON = {
    # They make files, and print the names of these or how far they are.
    *("demo", "run", "cp", "init", "world", "data prepare", "data fetch"),
    *("tiny-model", "encode", "train", "derive", "fit", "evaluate", "collect", "choose"),
    *("statistics", "figures", "report", "judgements", "pairs", "items"),
    *("sheets", "read-sheets"),
    *("rate", "predict"),  # JSON lines are all that they print
    "export-model",
    "completion",
}


pytestmark = pytest.mark.usefixtures("here")


def test_every_command_with_a_table_prints_json() -> None:
    parsers = dict(iterate_parsers(cli.make_parser()))
    groups = {name.rpartition(" ")[0] for name in parsers}
    every = {name: parser for name, parser in parsers.items() if name not in groups}
    without = {name for name, parser in every.items() if "--json" not in parser.format_help()}
    assert without == WITHOUT_JSON
    assert {"data stats", "records", "doctor", "import", "leaderboard"} <= every.keys() - without


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> object:
    assert cli.main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_json_of_a_study(capsys: pytest.CaptureFixture[str]) -> None:
    study = opened()
    seen = printed(capsys, "records", "--config", "study.yaml")
    assert [each["record"] for each in seen] == [
        study.get_record_path(node) for node in study.plan.nodes
    ]
    seen = printed(capsys, "validate", "--config", "study.yaml")
    assert (seen["study"], seen["not_checked"]) == ("s", [])
    finish_all(study)
    seen = printed(capsys, "status", "--config", "study.yaml")
    assert seen["left"] == 0


def test_json_of_own_dialogues(capsys: pytest.CaptureFixture[str]) -> None:
    as_jsonl(Path("tickets.jsonl"), WORLD["train"])
    seen = printed(capsys, "data", "check", "tickets.jsonl")
    assert seen["problems"] == []
    assert "Tickets" in seen["declared"]["datasets"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["do"], ["doctor"]),
        (["data", "re"], ["reference"]),
        (["import", "--fi"], ["--figures"]),
        (["merge", "sha"], ["shards"]),
        (["plan", "--on", ""], ["cpu", "gpu"]),
    ],
)
def test_a_shell_completes(
    typed: list[str], offered: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    Path("shards").mkdir()
    assert cli.main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    words = " ".join(f"'{word}'" for word in ["tasktransfer", *typed])
    asked = (
        f"{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed)}\n"
        '_shtab_tasktransfer; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run([bash, "-c", asked], capture_output=True, text=True, check=False)
    assert done.stdout.split() == offered, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_other_shells_have_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    assert "doctor" in capsys.readouterr().out


def test_the_help_of_every_command_ends_with_an_example() -> None:
    every = dict(iterate_parsers(cli.make_parser()))
    groups = {name.rpartition(" ")[0] for name in every}
    assert EXAMPLES.keys() == every.keys() - groups
    for name, examples in EXAMPLES.items():
        assert every[name].format_help().endswith(f"\n  {examples[-1]}\n")


@pytest.mark.parametrize(
    ("command", "example"), [(name, line) for name, lines in EXAMPLES.items() for line in lines]
)
def test_an_example_parses(command: str, example: str) -> None:
    program, *words = shlex.split(example.partition(" > ")[0])
    assert program == "tasktransfer"
    assert words[: len(command.split())] == command.split()
    cli.parse_arguments(words)
