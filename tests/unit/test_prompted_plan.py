"""Prompted models: config, plan, and a whole study with a real local server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from small_study import SMALL, parse, refusal

from language_server import Reply, Server, chat_answer, serving
from releases import tiny_release
from tasktransfer.cli import main
from tasktransfer.core.nodes import Evaluation
from tasktransfer.core.specs import ModelSpec
from tasktransfer.designs import get_design
from tasktransfer.designs.outputs import list_outputs
from tasktransfer.designs.transfer.plan import build_plan
from tasktransfer.designs.transfer.runs import is_prompted, select_transfer_runs
from tasktransfer.evaluation.prompting import client
from tasktransfer.results.revisions import Revisions

GPT = {"name": "gpt", "family": "decoder", "checkpoint": "tiny", "trained": False}
ASKED = {
    **SMALL,
    "models": [*SMALL["models"], GPT],
    "seeds": 2,
    "prompted": [
        {"model": "gpt", "shots": 0, "test_data_seen": {"Friends": True}},
        {"model": "gpt", "shots": [2, 4], "test_data_seen": {"Friends": True}},
        {
            "model": "far",
            "endpoint": "http://localhost:1/v1",
            "served": "org/far",
            "test_data_seen": False,
        },
    ],
}
REVISIONS = Revisions(
    {"DailyDialog": "r1", "Friends": "r1"},
    {name: ModelSpec(name, "decoder", f"w-{name}", 512) for name in ("tiny-bert", "gpt")},
)


def test_a_prompted_model_has_a_run_a_task_shots_and_seed() -> None:
    config = parse(ASKED)
    plan = build_plan(config, REVISIONS)
    runs = [run for run in plan.runs if is_prompted(run)]
    counts = {(run.model, run.about["shots"]): 0 for run in runs}
    for run in runs:
        counts[run.model, run.about["shots"]] += 1
        assert len(run.evaluations) == 2
        assert run.result_nodes == run.evaluations
    assert counts == {("gpt", 0): 5, ("gpt", 2): 10, ("gpt", 4): 10, ("far", 0): 5}
    assert all(run.model == "tiny-bert" for run in select_transfer_runs(plan))
    assert config.prompted[0].get_test_data_seen("Friends") == "yes"
    assert config.prompted[0].get_test_data_seen("DailyDialog") == "unknown"
    assert config.prompted[2].get_test_data_seen("Friends") == "no"
    assert len({node.digest for node in plan.evaluations}) == 60


def test_what_is_asked_changes_no_other_node_and_no_digest_of_a_study() -> None:
    bare = parse({**ASKED, "prompted": [], "models": SMALL["models"]})
    asked = build_plan(parse(ASKED), REVISIONS)
    assert [s.digest for s in build_plan(bare, REVISIONS).stages] == [
        s.digest for s in asked.stages
    ]
    assert "prompted" not in bare.build_digest_content()
    assert "trained" not in bare.build_digest_content()["models"][0]
    assert parse(ASKED).digest != bare.digest


def test_a_limit_of_its_own_asks_what_a_study_with_that_limit_asks() -> None:
    def digests(limit: int | None, **own: Any) -> set[str]:
        entry = {"model": "gpt", "shots": 0, **own}
        training = {**SMALL.get("training", {}), "limit_test": limit}
        config = parse({**ASKED, "training": training, "prompted": [entry]})
        return {node.digest for node in build_plan(config, REVISIONS).evaluations}

    assert digests(1200, limit_test=200) == digests(200) != digests(1200)
    assert digests(None, limit_test=200) == digests(200, limit_test=None)
    entry = {"model": "gpt", "shots": 0}
    before = parse({**ASKED, "prompted": [entry]})
    assert "limit_test" not in before.build_digest_content()["prompted"][0]
    assert before.digest != parse({**ASKED, "prompted": [{**entry, "limit_test": 5}]}).digest


def test_where_an_endpoint_is_changes_no_identity() -> None:
    def digests(**more: Any) -> set[str]:
        far = {"model": "far", "endpoint": "http://localhost:1/v1", **more}
        config = parse({**ASKED, "prompted": [far]})
        return {node.digest for node in build_plan(config, REVISIONS).evaluations}

    same = digests()
    assert same == digests(
        endpoint="https://elsewhere/v1", concurrency=9, retries=1, test_data_seen="yes"
    )
    assert same == digests(key_variable="OTHER_API_KEY", timeout=3)
    assert same != digests(served="other")
    assert same != digests(chat="no")
    assert same != digests(max_length=100)
    assert same != digests(thinking_tokens=100)
    assert same == digests(key_variable=None)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"model": "nobody"}, "prompted[0].model: The model 'nobody' is unknown"),
        ({"model": "tiny-bert"}, "is an encoder, which cannot be prompted"),
        ({"model": "gpt", "endpoint": "http://h/v1"}, "is also in models"),
        ({"model": "gpt", "shots": -1}, "prompted[0].shots"),
        ({"model": "gpt", "shots": [1, 1]}, "duplicates"),
        ({"model": "gpt", "limit_test": 0}, "prompted[0].limit_test"),
        ({"model": "gpt", "test_data_seen": "perhaps"}, "prompted[0].test_data_seen"),
        ({"model": "gpt", "test_data_seen": {"Freinds": "no"}}, "Friends"),
        ({"model": "far", "endpoint": "localhost:8000"}, "http://localhost:8000/v1"),
        ({"model": "far", "endpoint": "http://me:secret@h/v1"}, "prompted[0].endpoint"),
        ({"model": "far", "endpoint": "http://h/v1", "key_variable": "sk-a b"}, "not its value"),
        ({"model": "far", "endpoint": "http://h/v1", "key_variable": "HOME"}, "ends in _API_KEY"),
        (
            {"model": "far", "endpoint": "http://h/v1", "key_variable": "AWS_SECRET_ACCESS_KEY"},
            "prompted[0].key_variable: The value 'AWS_SECRET_ACCESS_KEY' is not valid",
        ),
        ({"model": "far", "endpoint": "http://h:99999/v1"}, "port is not valid"),
        ({"model": "far", "endpoint": "http://[::1/v1"}, "contains no host"),
        ({"model": "far", "endpoint": "http:///v1"}, "contains no host"),
        ({"model": "far", "endpoint": "http://bücher/v1"}, "prompted[0].endpoint"),
        ({"model": "gpt", "thinking_tokens": 9}, "runs on this machine"),
        ({"model": "far", "endpoint": "http://h/v1", "thinking_tokens": -1}, "thinking_tokens"),
    ],
)
def test_slips_are_reported_with_key_and_remedy(entry: dict[str, Any], said: str) -> None:
    assert said in refusal({**ASKED, "prompted": [entry]})


def test_prompts_that_do_not_show_the_response_are_refused() -> None:
    section = {"tasks": ["ConvAI2", "Persona_Zhao"], "sources": "all", "targets": "all"}
    entry = {"model": "gpt", "shots": 0}
    study = {**ASKED, "prompted": [entry], "datasets": {"PanelDialogues": section}}
    said = "datasets.PanelDialogues.tasks: The prompts of ConvAI2 do not show response"
    assert said in refusal(study)


def test_two_entries_by_one_name_ask_the_same_model() -> None:
    twice = [{"model": "gpt", "shots": 1}, {"model": "gpt", "shots": [2, 1]}]
    assert "with 1 shots is also in prompted[0]" in refusal({**ASKED, "prompted": twice})
    other = [{"model": "gpt", "shots": 1}, {"model": "gpt", "shots": 2, "chat": "no"}]
    assert "another endpoint" in refusal({**ASKED, "prompted": other})
    assert "No model is trained" in refusal({**ASKED, "prompted": [], "models": [GPT]})


def test_a_study_that_trains_nothing_needs_neither_models_nor_epochs_nor_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ({"text": f"parcel {n}", "topic": "ab"[n % 2]} for n in range(12))
    Path("own.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    own = {
        "files": {"train": "own.jsonl"},
        "shares": {"test": 0.2},
        "dialogue": {"text": "text"},
        "tasks": {"topic": {"kind": "dialogue_classification", "label": "topic"}},
    }
    far = {"model": "far", "endpoint": "http://localhost:1/v1"}
    only = {"study": "only", "datasets": {"Own": own}, "prompted": [far]}
    config = parse(only)
    assert (config.models, config.planned_algorithms) == ((), ("baseline",))
    with_epochs = parse({**only, "models": SMALL["models"], "training": {"epochs": {"Own": 1}}})
    assert with_epochs.trained_models
    assert "training.epochs: The key has no value for Own" in refusal(
        {**only, "models": SMALL["models"]}
    )
    assert "models: The study lists no model" in refusal({**only, "prompted": []})
    idle = refusal({**only, "references": ["most_frequent"]})
    assert "references: The value is [most_frequent], but no model is trained" in idle


# --- a whole study ------------------------------------------------------------------------------


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a study that only prompts an endpoint, on a constructed release."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    tiny_release("Friends").write(tmp_path / "release")
    said = {
        "study": "asked",
        "data": {"release": "./release"},
        "datasets": {"Friends": {"tasks": ["emory_emotion_recognition", "question_answering"]}},
        "prompted": [{"model": "far", "endpoint": "http://127.0.0.1:9/v1", "shots": [0, 1],
                      "retries": 1, "test_data_seen": "unknown"}],
        "seeds": 2,
    }  # fmt: skip
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(said))
    return file


def at(study: Path, server: Server) -> None:
    """Set the study's server, because a restarted one has another port."""
    said = yaml.safe_load(study.read_text())
    said["prompted"][0]["endpoint"] = server.url
    study.write_text(yaml.safe_dump(said))


