"""The command export-model: other libraries load the models, with equal results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from safetensors.torch import load_file
from torch import nn
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DistilBertConfig,
    DistilBertModel,
    RobertaConfig,
    RobertaModel,
)

from exported_study import (
    compute_own_logits,
    few_updates,  # noqa: F401  # a fixture of the whole module
    finish_study,
    list_texts,
)
from small_models import Loader
from tasktransfer import cli
from tasktransfer.core.fidelity import DEFAULT
from tasktransfer.core.nodes import Stage, Start
from tasktransfer.core.specs import LowRank, Reads
from tasktransfer.data.cache import read_instances
from tasktransfer.datasets import get_task
from tasktransfer.designs import get_design, open_study
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import ConfigError, DataError, ModelError, RecordError
from tasktransfer.jobs import restore
from tasktransfer.jobs.export_candidates import list_candidates, list_unexported_models
from tasktransfer.jobs.export_card import _describe_absent_labels
from tasktransfer.jobs.export_model import ExportRequest, export_model
from tasktransfer.jobs.predictor import load_predictor
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.export import write_encoder
from tasktransfer.models.exported import ExportedEncoder, write_tokenizer
from tasktransfer.results.exported import ExportedModel, read_exported_model

TASK = "emotion_recognition"
LABELS = get_task("DailyDialog", TASK).labels


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished study whose checkpoints are kept."""
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        finish_study()
    return folder


