"""Sizes of data and models in the forecast of a study."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from finished_stages import MODEL, TASKS, opened, write_checkpoint
from tasktransfer.core.nodes import Stage
from tasktransfer.core.nodes.data import FRACTION, SAMPLED
from tasktransfer.datasets import DATASETS
from tasktransfer.designs import open_study
from tasktransfer.files.json_text import read_tensor_shapes
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.forecast.model_size import compute_model_size
from tasktransfer.operate.forecast.sizes import Sizes, estimate_truncated_mean
from tasktransfer.results.study import Study

PRESETS = Path(__file__).resolve().parents[2] / "workflow" / "presets"
PAPER = PRESETS / "paper.yaml"


@pytest.fixture(autouse=True)
def _without_hub(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(here / "no-hub"))


@pytest.fixture(scope="module")
def paper() -> Study:
    return open_study(PAPER, need_inputs=False)


def stage_of(study: Study, label: str) -> Stage:
    return next(s for s in study.plan.stages if s.kind == "baseline" and s.label == label)


def write(path: str, value: Any) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(value))


# --- sizes --------------------------------------------------------------------------------------


def test_the_table_of_sizes_is_the_papers(shared: Path) -> None:
    rows = (shared / "paper" / "table1_tasks.csv").read_text().splitlines()[1:]
    published = {tuple(row.split(",")[:2]): [int(v) for v in row.split(",")[5:8]] for row in rows}
    ours = {
        (d.name, t): [s.train, s.dev, s.test] for d in DATASETS.values() for t, s in d.sizes.items()
    }
    assert ours.items() >= published.items()


def test_sizes_are_the_papers_where_there_is_no_data(paper: Study) -> None:
    sizes = Sizes(paper)
    stage = stage_of(paper, "DNLI")
    assert sizes.measure_split(stage, "dialogue_nli", "train").instances == 569
    assert sizes.measure_split(stage, "dialogue_nli", "test").instances == 1302
    # Of 145 tokens in the mean, 512 at most are read.
    assert sizes.measure_split(stage, "dialogue_nli", "train").tokens == pytest.approx(
        569 * 145, rel=0.01
    )
    assert sizes.describe_source("DailyDialog", "bert-base") == "Table 1 of the paper"


def test_text_to_text_models_are_asked_each_trait_by_itself(paper: Study) -> None:
    sizes = Sizes(paper)
    by_model = {s.model.name: s for s in paper.plan.stages if s.label == "PD"}
    assert sizes.measure_split(by_model["bert-base"], "personality_detection", "test").units == 110
    assert sizes.measure_split(by_model["gpt2"], "personality_detection", "test").units == 5 * 110


def test_full_data_is_ten_times_the_few_samples() -> None:
    study = open_study(PAPER, {"data": {"few_sample": False}}, need_inputs=False)
    volume = Sizes(study).measure_split(stage_of(study, "DNLI"), "dialogue_nli", "train")
    assert volume.instances == 5690


def test_samples_of_dialogues_have_a_fraction_of_the_instances(paper: Study) -> None:
    whole = paper.get_released_data("DailyDialog")
    sampled = replace(whole, recipe=SAMPLED, settings={FRACTION: 0.25, "seed": 0})
    sizes = Sizes(paper)
    for split, factor in (("train", 0.25), ("dev", 1), ("test", 1)):
        everything = sizes.measure_data(whole, "bert-base", "dialogue_nli", split, 400)
        part = sizes.measure_data(sampled, "bert-base", "dialogue_nli", split, 400)
        assert part.instances == factor * everything.instances
        assert part.tokens == pytest.approx(factor * everything.tokens, rel=0.01)
        assert sizes.count_instances(sampled, "dialogue_nli", split, 400) == part.instances


def test_fitted_heads_read_train_once_and_dev_before_the_first_update(paper: Study) -> None:
    stage = stage_of(paper, "ER")
    assert stage.model.family == "encoder"
    fitted = replace(stage, training=replace(stage.training, head_initialization="auto"))
    estimates = Estimates(paper, "cpu")
    plain, cost = (estimates.estimate_cost(each) for each in (stage, fitted))
    train, dev = (
        estimates.sizes.measure_split(stage, "emotion_recognition", split)
        for split in ("train", "dev")
    )
    assert cost.evaluated_tokens - plain.evaluated_tokens == train.tokens + dev.tokens
    assert cost.seconds > plain.seconds
    dialogues = stage_of(paper, "TC")  # labels dialogues
    not_fitted = replace(dialogues, training=fitted.training)
    assert estimates.estimate_cost(not_fitted) == estimates.estimate_cost(dialogues)


def test_references_on_embeddings_share_the_time_to_embed() -> None:
    def estimate_fits(*names: str) -> dict[str, float]:
        study = open_study(PAPER, {"references": list(names)}, need_inputs=False)
        estimates = Estimates(study, "cpu")
        fits = [fit for fit in study.plan.fits if fit.data.name == "DailyDialog"]
        return {fit.learner: estimates.estimate_seconds(fit) for fit in fits}

    alone = estimate_fits("frozen_logistic")
    both = estimate_fits("frozen_logistic", "nearest_neighbour", "tfidf_logistic")
    assert alone["frozen_logistic"] > 60 > both["tfidf_logistic"]
    assert sum(both[name] for name in ("frozen_logistic", "nearest_neighbour")) == pytest.approx(
        alone["frozen_logistic"], rel=0.1
    )


def test_prepared_and_encoded_data_is_counted() -> None:
    study = opened()
    stage = stage_of(study, "ER")
    guessed = Sizes(study).measure_split(stage, TASKS[0], "train")
    assert guessed.instances == round(240 * 0.5 * 1.63)
    prepared = f"{study.get_instances_folder('DailyDialog')}/manifest.json"
    write(prepared, "cut off")
    assert Sizes(study).describe_source("DailyDialog", "tiny-bert") == "the tiny world"
    counts = {split: {"samples": n, "dialogues": 1} for split, n in (("train", 30), ("dev", 5))}
    write(prepared, {"tasks": {TASKS[0]: counts}})
    assert Sizes(study).measure_split(stage, TASKS[0], "train").instances == 30
    assert Sizes(study).describe_source("DailyDialog", "tiny-bert") == "the prepared data"
    key = f"{TASKS[0]}-train"
    encoded = {"examples": {key: 31}, "tokens": {key: 777}}
    folder = study.get_encoded_folder(study.get_released_data("DailyDialog"), "tiny-bert")
    write(f"{folder}/manifest.json", encoded)
    volume = Sizes(study).measure_split(stage, TASKS[0], "train")
    assert (volume.instances, volume.units, volume.tokens) == (30, 31, 777)
    assert Sizes(study).describe_source("DailyDialog", "tiny-bert") == "the encoded data"


def test_tokens_that_are_truncated_do_not_count() -> None:
    """Tokens per instance as in the records of the shipped study, at most 128."""
    for mean, read in ((90, 77.2), (131, 97.5), (228, 112.2), (211, 112.5), (308, 122.3)):
        assert estimate_truncated_mean(mean, 128) == pytest.approx(read, rel=0.04)
    assert estimate_truncated_mean(20, 10_000) == pytest.approx(20)
    assert estimate_truncated_mean(10_000, 20) == pytest.approx(20, rel=0.01)


def test_derived_tasks_are_counted_when_the_dialogues_are_prepared() -> None:
    study = open_study(PRESETS / "probes-layers.yaml", need_inputs=False)
    fit = study.plan.fits[0]
    before = Sizes(study).count_instances(fit.data, fit.tasks[0], "train")
    write(
        f"{study.get_instances_folder('MultiWOZ')}/manifest.json",
        {"tasks": {"multiwoz_reply": {"train": {"samples": 30, "dialogues": 1}}}},
    )
    assert Sizes(study).count_instances(fit.data, fit.tasks[0], "train") == before > 0


# --- models -------------------------------------------------------------------------------------


def test_models_are_known_by_name(paper: Study) -> None:
    sizes = {name: compute_model_size(paper, name) for name in ("bert-base", "gpt2", "t5-base")}
    millions = {name: round(size.parameters / 1e6) for name, size in sizes.items()}
    assert millions == {"bert-base": 110, "gpt2": 124, "t5-base": 223}
    assert {size.basis for size in sizes.values()} == {"its name"}


def test_a_folder_is_read() -> None:
    write_checkpoint(Path("mine"), (100, 20))
    size = compute_model_size(opened(models=[MODEL | {"checkpoint": "./mine"}]), "tiny-bert")
    assert (size.parameters, size.hidden, size.layers, size.basis) == (2000, 2, 1, "its files")


def test_a_hub_model_is_read_where_it_is_cached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    hub = tmp_path / "hf" / "hub" / "models--org--name"
    write_checkpoint(hub / "snapshots" / "abc", (7,))
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text("abc")
    study = opened(models=[MODEL | {"checkpoint": "org/name"}])
    assert compute_model_size(study, "tiny-bert").parameters == 7


def test_an_unknown_model_is_a_guess_and_says_so() -> None:
    study = opened(models=[MODEL | {"checkpoint": "org/nobody-knows"}])
    assert "guess" in compute_model_size(study, "tiny-bert").basis


def test_a_truncated_tensor_file_is_noticed(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c")
    file = tmp_path / "c" / "model.safetensors"
    assert read_tensor_shapes(file) == {"weight": [3, 2]}
    whole = file.read_bytes()
    for content in (whole[:-1], whole[:20], b"", b"\xff" * 16, whole + b"x"):
        file.write_bytes(content)
        assert read_tensor_shapes(file) is None
