"""Parsing of an endpoint's answers: exact echoes, and texts after reasoning."""

from __future__ import annotations

from typing import Any

import pytest

from language_server import chat_answer
from tasktransfer.evaluation.prompting.answers import (
    parse_chat_response,
    parse_completion_response,
    parse_echo_response,
)

PROMPT, CHOICE = "Is it late?", " yes indeed"


def echo(tokens: list[str], values: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return an echo in which the n-th token has the log-probability -n."""
    values = [None, *(-float(n) for n in range(1, len(tokens)))] if values is None else values
    scores = {"tokens": tokens, "token_logprobs": values, "text_offset": more.pop("offsets", None)}
    text = more.pop("text", "".join(tokens))
    return {"choices": [{"text": text, "logprobs": {**scores, **more}}]}


PLAIN = ["Is", " it", " late", "?", " yes", " indeed", " more"]


@pytest.mark.parametrize(
    ("content", "total", "tokens"),
    [
        (echo(PLAIN), -9, 2),
        # A first token that is not part of the text, as vLLM reports it.
        (echo(["<s>", *PLAIN], offsets=[0, 3, 5, 8, 13, 14, 18, 25]), -11, 2),
        # A token that holds the end of the prompt and the beginning of the choice.
        (echo(["Is it late", "? y", "es", " indeed", "!"]), -6, 3),
    ],
)
def test_an_echo_is_read_by_its_letters(content: Any, total: float, tokens: int) -> None:
    read = parse_echo_response(content, PROMPT, CHOICE)
    assert (read["total"], read["tokens"]) == (total, tokens)


def test_tokens_that_are_parts_of_characters_are_placed() -> None:
    prompt, choice = "So 😀 then?", " 名 yes"
    tokens = ["So", " ", "\ufffd", "\ufffd", " then", "?", " ", "\ufffd", "\ufffd", " yes", " x"]
    text = prompt + choice + " x"
    offsets = [0, 2, 3, 3, 4, 9, 10, 11, 11, 12, 16]
    assert (
        parse_echo_response(echo(tokens, text=text, offsets=offsets), prompt, choice)["tokens"] == 4
    )
    # Offsets that count each part as a letter: then only where one is in doubt is nothing read.
    drifted = [0, 2, 3, 4, 5, 10, 11, 12, 13, 14, 18]
    before = ["So", " ", "\ufffd", "\ufffd", " then", "?", " yes", " x"]
    content = echo(before, text="So 😀 then? yes x", offsets=drifted[:8])
    assert parse_echo_response(content, prompt, " yes")["total"] == -6
    with pytest.raises(ValueError, match="tokens that belong to the choice"):
        parse_echo_response(echo(tokens, text=text, offsets=drifted), prompt, choice)


@pytest.mark.parametrize(
    "content",
    [
        echo([" ."], [-0.5], text=" .", offsets=[0]),  # echo was ignored
        echo([" ."], [-0.5], text=PROMPT + CHOICE + " .", offsets=[len(PROMPT + CHOICE)]),
        echo(["Is", " it", " late", "?", " no", " indeed", " more"]),  # another choice
        echo([*PLAIN[1:]]),  # the beginning is lost
        echo(PLAIN, [*[None] * 6, -0.4]),  # of the generated token alone
        echo(PLAIN, [None, -1, -1, -1, -1, float("nan"), -1]),
        echo(PLAIN, [None, -1, -1, -1, -1, 0.5, -1]),
        echo(PLAIN, [-1.0] * 6),
        echo([""] * 7, text=PROMPT + CHOICE + " more", offsets=[0] * 7),
        {"choices": [{"text": PROMPT, "logprobs": {"content": [{"token": " .", "logprob": -1}]}}]},
        {"choices": [{"text": PROMPT, "logprobs": None}]},
        {"choices": [None]},
        {"choices": []},
        ["choices"],
        None,
    ],
)
def test_what_is_not_the_echo_of_what_was_sent_is_not_read(content: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_echo_response(content, PROMPT, CHOICE, whole=True)


@pytest.mark.parametrize(
    ("content", "text", "thoughts"),
    [
        ("yes", "yes", False),
        ("<think>\nno, or\n</think>\n\nyes", "\n\nyes", True),
        ("<thinking>no</thinking>yes", "yes", True),
        ("thoughts whose beginning is in the template </think> yes", " yes", True),
        ("<think>a</think><think>b</think>yes", "yes", True),
        ("yes <think>or not", "yes ", True),
        ("[THINK]no[/THINK]yes", "yes", True),
        ([{"type": "thinking", "thinking": [1]}, {"type": "text", "text": "yes"}], "yes", True),
        ([{"type": "text", "text": "ye"}, {"type": "text", "text": "s"}], "yes", False),
    ],
)
def test_thoughts_are_not_an_answer(content: Any, text: str, thoughts: bool) -> None:
    read = parse_chat_response(chat_answer(content))
    assert (read["text"], "thoughts" in read, "unread" in read) == (text, thoughts, False)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (chat_answer("<think>\nLet me see", "length"), "token limit was reached"),
        (chat_answer("<think>Let me see"), "no answer follows"),
        (chat_answer(None, "length", reasoning_content="Let me"), "token limit was reached"),
        (chat_answer(None, reasoning="Let me"), "no answer follows"),
        (chat_answer("", "length"), "token limit was reached"),
        (chat_answer(None, "content_filter"), "filtered"),
        (chat_answer(None), "null"),
    ],
)
def test_an_answer_that_says_nothing_is_unread(content: Any, why: str) -> None:
    assert why in parse_chat_response(content)["unread"]


def test_blanks_and_refusals_are_answers() -> None:
    assert "unread" not in parse_completion_response(
        {"choices": [{"text": "\n\n", "finish_reason": "length"}]}
    )
    assert (
        parse_chat_response(chat_answer(None, refusal="I cannot help"))["text"] == "I cannot help"
    )


@pytest.mark.parametrize("content", [chat_answer(7), {"choices": [{}]}, {"choices": {}}, {}, 3])
def test_other_answers_are_refused(content: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_chat_response(content)


def test_counts_of_tokens_are_whole_numbers() -> None:
    content = {**chat_answer("yes"), "usage": {"prompt_tokens": -4, "completion_tokens": True}}
    assert parse_chat_response(content) == {"text": "yes"}
    content["usage"] = {"prompt_tokens": 10**40, "completion_tokens": 3}
    assert parse_chat_response(content) == {"text": "yes", "completion_tokens": 3}
