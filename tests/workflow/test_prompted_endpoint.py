"""A study with a hostile endpoint, run by Snakemake: none of its files contains the key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from calls import ENVIRONMENT, ROOT
from forked_snakemake import run_snakemake

from language_server import Body, Reply, Server, chat_answer, refusal, serving

pytestmark = pytest.mark.slow

CANARY = "sk-\"Canary's  <own>/+key&"
"""Key with all characters that are escaped in JSON, URLs, CSV or HTML."""
SPELLINGS = (CANARY, json.dumps(CANARY), repr(CANARY), f"Bearer {CANARY}", " ".join(CANARY.split()))
WORDS = {"parcel": "delivery", "password": "account", "refund": "payment"}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Write a study of declared dialogues that prompts an endpoint and trains nothing."""
    rows = [
        {"text": f"Hello, my {word} number {n} is lost.", "topic": WORDS[word]}
        for n in range(24)
        for word in WORDS
    ]
    (tmp_path / "chats.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said = {
        "study": "prompted",
        "data": {"release": "tiny_world"},
        "datasets": {
            "Chats": {
                "files": {"train": "chats.jsonl"},
                "shares": {"test": 0.3},
                "dialogue": {"text": "text"},
                "tasks": {"topic": {"kind": "dialogue_classification", "label": "topic"}},
            }
        },
        "seeds": 1,
        "prompted": [
            {"model": "far", "endpoint": "http://127.0.0.1:9/v1", "retries": 1, "concurrency": 1}
        ],
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(said))
    return tmp_path


def run(folder: Path, server: Server) -> tuple[int, str]:
    """Run the study, and return Snakemake's exit code and what it prints."""
    said = yaml.safe_load((folder / "study.yaml").read_text())
    said["prompted"][0]["endpoint"] = server.url
    (folder / "study.yaml").write_text(yaml.safe_dump(said))
    words = ["--snakefile", ROOT / "Snakefile", "--configfile", "study.yaml", "--cores", "1"]
    done = run_snakemake(words, folder, ENVIRONMENT | {"OPENAI_API_KEY": CANARY})
    return done.returncode, done.stdout + done.stderr


def contents(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield every file that a run leaves, and its content."""
    for file in folder.rglob("*"):
        if file.is_file():
            if file.suffix == ".parquet":
                table = pq.read_table(file)
                yield file, f"{table.to_pylist()} {table.schema.metadata}"
            yield file, file.read_bytes().decode("utf-8", "replace")


def right_answer(body: Body) -> str:
    text = body["messages"][-1]["content"]
    return max((text.rfind(word), answer) for word, answer in WORDS.items())[1]


def test_no_file_of_a_study_holds_the_key(study: Path) -> None:
    def refuse(path: str, body: Body) -> Reply | None:
        if body.get("echo"):
            return refusal(f"echo is not taken with {json.dumps(CANARY)}")
        if "number 7 " in body["messages"][-1]["content"]:
            return refusal(f"the account of {CANARY} has no credit", status=402)
        return Reply(chat_answer(right_answer(body)))

    said = iter(SPELLINGS * 999)

    def repeat(path: str, body: Body) -> Reply | None:
        text = right_answer(body)
        is_told = "number 1" in body["messages"][-1]["content"]
        return Reply(chat_answer(f"{text} with {next(said)}" if is_told else text))

    with serving(Server(key=CANARY, scores=False, behave=refuse)) as server:
        code, text = run(study, server)
        assert code != 0, text
        assert "the account of (key) has no credit" in text
        assert "anary" not in text
        server.behave = repeat
        code, more = run(study, server)
        assert code == 0, more
        assert "anary" not in more
    files = [*contents(study)]
    assert [file for file, content in files if "anary" in content] == []
    names = {file.name for file, _ in files}
    assert {"rows.parquet", "metrics.json", "probes.json", "report.html"} <= names
    records = [json.loads(content) for file, content in files if file.name == "metrics.json"]
    notes = [note for record in records for note in record["provenance"]["notes"]]
    assert any("repeated the key" in note for note in notes)
    assert any("are unreadable" in note for note in notes)
    assert any("(key)" in content for file, content in files if file.name == "rows.parquet")
