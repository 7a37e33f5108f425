"""API keys: checked, sent only where the user allows it, and in no written file."""

from __future__ import annotations

import json
import urllib.parse
from functools import partial
from pathlib import Path

import pytest

from language_server import (
    Body,
    Reply,
    Server,
    build_model,
    chat_answer,
    impatient_client,
    refusal,
    serving,
)
from tasktransfer.errors import ConfigError, EndpointError
from tasktransfer.evaluation.prompting.keys import Key, read_key
from tasktransfer.evaluation.prompting.permissions import find_refusals, is_this_machine
from tasktransfer.tasks.asking import Prompt

__all__ = ["impatient_client"]
PROMPTS = [Prompt((f"Question {n}?",)) for n in range(3)]
CANARY = "sk-\"Can'ary  <7>/+&"


model = partial(build_model, chat="yes")


@pytest.mark.parametrize(
    "value", ["sk-a\nX-Evil: 1", "sk-a\rb", "sk-\x00b", "sk-ä", "s\tk", "\u200bsk"]
)
def test_a_value_that_cannot_be_a_key_is_refused_unseen(
    monkeypatch: pytest.MonkeyPatch, value: str, tmp_path: Path
) -> None:
    if "\0" in value:
        monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": value})
    else:
        monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY: The value of the environ") as caught:
        model("http://127.0.0.1:1/v1", tmp_path)
    assert "sk" not in str(caught.value)


def test_a_key_is_sent_without_the_blanks_around_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "  sk-12345678\r\n")
    with serving(Server(key="sk-12345678")) as server:
        assert model(server.url, tmp_path).generate(PROMPTS, 5, ()) == ["yes"] * 3
        monkeypatch.setenv("OTHER_API_KEY", "sk-wrong-secret")
        monkeypatch.setenv("TASKTRANSFER_KEY_VARIABLES", "OTHER_API_KEY")
        with pytest.raises(EndpointError, match="OTHER_API_KEY is refused") as caught:
            wrong = model(server.url, tmp_path / "wrong", key_variable="OTHER_API_KEY")
            wrong.generate(PROMPTS, 5, ())
        assert "sk-wrong-secret" not in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", " \n")
    assert read_key("OPENAI_API_KEY") is None
    assert read_key(None) is None


def spellings(key: str) -> list[str]:
    return [
        key,
        json.dumps(key),
        json.dumps({"headers": json.dumps({"Authorization": f"Bearer {key}"})}),
        urllib.parse.quote(key),
        urllib.parse.quote(key, safe=""),
        urllib.parse.quote_plus(key),
        " ".join(key.split()),
        repr(key),
        key.replace("'", "''"),
        key.replace('"', '""'),
        key.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
    ]


@pytest.mark.parametrize("key", [CANARY, "sk-plain-canary-1234"])
def test_a_key_is_hidden_in_every_spelling(key: str) -> None:
    for spelling in spellings(key):
        for hidden in (Key(key).hide(f"a {spelling} b"), Key(key).hide_in_answer(f"a{spelling}")):
            assert "anary" not in hidden and "(key)" in hidden
    assert "anary" not in repr(Key(key))


def test_a_placeholder_stays_in_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "yes")
    with serving() as server:
        assert model(server.url, tmp_path).generate(PROMPTS, 5, ()) == ["yes"] * 3


def test_a_key_that_the_endpoint_repeats_is_written_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    left = spellings(CANARY)

    def behave(path: str, body: Body) -> Reply | None:
        return Reply(chat_answer(f"it is {left.pop()}")) if left else refusal(spellings(CANARY)[1])

    prompts = [Prompt((f"Question {n}?",)) for n in range(99)]
    with serving(Server(behave=behave)) as server:
        endpoint = model(server.url, tmp_path, concurrency=1)
        with pytest.raises(EndpointError) as caught:
            endpoint.generate(prompts, 5, ())
        notes = endpoint.list_notes(chooses=False)
        assert any("repeated the key" in note for note in notes)
    endpoint.cache.close()
    written = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    seen = [*written, str(caught.value), *notes, repr(endpoint), *capfd.readouterr()]
    assert len(written) >= 2
    assert not any("anary" in text for text in seen)


def test_which_hosts_are_this_machine() -> None:
    here = ("localhost:8000", "LOCALHOST.", "127.3.2.1:8000", "[::1]:8000", "0.0.0.0:8000")
    far = ("localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.7:8000", "2130706433")
    assert [host for host in (*here, *far) if is_this_machine(f"http://{host}/v1")] == [*here]
    assert not is_this_machine("https://api.openai.com/v1")


def test_a_key_goes_where_the_user_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    far, here, own = "https://lab.example/v1", "http://localhost/v1", "https://api.openai.com/v1"
    assert [*find_refusals(far, "LAB_API_KEY")] == []  # not set: nothing is sent
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("LAB_API_KEY", "sk-2")
    usual = "OPENAI_API_KEY"
    pairs = {(url, name) for url in (far, here, own) for name in (usual, "LAB_API_KEY", None)}
    allowed = {pair for pair in pairs if not [*find_refusals(*pair)]}
    assert allowed == {(far, None), (here, None), (own, None), (here, usual), (own, usual)}
    (text,) = find_refusals(far, "OPENAI_API_KEY")
    assert "lab.example" in text and "TASKTRANSFER_KEY_VARIABLES=OPENAI_API_KEY" in text
    monkeypatch.setenv("TASKTRANSFER_KEY_VARIABLES", "LAB_API_KEY, OPENAI_API_KEY")
    assert not [*find_refusals(far, "OPENAI_API_KEY"), *find_refusals(far, "LAB_API_KEY")]


def test_other_machines_are_asked_without_encryption_if_the_user_allows_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="TASKTRANSFER_HTTP_HOSTS=node7"):
        model("http://node7:8000/v1", tmp_path)
    with pytest.raises(ConfigError, match="not encrypted"):
        model("http://10.0.0.7:8000/v1", tmp_path, key_variable=None)
    monkeypatch.setenv("TASKTRANSFER_HTTP_HOSTS", "node6 Node7")
    model("http://node7:8000/v1", tmp_path)
    assert [*find_refusals("http://node8/v1", None)]
