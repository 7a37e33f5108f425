"""Output paths of a user are refused at once if they are not writable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tasktransfer import cli
from tasktransfer.cli.options import parse_file, parse_folder
from tasktransfer.cli.parsers import iterate_parsers, list_options
from tasktransfer.errors import StorageError
from tasktransfer.files import replace_file

WRITERS = {
    "export": "--by me --out",
    "pack": "--out",
    "world": "--out",
    "data prepare": "--dataset Friends --out",
    "data stats": "--out",
    "data reference": "--out",
    "data fetch": "feta --mirror http://127.0.0.1:9 --accept-licences --out",
    "tiny-model": "--model m --out",
    "encode": "--dataset Friends --model m --out",
    "demo": "--dry-run --folder",
    "init": "--file t.jsonl --label l --model tiny --hours 1 --out",
    "pilot": "--out",
    "errors": "--out",
    "export-model": "--out",
    "predict": "m f.jsonl --out",
    "items": "--out",
    "sheets": "--out",
    "read-sheets": "a.jsonl --key k.json --out",
    "judgements": "--ratings r.csv --out",
    "pairs": "--out",
    "submit": "--dataset Friends --model m --out",
    "score": "s.zip --data . --json",
    "leaderboard": ". --data . --out",
}
"""Command → words, of which the last names a place to write to."""
PLACES = (
    "/proc/x",
    "/proc/x/y",
    "/dev/null",
    "/dev/null/x",
    "/dev/stdout",
    "",
    "{tmp}/loop/x",
    "{tmp}/" + "n" * 300,
)
REMEDIES = tuple(
    f". {remedy}.\n"
    for remedy in (
        "Choose a folder",
        "Choose a file",
        "Choose a regular file",
        "Pass a name",
        "Choose another name",
    )
)
"""The last sentence of a refusal, which says what to give in place of the path."""


def test_every_option_that_writes_is_in_the_list() -> None:
    written = {
        command: action.option_strings[0]
        for command, parser in iterate_parsers(cli.make_parser())
        for action in list_options(parser)
        if action.type in (parse_folder, parse_file)
    }
    assert written == {command: words.split()[-1] for command, words in WRITERS.items()}
    for command, parser in iterate_parsers(cli.make_parser()):
        outs = [a for a in list_options(parser) if "--out" in a.option_strings]
        assert all(action.type in (parse_folder, parse_file) for action in outs), command


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc: not Linux")
@pytest.mark.parametrize("command", WRITERS)
def test_a_place_that_cannot_be_written_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for place in PLACES:
        words = [*command.split(), *WRITERS[command].split(), place.format(tmp=tmp_path)]
        with pytest.raises(SystemExit) as refused:
            cli.main(words)
        assert refused.value.code == 2
        assert capsys.readouterr().err.endswith(REMEDIES), words
    assert Path("/dev/null").is_char_device()


def test_a_device_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StorageError, match="is a device or a pipe"), replace_file(pipe) as part:
        part.write_text("x")
    assert pipe.is_fifo()
    assert [*tmp_path.iterdir()] == [pipe]
