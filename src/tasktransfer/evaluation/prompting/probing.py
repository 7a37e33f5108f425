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
    parse_chat_response,
    parse_completion_response,
    parse_echo_response,
)
from tasktransfer.evaluation.prompting.client import (
    UNSUPPORTED_STATUSES,
    Client,
    RefusedError,
    UnreadableError,
)
from tasktransfer.evaluation.prompting.probe_store import CHAT, COMPLETIONS, Facts, GenerationMethod
from tasktransfer.tasks.asking import Prompt

KNOWN_COMPLETION = ("The capital of France is", " Paris")
QUESTION = Prompt(("Answer with one word. What is the capital of France?\nAnswer:",))
PROBE_TOKENS = 16
"""Token limit of a probe's answer."""
REASONING_TOKENS = 2048
"""Token limit for a model's thoughts if thinking_tokens is not set."""


@dataclass(frozen=True)
class EndpointProbe:
    """A probe of the model with the name ``served`` at an endpoint.

    Attributes:
        chat: whether prompts are sent as a chat. None if the probe decides.
        thinking_tokens: value from the config.
    """

    client: Client
    served: str
    chat: bool | None
    thinking_tokens: int | None

    def probe_scores(self, check_endpoint: Callable[[], Any]) -> Facts:
        """Test whether the endpoint echoes prompts with log-probabilities, and return evidence.

        Args:
            check_endpoint: function that raises EndpointError if the endpoint does not answer.
        """
        facts = self._try_echo()
        if not facts["offered"]:
            check_endpoint()
            facts = self._try_echo()
        return facts

    def _try_echo(self) -> Facts:
        try:
            answer = self.client.request_answer(
                COMPLETIONS,
                build_echo_body(self.served, *KNOWN_COMPLETION),
                lambda content: parse_echo_response(content, *KNOWN_COMPLETION, whole=True),
                retry_unreadable=False,
                is_supported=False,
            )
        except RefusedError as error:
            if error.status not in UNSUPPORTED_STATUSES:
                raise error.as_endpoint_error() from error
            return {"offered": False, "saw": str(error)}
        except UnreadableError as error:
            return {"offered": False, "saw": str(error)}
        return {"offered": True, "saw": f"{answer['total']:.4g} for {KNOWN_COMPLETION[1]!r}"}

    def probe_generation(self) -> Facts:
        """Test by which method the endpoint generates answers, and return evidence."""
        if self.chat is not None:
            try:
                return self._probe_path(CHAT if self.chat else COMPLETIONS)
            except RefusedError as error:
                raise error.as_endpoint_error() from error
        try:
            return self._probe_path(CHAT)
        except RefusedError as error:
            refusal = error
        try:
            completions = self._probe_path(COMPLETIONS)
        except RefusedError as error:
            raise EndpointError(
                f"{refusal}. {error}. Check the keys `endpoint` and `served` of this prompted "
                "model."
            ) from error
        try:
            return self._probe_path(CHAT)
        except RefusedError:
            return completions

    def _probe_path(self, path: str) -> Facts:
        """Find the method of generation at a path, without refused parameters.

        Raises:
            RefusedError: the path is not supported.
            EndpointError: the endpoint's answers cannot be read.
        """
        method, allowed = GenerationMethod(path), self.thinking_tokens or 0
        while True:
            try:
                answer = self._request_answer(method, PROBE_TOKENS + allowed)
                break
            except RefusedError as error:
                simpler = _drop_refused_parameter(method, error.words)
                if simpler is None:
                    if error.status not in UNSUPPORTED_STATUSES:
                        raise error.as_endpoint_error() from error
                    raise
                method = simpler
        if "thoughts" in answer or "unread" in answer:
            method = replace(method, thinks=True)
            if self.thinking_tokens is None:
                allowed = REASONING_TOKENS
                answer = self._request_answer(method, PROBE_TOKENS + allowed)
        if "unread" in answer:
            raise EndpointError(
                f"{self.client.url}: The model {self.served} returns no answer within {allowed:,} "
                f"tokens of reasoning ({answer['unread']}). Raise thinking_tokens of this "
                "prompted model, or disable reasoning on the server."
            )
        return {**method.as_facts(), "saw": self.client.hide_key(answer["text"])}

    def _request_answer(self, method: GenerationMethod, most: int) -> Answer:
        body = build_generation_body(self.served, method, QUESTION, most)
        try:
            return self.client.request_answer(
                method.path, body, get_response_parser(method), is_supported=False
            )
        except UnreadableError as error:
            raise EndpointError(f"{error}. Check the endpoint of this prompted model.") from error


def _drop_refused_parameter(method: GenerationMethod, words: str) -> GenerationMethod | None:
    """Remove from a method the parameter that the endpoint's message refuses.

    Return None if the message does not name such a parameter.
    """
    if method.tokens_key == "max_tokens" and re.search("max_(completion_)?tokens", words):
        return replace(method, tokens_key="max_completion_tokens")
    if method.temperature and "temperature" in words:
        return replace(method, temperature=False)
    return None


def get_response_parser(method: GenerationMethod) -> Callable[[Any], Answer]:
    """Return the parser of responses to a method's requests."""
    return parse_chat_response if method.path == CHAT else parse_completion_response


def build_generation_body(
    served: str, method: GenerationMethod, prompt: Prompt, most: int
) -> dict[str, Any]:
    """Return the body of a request that generates at most ``most`` tokens."""
    text = {"messages": prompt.messages} if method.path == CHAT else {"prompt": prompt.text}
    temperature = {"temperature": 0} if method.temperature else {}
    return {"model": served, **temperature, **text, method.tokens_key: most}


def build_echo_body(served: str, prompt: str, choice: str) -> dict[str, Any]:
    """Return the body of a request for the log-probabilities of a prompt with a choice."""
    # One token is generated, because not every endpoint accepts max_tokens of 0.
    more = {"max_tokens": 1, "echo": True, "logprobs": 1}
    return {"model": served, "temperature": 0, "prompt": prompt + choice, **more}
