"""The abilities of an endpoint are probed before the first prompt, and no failure changes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
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
from tasktransfer.core.identity import compute_digest
from tasktransfer.errors import EndpointError
from tasktransfer.evaluation.prompting.endpoint import EndpointModel
from tasktransfer.evaluation.prompting.model import Unread
from tasktransfer.evaluation.prompting.probe_store import FILE, ProbeStore
from tasktransfer.tasks.asking import InstancePrompt, Prompt

__all__ = ["impatient_client"]
ASKED = [
    InstancePrompt(Prompt((f"Question {n}: is it?",)), 0, ("yes it is", "no")) for n in range(4)
]
PROMPTS = [each.prompt for each in ASKED]
PAGE = Reply(b"<html><body>404 page not found</body></html>", 404, {"Content-Type": "text/html"})


def model(server: Server, folder: Path, **more: Any) -> EndpointModel:
    return build_model(server.url, folder, **{"retries": 2, **more})


def ask(endpoint: EndpointModel) -> Any:
    scores = endpoint.gives_likelihoods
    return endpoint.compute_likelihoods(ASKED) if scores else endpoint.generate(PROMPTS, 5, ())


def is_echo(body: Body) -> bool:
    return bool(body.get("echo"))


def words_of(body: Body) -> str:
    return str(body["prompt"] if "prompt" in body else body["messages"][-1]["content"])


def once(reply: Reply, condition: Callable[[str, Body], bool]) -> Callable[[str, Body], Any]:
    """Return a reply to the first request of a kind only."""
    left = [reply]

    def behave(path: str, body: Body) -> Reply | None:
        return left.pop() if left and condition(path, body) else None

    return behave


def score_tokens(text: str, *values: float | None, **more: Any) -> Reply:
    """Reply with a text, the score of its first tokens, and that of the last one."""
    tokens = re.findall(r"\s*\S+", text)
    scores = [*values[:1] * (len(tokens) - 1), values[-1]]
    logprobs = {"tokens": tokens, "token_logprobs": scores, **more}
    return Reply({"choices": [{"text": text, "logprobs": logprobs}]})


ECHOES: dict[str, Callable[[str], Reply]] = {
    "of a proxy that drops it": lambda prompt: score_tokens(" .", -0.7, text_offset=[0]),
    "without scores of the prompt": lambda prompt: score_tokens(f"{prompt} x", None, -0.4),
    "with a template": lambda prompt: score_tokens(f"[INST] {prompt} [/INST] x", -0.1),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_a_choice_is_scored_only_by_its_own_echo(tmp_path: Path, echo: Any) -> None:
    def behave(path: str, body: Body) -> Reply | None:
        return echo(body["prompt"]) if is_echo(body) else None

    with serving(Server(behave=behave)) as server:
        endpoint = model(server, tmp_path)
        assert not endpoint.gives_likelihoods
        assert "no log-likelihoods" in endpoint.list_notes(chooses=True)[0]
    # An endpoint that changes so later is an error, and never a number.
    with serving() as server:
        endpoint = model(server, tmp_path / "later", retries=0)
        assert endpoint.gives_likelihoods
        server.behave = behave
        with pytest.raises(EndpointError, match="probe-again"):
            endpoint.compute_likelihoods(ASKED)


NOT_YET = refusal("The model is loading", 404, 404)


FAILURES = (PAGE, NOT_YET, Reply(b"<html>Bad gateway</html>", 502), Reply({"choices": []}),
            Reply(b"<html>log in</html>"))  # fmt: skip


@pytest.mark.parametrize("reply", FAILURES)
def test_one_failure_decides_nothing(tmp_path: Path, reply: Reply) -> None:
    with serving(Server(behave=once(reply, lambda *_: True))) as server:
        endpoint = model(server, tmp_path / "a")
        assert endpoint.gives_likelihoods
    with serving(Server(scores=False, behave=once(reply, lambda *_: True))) as server:
        assert model(server, tmp_path / "b", chat="auto").method.path == "chat/completions"
    with serving(Server(scores=False)) as server:
        endpoint = model(server, tmp_path / "c")
        assert endpoint.generate(PROMPTS[:1], 5, ()) == ["yes"]
        server.behave = once(reply, lambda *_: True)
        if reply is not NOT_YET:
            assert endpoint.generate(PROMPTS[1:], 5, ()) == ["yes"] * 3
        assert {path for path, _ in server.requests} == {"/v1/chat/completions"}


def is_third(path: str, body: Body) -> bool:
    return "Question 2" in words_of(body)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (refusal("This model's maximum context length is 9, and 12 were sent"), "max_length"),
        (refusal("the request exceeds the available context size"), "max_length"),
        (refusal("Something else"), "Something else"),
        (refusal("Incorrect API key", "invalid_api_key", 401), "OPENAI_API_KEY is not set"),
        (Reply({"detail": "Not Found"}, 404), "Not Found"),
        (PAGE, "page not found"),
    ],
)
@pytest.mark.parametrize("scores", [True, False])
def test_a_refused_prompt_ends_the_job_and_changes_no_way(
    tmp_path: Path, reply: Reply, words: str, scores: bool
) -> None:
    with serving(Server(scores=scores)) as server:
        endpoint = model(server, tmp_path)
        assert endpoint.gives_likelihoods == scores
        server.behave = lambda path, body: reply if is_third(path, body) else None
        with pytest.raises(EndpointError, match=words):
            ask(endpoint)
        way = ("/v1/completions", True) if scores else ("/v1/chat/completions", False)
        prompts = [request for request in server.requests if "Question" in words_of(request[1])]
        assert {(path, is_echo(body)) for path, body in prompts} == {way}
        assert {*server.asked.values()} == {1}
        server.behave = lambda *_: None
        ask(model(server, tmp_path))
        assert {*server.asked.values()} == {1}, "finished answers are cached"


@pytest.mark.parametrize("scores", [True, False])
def test_a_filtered_prompt_is_unread_by_itself(tmp_path: Path, scores: bool) -> None:
    reply = refusal("The response was filtered due to the content policy", "content_filter")
    with serving(Server(scores=scores)) as server:
        endpoint = model(server, tmp_path)
        assert endpoint.gives_likelihoods == scores
        server.behave = lambda path, body: reply if is_third(path, body) else None
        told = ask(endpoint)
        assert [isinstance(each, Unread) for each in told] == [False, False, True, False]
        assert "filtered due to the content policy" in told[2].reason


def test_parameters_that_an_endpoint_refuses_are_left_out(tmp_path: Path) -> None:
    hints = {
        "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    }

    def behave(path: str, body: Body) -> Reply | None:
        refused = next((hint for name, hint in hints.items() if name in body), None)
        return refusal(refused, "unsupported_parameter") if refused else None

    with serving(Server(scores=False, behave=behave)) as server:
        endpoint = model(server, tmp_path)
        assert endpoint.generate(PROMPTS, 5, ()) == ["yes"] * 4
        assert server.requests[-1][1].keys() == {"model", "messages", "max_completion_tokens"}
        assert len([path for path, _ in server.requests]) == 3 + 4
        (note,) = endpoint.list_notes(chooses=False)
        assert "max_completion_tokens" in note and "temperature" in note
        again = model(server, tmp_path)
        again.generate([Prompt(("another",))], 5, ())
        assert len(server.requests) == 3 + 4 + 1, "the probe is stored"


def test_thoughts_get_tokens_and_are_no_answer(tmp_path: Path) -> None:
    def thinking(path: str, body: Body) -> Reply:
        text = "<think>\nLet me see whether" + " it is" * 40
        if body["max_tokens"] < 100:
            return Reply(chat_answer(text, "length"))
        return Reply(chat_answer(f"{text}</think>\n\nYes."))

    with serving(Server(behave=thinking)) as server:
        endpoint = model(server, tmp_path / "auto")
        assert endpoint.generate(PROMPTS, 5, ("\n",)) == ["Yes."] * 4
        assert server.requests[-1][1]["max_tokens"] == 5 + 2048
        assert endpoint.get_counts()["answers_with_thoughts"] == 4
        assert "thoughts (<think>)" in endpoint.list_notes(chooses=False)[0]
        named = model(server, tmp_path / "named", thinking_tokens=300)
        assert named.generate(PROMPTS, 5, ("\n",)) == ["Yes."] * 4
        assert server.requests[-1][1]["max_tokens"] == 5 + 300
        with pytest.raises(EndpointError, match="Raise thinking_tokens"):
            model(server, tmp_path / "none", thinking_tokens=0).generate(PROMPTS, 5, ())


def test_thoughts_that_an_earlier_version_cached_are_no_answer(tmp_path: Path) -> None:
    with serving() as server:
        before = model(server, tmp_path)
        before.generate(PROMPTS[:1], 5, ())
        path, body = server.requests[-1]
        digest = compute_digest([path.removeprefix("/v1/"), body])
        before.cache.put(digest, {"text": "<think>no</think>\n\nmaybe"})
        before.cache.close()
        assert model(server, tmp_path).generate(PROMPTS[:1], 5, ()) == ["maybe"]


def test_an_endpoint_that_fails_at_echo_is_prompted_to_generate(tmp_path: Path) -> None:
    def behave(path: str, body: Body) -> Reply | None:
        return refusal("logprobs need logits_all", status=500) if is_echo(body) else None

    with serving(Server(behave=behave)) as server:
        endpoint = model(server, tmp_path)
        assert not endpoint.gives_likelihoods
        assert "logits_all" in " ".join(endpoint.list_notes(chooses=True))


def test_nothing_is_stored_of_an_endpoint_that_cannot_be_reached(tmp_path: Path) -> None:
    replies = [refusal("no such model `m`", 404, 404), refusal("bad key", status=401),
               Reply(b"<html>down</html>", 503)]  # fmt: skip
    for reply in replies:
        with serving(Server(behave=lambda *_, said=reply: said)) as server:
            endpoint = model(server, tmp_path)
            with pytest.raises(EndpointError, match=r"no such model|bad key|down"):
                _ = endpoint.gives_likelihoods
    assert not (tmp_path / FILE).exists()


def test_a_probe_is_stored_described_and_forgotten(tmp_path: Path) -> None:
    with serving(Server(scores=False)) as server:
        endpoint = model(server, tmp_path)
        assert not endpoint.gives_likelihoods
    with serving() as server:
        assert not model(server, tmp_path).gives_likelihoods, "stored"
        assert server.requests == []
        probes = ProbeStore(tmp_path)
        text = " ".join(probes.list_descriptions())
        assert "choices are not scored" in text and "/chat/completions" in text
        assert probes.delete() and not probes.delete()
        assert model(server, tmp_path).gives_likelihoods


def test_a_stored_probe_that_cannot_be_read_is_made_again(tmp_path: Path) -> None:
    for content in ("{", "[]", '{"scores": 1, "way": {"path": 3}}', json.dumps({"scores": {}})):
        (tmp_path / FILE).write_text(content)
        with serving() as server:
            endpoint = model(server, tmp_path)
            assert endpoint.gives_likelihoods
            assert endpoint.generate(PROMPTS[:1], 5, ()) == ["yes"]
        (tmp_path / FILE).unlink()
        for file in tmp_path.glob("*.jsonl"):
            file.unlink()
