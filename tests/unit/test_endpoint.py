"""Models behind an endpoint, on a real local server: scores, faults, parsed and cached answers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from language_server import Server, build_model, chat_answer, impatient_client, score, serving
from tasktransfer.errors import EndpointError
from tasktransfer.evaluation.prompting.answer_cache import AnswerCache
from tasktransfer.evaluation.prompting.answers import (
    parse_chat_response,
    parse_completion_response,
    parse_echo_response,
)
from tasktransfer.evaluation.prompting.endpoint import EndpointModel
from tasktransfer.tasks.asking import InstancePrompt, Prompt

__all__ = ["impatient_client"]
ASKED = [
    InstancePrompt(Prompt((f"question {n}:",)), 0, ("yes it is", "no", "maybe so"))
    for n in range(6)
]
PROMPTS = [one.prompt for one in ASKED]


def model(server: Server, folder: Path, **more: Any) -> EndpointModel:
    return build_model(server.url, folder, **{"retries": 3, "concurrency": 4, **more})


def test_choices_are_scored_by_their_tokens(tmp_path: Path) -> None:
    with serving(Server(liked="yesit", pause=0.05)) as server:
        asked = model(server, tmp_path)
        assert asked.gives_likelihoods
        told = asked.compute_likelihoods(ASKED)
        for one, scored in zip(ASKED, told, strict=True):
            for choice, likelihood in zip(one.choices, scored, strict=True):
                words = choice.split()
                assert likelihood.tokens == len(words)
                assert likelihood.total == pytest.approx(sum(score(w, "yesit") for w in words))
        assert all(max(range(3), key=lambda n: each[n].mean) == 0 for each in told)
        counts = asked.get_counts()
        assert counts["answers"] == 18  # and a probe, which is not counted
        assert counts["prompt_tokens"] > 18
        assert counts["completion_tokens"] == 18
        assert 1 < server.most_at_once <= 4


def test_faults_are_passed_over_counted_and_never_guessed(tmp_path: Path) -> None:
    with serving() as server:
        exact = [
            [each.total for each in one]
            for one in model(server, tmp_path / "a").compute_likelihoods(ASKED)
        ]
        asked = model(server, tmp_path / "b", timeout=0.3)
        server.faults = ["429", "broken", "late", "500", "cut", "empty", "429"]
        told = asked.compute_likelihoods(ASKED)
        assert [[each.total for each in one] for one in told] == exact
        counts = asked.get_counts()
        assert counts["retried_429"] == 2
        assert counts["retried_unreadable"] == 2
        assert counts["retried_500"] == counts["retried_timeout"] == 1
        assert counts["retried_connection"] == 1


def test_nothing_answered_is_asked_again_where_the_client_is_killed(tmp_path: Path) -> None:
    # Seven answers come at once, and the others late: it is killed while it waits for them.
    with serving(Server(faults=[*[""] * 7, *["late"] * 11])) as server:
        here = "import sys, test_endpoint as t; t.ask_all(*sys.argv[1:])"
        paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
        child = Popen([sys.executable, "-c", here, server.url, tmp_path], env=os.environ | paths)
        try:
            wait_until(lambda: lines_in(tmp_path) == 7)
        finally:
            child.kill()
            child.wait()
        wait_until(lambda: server.at_once == 0)
        server.faults = []
        again = model(server, tmp_path)
        answered = again.compute_likelihoods(ASKED)
        # The prompt that was answered while the client was killed is sent again, and no other one.
        assert sum(count - 1 for count in server.asked.values()) <= again.concurrency
        assert len(server.asked) == 18
        assert again.get_counts()["answers_remembered"] == 7
    with serving() as other:
        assert answered == model(other, tmp_path / "undisturbed").compute_likelihoods(ASKED)


def ask_all(url: str, folder: str) -> None:
    """Send all prompts, as the client that is killed."""
    model(Server(url=url), Path(folder)).compute_likelihoods(ASKED)


def lines_in(folder: Path) -> int:
    return sum(file.read_text().count('"request"') for file in folder.rglob("*.jsonl"))


def wait_until(reached: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "not reached in time"
        time.sleep(0.01)


def test_a_line_that_was_interrupted_is_requested_again(tmp_path: Path) -> None:
    remembered = AnswerCache(tmp_path)
    remembered.put("a", {"text": "yes"})
    remembered.put("b", {"text": "no"})
    remembered.close()
    (file,) = tmp_path.glob("*.jsonl")
    file.write_text(file.read_text()[:-12])
    again = AnswerCache(tmp_path)
    assert again.get("a") == {"text": "yes"}
    assert again.get("b") is None
    again.put("b", {"text": "no"})
    again.close()
    assert AnswerCache(tmp_path).get("b") == {"text": "no"}


@pytest.mark.parametrize("chats", [True, False])
def test_without_scores_answers_are_written(tmp_path: Path, chats: bool) -> None:
    with serving(Server(scores=False, chats=chats, answer="\n Yes.\nAnd more")) as server:
        asked = model(server, tmp_path)
        assert not asked.gives_likelihoods
        assert asked.generate(PROMPTS, 5, ("\n",)) == ["Yes."] * 6
        asked.cache.close()
        assert not model(server, tmp_path).gives_likelihoods  # cached, and not sent again
        assert model(server, tmp_path).generate(PROMPTS, 5, ("\n",)) == ["Yes."] * 6
        assert {*server.asked.values()} == {1}


def test_a_fault_is_not_mistaken_for_an_endpoint_without_scores(tmp_path: Path) -> None:
    with serving(Server(faults=["429", "broken", "500"])) as server:
        assert model(server, tmp_path).gives_likelihoods
    with pytest.raises(EndpointError, match="Start the endpoint"):
        _ = model(server, tmp_path / "other", retries=0).gives_likelihoods


def test_prompts_are_cut_by_letters(tmp_path: Path) -> None:
    with serving() as server:
        asked = model(server, tmp_path)
        assert asked.truncate_text("abcdefghij", 2, "end") == "efghij"
        assert asked.truncate_text("abcdefghij", 2, "beginning") == "abcdef"
        assert asked.count_tokens(Prompt(("a" * 31,))) == 11


# --- parsing of answers ---------------------------------------------------------------------------


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
    content = echo(tokens, text=text, offsets=offsets)
    assert parse_echo_response(content, prompt, choice)["tokens"] == 4
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
    blank = {"choices": [{"text": "\n\n", "finish_reason": "length"}]}
    assert "unread" not in parse_completion_response(blank)
    assert parse_chat_response(chat_answer(None, refusal="I cannot"))["text"] == "I cannot"


@pytest.mark.parametrize("content", [chat_answer(7), {"choices": [{}]}, {"choices": {}}, {}, 3])
def test_other_answers_are_refused(content: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_chat_response(content)


def test_counts_of_tokens_are_whole_numbers() -> None:
    content = {**chat_answer("yes"), "usage": {"prompt_tokens": -4, "completion_tokens": True}}
    assert parse_chat_response(content) == {"text": "yes"}
    content["usage"] = {"prompt_tokens": 10**40, "completion_tokens": 3}
    assert parse_chat_response(content) == {"text": "yes", "completion_tokens": 3}