def opened(study: Path) -> Any:
    from tasktransfer.designs import open_study  # noqa: PLC0415

    return open_study(study)


def evaluate(study: Path) -> list[int]:
    """Return every evaluation's exit code."""
    nodes = opened(study).plan.evaluations
    return [
        main(["evaluate", "--config", str(study), "--node", node.digest[:12]]) for node in nodes
    ]


def prepare(study: Path) -> None:
    """Prepare the study's data."""
    what = ["--config", str(study), "--dataset", "Friends"]
    assert (
        main(["data", "prepare", *what, "--out", opened(study).get_instances_folder("Friends")])
        == 0
    )


def test_a_prompted_study_is_killed_resumed_collected_and_explained(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(study)
    asked: list[str] = []
    with serving(Server(liked="joyful", die_after=20, answer="the sofa")) as first:
        at(study, first)
        codes = evaluate(study)
        assert {*codes} == {0, 10}
        asked += first.asked.elements()
    with serving(Server(liked="joyful", answer="the sofa")) as again:
        at(study, again)
        assert {*evaluate(study)} == {0}
        asked += again.asked.elements()
        answered = again.answers
        assert {*evaluate(study)} == {0}  # done: nothing is prompted
        assert again.answers == answered
    assert len(asked) == len({*asked}), "something was asked twice"
    capsys.readouterr()
    assert main(["collect", "--config", str(study), "--complete"]) == 0
    assert main(["statistics", "--config", str(study)]) == 0
    table = pq.read_table("results/tables/prompted.parquet").to_pylist()
    assert [(row["shots"], row["target"]) for row in table] == [
        (shots, target)
        for shots in (0, 1)
        for target in ("emory_emotion_recognition", "question_answering", "")
    ]
    for row in table:
        assert row["wordings"] == 2
        assert row["spread"] >= 0
        assert row["seen"] == "unknown"
        assert row["n_seeds"] == (2 if row["shots"] else 1)
    assert {row["answers"] for row in table if row["target"] == "question_answering"} == {"written"}
    assert table[2]["score"] == pytest.approx((table[0]["score"] + table[1]["score"]) / 2)
    methods = pq.read_table("results/tables/methods.parquet").to_pylist()
    assert [(row["method"], row["model"], row["variant"], row["n_seeds"]) for row in methods] == [
        ("prompted", "far", variant, seeds)
        for variant, seeds in (("0 shots", 1), ("1 shots", 2)) * 2
    ]
    assert all(row["milliseconds"] > 0 and row["seconds"] == 0 for row in methods)
    assert main(["figures", "--config", str(study)]) == 0
    promised = list_outputs(get_design(opened(study).config), opened(study)).printed
    assert [file for file in promised if not Path("results", file).exists()] == []
    assert "figures/table2.md" in promised and "figures/table1.md" not in promised
    assert main(["report", "--config", str(study)]) == 0
    page = Path("results/report.html").read_text()
    assert "the study trains no model." in page
    assert "Mean scores of the prompted models (0-100): Friends with far and 0 shots" in page
    capsys.readouterr()
    node = next(n for n in opened(study).plan.evaluations if n.task == "question_answering")
    assert isinstance(node, Evaluation)
    assert main(["explain", "--config", str(study), node.digest, "--instance", "0", "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)["nodes"]
    assert "Dialogue: " in facts["prompt"]["prompts"][0]
    assert facts["content"]["report"]["prompting"]["prompt_tokens"] > 0
    record = json.loads(Path(facts["record"]).read_text())
    assert record["provenance"]["seconds"]["total"] > 0
    assert seeds_there(study, lost=(1,)) == [1, 2, 1]
    assert seeds_there(study, lost=(0, 1)) == [0, 2, 2]


def seeds_there(study: Path, lost: tuple[int, ...]) -> list[int]:
    """Return the table's seeds with one shot, for both tasks and their mean.

    An evaluation of the first task is missing for some seeds.
    """
    for node in opened(study).plan.evaluations:
        asked = node.asked
        of_first = node.task == "emory_emotion_recognition" and asked["wording"] == 1
        if of_first and asked.get("seed") in lost:
            Path(opened(study).get_record_path(node)).unlink(missing_ok=True)
    assert main(["collect", "--config", str(study)]) == 0
    assert main(["statistics", "--config", str(study)]) == 0
    rows = pq.read_table("results/tables/prompted.parquet").to_pylist()
    return [row["n_seeds"] for row in rows if row["shots"]]


def test_an_endpoint_without_scores_is_said_in_the_record(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(study)
    last = [""]

    def behave(path: str, body: dict[str, Any]) -> Reply | None:
        """Answer one of the two instances of each evaluation with more than a choice."""
        text = str(body.get("prompt") or body["messages"][-1]["content"])
        if body.get("echo") or "France" in text:
            return None
        last.append(text)
        choice = text.rpartition("Write one of: ")[2].partition(";")[0]
        return Reply(chat_answer(f"{choice}." if len(last) % 2 else "Sad? I cannot\x1b[2J say"))

    said = yaml.safe_load(study.read_text())
    said["prompted"][0]["concurrency"] = 1
    study.write_text(yaml.safe_dump(said))
    with serving(Server(scores=False, behave=behave)) as server:
        at(study, server)
        assert {*evaluate(study)} == {0}
    assert main(["collect", "--config", str(study), "--complete"]) == 0
    assert main(["statistics", "--config", str(study)]) == 0
    first = pq.read_table("results/tables/prompted.parquet").to_pylist()[0]
    assert (first["answers"], first["unreadable"]) == ("written", 50.0)
    node = opened(study).plan.evaluations[0]
    record = json.loads(Path(opened(study).get_record_path(node)).read_text())
    notes = record["provenance"]["notes"]
    assert any("no log-likelihoods" in note for note in notes)
    assert any("generated by /chat/completions" in note for note in notes)
    assert any("1 of 2 answers (50.0%) are unreadable" in note for note in notes)
    assert not any("\x1b" in note for note in notes)
    assert record["report"]["prompting"]["unreadable"] == 1
    assert main(["figures", "--config", str(study)]) == 0
    assert "17 % unreadable" in Path("results/figures/table2.md").read_text()


def test_a_score_of_unreadable_answers_is_an_error_and_answers_are_kept(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(study)
    with serving(Server(scores=False, answer="Sad? I cannot say")) as server:
        at(study, server)
        codes = evaluate(study)
        assert {*codes} == {0, 10}  # spans are read as they are
        answers = server.answers
        assert "are unreadable" in capsys.readouterr().err
        assert evaluate(study) == codes
        assert server.answers == answers, "nothing is asked twice"
    node = opened(study).plan.evaluations[0]
    assert not Path(opened(study).get_record_path(node)).exists()


def test_plan_and_validate_say_what_is_sent_where(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = yaml.safe_load(study.read_text())
    said["prompted"][0] |= {"endpoint": "https://lab.example/v1", "key_variable": "LAB_API_KEY"}
    study.write_text(yaml.safe_dump(said))
    monkeypatch.delenv("TASKTRANSFER_KEY_VARIABLES", raising=False)
    monkeypatch.setenv("LAB_API_KEY", "sk-a\nb")
    prepare(study)
    assert main(["validate", "--config", str(study)]) == 2
    error = capsys.readouterr().err
    assert "LAB_API_KEY would be sent to lab.example" in error
    assert "TASKTRANSFER_KEY_VARIABLES=LAB_API_KEY" in error
    assert main(["plan", "--config", str(study)]) == 0
    text = capsys.readouterr().out
    assert "far: served at https://lab.example/v1 with the key in LAB_API_KEY" in text
    assert "NOT ALLOWED" in text and "not probed yet" in text
    node = opened(study).plan.evaluations[0].digest[:12]
    assert main(["evaluate", "--config", str(study), "--node", node]) == 2
    monkeypatch.setenv("TASKTRANSFER_KEY_VARIABLES", "LAB_API_KEY")
    assert main(["validate", "--config", str(study)]) == 2
    assert "not a key. Its character 5 of 6" in capsys.readouterr().err
    monkeypatch.setenv("LAB_API_KEY", "sk-1234")
    assert main(["validate", "--config", str(study), "--json"]) == 0
    (endpoint,) = json.loads(capsys.readouterr().out)["endpoints"]
    assert endpoint["key"] == "with the key in LAB_API_KEY"
    assert "sk-1234" not in str(endpoint)


def test_a_probe_is_shown_and_forgotten_by_validate(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(study)
    node = opened(study).plan.evaluations[0].digest[:12]
    with serving() as server:
        at(study, server)
        assert main(["evaluate", "--config", str(study), "--node", node]) == 0
    capsys.readouterr()
    assert main(["plan", "--config", str(study)]) == 0
    assert "choices are scored by echoed log-probabilities" in capsys.readouterr().out
    assert main(["validate", "--config", str(study), "--probe-again"]) == 0
    text = capsys.readouterr().out
    assert "probe deleted" in text and "not probed yet" in text
