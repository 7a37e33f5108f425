"""A language model behind an OpenAI-compatible endpoint.

Choices are scored by ``/completions`` with ``echo`` and ``logprobs`` if the endpoint supports them.
Otherwise the model generates its answer, which has to be one of the choices. A probe decides before
the first prompt (``probing``), and no later answer changes the decision. The record's notes name
the method.
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
from tasktransfer.core.identity import compute_digest
from tasktransfer.core.specs import SERVED, ModelSpec
from tasktransfer.encoding.middle import compute_kept_ends
from tasktransfer.errors import ConfigError, EndpointError
from tasktransfer.evaluation.prompting.answer_cache import AnswerCache
from tasktransfer.evaluation.prompting.answers import (
    USAGE,
    Answer,
    parse_echo_response,
    strip_thoughts,
)
from tasktransfer.evaluation.prompting.client import (
    MAX_REQUESTED_PAUSE,
    Client,
    RefusedError,
    UnreadableError,
)
from tasktransfer.evaluation.prompting.keys import read_key
from tasktransfer.evaluation.prompting.model import Chat, Likelihood, Unread, truncate_at_stop
from tasktransfer.evaluation.prompting.permissions import find_refusals
from tasktransfer.evaluation.prompting.probe_store import (
    COMPLETIONS,
    SCORES,
    GenerationMethod,
    ProbeStore,
)
from tasktransfer.evaluation.prompting.probing import (
    REASONING_TOKENS,
    EndpointProbe,
    build_echo_body,
    build_generation_body,
    get_response_parser,
)
from tasktransfer.tasks.asking import InstancePrompt, Prompt

CHARACTERS_PER_TOKEN = 3
"""Assumed number of characters per token, since the endpoint's tokenizer is not available.

It is a cautious estimate, because English has about four."""
BASE_BYTES, BYTES_PER_TOKEN, MAX_BYTES = 2**20, 512, 2**26
"""Size limit of an answer: its base, an addition per token of ``max_length``, and its maximum.

