"""Every command refuses pipes, devices, folders and links to them at once, without waiting."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tasktransfer import cli
from tasktransfer.errors import StorageError
from tasktransfer.files import create_private_folder

SECONDS = 30
"""Time limit: reading a pipe or /dev/zero would never end."""
STUDY = {
    "study": "s",
    "datasets": {"DailyDialog": {"tasks": ["emotion_recognition", "dialogue_nli"]}},
    "models": [{"name": "m", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
}


def pipe(place: Path) -> None:
    os.mkfifo(place)


def device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def folder(place: Path) -> None:
    place.mkdir()


def loop(place: Path) -> None:
    place.symlink_to(place.name)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    def too_late(*_: object) -> None:
        raise AssertionError(f"still at it after {seconds} s")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


COMMANDS = {
    "config": "validate --config odd.yaml",
    "config of a plan": "plan --config odd.yaml",
    "config of gc": "gc --config odd.yaml",
    "config of run": "run odd.yaml",
    "plugin": "validate --set plugins=[odd.py]",
    "release": "data prepare --dataset DailyDialog --out out --set data.release=odd.zip",
    "checkpoint": (
        "tiny-model --model m --out out --set "
        "'models=[{name: m, family: decoder, checkpoint: ./odd.gguf, max_length: 64}]'"
    ),
    "pack": "merge odd.parquet",
    "shards": "import odd.folder",
    "data": "data check odd.jsonl",
    "data of init": "init --file odd.csv --label x --model tiny --hours 1 --out out",
    "data of a config": (
        "validate --set 'datasets={T: {files: odd.json, dialogue: {text: text}, "
        "tasks: {x: {kind: reply}}}}'"
    ),
    "licences": "pack --out pack.parquet --provenance odd.txt",
    "submission": "score odd.zip --data .",
    "matrix": "regret --matrix odd.csv",
    "judgements": "judgements --ratings odd.csv --out out",
    "dialogues in CSV": "data check odd.csv",
    "dialogues in TSV": "data check odd.tsv",
    "dialogues in JSON": "data check odd.json",
    "dialogues in JSON lines": "data check odd.jsonl",
    "dialogues in packed JSON lines": "data check odd.jsonl.gz",
    "dialogues in Parquet": "data check odd.parquet",
    "dialogues in Arrow": "data check odd.arrow",
    "dialogues of init": "init --file odd.csv --out study",
}


@pytest.mark.parametrize("make", [pipe, device, loop, folder])
@pytest.mark.parametrize("what", COMMANDS)
def test_what_is_not_a_file_is_refused_at_once(
    what: str,
    make: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(yaml.safe_dump(STUDY))
    words = shlex.split(COMMANDS[what])
    make(Path(next(re.findall(r"odd[.\w]*", word)[0] for word in words if "odd" in word)))
    with within(SECONDS):
        try:
            code = cli.main(words)
        except SystemExit as end:  # argparse refuses the argument
            code = int(str(end.code))
    assert code != 0
    assert "odd" in capsys.readouterr().err


def test_a_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    """In /tmp any user can create a folder with the expected name."""
    assert create_private_folder(tmp_path / "own", "look").stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "own")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    for name in ("link", "open"):
        with pytest.raises(StorageError, match="Other users can write to this folder"):
            create_private_folder(tmp_path / name, "look")
    if os.getuid() == 0:
        os.chown(tmp_path / "own", 12345, 12345)
        with pytest.raises(StorageError):
            create_private_folder(tmp_path / "own", "look")
