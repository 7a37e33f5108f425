"""Malicious files and options: each is refused with a message within 2 s and 300 MiB.

The cases run one after another, each in a separate process. It is forked from a process that has
already imported the libraries, so time and memory are those of the input.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from releases import tiny_release
from tasktransfer import cli
from tasktransfer.designs import open_study

SECONDS, MEBIBYTES = 10.0, 300
"""Limits per command: processor seconds (the machine may be busy) and memory."""

STUDY = """\
study: hostile
data: {release: release}
datasets: {Friends: {tasks: [question_answering, emory_emotion_recognition]}}
models: [{name: m, family: encoder, checkpoint: tiny}]
"""
AUTO = STUDY + "multi_source: {mode: auto, targets_per_dataset: 1, sources_per_target: 1}\n"
CHALLENGE = STUDY + "rules: challenge\n"
DIGITS = "9" * 5000
DEEP = 100_000


def _bomb(first: str, line: str) -> str:
    """Return ten lines that expand by a factor of nine each."""
    names = "abcdefghij"
    lines = [f"a: &a {first}"]
    for before, name in pairwise(names):
        lines.append(f"{name}: &{name} " + line.format(", ".join([f"*{before}"] * 9)))
    return "\n".join(lines) + "\n"


LADDER = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 3000))
CONFIGS: dict[str, str | bytes] = {
    "alias bomb of lists": _bomb("[x, x, x, x, x, x, x, x, x]", "[{}]"),
    "alias bomb of mappings": _bomb("{k: v}", "{{p: [{0}], q: [{0}]}}"),
    "alias bomb of merge keys": _bomb("{x: 1, y: 2}", "{{<<: [{}]}}"),
    "ladder of aliases": LADDER,
    "alias of itself": "a: &a [*a]\n",
    "merge of itself": "a: &a {<<: *a}\n",
    "deep flow": "a: " + "[" * DEEP,
    "deep mappings": "a: " + "{a: " * DEEP,
    "deep blocks": "- " * DEEP,
    "deep by indentation": "".join(" " * i + "a:\n" for i in range(1000)),
    "long key": f"{'k' * 900_000}: 1\n",
    "keys of somebody else": "".join(f"key{i}: 1\n" for i in range(40_000)),
    "wrong items": STUDY + f"seeds: [{', '.join(['x'] * 30_000)}]\n",
    "repeated items": STUDY + f"seeds: [{', '.join(['1'] * 30_000)}]\n",
    "octal": STUDY + "seeds: [010]\n",
    "base sixty": STUDY + "seeds: [1:30]\n",
    "number of 5,000 digits": STUDY + f"seeds: [{DIGITS}]\n",
    "float beyond floats": STUDY + "training: {learning_rate: 1.0e+999}\n",
    "python object": "study: !!python/object/apply:os.system [ls]\n",
    "binary": f"study: !!binary {'A' * 40_000}\n",
    "NUL in a path": STUDY + 'results: "a\\0b"\n',
    "half a character": STUDY.replace("hostile", '"\\ud800"'),
    "UTF-16": STUDY.encode("utf-16"),
    "no text": bytes(range(256)) * 100,
    "large": "study: " + "x" * 20_000_000,
    "two documents": STUDY + "---\n" + STUDY,
}
OPTIONS = {
    "bomb in --set": ["--set", "training=" + _bomb("[x, x]", "[{}]")],
    "deep --set": ["--set", f"seeds={'[' * 50_000}"],
    "deep key of --set": ["--set", f"{'a.' * 50_000}b=1"],
    "digits in --set": ["--set", f"seeds=[{DIGITS}]"],
    "contradicting --set": ["--set", "training=3", "--set", "training.epochs=2"],
    "index in --set": ["--set", "models.0.name=x"],
}
JSONS = {
    "deep": '{"a":' * DEEP,
    "deep lists": "[" * DEEP,
    "digits": f'{{"metadata": {DIGITS}}}',
    "half a character": '{"metadata": {"dataset_name": "\\ud800"}}',
    "not a number": '{"metadata": NaN}',
    "wide": f"[{','.join(['{}'] * 1_300_000)}]",
}


class Case(NamedTuple):
    """Command-line arguments to run in ``folder``. ``named``: expected parts of the message."""

    name: str
    folder: str
    arguments: list[str]
    named: str


class Seen(NamedTuple):
    """Result of a case: exit code (or negative signal), seconds, peak MiB and all output."""

    code: int
    seconds: float
    mebibytes: float
    said: str


def cases(base: Path) -> list[Case]:
    """Write the files of all cases, and return the cases."""
    tiny_release("Friends").write(base / "whole" / "release")
    found = []

    def add(name: str, files: dict[str, str | bytes], arguments: list[str], named: str) -> None:
        folder = base / f"case{len(found)}"
        folder.mkdir()
        (folder / "release").symlink_to(base / "whole" / "release")
        for path, content in {"study.yaml": STUDY, **files}.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        found.append(Case(name, str(folder), arguments, named))

    study = ["--config", "study.yaml"]
    for name, text in CONFIGS.items():
        add(f"config: {name}", {"study.yaml": text}, ["validate", *study], "study.yaml")
    for name, options in OPTIONS.items():
        named = "models" if "index" in name else "--set"
        add(f"option: {name}", {}, ["validate", *study, *options], named)
    for name in ("alias bomb of lists", "deep flow", "octal"):
        arguments = ["submit", *study, "--dataset", "Friends", "--model", "m"]
        arguments += ["--policy", "named", "--runs", "runs.yaml"]
        files = {"study.yaml": CHALLENGE, "runs.yaml": CONFIGS[name]}
        add(f"runs: {name}", files, arguments, "runs.yaml")
    for name, text in JSONS.items():
        release: dict[str, str | bytes] = {"bad/TLiDB_Friends.json": text}
        release["study.yaml"] = STUDY.replace(": release", ": bad")
        for file in (base / "whole/release/TLiDB_Friends").glob("*.txt"):
            release[f"bad/{file.name}"] = file.read_text()
        prepared = ["data", "prepare", *study, "--dataset", "Friends", "--out", "out"]
        add(f"release: {name}", release, prepared, "bad/TLiDB_Friends.json")
        files = {"results/tables/selection.json": text, "study.yaml": AUTO}
        add(f"selection: {name}", files, ["plan", *study], "selection.json")
    add("config: endless", {}, ["validate", "--config", "/dev/zero"], "/dev/zero")
    os.chdir(base / "whole")
    Path("study.yaml").write_text(STUDY)
    opened = open_study("study.yaml")
    for name, text in JSONS.items():
        files = {opened.get_record_path(opened.plan.stages[0]): text}
        add(f"record: {name}", files, ["collect", *study, "--complete"], "metrics.json")
        files = {f"{opened.get_instances_folder('Friends')}/manifest.json": text}
        add(f"manifest: {name}", files, ["data", "stats", *study], "manifest.json")
    return found


def serve(file: Path) -> None:
    """Run every case in a fork of this process, and print one JSON line per result."""

    for number, case in enumerate(json.loads(file.read_text())):
        said = file.with_name(f"said{number}")
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _run(case, said)
        _, status, used = os.wait4(child, 0)
        # Processor time, since other tests run at the same time. An alarm ends cases that hang.
        seconds = used.ru_utime + used.ru_stime
        code = os.waitstatus_to_exitcode(status)
        text = said.read_text(errors="replace")
        print(json.dumps(Seen(code, seconds, used.ru_maxrss / 1024, text)), flush=True)


def _run(case: list[Any], said: Path) -> None:
    """Run a case in the fork, within limits that protect the machine."""
    _, folder, arguments, _ = case
    descriptor = os.open(said, os.O_CREAT | os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, resource.RLIM_INFINITY))
    signal.alarm(20)
    os.chdir(folder)
    sys.argv = ["tasktransfer", *arguments]
    try:
        code = cli.main(arguments)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    except BaseException:
        import traceback  # noqa: PLC0415

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Case, Seen]]:
    base = tmp_path_factory.mktemp("hostile")
    before = Path.cwd()
    try:
        all_cases = cases(base)
    finally:
        os.chdir(before)
    file = base / "cases.json"
    file.write_text(json.dumps(all_cases))
    tests = str(Path(__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, __file__, str(file)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), tests])},
    )
    lines = [Seen(*json.loads(line)) for line in done.stdout.splitlines()]
    return {case.name: (case, one) for case, one in zip(all_cases, lines, strict=True)}


def test_there_are_enough_of_them(seen: dict[str, tuple[Case, Seen]]) -> None:
    assert len(seen) >= 60


def test_each_is_refused_in_words_that_name_it(seen: dict[str, tuple[Case, Seen]]) -> None:
    wrong = {
        name: (one.code, one.said[-600:])
        for name, (case, one) in seen.items()
        if not 2 <= one.code <= 9
        or "Traceback" in one.said
        or one.said.count("error: ") != 1
        or case.named not in one.said
        or max(map(len, one.said.splitlines()), default=0) > 1000
    }
    assert wrong == {}


def test_each_is_refused_soon(seen: dict[str, tuple[Case, Seen]]) -> None:
    assert {n: one.seconds for n, (_, one) in seen.items() if one.seconds >= SECONDS} == {}


def test_each_is_refused_in_little_memory(seen: dict[str, tuple[Case, Seen]]) -> None:
    large = {n: one.mebibytes for n, (_, one) in seen.items() if one.mebibytes >= MEBIBYTES}
    assert large == {}


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
