"""Plans of the empathetic presets: the trainings and their starts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from planned_presets import PRESETS, plan_preset
from tasktransfer.designs import load_config
from tasktransfer.designs.empathetic.substitutes import list_substitutes
from tasktransfer.jobs.needs import runs_model
from tasktransfer.results.revisions import find_revisions

pytestmark = pytest.mark.usefixtures("datasets_of_one_test")


def test_the_whole_study_has_28_trainings_and_2_fits_a_seed() -> None:
    _, made = plan_preset("empathetic", seeds=[0])
    families = Counter(stage.model.family for stage in made.stages)
    assert families == {"dual_encoder": 12, "encoder_decoder": 14, "encoder": 2}
    assert len(made.fits) == 2
    assert Counter(stage.kind for stage in made.stages) == {
        "pretrained": 3, "base": 3, "multitask": 2, "prepend": 12, "ensemble": 6, "classifier": 2,
    }  # fmt: skip


def test_methods_start_where_table_4_says() -> None:
    _, made = plan_preset("empathetic", seeds=[0])
    by_method = {(run.method, run.about["setting"]): run.stages for run in made.runs}
    for setting in ("retrieval", "generation"):
        (pretrained,) = by_method["pretrained", setting]
        base = by_method["base", setting][-1]
        assert base.parents == (pretrained,)
        assert by_method["multitask", setting][-1].parents == (pretrained,)
        assert by_method["multitask", setting][-1].sampler == "together"
        assert by_method["topicprepend-5", setting][-1].parents == (pretrained,)
        tuned = by_method["ensemble-tuned", setting][-1]
        assert tuned.parents[0] == base
        assert tuned.starts[1].into == ("beside",)
        decoder = ("decoder",) if setting == "generation" else ()
        assert tuned.trains == ("projection", *decoder)
        assert by_method["ensemble-plain", setting][-1].parents == (base,)


def test_controls_of_ensembles_change_no_other_training() -> None:
    methods = {"model": "retriever", "ensemble": "retriever-beside-reader"}
    retrieval = {**methods, "methods": ["base", "ensemble-tuned"]}
    _, without = plan_preset("empathetic-demo", controls=[], retrieval=retrieval)
    _, made = plan_preset("empathetic-demo", controls=["untrained", "longer"], retrieval=retrieval)
    assert {node.digest for node in without.nodes} <= {node.digest for node in made.nodes}
    by_method = {run.method: run.stages for run in made.runs if run.about["setting"] == "retrieval"}
    *_, base = by_method["base"]
    untrained, tuned, again = (
        by_method[name][-1] for name in ("ensemble-untrained", "ensemble-tuned", "base-longer")
    )
    assert untrained.parents == (base,)  # its second encoder starts from the released one
    assert untrained.trains == tuned.trains == ("projection",)
    assert again.parents == (base,)
    assert again.training.epochs == base.training.epochs == untrained.training.epochs
    assert (again.label, again.data.digest) == ("replies_again", base.data.digest)


def test_a_ranking_by_words_has_the_blocks_of_base_and_no_model() -> None:
    _, without = plan_preset("empathetic-laptop")
    config, made = plan_preset("empathetic-laptop", controls=["words"])
    assert {node.digest for node in without.nodes} <= {node.digest for node in made.nodes}
    runs = [run for run in made.runs if run.method == "tf-idf"]
    assert [run.seed for run in runs] == [*config.seeds]
    (ranked,) = {run.evaluations for run in runs}  # evaluated once, not once per seed
    (base, *_) = next(run.evaluations for run in made.runs if run.method == "base")
    assert ranked[0].measures == base.measures
    ours, theirs = dict(ranked[0].settings), dict(base.settings)
    assert ours.pop("words") == "tf-idf"
    assert ours == theirs
    assert not runs_model(ranked[0])


def test_no_training_reads_test_and_every_one_is_kept_by_its_loss() -> None:
    _, made = plan_preset("empathetic-demo")
    for stage in made.stages:
        if stage.kind != "classifier":
            assert stage.tested == ()
            assert stage.selection.measure == "loss"
    for evaluation in made.evaluations:
        # In addition to test, the labels of training contexts are evaluated, after the training.
        assert evaluation.split == "test" or evaluation.settings == {"fitted_on": "emotion"}


def test_the_codes_way_changes_labels_and_blocks() -> None:
    _, paper = plan_preset("empathetic-demo")
    _, code = plan_preset("empathetic-demo", release_compat=True)
    settings = [data.settings for data in code.derived if data.settings["task"] == "emotion"]
    assert settings and all(each["best_last"] and each["as_spelled"] for each in settings)
    blocks = [e.settings for e in code.evaluations if "block" in e.settings]
    assert all(each["drop_last_block"] for each in blocks)
    assert not {d.digest for d in paper.derived if d.settings["task"] == "emotion"} & {
        d.digest for d in code.derived
    }


def test_a_model_as_released_is_judged_without_training() -> None:
    _, made = plan_preset("empathetic-laptop")
    released = [run for run in made.runs if run.method == "pretrained" and run.model == "minilm"]
    assert released and all(not run.stages for run in released)
    assert all(run.evaluations[0].settings["cosine_scale"] == 20 for run in released)


def digests(made: Any, method: str, setting: str) -> list[str]:
    """Return the digests of the trainings and evaluations of a method's runs."""
    runs = [r for r in made.runs if (r.method, r.about["setting"]) == (method, setting)]
    assert runs
    return [node.digest for run in runs for node in (*run.stages, *run.evaluations)]