An echo reports each token with its log-probability."""
NO_LIKELIHOODS_NOTE = (
    "the endpoint returns no log-likelihoods, so answers are generated and must be one of the "
    "choices"
)

T = TypeVar("T")
Body = dict[str, Any]


@dataclass
class EndpointModel:
    """A model that ``client`` prompts under the name ``served``.

    Attributes:
        probes: stored results of the probes of the endpoint.
        chat: whether answers are generated as a chat. None if a probe of the endpoint decides.
        thinking_tokens: value from the config.
        sends: whether requests may be sent. Otherwise only stored answers and probes are used.
    """

    client: Client
    served: str
    max_length: int
    cache: AnswerCache
    probes: ProbeStore
    concurrency: int = 4
    chat: bool | None = None
    thinking_tokens: int | None = None
    sends: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # --- texts ---

    def count_tokens(self, prompt: Prompt) -> int:
        return math.ceil(sum(map(len, prompt.turns)) / CHARACTERS_PER_TOKEN)

    def truncate_text(self, text: str, most: int, keeps: str) -> str:
        kept = max(0, most) * CHARACTERS_PER_TOKEN
        if len(text) <= kept:
            return text
        if keeps == "both" and kept > 1:
            head, tail = compute_kept_ends(len(text), kept - 1)
            return f"{text[:head]} {text[len(text) - tail :]}"
        return text[len(text) - kept :] if keeps == "end" else text[:kept]

    # --- abilities of the endpoint --

    @cached_property
    def gives_likelihoods(self) -> bool:
        """True if the endpoint echoes prompts with log-probabilities."""
        if not self.sends:
            facts = self.probes.read_facts(SCORES)
            return facts is None or bool(facts["offered"])
        probe = self._build_probe()
        facts = self.probes.get_facts(SCORES, lambda: probe.probe_scores(lambda: self.method))
        return bool(facts["offered"])

    @cached_property
    def method(self) -> GenerationMethod:
        """Method by which the endpoint generates answers."""
        return GenerationMethod.from_facts(
            self.probes.get_facts(self._method_name, self._build_probe().probe_generation)
        )

    @property
    def _method_name(self) -> str:
        return {None: "way", True: "way, chat: yes", False: "way, chat: no"}[self.chat]

    def _build_probe(self) -> EndpointProbe:
        """Return the test requests that find out what the endpoint can do."""
        return EndpointProbe(self.client, self.served, self.chat, self.thinking_tokens)

    # --- likelihoods ---

    def compute_likelihoods(
        self, prompts: Sequence[InstancePrompt]
    ) -> list[list[Likelihood] | Unread]:
        pairs = [
            (question.prompt.text, f" {choice}")
            for question in prompts
            for choice in question.choices
        ]
        scored = iter(self._run_concurrently(lambda pair: self._request_likelihood(*pair), pairs))
        return [_join_likelihoods([next(scored) for _ in each.choices]) for each in prompts]

    def _request_likelihood(self, prompt: str, choice: str) -> Likelihood | Unread:
        body = build_echo_body(self.served, prompt, choice)
        try:
            answer = self._request_cached_answer(
                COMPLETIONS, body, lambda content: parse_echo_response(content, prompt, choice)
            )
        except UnreadableError as error:
            raise EndpointError(
                f"{error}. The probe of the endpoint returned log-probabilities "
                f"({self.probes.file}), so the endpoint may have changed. If the endpoint has "
                "changed, repeat the probe with `tasktransfer validate --probe-again`."
            ) from error
        return (
            answer if isinstance(answer, Unread) else Likelihood(answer["total"], answer["tokens"])
        )

    # --- generated answers ---

    def generate(
        self, prompts: Sequence[Prompt], most: int, stops: Sequence[str]
    ) -> list[str | Unread]:
        method = self.method
        allowed = (
            self.thinking_tokens
            if self.thinking_tokens is not None
            else REASONING_TOKENS * method.thinks
        )
        texts = self._run_concurrently(
            lambda prompt: self._request_generation(method, prompt, most + allowed), prompts
        )
        return [
            text if isinstance(text, Unread) else truncate_at_stop(text, stops) for text in texts
        ]

    def _request_generation(
        self, method: GenerationMethod, prompt: Prompt, most: int
    ) -> str | Unread:
        body = build_generation_body(self.served, method, prompt, most)
        answer = self._request_cached_answer(method.path, body, get_response_parser(method))
        # Answers cached by an earlier version still contain their thoughts.
        return answer if isinstance(answer, Unread) else strip_thoughts(str(answer["text"]))[0]

    # --- requests ---

    def _run_concurrently(self, ask: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        pool = ThreadPoolExecutor(self.concurrency)
        try:
            return list(pool.map(ask, items))
        except BaseException as error:
            self.client.stop()
            if isinstance(error, UnreadableError):
                raise EndpointError(
                    f"{error}. Check the endpoint of this prompted model."
                ) from error
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _request_cached_answer(
        self, path: str, body: Body, read: Callable[[Any], Answer]
    ) -> Answer | Unread:
        """Return the answer to a request from the cache, or otherwise from the endpoint.

        A prompt that the endpoint's content filter refuses has no readable answer. It does not
        change how other prompts are sent. Unreadable answers are not cached.

        Raises:
            UnreadableError: the endpoint's answers cannot be read.
            EndpointError: the endpoint refuses the request, or cannot be reached.
        """
        digest = compute_digest([path, body])
        answer = self.cache.get(digest)
        known = answer is not None
        if answer is None:
            try:
                answer = self.client.request_answer(path, body, read)
            except RefusedError as error:
                if not error.is_filter:
                    raise error.as_endpoint_error() from error
                answer = {"unread": f"the endpoint filtered the prompt: {error.words}"}
            if "unread" not in answer:
                self.cache.put(digest, answer)
        with self._lock:
            self.counts["answers"] += 1
            self.counts["answers_remembered"] += known
            self.counts["answers_with_thoughts"] += "thoughts" in answer
            for name in USAGE:
                self.counts[name] += answer.get(name, 0)
        return Unread(str(answer["unread"])) if "unread" in answer else answer

    def get_counts(self) -> dict[str, float]:
        """Return the numbers of answers, tokens and retries by reason."""
        rare = {
            **self.client.counts,
            "answers_with_thoughts": self.counts["answers_with_thoughts"],
        }
        return {**self.counts, **{name: count for name, count in rare.items() if count}}

    def list_notes(self, *, chooses: bool) -> list[str]:
        """Return notes on the endpoint for the record.

        Args:
            chooses: whether the task's answers are choices.
        """
        scores = chooses and self.gives_likelihoods
        notes = [NO_LIKELIHOODS_NOTE] if chooses and not scores else []
        notes += self.probes.list_descriptions(SCORES) if chooses else []
        notes += [] if scores else self.probes.list_descriptions(self._method_name)
        client = self.client
        if client.counts["pauses_cut_short"]:
            notes.append(
                f"the endpoint requests pauses of up to {client.longest_requested_pause:,.0f} s "
                f"(Retry-After), but pauses are limited to {MAX_REQUESTED_PAUSE:.0f} s"
            )
        if repeated := client.counts["key_in_answers"]:
            notes.append(
                f"the endpoint repeated the key in {repeated:,} answers, where (key) replaces it"
            )
        return notes


def _join_likelihoods(scored: Sequence[Likelihood | Unread]) -> list[Likelihood] | Unread:
    """Join the likelihoods of a prompt's choices, or return the first unreadable answer."""
    unread = next((each for each in scored if isinstance(each, Unread)), None)
    return unread or [each for each in scored if isinstance(each, Likelihood)]


def build_endpoint_model(
    config: EndpointConfig,
    model: ModelSpec,
    folder: Path,
    chat: Chat = "auto",
    *,
    thinking_tokens: int | None = None,
    sends: bool = True,
) -> EndpointModel:
    """Build a model that is served by an endpoint, with answers cached in ``folder``.

    Args:
        sends: whether requests may be sent. Otherwise no key is read.

    Raises:
        ConfigError: the user has not allowed the host or the key, or the key is not valid.
    """
    assert config.endpoint is not None, "the model runs in this process"
    refusals = [*find_refusals(config.endpoint, config.key_variable)] if sends else []
    if refusals:
        raise ConfigError("\n".join(f"prompted model {model.name}: {text}" for text in refusals))
    client = Client(
        config.endpoint,
        config.key_variable,
        read_key(config.key_variable) if sends else None,
        retries=config.retries,
        timeout=config.timeout,
        most_bytes=min(MAX_BYTES, BASE_BYTES + BYTES_PER_TOKEN * model.max_length),
    )
    return EndpointModel(
        client=client,
        served=model.weights.removeprefix(SERVED),
        max_length=model.max_length,
        cache=AnswerCache(folder),
        probes=ProbeStore(folder),
        concurrency=config.concurrency,
        chat={"auto": None, "yes": True, "no": False}[chat],
        thinking_tokens=thinking_tokens,
        sends=sends,
    )
