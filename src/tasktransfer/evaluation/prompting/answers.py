"""Parsing of responses of OpenAI-compatible endpoints: texts and echoed log-probabilities.

Endpoints leave out different fields. A response that cannot be read raises ValueError with the
reason. Nothing is guessed: an echoed prompt must equal the prompt that was sent, character by
character.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

Span = tuple[int, int]

_TAGS = r"think|thinking|thoughts?|reasoning|seed:think"
_THOUGHTS_BEGIN = re.compile(
    rf"<(?:{_TAGS})>|\[THINK\]|◁think▷|<\|START_THINKING\|>", re.IGNORECASE
)
_THOUGHTS_END = re.compile(
    rf"</(?:{_TAGS})>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)
_NOT_DECODED = ("\ufffd", "bytes:")
"""Marks of a token that covers only some bytes of a character."""
USAGE: tuple[Literal["prompt_tokens", "completion_tokens"], ...] = (
    "prompt_tokens",
    "completion_tokens",
)
MAX_TOKEN_COUNT = 10**9
"""Largest token count that is accepted from an endpoint."""
MAX_TEXT_LENGTH = 2**16
"""Maximum length of a stored answer in characters. Only endpoints that ignore the token limit send
more."""


class _Usage(TypedDict, total=False):
    """Token counts of a request, as counted by the endpoint."""

    prompt_tokens: int
    completion_tokens: int


class Answer(_Usage, total=False):
    """An endpoint's answer, which is cached as JSON.

    Attributes:
        text: the generated text.
        total: log-probability of a choice after its prompt (nats), in place of ``text``.
        tokens: number of the choice's tokens.
        thoughts: true if the model generated its reasoning first.
        unread: reason why the response contains no answer.
    """

    text: str
    total: float
    tokens: int
    thoughts: bool
    unread: str


def parse_chat_response(content: Any) -> Answer:
    """Parse the answer from a response of ``/chat/completions``."""
    choice = _extract_choice(content)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ValueError("choices[0] has no message")
    texts, thinks = _join_content_parts(message.get("content"))
    thinks = thinks or any(message.get(name) for name in ("reasoning_content", "reasoning"))
    if texts is None and isinstance(message.get("refusal"), str):
        texts = message["refusal"]
    return _build_answer(content, texts, thinks, choice.get("finish_reason"))


def parse_completion_response(content: Any) -> Answer:
    """Parse the answer from a response of ``/completions``."""
    choice = _extract_choice(content)
    if "text" not in choice:
        raise ValueError("choices[0] has no text")
    texts, thinks = _join_content_parts(choice["text"])
    thinks = thinks or bool(choice.get("reasoning_content"))
    return _build_answer(content, texts, thinks, choice.get("finish_reason"))


def strip_thoughts(text: str) -> tuple[str, bool]:
    """Strip a model's thoughts from a text, and return whether there were any.

    The text is empty if the thoughts do not end.
    """
    *_, end = [0, *(match.end() for match in _THOUGHTS_END.finditer(text))]
    rest = text[end:]
    begin = _THOUGHTS_BEGIN.search(rest)
    return (rest[: begin.start()] if begin else rest), bool(end or begin)


def parse_echo_response(content: Any, prompt: str, choice: str, *, whole: bool = False) -> Answer:
    """Parse the log-probability of a choice from a response that echoes prompt and choice.

    Args:
        whole: whether log-probabilities for the whole prompt, except its first token, are required.
    """
    answer = _extract_choice(content)
    scores = answer.get("logprobs")
    if not isinstance(scores, dict):
        raise ValueError("the response contains no log-probabilities (logprobs)")
    tokens, values = scores.get("tokens"), scores.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        raise ValueError("the logprobs contain no tokens with token_logprobs")
    if not all(isinstance(token, str) for token in tokens):
        raise ValueError("the tokens are not strings")
    edges = len(prompt), len(prompt) + len(choice)
    offsets, text = scores.get("text_offset"), answer.get("text")
    spans = _locate_tokens(tokens, offsets, text, prompt + choice, edges)
    placed = [*zip(spans, values, strict=True)]
    counted = [value for (begin, end), value in placed if end > edges[0] and begin < edges[1]]
    before = [value for (_, end), value in placed if end <= edges[0]][1:]
    if not counted or not all(map(_is_log_probability, counted)):
        raise ValueError(f"the response contains no log-probabilities of {choice!r}")
    if whole and not (before and all(map(_is_log_probability, before))):
        raise ValueError("the response contains no log-probabilities of the prompt")
    return _add_usage({"total": sum(counted), "tokens": len(counted)}, content)


def _extract_choice(content: Any) -> dict[str, Any]:
    choices = content.get("choices") if isinstance(content, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ValueError("the response contains no choices")
    return choices[0]


def _join_content_parts(content: Any) -> tuple[str | None, bool]:
    """Join a message's content to one text, and return whether it contains thoughts."""
    if content is None or isinstance(content, str):
        return content, False
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise ValueError(
            f"the content of the answer has the type {type(content).__name__} instead of text"
        )
    texts = [part["text"] for part in content if isinstance(part.get("text"), str)]
    return "".join(texts), any(part.get("type") in ("thinking", "reasoning") for part in content)