@pytest.fixture
def study(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(finished)
    return open_study("study.yaml")


def export(
    study: Any, out: Path, method: str | None, task: str = "intent", **more: Any
) -> ExportedModel:
    request = ExportRequest(task, method, **more)
    return export_model(study, get_design(study.config), out, request)


# --- the encoder and its head ---------------------------------------------------------------------


def compute_logits(encoder: Encoder, split: EncodedSplit) -> torch.Tensor:
    encoder.module.eval()
    examples = range(len(split))
    with torch.inference_mode():
        return encoder._compute_logits(
            encoder.tasks[split.task], encoder._build_inputs(split, examples, {})
        )


def read_logits(folder: Path, layout: str, pooling: str, split: EncodedSplit) -> np.ndarray:
    encoder = ExportedEncoder(folder, layout, pooling, len(LABELS))
    rows = [list(map(int, split.sequences[n])) for n in range(len(split))]
    assert split.turn_starts is not None
    turns = [int(n) for n in split.turn_starts]
    return encoder.compute_logits(rows, [int(n) for n in split.second_starts], turns)


@pytest.mark.parametrize(
    ("reads", "layout", "pooling"),
    [
        ("pooler", "transformers", "pooler"),
        ("mean", "sentence_transformers", "mean"),
        ("first_token", "sentence_transformers", "first_token"),
        ("turn", "tasktransfer", "turn"),
    ],
)
@pytest.mark.parametrize("adapter", [None, LowRank(rank=4)])
def test_the_logits_of_the_trainer_are_kept(
    load: Loader,
    models_folder: Path,
    tmp_path: Path,
    reads: Reads,
    layout: str,
    pooling: str,
    adapter: LowRank | None,
) -> None:
    model, split = load("encoder", "DailyDialog", TASK, reads=reads, adapter=adapter, plain=True)
    assert isinstance(model, Encoder)
    with torch.no_grad():
        for parameter in model.module.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
    expected = compute_logits(model, split)
    assert write_encoder(model, TASK, LABELS, 200, tmp_path) == (layout, pooling)
    tokenizer = models_folder / "DailyDialog-encoder" / "tokenizer"
    write_tokenizer(str(tokenizer), None, 200, "left", tmp_path)
    assert expected.std() > 0.01
    assert np.abs(read_logits(tmp_path, layout, pooling, split) - expected.numpy()).max() < 1e-5
    config = json.loads((tmp_path / "config.json").read_text())
    assert [config["id2label"][str(n)] for n in range(len(LABELS))] == [*LABELS]
    files = {file.suffix for file in tmp_path.rglob("*") if file.is_file()}
    assert files == {".json", ".safetensors"}
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert settings["tokenizer_class"] == "PreTrainedTokenizerFast", "known to transformers 4"


def build_encoder(backbone: Any, reads: Reads = "pooler") -> Encoder:
    return Encoder(
        backbone.eval(),
        {TASK: get_task("DailyDialog", TASK)},
        seed=1,
        pad_token_id=0,
        token_types=False,
        longest_spans={},
        fidelity=DEFAULT,
        device=torch.device("cpu"),
        reads=reads,
    )


def test_the_pooler_of_roberta_becomes_part_of_its_classifier(tmp_path: Path) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    backbone = RobertaModel(RobertaConfig(vocab_size=60, num_hidden_layers=1, **sizes))
    encoder = build_encoder(backbone)
    ids = torch.arange(10, 30).reshape(2, 10)
    with torch.inference_mode():
        expected = encoder.heads[TASK](backbone(ids).pooler_output)
    assert write_encoder(encoder, TASK, LABELS, 200, tmp_path).layout == "transformers"
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    with torch.inference_mode():
        assert (model(ids).logits - expected).abs().max() < 1e-5


def test_a_class_that_computes_other_logits_is_not_used(tmp_path: Path) -> None:
    """DistilBERT's classifier has one more layer than our head."""
    config = DistilBertConfig(vocab_size=60, dim=16, hidden_dim=32, n_heads=2, n_layers=1)
    encoder = build_encoder(DistilBertModel(config))
    written = write_encoder(encoder, TASK, LABELS, 200, tmp_path)
    assert written == ("sentence_transformers", "first_token")


def test_bottleneck_adapters_are_refused(load: Loader, tmp_path: Path) -> None:
    model, _ = load("encoder", "DailyDialog", TASK, adapter_reduction=4)
    assert isinstance(model, Encoder)
    with pytest.raises(ModelError, match="represent a model that has bottleneck adapters"):
        write_encoder(model, TASK, LABELS, 200, tmp_path)


# --- methods of a study ---------------------------------------------------------------------------

METHODS: list[tuple[str, str | None, str, str]] = [
    ("baseline", "small", "intent", "transformers"),
    ("baseline", "mean", "intent", "sentence_transformers"),
    ("baseline", "small", "mood", "transformers"),
    ("tfidf_logistic", None, "intent", "tasktransfer"),
    ("tfidf_logistic", None, "mood", "tasktransfer"),
    ("frozen_logistic", None, "intent", "sentence_transformers"),
    ("frozen_logistic", None, "mood", "tasktransfer"),
    ("nearest_neighbour", None, "mood", "tasktransfer"),
    ("contrastive_logistic", None, "intent", "sentence_transformers"),
    ("contrastive_logistic", None, "mood", "tasktransfer"),
]


@pytest.mark.parametrize(("method", "model", "task", "layout"), METHODS)
def test_an_exported_method_repeats_its_predictions(
    study: Any, tmp_path: Path, method: str, model: str | None, task: str, layout: str
) -> None:
    exported = export(study, tmp_path / "model", method, task, model=model)
    recorded = exported.scores["recorded_predictions"]
    assert recorded["equal"] == recorded["of"] == exported.scores["test"]["instances"] > 10
    assert exported == read_exported_model(tmp_path / "model")
    assert exported.layout == layout
    assert exported.temperature > 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert "as the user's files" in card
    assert {row["method"] for row in exported.scores["methods"]} >= {"baseline", "tfidf_logistic"}
    suffixes = {file.suffix for file in (tmp_path / "model").rglob("*") if file.is_file()}
    assert suffixes <= {".json", ".safetensors", ".md", ".png"}
    assert "![Reliability diagram and coverage](calibration.png)" in card
    assert (tmp_path / "model" / "calibration.png").read_bytes().startswith(b"\x89PNG")
    labels = exported.scores["labels"]
    assert sum(row["instances"] for row in labels) == exported.scores["test"]["instances"]
    assert all(f"| {row['label']} | {row['instances']} |" in card for row in labels)
    bins = exported.calibration["reliability"]["test"]["after"]
    assert sum(row["instances"] for row in bins) == exported.scores["test"]["instances"]
    least, coverage = exported.min_probability, exported.calibration["coverage"]["dev"]
    if least is None:
        assert "No threshold is suggested" in card
    else:
        assert f"Suggested threshold: {least:g}" in card
        (row,) = (row for row in coverage if row["min_probability"] == least)
        assert row["accuracy"] >= 90


def test_a_reference_is_fitted_on_dev_too_if_asked(study: Any, tmp_path: Path) -> None:
    alone = export(study, tmp_path / "alone", "tfidf_logistic")
    both = export(study, tmp_path / "both", "tfidf_logistic", with_dev=True)
    sizes = alone.provenance["instances"]
    cache = Path(study.get_instances_folder(alone.dataset))
    dev = len(list(read_instances(cache, "intent", "dev")))
    assert dev > 0
    assert both.provenance["instances_of_train_and_dev"] == sizes["train"] + dev
    assert (both.scores, both.temperature) == (alone.scores, alone.temperature)
    weights = [(tmp_path / n / "classifier.safetensors").read_bytes() for n in ("alone", "both")]
    assert weights[0] != weights[1]
    card = (tmp_path / "both" / "README.md").read_text()
    assert f"fitted on train and dev ({sizes['train'] + dev} instances)" in card
    assert "The model without dev scores" in card
    assert "without dev" not in (tmp_path / "alone" / "README.md").read_text()
    with pytest.raises(ConfigError, match=r"--train-on train\+dev: .* epoch is selected on dev"):
        export(study, tmp_path / "refused", "baseline", model="small", with_dev=True)


@pytest.mark.parametrize(
    ("method", "model"),
    [("baseline", "mean"), ("frozen_logistic", None), ("contrastive_logistic", None)],
)
def test_the_modules_of_sentence_transformers_give_the_same_logits(
    study: Any, tmp_path: Path, method: str, model: str | None
) -> None:
    """Follow the layout's documentation, since the library is not installed here."""
    folder = tmp_path / "model"
    export(study, folder, method, model=model)
    texts = list_texts(20)
    tokenizer, body = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    read = tokenizer(texts, truncation=True, padding=True, return_tensors="pt")
    states: torch.Tensor | None = None
    for module in json.loads((folder / "modules.json").read_text()):
        kind, path = module["type"].rpartition(".")[2], folder / module["path"]
        if kind == "Transformer":
            assert json.loads((path / "sentence_bert_config.json").read_text()) == {
                "max_seq_length": 24,
                "do_lower_case": False,
            }
            with torch.inference_mode():
                states = body.eval()(**read).last_hidden_state
            continue
        assert states is not None
        if kind == "Pooling":
            assert json.loads((path / "config.json").read_text())["pooling_mode_mean_tokens"]
            mask = read["attention_mask"].unsqueeze(-1)
            states = (states * mask).sum(1) / mask.sum(1)
        elif kind == "Normalize":
            states = nn.functional.normalize(states, dim=-1)
        else:
            tensors = load_file(path / "model.safetensors")
            settings = json.loads((path / "config.json").read_text())
            assert settings["activation_function"].endswith("Identity")
            assert (settings["out_features"], settings["in_features"]) == (3, 64)
            states = states @ tensors["linear.weight"].T + tensors["linear.bias"]
    assert states is not None
    assert np.abs(states.numpy() - compute_own_logits(load_predictor(folder), texts)).max() < 1e-5


def test_the_method_with_the_best_dev_score_is_the_default(study: Any, tmp_path: Path) -> None:
    """TF-IDF reads the words that give the intent; two epochs of a random model do not."""
    exported = export(study, tmp_path / "best", None)
    assert exported.method == "tfidf_logistic"
    both = [export(study, tmp_path / name, "baseline", model=name) for name in ("small", "mean")]
    assert exported.scores["dev"] >= max(each.scores["dev"] for each in both)
    chosen = export(study, tmp_path / "chosen", "baseline")
    assert chosen.provenance["model"] in ("small", "mean")


def test_the_recommended_method_is_the_default(
    study: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(Path.cwd(), tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    for command in ("collect", "statistics"):
        assert cli.main([command, "--config", "study.yaml"]) == 0
    file = Path(study.tables, "methods.parquet")
    table = pq.read_table(file).to_pandas()

    def recommend(method: str) -> ExportedModel:
        of_target = (table["target"] == "mood") & (table["method"] == method)
        first = table.index == of_target.idxmax()
        changed = pa.Table.from_pandas(table.assign(recommended=first), preserve_index=False)
        pq.write_table(changed, file)
        return export(study, tmp_path / "model", None, "mood")

    nearest = recommend("nearest_neighbour")
    assert nearest.method == "nearest_neighbour"
    assert nearest.scores["method_chosen_by"] == "recommended"
    assert "not significantly worse than" in (tmp_path / "model" / "README.md").read_text()
    trained = recommend("fine_tuning")
    assert (trained.method, trained.provenance["model"]) == ("baseline", "small")
    assert export(study, tmp_path / "model", "fine_tuning", "mood", model="mean").layout == (
        "sentence_transformers"
    )
    capsys.readouterr()
    assert recommend("most_frequent").scores["method_chosen_by"] == "dev"
    assert "The recommended method is most frequent answer, which has no model" in (
        capsys.readouterr().err
    )


def test_a_training_is_repeated_if_its_checkpoint_was_not_kept(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = export(study, tmp_path / "kept", "baseline", model="small")
    shutil.copytree(Path.cwd(), tmp_path / "again")
    monkeypatch.chdir(tmp_path / "again")
    for folder in list(Path(study.config.results, "stages").rglob("checkpoint")):
        shutil.rmtree(folder)
    after = export(study, tmp_path / "trained", "baseline", model="small")
    assert after.provenance["node"] == before.provenance["node"]
    assert after.scores == before.scores
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("kept", "trained")]
    assert all(torch.allclose(weights[0][name], weights[1][name]) for name in weights[0])
    stage = study.get_node(before.provenance["node"][:12])
    assert isinstance(stage, Stage)
    folder = restore.restore_checkpoint(study, Start(stage), get_design(study.config), 1)
    assert folder.startswith(f"{study.config.results}/{restore.FOLDER}/")


def test_names_that_do_not_fit_are_refused(study: Any, tmp_path: Path) -> None:
    out = tmp_path / "model"
    refused: list[tuple[ExportRequest, str]] = [
        (ExportRequest(), r"--task: The study has 2 tasks .* can be exported\. Choose one"),
        (ExportRequest("intents"), "--task intents: The study has no such task.*Did you mean"),
        (ExportRequest("intent", "sequential"), "sequential: The method is not a finished method"),
        (ExportRequest("intent", "most_frequent"), "always predicts the same label"),
        (ExportRequest("intent", "baseline", model="smal"), "--model smal: The method was not run"),
        (ExportRequest("intent", model="smal"), r"Did you mean 'small'\?"),
    ]
    for request, message in refused:
        with pytest.raises(ConfigError, match=message):
            export_model(study, get_design(study.config), out, request)
    out.mkdir()
    (out / "thesis.tex").write_text("")
    with pytest.raises(DataError, match=r"The folder contains no tasktransfer\.json"):
        export(study, out, "tfidf_logistic")


def test_a_card_lists_labels_that_never_occur_in_test() -> None:
    assert [*_describe_absent_labels([])] == []
    sentence = " ".join(_describe_absent_labels(["login", "praise"])).strip()
    assert sentence.endswith("that never occur in test (2): `login`, `praise`.")


def test_tasks_without_a_model_for_export_are_named(here: Path) -> None:
    tasks = [TASK, "topic_classification", "causal_emotion_span_extraction"]
    bert, gpt = (
        {"name": name, "family": family, "checkpoint": "tiny"}
        for name, family in (("bert", "encoder"), ("gpt", "decoder"))
    )
    keys = {"study": "all", "datasets": {"DailyDialog": {"tasks": tasks}}, "algorithms": []}
    Path("study.yaml").write_text(yaml.safe_dump({**keys, "models": [bert, gpt]}))
    study = open_study("study.yaml")
    with pytest.raises(ConfigError, match=r"causal_emotion_span_extraction \(its kind is span\)"):
        list_candidates(study, None)
    assert list_unexported_models(study, "DailyDialog", TASK) == ["gpt (decoder)"]
    Path("study.yaml").write_text(yaml.safe_dump({**keys, "models": [gpt]}))
    with pytest.raises(ConfigError, match="trains no encoder") as found:
        list_candidates(open_study("study.yaml"), TASK)
    assert f"{TASK} (no encoder is trained on it, only gpt (decoder))" in str(found.value)


def test_an_unfinished_study_has_nothing_to_export(study: Any, tmp_path: Path) -> None:
    fresh = open_study("study.yaml", {"results": str(tmp_path)})
    with pytest.raises(RecordError, match=r"is finished\. Run the study"):
        export(fresh, tmp_path / "model", None)
