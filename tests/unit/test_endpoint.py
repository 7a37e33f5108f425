"""Models behind an endpoint, on a real local server: scores, faults, cached answers, key."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from language_server import Server, build_model, impatient_client, score, serving
from tasktransfer.errors import EndpointError
from tasktransfer.evaluation.prompting.answer_cache import AnswerCache
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


def test_nothing_is_asked_twice_and_nothing_lost_where_the_server_dies(tmp_path: Path) -> None:
    with serving(Server(die_after=8)) as server:
        first = model(server, tmp_path, retries=1)
        with pytest.raises(EndpointError, match="no answer after 2 requests"):
            first.compute_likelihoods(ASKED)
        first.cache.close()
        assert server.answers == 8
        server.die_after = None
        again = model(server, tmp_path)
        told = again.compute_likelihoods(ASKED)
        assert {*server.asked.values()} == {1}
        assert server.answers == 18
        assert again.get_counts()["answers_remembered"] == 8
        assert model(server, tmp_path).compute_likelihoods(ASKED) == told
        assert server.answers == 18


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


def test_answers_that_stay_unreadable_are_reported(tmp_path: Path) -> None:
    with serving(Server(faults=["empty"] * 40)) as server:
        asked = model(server, tmp_path, retries=1, concurrency=1, chat="yes")
        with pytest.raises(EndpointError, match="cannot be read"):
            asked.generate(PROMPTS, 5, ())


def test_the_key_is_sent_and_stands_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-very-secret"
    with serving(Server(key=secret)) as server:
        with pytest.raises(EndpointError, match="OPENAI_API_KEY is not set"):
            model(server, tmp_path / "a").generate(PROMPTS, 5, ())
        monkeypatch.setenv("OTHER_API_KEY", "sk-wrong-secret")
        monkeypatch.setenv("TASKTRANSFER_KEY_VARIABLES", "OTHER_API_KEY")
        with pytest.raises(EndpointError, match="OTHER_API_KEY is refused") as caught:
            model(server, tmp_path / "b", key_variable="OTHER_API_KEY").generate(PROMPTS, 5, ())
        assert "sk-wrong-secret" not in str(caught.value)
        monkeypatch.setenv("OPENAI_API_KEY", secret)
        asked = model(server, tmp_path / "c")
        asked.compute_likelihoods(ASKED)
        asked.cache.close()
        files = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
        assert files and not any(secret in text for text in files)
        assert secret not in repr(asked)


def test_prompts_are_cut_by_letters(tmp_path: Path) -> None:
    with serving() as server:
        asked = model(server, tmp_path)
        assert asked.truncate_text("abcdefghij", 2, "end") == "efghij"
        assert asked.truncate_text("abcdefghij", 2, "beginning") == "abcdef"
        assert asked.count_tokens(Prompt(("a" * 31,))) == 11