def _build_answer(content: Any, raw: str | None, thinks: bool, finish: Any) -> Answer:
    text, has_thoughts = strip_thoughts(raw or "")
    answer = _add_usage({"text": text[:MAX_TEXT_LENGTH]}, content)
    if thinks or has_thoughts:
        answer["thoughts"] = True
    if text.strip() or (raw and not has_thoughts):
        return answer
    if finish == "content_filter":
        answer["unread"] = "the endpoint filtered the answer"
    elif finish == "length":
        answer["unread"] = "the token limit was reached before the answer (finish_reason: length)"
    elif "thoughts" in answer:
        answer["unread"] = "no answer follows its thoughts"
    elif raw is None:
        answer["unread"] = "the content is null"
    return answer


def _add_usage(answer: Answer, content: Any) -> Answer:
    """Add the token counts that the endpoint reports to an answer."""
    usage = content.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    for name in USAGE:
        if type(counts.get(name)) is int and 0 <= counts[name] <= MAX_TOKEN_COUNT:
            answer[name] = counts[name]
    return answer


def _is_log_probability(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value <= 0


def _locate_tokens(
    tokens: Sequence[str], offsets: Any, text: Any, sent: str, edges: Span
) -> list[Span]:
    """Locate each token's span in the request's text.

    Raises:
        ValueError: the tokens do not match this text, so its log-probabilities are unknown.
    """
    joined = "".join(tokens)
    # A special token such as <s> at the beginning is not part of the text.
    for first in (0, len(tokens[0])) if tokens else ():
        if joined.startswith(sent, first):
            return _place_tokens(tokens, -first)
    # Tokens that cover only some bytes of a character cannot be joined to a text.
    if not isinstance(text, str) or not text.startswith(sent):
        raise ValueError("the response does not repeat the prompt that was sent")
    if _has_valid_offsets(tokens, offsets, text):
        ends = [*offsets[1:], len(text)]
        return [(begin, max(end, begin + 1)) for begin, end in zip(offsets, ends, strict=True)]
    return _locate_tokens_from_ends(tokens, text, edges)


def _place_tokens(tokens: Sequence[str], begin: int) -> list[Span]:
    """Locate the spans of consecutive tokens, given the start of the first token."""
    spans = []
    for token in tokens:
        spans.append((begin, begin + max(1, len(token))))
        begin += len(token)
    return spans


def _has_valid_offsets(tokens: Sequence[str], offsets: Any, text: str) -> bool:
    """Return whether the reported offsets of all complete characters are correct."""
    if not isinstance(offsets, list) or len(offsets) != len(tokens):
        return False
    if any(type(offset) is not int or not 0 <= offset <= len(text) for offset in offsets):
        return False
    ends = [*offsets[1:], len(text)]
    return offsets == sorted(offsets) and all(
        text[begin:end] == token
        for token, begin, end in zip(tokens, offsets, ends, strict=True)
        if not any(mark in token for mark in _NOT_DECODED)
    )


def _locate_tokens_from_ends(tokens: Sequence[str], text: str, edges: Span) -> list[Span]:
    """Locate token spans by matching the first and the last tokens' texts.

    All tokens between them share the remaining span.
    """
    first, begin = 0, 0
    while first < len(tokens) and text.startswith(tokens[first], begin):
        begin += len(tokens[first])
        first += 1
    last, end = len(tokens), len(text)
    while last > first and text.endswith(tokens[last - 1], begin, end):
        last -= 1
        end -= len(tokens[last])
    if any(begin < edge < end for edge in edges):
        raise ValueError("the tokens that belong to the choice cannot be determined")
    if not any(mark in token for token in tokens[first:last] for mark in _NOT_DECODED):
        raise ValueError("the tokens of the answer do not match the prompt that was sent")
    shared = [(begin, end)] * (last - first)
    return [*_place_tokens(tokens[:first], 0), *shared, *_place_tokens(tokens[last:], end)]
