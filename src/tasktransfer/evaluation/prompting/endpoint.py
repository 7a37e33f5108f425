"""A language model behind an OpenAI-compatible endpoint.

Choices are scored by ``/completions`` with ``echo`` and ``logprobs``, where the endpoint gives
these; where it does not, the model writes its answer, which has to be one of the choices. Which of
the two it was is in the notes of the record. Nothing is guessed of an answer that cannot be read.

The key is read from an environment variable when a request is sent, and stands nowhere else.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tasktransfer.config import EndpointConfig
from tasktransfer.core.digests import digest_of
from tasktransfer.core.specs import SERVED, ModelSpec
from tasktransfer.encoding.middle import keep_both_ends
from tasktransfer.errors import EndpointError
from tasktransfer.evaluation.prompting.client import Client, RefusedError, UnreadableError
from tasktransfer.evaluation.prompting.model import Chat, Likelihood, up_to
from tasktransfer.evaluation.prompting.remembered import Remembered
from tasktransfer.tasks.asking import Asked, Prompt

CHARACTERS = 3
"""Of a token at least: prompts are cut by it, as the endpoint's tokenizer is not here. English has
about four."""
NOT_OFFERED = frozenset({400, 404, 405, 415, 422, 501})
"""What an endpoint answers to what it does not offer."""
COMPLETIONS, CHAT = "completions", "chat/completions"
PROBE = ("The capital of France is", " Paris")
NO_LIKELIHOODS = "no log-likelihoods"
"""Is remembered of an endpoint that gives none."""

T = TypeVar("T")
Body = dict[str, Any]


@dataclass
class EndpointModel:
    """A model that ``client`` asks by the name ``served``.

    ``chat``: whether answers are written as a chat; None: where the endpoint has one. ``probes``:
    whether it may be asked if it gives log-likelihoods; else it does as far as is remembered.
    """

    client: Client
    served: str
    max_length: int
    remembered: Remembered
    concurrency: int = 4
    chat: bool | None = None
    probes: bool = True
    tallied: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # --- texts ---

    def length(self, prompt: Prompt) -> int:
        return math.ceil(sum(map(len, prompt.turns)) / CHARACTERS)

    def cut(self, text: str, most: int, keeps: str) -> str:
        kept = max(0, most) * CHARACTERS
        if len(text) <= kept:
            return text
        if keeps == "both" and kept > 1:
            head, tail = keep_both_ends(len(text), kept - 1)
            return f"{text[:head]} {text[len(text) - tail :]}"
        return text[len(text) - kept :] if keeps == "end" else text[:kept]

    # --- likelihoods ---

    @cached_property
    def gives_likelihoods(self) -> bool:
        """Whether the endpoint echoes a prompt with its log-probabilities. Asked once, and the
        answer remembered."""
        known = self.remembered.get(NO_LIKELIHOODS)
        if known is None and self.probes:
            try:
                self._likelihood(*PROBE, patient=False)
            except (RefusedError, UnreadableError) as error:
                known = {"why": str(error)}
                self.remembered.put(NO_LIKELIHOODS, known)
        return known is None

    def likelihoods(self, asked: Sequence[Asked]) -> list[list[Likelihood]]:
        pairs = [
            (question.prompt.text, f" {choice}")
            for question in asked
            for choice in question.choices
        ]
        scored = iter(self._side_by_side(lambda pair: self._likelihood(*pair), pairs))
        return [[next(scored) for _ in question.choices] for question in asked]

    def _likelihood(self, prompt: str, choice: str, *, patient: bool = True) -> Likelihood:
        # One token more: not every endpoint lets a text be read without any.
        body = {"prompt": prompt + choice, "max_tokens": 1, "echo": True, "logprobs": 1}
        answer = self._ask(
            COMPLETIONS, body, lambda content: _echoed(content, prompt, choice), patient
        )
        return Likelihood(answer["total"], answer["tokens"])

    # --- writing ---

    def write(self, prompts: Sequence[Prompt], most: int, stops: Sequence[str]) -> list[str]:
        texts = self._side_by_side(lambda prompt: self._written(prompt, most), prompts)
        return [up_to(text, stops) for text in texts]

    def _written(self, prompt: Prompt, most: int) -> str:
        if self.chat is not False:
            try:
                body: Body = {"messages": prompt.messages, "max_tokens": most}
                return str(self._ask(CHAT, body, _message)["text"])
            except RefusedError as error:
                if self.chat or error.status not in NOT_OFFERED:
                    raise error.told() from error
            self.chat = False
        body = {"prompt": prompt.text, "max_tokens": most}
        try:
            return str(self._ask(COMPLETIONS, body, _completion)["text"])
        except RefusedError as error:
            raise error.told() from error

    # --- asking ---

    def _side_by_side(self, ask: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        pool = ThreadPoolExecutor(self.concurrency)
        try:
            return list(pool.map(ask, items))
        except (RefusedError, UnreadableError) as error:
            raise EndpointError(str(error)) from error
        finally:
            pool.shutdown(cancel_futures=True)

    def _ask(
        self, path: str, body: Body, read: Callable[[Any], Body], patient: bool = True
    ) -> Body:
        """What was read of the answer to a request, now or before."""
        body = {"model": self.served, "temperature": 0, **body}
        digest = digest_of([path, body])
        answer = self.remembered.get(digest)
        known = answer is not None
        if answer is None:
            answer = self.client.ask(path, body, read, patient=patient)
            self.remembered.put(digest, answer)
        with self._lock:
            self.tallied["answers"] += 1
            self.tallied["answers_remembered"] += known
            for name in ("prompt_tokens", "completion_tokens"):
                self.tallied[name] += answer.get(name, 0)
        return answer

    def counts(self) -> dict[str, float]:
        """Of all answers, those that were remembered among them, what they cost in tokens; and how
        often a request was sent once more, by reason."""
        return {**self.tallied, **self.client.retried}


def _usage(content: Any) -> Body:
    """Tokens of a request and its answer; nothing where the endpoint does not say."""
    usage = content.get("usage") or {}
    counted = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
    return {name: value for name, value in counted.items() if isinstance(value, int)}


def _message(content: Any) -> Body:
    text = content["choices"][0]["message"].get("content")
    return {"text": _text(text or ""), **_usage(content)}


def _completion(content: Any) -> Body:
    return {"text": _text(content["choices"][0]["text"]), **_usage(content)}


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise TypeError(f"the answer is {type(text).__name__} and no text")
    return text


def _echoed(content: Any, prompt: str, choice: str) -> Body:
    """The log-probability of a choice, of the tokens that have any of its text."""
    scores = content["choices"][0]["logprobs"]
    tokens, values = scores["tokens"], scores["token_logprobs"]
    begins = _begins(tokens, scores.get("text_offset"), prompt + choice)
    ends = [*begins[1:], math.inf]
    counted = [
        float(value)
        for begin, end, value in zip(begins, ends, values, strict=True)
        if end > len(prompt) and begin < len(prompt + choice)
    ]
    if not counted or not all(math.isfinite(value) and value <= 0 for value in counted):
        raise ValueError(f"no log-probabilities of {choice!r}")
    return {"total": sum(counted), "tokens": len(counted), **_usage(content)}


def _begins(tokens: Sequence[str], offsets: Sequence[int] | None, whole: str) -> list[int]:
    """Where in the text each token begins: by the tokens' own texts, or as the endpoint says."""
    begins, position = [], 0
    for token in tokens:
        begins.append(position)
        position += len(token)
    if "".join(tokens).startswith(whole):
        return begins
    if offsets is None or len(offsets) != len(tokens):
        raise ValueError("its tokens are not those of the text")
    return list(offsets)


def open_endpoint(
    config: EndpointConfig, model: ModelSpec, folder: Path, chat: Chat = "auto"
) -> EndpointModel:
    """A model behind an endpoint, whose answers are kept in ``folder``."""
    assert config.endpoint is not None, "it runs here"
    client = Client(
        config.endpoint, config.key_variable, retries=config.retries, timeout=config.timeout
    )
    served = model.weights.removeprefix(SERVED)
    writes_chat = {"auto": None, "yes": True, "no": False}[chat]
    return EndpointModel(
        client, served, model.max_length, Remembered(folder), config.concurrency, writes_chat
    )