def test_cosines_have_a_scale_in_retrieval_alone() -> None:
    _, made = plan_preset("empathetic-laptop")
    _, other = plan_preset("empathetic-laptop", training={"cosine_scale": 5})
    for stage in made.stages:
        is_compared = stage.model.family == "dual_encoder"
        assert stage.training.cosine_scale == (20 if is_compared else None)
    for setting, stay in (("retrieval", False), ("generation", True), ("classifier", True)):
        for method in {r.method for r in made.runs if r.about["setting"] == setting}:
            same = digests(made, method, setting) == digests(other, method, setting)
            assert same == stay, (setting, method)


def test_a_hundred_words_of_a_text_are_read_whatever_is_put_before_it() -> None:
    config, made = plan_preset("empathetic", seeds=[0])
    for run in made.runs:
        if run.about["setting"] == "classifier":
            continue
        wanted = int(run.method[-1]) if "prepend" in run.method else 0
        (stage, *_) = reversed(run.stages)
        for data in (stage.data, *(each for e in run.evaluations for each in e.read)):
            assert data.longer_by == wanted, run.method
        assert stage.model.max_length == 101
    assert {model.max_length for model in config.models} == {101}


def test_an_ensemble_reads_what_its_classifier_was_trained_to_make() -> None:
    _, made = plan_preset("empathetic", seeds=[0])
    reads = {r.method: r.stages[-1].model.beside_reads for r in made.runs if "ensem" in r.method}
    assert reads == {
        "ensemble-plain": "mean", "ensemble-tuned": "pooler", "ensemble-tags": "pooler",
    }  # fmt: skip


def test_labels_are_judged_as_they_are_prepended() -> None:
    _, made = plan_preset("empathetic-laptop")
    for run in made.runs:
        if run.method == "fasttext-emotion":
            judged = [(e.task, e.split) for e in run.evaluations if "fitted_on" in e.settings]
            assert judged == [("emotion_of_context", "test"), ("emotion_of_context", "train")]


BASE_ALONE = {"retrieval": {"methods": ["base"]}, "generation": {"methods": ["base"]}}


@pytest.mark.parametrize(
    "change",
    [
        {"retrieval": {"methods": ["base", "topicprepend-1"]}},
        {"evaluation": {"pools": ["ED", "ED+DD"]}},
        {"topics": {"dataset": "Newsgroups"}, "retrieval": {"methods": ["base", "topicprepend-1"]}},
        {"retrieval": {"methods": ["base", "ensemble-tags"]}},
    ],
)
def test_base_does_not_depend_on_what_else_is_studied(
    change: dict[str, Any], tmp_path: Path
) -> None:
    """Above all its vocabulary, on which its perplexity depends."""
    weights = []
    folders = {name: str(tmp_path / name) for name in ("Newsgroups", "ReplyPairs")}
    for more in ({}, change):
        config = load_config(
            PRESETS / "empathetic.yaml",
            merged(BASE_ALONE, {"evaluation": {"pools": ["ED"]}}, more)
            | {"results": str(tmp_path), "data": {"releases": folders}},
        )
        found, _ = find_revisions(config, need_inputs=False)
        weights.append({name: found.models[name].weights for name in ("retriever", "writer")})
        assert config.list_vocabulary_datasets("retriever") == (
            "EmpatheticDialogues",
            "DailyDialogReplies",
        )
        assert {"rec.autos", "School Life", "faithful"} <= set(config.known_labels)
    assert weights[0] == weights[1]


def merged(*changes: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for change in changes:
        for key, section in change.items():
            whole[key] = {**whole.get(key, {}), **section}
    return whole


def test_stand_ins_are_named() -> None:
    config, _ = plan_preset("empathetic")
    told = list_substitutes(config)
    assert told["1.7 billion Reddit conversations"] == "DailyDialog's training dialogues"
    assert told["20 Newsgroups"] == "DailyDialog's ten topics"
    assert {
        "fastText vectors of common crawl",
        "Reddit candidates",
        "DeepMoji fine-tuned",
    } <= set(told)
