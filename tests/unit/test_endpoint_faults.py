"""Hostile endpoints: slow, endless, too large or too deep responses, and misleading headers."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any

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
from tasktransfer.errors import EndpointError
from tasktransfer.evaluation.prompting import client
from tasktransfer.tasks.asking import Prompt

__all__ = ["impatient_client"]
PROMPTS = [Prompt((f"Question {n}?",)) for n in range(3)]


model = partial(build_model, chat="yes", timeout=0.5)


def problem(reply: Reply, folder: Path, **more: Any) -> str:
    """Return the error of a job whose every request gets a reply."""
    with serving(Server(behave=lambda *_: reply)) as server:
        with pytest.raises(EndpointError) as caught:
            model(server.url, folder, **more).generate(PROMPTS, 5, ())
        return str(caught.value)


@pytest.mark.parametrize("length", ["right", None, 10**12])
def test_a_server_that_drips_is_late(tmp_path: Path, length: Any) -> None:
    began = time.monotonic()
    reply = Reply(chat_answer("yes" * 999), drip=0.02, length=length)
    assert "the answer was not complete within 0.5 s" in problem(reply, tmp_path)
    assert time.monotonic() - began < 30  # a busy machine


def test_a_server_that_drips_its_headers_is_late(tmp_path: Path) -> None:
    """urllib's time-out applies to each read, and a line of headers takes many."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_drip_headers, args=(server,), daemon=True)
        thread.start()
        began = time.monotonic()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        with pytest.raises(EndpointError, match="not complete within"):
            model(url, tmp_path).generate(PROMPTS, 5, ())
        assert time.monotonic() - began < 30  # a busy machine


def _drip_headers(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            for _ in range(2000):
                connection.sendall(b"x")
                time.sleep(0.02)
        except OSError:
            if server.fileno() < 0:
                return


def test_an_answer_is_bounded(tmp_path: Path) -> None:
    large = Reply(b'{"choices": [' + b" " * 2_000_000, length=None)
    assert "larger than the limit of 1,310,720 bytes" in problem(large, tmp_path)
    cut_off = Reply(b'{"choices": [', length=999)
    assert "before the response was complete" in problem(cut_off, tmp_path)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(b"[" * 100_000 + b"]" * 100_000), "not JSON"),
        (Reply(b'{"choices":' * 900 + b"1" + b"}" * 900), "cannot be read"),
        (Reply(b'{"error":' * 900 + b"1" + b"}" * 900), "Check the keys `endpoint`"),
        (Reply(b'{"n": ' + b"9" * 6000 + b"}"), "not JSON"),
        (Reply(gzip.compress(b"{}" * 9), headers={"Content-Encoding": "gzip"}), r"\(gzip\)"),
        (Reply(b""), "OK"),
        (Reply(b"data: {}\n\ndata: [DONE]\n\n"), "data: {}"),
        (Reply(b"\x1b[2J\xff\x00"), r"\\x1b\[2J"),
        (Reply(chat_answer(7)), "type int"),
        (Reply({"choices": []}), "the response contains no choices"),
        (Reply(b"", 301, {"Location": "http://new:1/v1"}), "has moved to http://new:1/v1"),
        (Reply(b"", 418), "418: I'm a Teapot"),
        (Reply(b"", 402), "402: Payment Required"),
        (refusal("You\x1b]0;x\x07 pay", status=402), r"You\\x1b\]0;x\\x07 pay"),
        (Reply({"error": {"message": "Rate limit exceeded: per-day", "code": 429}}), "per-day"),
        (Reply({"error": "Overloaded, try again"}), "no answer after 2 requests .429: Overloaded"),
        (Reply({"choices": [{"error": {"code": 502, "message": "upstream"}}]}), "502: upstream"),
        (Reply({"object": "error", "message": "it does not exist"}), "it does not exist"),
        (Reply({"error": {"message": "no", "code": "x" * 99_999}}), r"no \(x"),
        (Reply({"error": {"message": "no", "code": "9" * 99}}), "no"),
        (Reply(b"data: {}", headers={"Content-Type": "text/event-stream"}), "is a stream"),
    ],
)
def test_the_messages_of_the_endpoint_are_shown(tmp_path: Path, reply: Reply, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(problem(reply, tmp_path))


def test_halves_of_characters_are_replaced(tmp_path: Path) -> None:
    data = b'{"choices": [{"message": {"content": "a\\ud83d, \\ud83d\\ude00, \\\\ud83d"}}]}'
    with serving(Server(behave=lambda *_: Reply(data))) as server:
        texts = model(server.url, tmp_path).generate(PROMPTS, 5, ())
        assert texts == ["a\ufffd, 😀, \\ud83d"] * 3
        assert model(server.url, tmp_path).generate(PROMPTS, 5, ()) == texts


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("3", 3, 3),
        ("0.5", 0.5, 0.5),
        ("1e400", 0, 0),
        ("nan", 0, 0),
        ("-7", 0, 0),
        ("soon", 0, 0),
        ("", 0, 0),
        (None, 0, 0),
        ("99999999", 99999999, 99999999),
        ("Fri, 31 Dec 9999 23:59:59 -0000", 10**10, 10**12),
        ("Fri, 99 Dec 99999 23:59:59 GMT", 0, 0),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str | None, least: float, most: float) -> None:
    assert least <= client._parse_retry_after(value) <= most


def test_retry_after_counts_from_now() -> None:
    # Made in the test: the whole suite may run for longer than the pause.
    assert 800 <= client._parse_retry_after(formatdate(time.time() + 900, usegmt=True)) <= 901
    assert client._parse_retry_after(formatdate(time.time() - 90, usegmt=True)) == 0


def test_a_long_pause_is_shortened_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "MAX_REQUESTED_PAUSE", 0.2)
    monkeypatch.setattr(client, "MIN_REPORTED_PAUSE", 0.1)
    later = Reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "86400"})
    replies = [later, None, later]

    def behave(path: str, body: Body) -> Reply | None:
        return replies.pop(0) if replies else None

    with serving(Server(behave=behave)) as server:
        endpoint = model(server.url, tmp_path)
        assert endpoint.generate(PROMPTS, 5, ()) == ["yes"] * 3
        assert endpoint.get_counts()["retried_429"] == 2
        assert endpoint.get_counts()["pauses_cut_short"] == 2
        assert "pauses of up to 86,400 s" in " ".join(endpoint.list_notes(chooses=False))
    assert "slow down. The next request is in 0 s" in capsys.readouterr().err
    assert "requests a pause of 86,400 s" in problem(later, tmp_path / "other")


def test_a_failure_ends_the_pauses_of_other_requests(tmp_path: Path) -> None:
    def behave(path: str, body: Body) -> Reply | None:
        text = body["messages"][-1]["content"]
        if "Question 0" in text:
            return refusal("no more of this")
        return refusal("wait", status=503) if "Question" in text else None

    with serving(Server(behave=behave)) as server:
        endpoint = model(server.url, tmp_path, concurrency=3, retries=100)
        began = time.monotonic()
        with pytest.raises(EndpointError, match="no more of this"):
            endpoint.generate(PROMPTS, 5, ())
        assert time.monotonic() - began < 30  # a busy machine
