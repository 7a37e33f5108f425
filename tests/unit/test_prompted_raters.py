"""Prompted models that rate responses: expected ratings, the study's tables, and refusals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from test_asking import OfWords

from empathetic_study import make, make_with_statistics
from language_server import Server, serving
from tasktransfer.cli import main
from tasktransfer.core.runs import add_ancestors
from tasktransfer.designs import get_design, open_study
from tasktransfer.designs.commands import read_frames, write_collected_tables, write_statistics
from tasktransfer.designs.outputs import list_outputs
from tasktransfer.designs.panel.answer import write_answer
from tasktransfer.designs.panel.names import PROMPTED
from tasktransfer.designs.panel.sources.cards import RATED, make_rated_task
from tasktransfer.errors import TaskTransferError
from tasktransfer.evaluation.prompting import client
from tasktransfer.evaluation.prompting.model import Likelihood, Unread
from tasktransfer.evaluation.prompting.prompter import EXPECTED, TaskPrompter, build_prompter
from tasktransfer.results.study import Study
from tasktransfer.tasks.asking import InstancePrompt, Prompt
from tasktransfer.tasks.card import Instance

CARD = make_rated_task(RATED["Persona_USR"], "PanelDialogues")
ITEM = Instance("Persona_USR-0", "c", CARD.name, "Hi there.", 0, {"response": "Hello!"}, (), ("2",))
ENCODER = {"name": "tiny", "family": "encoder", "checkpoint": "tiny", "max_length": 64,
           "max_unknown_words": 1.0}  # fmt: skip
DECODER = {**ENCODER, "name": "gpt", "family": "decoder", "max_length": 256}
STUDY: dict[str, Any] = {
    "study": "a judge",
    "design": "panel",
    "data": {"release": "tiny_world", "tiny_world": {"seed": 0, "dialogues": 120}},
    "models": [ENCODER],
    "seeds": 1,
    "training": {"learning_rate": 1e-3, "batch_size": 16, "precision": "float32"},
    "domains": ["Harbour"],
    "rated_sets": ["Harbour_Tiny", "Market_Tiny"],
    "methods": ["single"],
    "pairs": {"labels": "made", "train": 24, "dev": 8},
    "joint": {"epochs": 1, "round_updates": None, "patience": None},
}
Rated = tuple[Study, list[str]]
"""A study, and the prompts of its endpoints."""


class Judge(OfWords):
    """A model whose probabilities of the ratings 1, 2 and 3 are known."""

    max_length = 1000

    def __init__(self, shares: Sequence[float] = (), text: str | Unread = "") -> None:
        super().__init__()
        self.shares, self.text, self.gives_likelihoods = shares, text, bool(shares)
        self.prompts: list[str] = []

    def compute_likelihoods(self, asked: list[InstancePrompt]) -> list[list[Likelihood]]:
        self.prompts += [question.prompt.text for question in asked]
        # Of all tokens, the ratings have a tenth of the probability.
        return [[Likelihood(math.log(share / 10), 1) for share in self.shares] for _ in asked]

    def generate(self, prompts: list[Prompt], most: int, stops: object) -> list[str | Unread]:  # type: ignore[override]
        return [self.text for _ in prompts]


def ask(judge: Judge, wording: int = 0) -> TaskPrompter:
    return build_prompter(CARD, {"wording": wording, "shots": 0, "rating": EXPECTED}, (), judge)


def test_the_rating_is_the_expected_value_under_the_probabilities() -> None:
    given = ask(Judge((0.2, 0.5, 0.3))).prompt_model([ITEM])
    assert float(given.predictions[0][0]) == pytest.approx(0.2 * 1 + 0.5 * 2 + 0.3 * 3)
    likeliest = build_prompter(CARD, {"wording": 0, "shots": 0}, (), Judge((0.2, 0.5, 0.3)))
    assert likeliest.prompt_model([ITEM]).predictions == [("2",)]


@pytest.mark.parametrize(
    ("text", "rating", "unreadable"),
    [("3", "3", 0), ("1.", "1", 0), ("Good", "2", 1), (Unread("filtered"), "2", 1)],
)
def test_a_generated_rating_is_read_and_others_are_the_middle(
    text: str | Unread, rating: str, unreadable: int
) -> None:
    given = ask(Judge(text=text)).prompt_model([ITEM])
    assert given.predictions == [(rating,)]
    assert given.unreadable == unreadable


def test_both_templates_show_context_response_criterion_and_scale() -> None:
    judge = Judge((0.2, 0.5, 0.3))
    for wording in range(2):
        ask(judge, wording).prompt_model([ITEM])
    assert len({*judge.prompts}) == 2
    for prompt in judge.prompts:
        for text in ("Hi there.", "Hello!", "Maintains Context", "from 1 (worst) to 3 (best)"):
            assert text in prompt


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Rated:
    """Return a study with a local and two served raters, and the prompts of the endpoints.

    Everything is computed except what needs a training.
    """
    folder = tmp_path_factory.mktemp("prompted")
    with serving(Server(liked="5")) as scores, serving(Server(scores=False, answer="4")) as writes:
        config = {
            **STUDY,
            "models": [ENCODER, DECODER],
            "results": str(folder / "results"),
            "prompted": [
                {"model": "gpt", "chat": "no", "test_data_seen": "no"},
                {"model": "far", "endpoint": scores.url},
                {"model": "writer", "endpoint": writes.url},
            ],
        }
        (folder / "study.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        study = open_study(folder / "study.yaml")
        read = {node for run in study.plan.runs if not run.stages for node in run.result_nodes}
        needed = {*add_ancestors(read)}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client, "FIRST_PAUSE", 0.01)
            make(study, [node for node in study.plan.nodes if node in needed])
    write_collected_tables(get_design(study.config), study, complete=False)
    write_statistics(get_design(study.config), study)
    bodies = [body for server in (scores, writes) for _, body in server.requests]
    return study, [str(body.get("prompt", body.get("messages"))) for body in bodies]


def read_table(study: Study, name: str) -> pd.DataFrame:
    return pd.read_parquet(Path(study.tables, f"{name}.parquet"))


def test_prompted_raters_are_in_the_tables_of_the_others(rated: Rated) -> None:
    study, _ = rated
    ratings = read_table(study, "ratings")
    # The logarithms of the probabilities are 0 for 5, and -0.01 for the other ratings.
    shares = [math.exp(-0.01)] * 4 + [1.0]
    expected = sum(n * share for n, share in enumerate(shares, 1)) / sum(shares)
    assert ratings.loc[ratings["method"] == "far", "value"].to_numpy() == pytest.approx(expected)
    assert (ratings.loc[ratings["method"] == "writer", "value"] == 4).all()
    local = ratings.loc[ratings["method"] == "gpt", "value"]
    assert local.between(1, 5).all()
    assert local.nunique() > 10
    found = read_table(study, "correlations").set_index("method")
    assert (found.loc["gpt", "low"] < found.loc["gpt", "high"]).all()
    assert (found.loc["writer", "constant"] == 1).all()
    tests = read_table(study, "tests")
    assert {*tests.loc[tests["method"] == "gpt", "against"]} == {"cosine-last"}


def test_the_printed_tables_have_the_raters(rated: Rated) -> None:
    study, _ = rated
    assert main(["figures", "--config", study.config_file]) == 0
    assert "gpt" in Path(study.figures, "table3.md").read_text(encoding="utf-8")
    table = Path(study.figures, "prompted.md").read_text(encoding="utf-8")
    assert "| gpt | Harbour_Tiny | 1 |" in table


def test_templates_and_cost_are_in_a_table(rated: Rated) -> None:
    study, _ = rated
    table = read_table(study, "prompted")
    table = table.set_index(["method", "set", "template"]).sort_index()
    assert len(table) == 3 * 2 * 2
    assert (table["tokens"] > 0).all()
    assert (table["seconds"] >= 0).all()
    assert (table["unreadable"] == 0).all()
    assert {*table.loc["gpt", "test_data_seen"]} == {"no"}
    ratings = read_table(study, "ratings")
    mean = ratings[(ratings["method"] == "gpt") & (ratings["set"] == "Market_Tiny")]["value"].mean()
    assert table.loc[("gpt", "Market_Tiny"), "mean"].mean() == pytest.approx(mean)


def test_no_prompt_has_markup(rated: Rated) -> None:
    _, prompts = rated
    own = [prompt for prompt in prompts if "planted quality" in prompt]
    assert len(own) > 100
    assert not [prompt for prompt in own if re.search(r"<\w+>|\[(CLS|SEP|MASK)\]", prompt)]


def test_the_key_changes_no_other_node(rated: Rated, tmp_path: Path) -> None:
    study, _ = rated
    bare = {**STUDY, "results": str(tmp_path / "results")}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(bare), encoding="utf-8")
    without = open_study(tmp_path / "study.yaml")
    prompted = [run for run in study.plan.runs if run.model == PROMPTED]
    own = {node.digest for run in prompted for node in run.evaluations}
    assert len(own) == 3 * 2 * 2
    assert {n.digest for n in study.plan.nodes} - own == {n.digest for n in without.plan.nodes}
    assert "prompted" not in without.config.build_digest_content()


def test_a_study_may_have_prompted_models_only(tmp_path: Path) -> None:
    bare = {key: value for key, value in STUDY.items() if key not in ("joint", "pairs")}
    config = {**bare, "methods": [], "models": [ENCODER, DECODER], "prompted": [{"model": "gpt"}],
              "pairs": {"labels": "made"}, "rated_sets": ["Market_Tiny"],
              "results": str(tmp_path / "results")}  # fmt: skip
    study = make_with_statistics(config, tmp_path / "study.yaml")
    design = get_design(study.config)
    assert study.plan.stages == ()
    assert {data.recipe for data in study.plan.derived} == {"rated_together"}
    assert main(["figures", "--config", study.config_file]) == 0
    assert main(["report", "--config", study.config_file]) == 0
    printed = [Path(study.config.results, file) for file in list_outputs(design, study).printed]
    assert [file for file in printed if not file.exists()] == []
    assert "differences.md" in {file.name for file in printed}
    tests = read_table(study, "tests")
    (mean,) = tests[tests["seed"] == "mean"].to_dict("records")
    assert (mean["method"], mean["against"]) == ("gpt", "cosine-last")
    assert mean["low"] < mean["difference"] < mean["high"]
    assert 0 <= mean["q"] <= 1
    sentences = " ".join(write_answer(read_frames(study, design.analysis(study))))
    assert "gpt has a Spearman correlation" in sentences
    assert "at least two seeds" not in sentences


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"methods": [], "prompted": [], "models": [ENCODER]}, "methods: The list is empty"),
        (
            {"methods": [], "controls": ["exchanged"]},
            "exchanged repeats the first method, but methods is empty",
        ),
        (
            {"methods": [], "selection": {"domain": "Harbour"}},
            "selection: The section has no effect without",
        ),
        ({"prompted": [{"model": "tiny"}]}, "'tiny' is an encoder, which cannot be prompted"),
        ({"prompted": [{"model": "gpt"}] * 2}, "Another entry has the name 'gpt'"),
        (
            {"prompted": [{"model": "twin", "endpoint": "http://h/v1"}]},
            "'twin' is the name of a method of",
        ),
        (
            {"prompted": []},
            "'gpt' is a decoder, which the panel does not train. Add the model to prompt",
        ),
        ({"models": [DECODER]}, "which the panel does not train. List an encoder first"),
    ],
)
def test_slips_are_reported(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    config = {**STUDY, "models": [ENCODER, DECODER], "prompted": [{"model": "gpt"}], **change}
    config["results"] = str(tmp_path / "results")
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    with pytest.raises(TaskTransferError, match=told):
        open_study(tmp_path / "study.yaml")
