"""Prompted models that reply: their prompts, P@1 by likelihood, perplexity, and refusals."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from test_asking import OfWords

from empathetic_study import make_with_statistics
from language_server import Server, serving
from tasktransfer.core.nodes import Evaluation
from tasktransfer.core.runs import add_ancestors
from tasktransfer.data.cache import read_instances
from tasktransfer.designs import get_design, open_study
from tasktransfer.designs.commands import read_frames
from tasktransfer.designs.empathetic.methods import PROMPTED
from tasktransfer.designs.empathetic.printed import (
    compute_scores_by_order,
    compute_table2,
    list_prompted,
)
from tasktransfer.designs.empathetic.replies import read_answered_contexts
from tasktransfer.designs.empathetic.sources.cards import ED, REPLY, TURN
from tasktransfer.errors import TaskTransferError
from tasktransfer.evaluation.prompting import client
from tasktransfer.evaluation.prompting.model import Likelihood
from tasktransfer.evaluation.prompting.prompter import TaskPrompter, build_prompter
from tasktransfer.evaluation.prompting.replies import score_blocks, score_gold_replies
from tasktransfer.jobs.prompt_job import render_prompts
from tasktransfer.results.rows import read_record_rows
from tasktransfer.results.study import Study
from tasktransfer.tasks.asking import InstancePrompt, format_turns
from tasktransfer.tasks.card import Instance

BUILT = {"layers": 1, "hidden": 16, "heads": 2, "feed_forward": 32, "positions": 60,
         "vocabulary_size": 2000}  # fmt: skip
COMMON = {"max_length": 40, "max_unknown_words": 1.0}
FINDER = {**COMMON, "name": "finder", "family": "dual_encoder", "checkpoint": "built",
          "architecture": BUILT}  # fmt: skip
GPT = {**COMMON, "name": "gpt", "family": "decoder", "checkpoint": "tiny", "max_length": 300}
STUDY: dict[str, Any] = {
    "study": "a prompted replier",
    "design": "empathetic",
    "data": {"release": "tiny_world", "few_sample": False,
             "tiny_world": {"seed": 0, "dialogues": 240}},
    "models": [FINDER],
    "seeds": 2,
    "training": {"learning_rate": 1e-3, "batch_size": 16, "epochs": 1, "limit_train": 32,
                 "precision": "float32"},
    "pretraining": {"retrieval": False},
    "retrieval": {"model": "finder", "methods": ["pretrained"]},
    "evaluation": {"block": 8, "shuffles": 2, "limit": 16, "limit_pool": 20, "pools": ["ED"]},
}  # fmt: skip
Replied = tuple[Study, list[str]]
"""A study, and the prompts of its endpoint."""


class Scorer(OfWords):
    """A model that likes replies with the words of the context's last line."""

    max_length = 1000

    def truncate_text(self, text: str, most: int, keeps: str) -> str:
        assert keeps == "beginning"
        return super().truncate_text(text, most, keeps)

    def compute_likelihoods(self, asked: list[InstancePrompt]) -> list[list[Likelihood]]:
        scored = []
        for question in asked:
            last = question.prompt.text.splitlines()[-2]
            words = [choice.split() for choice in question.choices]
            totals = [-sum(1 if word in last else 2 for word in reply) for reply in words]
            scored.append([Likelihood(t, len(w)) for t, w in zip(totals, words, strict=True)])
        return scored


def prompt_with(model: Any) -> TaskPrompter:
    return build_prompter(REPLY, {"wording": 0, "shots": 0}, (), model)


def make_instance(name: str, context: str, reply: str) -> Instance:
    turns = format_turns(context, TURN)
    return Instance(name, "d", REPLY.name, turns, 0, {"emotion": "sad"}, (), (reply,))


ROWS = [
    make_instance("1", f"hello{TURN}hi{TURN}my dog died", "your dog died ?"),
    make_instance("2", "new car today", "a car , great"),
    make_instance("3", "rain again", "no sun"),
]


def test_the_last_utterance_is_the_speakers() -> None:
    assert ROWS[0].context == "Speaker: hello\nListener: hi\nSpeaker: my dog died"
    assert ROWS[1].context == "Speaker: new car today"


def test_replies_are_ranked_by_their_mean_log_probability() -> None:
    first, last = score_blocks(prompt_with(Scorer()), ROWS, 2)
    assert first == pytest.approx(np.array([[-6 / 4, -7 / 4], [-8 / 4, -6 / 4]]))
    assert last == pytest.approx(np.array([[-4 / 2]]))


def test_long_replies_are_truncated_and_words_are_counted() -> None:
    most = REPLY.prompt.max_answer_tokens
    long = make_instance("4", "rain again", "rain " * (most + 20))
    losses, words = score_gold_replies(prompt_with(Scorer()), [*ROWS[:1], long])
    assert losses.tolist() == [6, most]
    assert words.tolist() == [4, most]


@pytest.fixture(scope="module")
def replied(tmp_path_factory: pytest.TempPathFactory) -> Replied:
    """Return a study with a local and a served replier, and the prompts of the endpoint."""
    folder = tmp_path_factory.mktemp("prompted")
    with serving(Server(scores=False, answer="That is sad.")) as server:
        config = {
            **STUDY,
            "models": [FINDER, GPT],
            "results": str(folder / "results"),
            "prompted": [
                {"model": "gpt", "test_data_seen": "no"},
                {"model": "far", "template": 2, "endpoint": server.url},
            ],
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client, "FIRST_PAUSE", 0.01)
            study = make_with_statistics(config, folder / "study.yaml")
    bodies = [body for _, body in server.requests]
    return study, [str(body.get("prompt", body.get("messages"))) for body in bodies]


