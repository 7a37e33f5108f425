"""Probes of an endpoint with prompts whose answers are known, before the first real prompt.

A refusal counts only if the endpoint answers another probe and then refuses again. A server that is
still loading its model, or a proxy in between, refuses everything for a while.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tasktransfer.errors import EndpointError
from tasktransfer.evaluation.prompting.answers import (
    Answer,
    read_completion,
    read_echo,
    read_message,
)
from tasktransfer.evaluation.prompting.client import (
    LASTING,
    Client,
    RefusedError,
    UnreadableError,
)
from tasktransfer.evaluation.prompting.probes import CHAT, COMPLETIONS, Facts, Way
from tasktransfer.tasks.asking import Prompt

KNOWN = ("The capital of France is", " Paris")
QUESTION = Prompt(("Answer with one word. What is the capital of France?\nAnswer:",))
FEW = 16
"""Token limit of a probe's answer."""
THOUGHTS = 2048
"""Token limit for a model's thoughts if thinking_tokens is not set."""


@dataclass(frozen=True)
class Probe:
    """A probe of the model that the endpoint serves as ``served``.

    Attributes:
        chat: whether prompts are sent as a chat; None if the endpoint decides.
        thinking_tokens: value from the config.
    """

    client: Client
    served: str
    chat: bool | None
    thinking_tokens: int | None

    def probe_scores(self, find_way: Callable[[], Any]) -> Facts:
        """Probe whether the endpoint echoes a prompt with its log-probabilities.

        Args:
            find_way: function that raises EndpointError if the endpoint does not answer at all.
        """
        facts = self._try_echo()
        if not facts["offered"]:
            find_way()
            facts = self._try_echo()
        return facts

    def _try_echo(self) -> Facts:
        try:
            answer = self.client.ask(
                COMPLETIONS,
                build_echo_body(self.served, *KNOWN),
                lambda content: read_echo(content, *KNOWN, whole=True),
                patient=False,
                is_offered=False,
            )
        except RefusedError as error:
            if error.status not in LASTING:
                raise error.as_endpoint_error() from error
            return {"offered": False, "saw": str(error)}
        except UnreadableError as error:
            return {"offered": False, "saw": str(error)}
        return {"offered": True, "saw": f"{answer['total']:.4g} for {KNOWN[1]!r}"}

    def probe_generation(self) -> Facts:
        """Probe how the endpoint generates answers."""
        if self.chat is not None:
            try:
                return self._try(CHAT if self.chat else COMPLETIONS)
            except RefusedError as error:
                raise error.as_endpoint_error() from error
        try:
            return self._try(CHAT)
        except RefusedError as error:
            refusal = error
        try:
            other = self._try(COMPLETIONS)
        except RefusedError as error:
            raise EndpointError(
                f"{refusal}. {error}. Check endpoint and served of this prompted model."
            ) from error
        try:
            return self._try(CHAT)
        except RefusedError:
            return other

    def _try(self, path: str) -> Facts:
        """Probe a path, without the parameters that the endpoint says it refuses.

        Raises:
            RefusedError: the path is not offered.
            EndpointError: the endpoint's answers cannot be read.
        """
        way, allowed = Way(path), self.thinking_tokens or 0
        while True:
            try:
                answer = self._ask(way, FEW + allowed)
                break
            except RefusedError as error:
                simpler = _drop_refused_parameter(way, error.words)
                if simpler is None:
                    if error.status not in LASTING:
                        raise error.as_endpoint_error() from error
                    raise
                way = simpler
        if "thoughts" in answer or "unread" in answer:
            way = replace(way, thinks=True)
            if self.thinking_tokens is None:
                allowed = THOUGHTS
                answer = self._ask(way, FEW + allowed)
        if "unread" in answer:
            raise EndpointError(
                f"{self.client.url}: {self.served} returns no answer: {answer['unread']}. It "
                f"was allowed {allowed:,} tokens for its reasoning. Raise thinking_tokens of "
                "this prompted model, or switch reasoning off at the server."
            )
        return {**way.as_facts(), "saw": self.client.hide(answer["text"])}

    def _ask(self, way: Way, most: int) -> Answer:
        body = build_generation_body(self.served, way, QUESTION, most)
        try:
            return self.client.ask(way.path, body, get_reader(way), is_offered=False)
        except UnreadableError as error:
            raise EndpointError(str(error)) from error


def _drop_refused_parameter(way: Way, words: str) -> Way | None:
    """Return a way without the parameter that an endpoint refuses; None if it names none."""
    if way.tokens_key == "max_tokens" and re.search("max_(completion_)?tokens", words):
        return replace(way, tokens_key="max_completion_tokens")
    if way.temperature and "temperature" in words:
        return replace(way, temperature=False)
    return None


def get_reader(way: Way) -> Callable[[Any], Answer]:
    """Return the function that reads the answers of a way."""
    return read_message if way.path == CHAT else read_completion


def build_generation_body(served: str, way: Way, prompt: Prompt, most: int) -> dict[str, Any]:
    """Return the request body for generating an answer of at most ``most`` tokens."""
    text = {"messages": prompt.messages} if way.path == CHAT else {"prompt": prompt.text}
    temperature = {"temperature": 0} if way.temperature else {}
    return {"model": served, **temperature, **text, way.tokens_key: most}


def build_echo_body(served: str, prompt: str, choice: str) -> dict[str, Any]:
    """Return the request body for the log-probabilities of a prompt and a choice after it."""
    # One token is generated, because not every endpoint accepts max_tokens of 0.
    more = {"max_tokens": 1, "echo": True, "logprobs": 1}
    return {"model": served, "temperature": 0, "prompt": prompt + choice, **more}
