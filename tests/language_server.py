"""A small server for endpoint tests, with OpenAI's protocol and faults on demand.

A token is a word with the space before it. Its log-probability is -0.01 per letter that is not in
``liked``, so that scores are known in advance.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.config import EndpointConfig
from tasktransfer.core.specs import ModelSpec
from tasktransfer.evaluation.prompting import client
from tasktransfer.evaluation.prompting.endpoint import EndpointModel, build_endpoint_model

Body = dict[str, Any]
USAGE = {"prompt_tokens": 7, "completion_tokens": 1}


@dataclass(frozen=True)
class Reply:
    """A response that replaces the usual one. ``content``: plain data is sent as JSON.

    ``drip``: seconds between single bytes. ``length``: value of the header Content-Length; None to
    omit it, ``"right"`` for the length of the content.
    """

    content: bytes | dict[str, Any] | list[Any]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drip: float = 0
    length: int | str | None = "right"

    @property
    def data(self) -> bytes:
        is_data = isinstance(self.content, bytes)
        return self.content if is_data else json.dumps(self.content).encode()


def chat_answer(content: Any, finish: str = "stop", **more: Any) -> Body:
    """Build an answer of ``/chat/completions``."""
    message = {"role": "assistant", "content": content, **more}
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": USAGE}


def refusal(message: str, code: Any = None, status: int = 400) -> Reply:
    """Build a refusal in the form of most endpoints."""
    return Reply({"error": {"message": message, "code": code}}, status)


@dataclass
class Server:
    """State and behaviour of the server.

    ``faults``: faults for the next requests, one each: ``429``, ``500``, ``broken`` (invalid JSON),
    ``empty`` (JSON without an answer), ``late``, ``cut`` (the connection ends). ``pause``: seconds
    before each answer. ``die_after``: number of requests after which every connection is cut.
    ``asked``: number of answers per request. ``key``: accepted key; None to accept any or none.
    ``behave``: function of path and request that returns a replacement reply or None.
    ``requests``: all requests, in order.
    """

    liked: str = ""
    scores: bool = True
    chats: bool = True
    answer: str = "yes"
    key: str | None = None
    pause: float = 0
    die_after: int | None = None
    url: str = ""
    behave: Callable[[str, Body], Reply | None] = lambda path, body: None
    requests: list[tuple[str, Body]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    let_in: int = 0
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def answers(self) -> int:
        return self.asked.total()

    def fault(self) -> str | None:
        with self.lock:
            if self.die_after is not None and self.let_in >= self.die_after:
                return "cut"
            self.let_in += 1
            return self.faults.pop(0) if self.faults else None

    def answered(self, path: str, body: Body, pause: float) -> Body | None:
        """Return the answer after a pause, and count it; None if the path is not offered."""
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(pause)
        answer = self.of(path, body)
        with self.lock:
            self.at_once -= 1
            if answer is not None:
                self.asked[json.dumps([path, body], sort_keys=True)] += 1
        return answer

    def of(self, path: str, body: Body) -> Body | None:
        """Return the answer to a request; None if the path is not offered."""
        if path == "/v1/chat/completions" and self.chats:
            return chat_answer(self.answer)
        if path != "/v1/completions" or (body.get("echo") and not self.scores):
            return None
        if not body.get("echo"):
            return {"choices": [{"text": self.answer}], "usage": USAGE}
        tokens = [*re.findall(r"\s*\S+", body["prompt"]), " more"]
        values = [None, *(score(token, self.liked) for token in tokens[1:])]
        scored = {"tokens": tokens, "token_logprobs": values}
        usage = {**USAGE, "prompt_tokens": len(tokens) - 1}
        return {"choices": [{"text": "".join(tokens), "logprobs": scored}], "usage": usage}


def score(token: str, liked: str) -> float:
    return -sum(letter not in liked for letter in token.strip()) / 100


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_POST(self) -> None:  # the library's name
        served: Server = self.server.served
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if served.key is not None and self.headers.get("Authorization") != f"Bearer {served.key}":
            said = f"wrong key {self.headers.get('Authorization')}"
            return self._reply(Reply({"error": said}, 401))
        with served.lock:
            served.requests.append((self.path, body))
        if (reply := served.behave(self.path, body)) is not None:
            return self._reply(reply)
        pause = served.pause
        match served.fault():
            case "429":
                return self._reply(Reply(b"slow down", 429, {"Retry-After": "0.05"}))
            case "500":
                return self._reply(Reply(b"oops", 500))
            case "broken":
                return self._reply(Reply(b'{"choices": [{"te'))
            case "empty":
                return self._reply(Reply({"choices": []}))
            case "late":
                pause = 0.6
            case "cut":
                self.close_connection = True
                self.connection.close()
                return None
        answer = served.answered(self.path, body, pause)
        return self._reply(Reply(b"not offered", 404) if answer is None else Reply(answer))

    def _reply(self, reply: Reply) -> None:
        length = len(reply.data) if reply.length == "right" else reply.length
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            if not reply.drip:
                self.wfile.write(reply.data)
            for byte in reply.data if reply.drip else b"":
                self.wfile.write(bytes([byte]))
                time.sleep(reply.drip)
        except OSError:  # the client no longer waits
            self.close_connection = True

    def finish(self) -> None:
        try:
            super().finish()
        except (OSError, ValueError):
            return

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def serving(served: Server | None = None, port: int = 0) -> Iterator[Server]:
    """Run a server until the context ends."""
    served = served or Server()
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    server.daemon_threads = True
    server.served = served  # type: ignore[attr-defined]
    served.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def impatient_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pauses between requests, and leave out the user's keys and permissions."""
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    for name in ("OPENAI_API_KEY", "TASKTRANSFER_KEY_VARIABLES", "TASKTRANSFER_HTTP_HOSTS"):
        monkeypatch.delenv(name, raising=False)


def build_model(
    url: str, folder: Path, chat: Any = "auto", thinking_tokens: int | None = None, **settings: Any
) -> EndpointModel:
    """Build a model behind an endpoint. ``settings``: those of the config's section."""
    config = EndpointConfig(
        endpoint=url, **{"retries": 1, "timeout": 5.0, "concurrency": 1, **settings}
    )
    spec = ModelSpec("smol", "decoder", "served:org/smol", 512)
    return build_endpoint_model(config, spec, folder, chat, thinking_tokens=thinking_tokens)