def list_evaluations(study: Study, method: str) -> dict[str, Evaluation]:
    """Return the first measure of each evaluation of a method in the first seed's runs."""
    runs = [run for run in study.plan.runs if run.method == method and run.seed == 0]
    return {node.measures[0]: node for run in runs for node in run.evaluations}


def read_rows(study: Study, node: Evaluation) -> pd.DataFrame:
    rows: pd.DataFrame = read_record_rows(Path(study.get_record_path(node))).to_pandas()
    return rows


def test_no_prompt_has_markup(replied: Replied) -> None:
    study, sent = replied
    instances = read_instances(Path(study.get_instances_folder(ED)), REPLY.name, "test")
    assert any(TURN in instance.context for instance in instances)
    nodes = list_evaluations(study, "gpt").values()
    rendered = [
        text for node in nodes for n in range(16) for text in render_prompts(study, node, n).prompts
    ]
    assert any("Listener: " in text for text in rendered)
    own = [text for text in sent if "Speaker: " in text]
    assert len({*own}) >= 16
    for text in (*rendered, *own):
        assert text.rstrip("\"'}]").endswith("Listener:")
        assert re.search(r"<\w+>|\[(CLS|SEP|MASK)\]", text) is None


def test_measures_are_those_of_the_rows(replied: Replied) -> None:
    study, _ = replied
    frame = pd.read_parquet(Path(study.tables, "prompted.parquet")).set_index(["method", "measure"])
    nodes = list_evaluations(study, "gpt")
    assert {*nodes} == {"bleu", "p_at_1", "word_perplexity"}
    assert {*list_evaluations(study, "far")} == {"bleu"}
    rows = {name: read_rows(study, node) for name, node in nodes.items()}
    assert frame.loc[("gpt", "p_at_1"), "value"] == pytest.approx(rows["p_at_1"]["score"].mean())
    sums = rows["word_perplexity"][["predicted_value", "gold_value"]].sum()
    expected = math.exp(sums["predicted_value"] / sums["gold_value"])
    assert frame.loc[("gpt", "word_perplexity"), "value"] == pytest.approx(expected)
    assert (frame["unreadable"] == 0).all()
    assert (frame["tokens"] > 0).all()
    assert frame.query("method == 'gpt'")["test_data_seen"].unique().tolist() == ["no"]
    assert frame.query("method == 'far'")["template"].tolist() == [2]


def test_repliers_answer_the_contexts_of_the_trained_methods(replied: Replied) -> None:
    study, _ = replied
    pretrained = list_evaluations(study, "pretrained")
    for method, measure in (("gpt", "bleu"), ("far", "bleu"), ("gpt", "p_at_1")):
        own = read_rows(study, list_evaluations(study, method)[measure])
        trained = read_rows(study, pretrained[measure])
        assert own["instance_id"].tolist() == trained["instance_id"].tolist()
    contexts = read_answered_contexts(study)
    assert {*contexts[0].replies} == {"Gold", "ret-pretrained", "ret-gpt", "ret-far"}
    assert {context.replies["ret-far"] for context in contexts} == {"That is sad."}


def test_repliers_are_in_the_printed_tables(replied: Replied) -> None:
    study, _ = replied
    frames = read_frames(study, get_design(study.config).analysis(study))
    table = compute_table2(frames)
    own = table[table["group"] == "prompted"]
    assert {*own["method"]} == {"gpt", "far"}
    assert "P@1,8" in {*own.loc[own["method"] == "gpt", "score"]}
    orders = compute_scores_by_order(frames).query("method == 'gpt'")
    assert orders["p_at_1_shuffled"].isna().all()
    measures = list_prompted(frames).query("method == 'gpt'")["measure"].tolist()
    assert measures[1:3] == ["P@1,8", "P@1,8, replies permuted"]


def test_the_key_changes_no_other_node(replied: Replied, tmp_path: Path) -> None:
    study, _ = replied
    bare = {**STUDY, "results": str(tmp_path / "results")}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(bare), encoding="utf-8")
    without = open_study(tmp_path / "study.yaml")
    runs = [run for run in study.plan.runs if run.model == PROMPTED]
    own = {node.digest for run in runs for node in add_ancestors(run.evaluations)}
    assert len(own) == 3 + 1
    assert {n.digest for n in study.plan.nodes} - own == {n.digest for n in without.plan.nodes}
    assert "prompted" not in without.config.build_digest_content()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"prompted": [{"model": "gtp"}]}, r"prompted\[0\]\.model: The model 'gtp' is unknown"),
        ({"prompted": [{"model": "finder"}]}, "'finder' is built without pretraining"),
        ({"prompted": [{"model": "gpt"}] * 2}, "Another entry has the name 'gpt'"),
        (
            {"prompted": [{"model": "base", "endpoint": "http://h/v1"}]},
            "'base' is the name of a method of",
        ),
        ({"prompted": [{"model": "gpt", "template": 3}]}, r"prompted\[0\]\.template"),
    ],
)
def test_slips_are_reported(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    config = {**STUDY, "models": [FINDER, GPT], **change, "results": str(tmp_path / "results")}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    with pytest.raises(TaskTransferError, match=told):
        open_study(tmp_path / "study.yaml")
