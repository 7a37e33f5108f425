"""Probes of a checkpoint's layers: states, plan, stored representations, table and figure."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from test_probe_word_control import build_estimates

from planned_presets import plan_file, plan_preset
from small_models import Loader
from tasktransfer.core.nodes import Fit
from tasktransfer.core.specs import FAMILIES, Family, ModelSpec
from tasktransfer.designs import load_config
from tasktransfer.designs.probes.figures import plot_f1_by_layer
from tasktransfer.designs.probes.intervals import build_layers, compare_with_words
from tasktransfer.designs.probes.printed import summarise_layers
from tasktransfer.encoding.tokenizer import load_tokenizer
from tasktransfer.errors import ConfigError, ModelError
from tasktransfer.evaluation import features
from tasktransfer.jobs import layer_job
from tasktransfer.jobs.layer_job import read_layer
from tasktransfer.models.load import load_body
from tasktransfer.models.representation import (
    compute_layer_representations,
    compute_representations,
)
from tasktransfer.results import node_folders
from tasktransfer.results.frames import Frames
from tasktransfer.results.node_folders import get_layer_folder_name, list_needed_layer_folders
from tasktransfer.results.store import Metadata

CPU = torch.device("cpu")
TEXTS = [f"I am glad today , {'very ' * (number % 7)}much so" for number in range(10)]


# --- states -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES[:3])
def test_all_layers_come_from_one_pass(load: Loader, models_folder: Path, family: Family) -> None:
    load(family, "DailyDialog", "emotion_recognition")  # writes the folder
    folder = models_folder / family
    own = (folder, folder, family, TEXTS, 100)
    states = compute_layer_representations(*own, "mean", [0, 2], device=CPU, together=3)
    assert states.shape[:2] == (2, len(TEXTS))
    assert np.allclose(states[1], compute_representations(*own, "mean", device=CPU), atol=1e-5)
    assert np.abs(states[0] - states[1]).max() > 0.01
    model = load_body(family, str(folder), None).eval()
    body = model.get_encoder() if family == "encoder_decoder" else model.base_model
    tokenizer = load_tokenizer(str(folder), None, family)
    ids = torch.tensor([tokenizer(TEXTS[6])["input_ids"]])
    with torch.inference_mode():
        expected = body(input_ids=ids, output_hidden_states=True).hidden_states[0][0]
    assert np.allclose(states[0][6], expected.mean(0).numpy(), atol=1e-5)
    last = compute_layer_representations(*own, "last", [0], device=CPU, together=3)
    assert np.allclose(last[0][6], expected[-1].numpy(), atol=1e-5)
    with pytest.raises(
        ModelError, match=r"no layer 9, only the layers 0 to 2. Change models\[\]\.layers"
    ):
        compute_layer_representations(*own, "mean", [0, 9], device=CPU)


# --- config and plan ----------------------------------------------------------------------------


def write_config(folder: Path, **model: Any) -> Path:
    config = {
        "study": "layers",
        "design": "probes",
        "results": str(folder / "out"),
        "data": {"release": "world", "few_sample": False},
        "corpora": ["MultiWOZ"],
        "models": [{"name": "one", "family": "encoder", "checkpoint": "tiny", **model}],
        "probes": {"tasks": ["RecentTopic", "Coin"]},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    return folder / "study.yaml"


BUILT = {"checkpoint": "recipe", "family": "encoder_decoder", "architecture": {"kind": "lstm"}}


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (
            {"layers": [0, 3]},
            r"models\[0\]\.layers\[1\]: The value is 3, but tiny has layers 0 to 2",
        ),
        (
            {"layers": "all", "checkpoint": "some/unknown"},
            r"layers: The number of layers of some",
        ),
        (
            {"family": "decoder", "pooling": "first"},
            r"pooling: The value is 'first', but a decoder's first",
        ),
        ({**BUILT, "layers": [1]}, r"models\[0\]\.layers: Only a model with a checkpoint"),
        ({**BUILT, "pooling": "last"}, r"models\[0\]\.pooling: Only a model with a checkpoint"),
    ],
)
def test_what_cannot_be_probed_is_refused_with_its_line(
    tmp_path: Path, model: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=rf"study.yaml:\d+: .*{problem}"):
        load_config(write_config(tmp_path, **model))


def test_each_layer_is_a_node_and_the_last_layer_alone_is_as_before(tmp_path: Path) -> None:
    every = plan_file(write_config(tmp_path, layers="all"))[1]
    assert {run.method for run in every.runs} == {"words", "layer 0", "layer 1", "layer 2"}
    layers = [fit for fit in every.fits if "layer" in fit.settings]
    assert sorted(fit.settings["layer"] for fit in layers) == [0, 1, 2]
    assert len({get_layer_folder_name(fit) for fit in layers}) == 1
    some = plan_file(write_config(tmp_path, layers=[2, 0]))[1]
    assert {fit.digest for fit in some.fits} < {fit.digest for fit in every.fits}
    (alone,) = [f for f in plan_file(write_config(tmp_path))[1].fits if f.learner == "probes"]
    assert {"layer", "pooling"}.isdisjoint(alone.settings)
    assert alone.settings["representation"] == "mean"
    (last,) = [
        f
        for f in plan_file(write_config(tmp_path, pooling="last"))[1].fits
        if f.learner == "probes"
    ]
    assert last.settings["representation"] == "last"


@pytest.mark.parametrize(
    ("preset", "layers"),
    [
        ("probes-layers", {"MiniLM": 7, "SmolLM2-135M": 6}),
        ("probes-layers-laptop", {"MiniLM": 7}),
        ("probes-layers-large", {"Ettin-encoder": 23, "Ettin-decoder": 23, "Qwen3-0.6B": 29}),
    ],
)
def test_the_presets_are_planned_without_weights(
    preset: str, layers: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = plan_preset(preset)[1].runs
    found = {(r.model, r.method) for r in runs if r.method.startswith("layer")}
    assert {model: sum(m == model for m, _ in found) for model in layers} == layers


# --- stored representations ---------------------------------------------------------------------


def test_the_first_fit_computes_all_layers_and_the_others_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan_file(write_config(tmp_path, layers=[0, 2]))[1]
    fits = [fit for fit in planned.fits if "layer" in fit.settings]
    calls = []

    def compute(_: Any, model: Any, texts: Any, pooling: Any, layers: Any, *__: Any) -> Any:
        calls.append((pooling, list(layers)))
        return np.stack([np.full((len(texts), 4), layer, np.float32) for layer in layers])

    monkeypatch.setattr(features, "compute_layer_features", compute)
    monkeypatch.setattr(layer_job.inputs, "get_hardware", lambda study: None)
    study: Any = SimpleNamespace(
        config=SimpleNamespace(results=str(tmp_path / "out")),
        plan=planned,
        get_checkpoint_source=str,
        get_hub_revision=lambda name: None,
        get_record_path=lambda node: str(tmp_path / "none"),
    )
    model = ModelSpec("one", "encoder", "w", 32)
    for fit in fits:
        states = read_layer(study, fit, model, TEXTS)
        assert states.shape == (len(TEXTS), 4)
        assert (states == fit.settings["layer"]).all()
    assert calls == [("mean", [0, 2])]
    folder = tmp_path / "out" / get_layer_folder_name(fits[0])
    (folder / "2.npy").unlink()
    read_layer(study, next(f for f in fits if f.settings["layer"] == 2), model, TEXTS)
    assert calls[1:] == [("mean", [2])]
    monkeypatch.setattr(node_folders, "is_finished", lambda study, fit: False)
    assert {*list_needed_layer_folders(study)} == {str(folder)}
    monkeypatch.setattr(node_folders, "is_finished", lambda study, fit: isinstance(fit, Fit))
    assert not [*list_needed_layer_folders(study)]


# --- table and figure ---------------------------------------------------------------------------

SHARES = {
    ("MiniLM", "layer 0"): 0.4,
    ("MiniLM", "layer 1"): 0.9,
    ("words", "words"): 0.6,
}


def make_layers() -> pd.DataFrame:
    estimates = build_estimates(SHARES)
    return build_layers(estimates, compare_with_words(estimates, {"MiniLM": "words"}))


def test_a_layer_has_its_interval_and_its_difference_from_word_counts() -> None:
    frame = make_layers()
    layers = frame.set_index(["layer", "probe"])
    means = layers.xs("all", level="probe")
    assert means["probes"].tolist() == [2, 2]
    for layer in (0, 1):
        single = layers.loc[[(layer, probe) for probe in ("RecentTopic", "AllSlots")]]
        for column in ("f1", "words", "prior"):
            assert means.loc[layer, column] == pytest.approx(single[column].mean())
        assert means.loc[layer, "low"] < means.loc[layer, "f1"] < means.loc[layer, "high"]
        difference = means.loc[layer, "f1"] - means.loc[layer, "words"]
        assert means.loc[layer, "above_words"] == pytest.approx(difference)
    printed = summarise_layers(frame).set_index("layer")
    assert printed[["higher", "lower"]].to_numpy().tolist() == [[0, 2], [2, 0]]


def test_the_figure_has_a_line_at_the_word_counts() -> None:
    frame = make_layers()
    no_study: Any = None
    figure = plot_f1_by_layer(
        Frames(no_study, {"layers": frame}, Metadata("s", "0" * 64, False, 1))
    )
    assert figure is not None
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    assert titles == ["mean over probes", "RecentTopic", "AllSlots", "Coin"]
    words = frame[frame["probe"] == "all"]["words"].iloc[0]
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert [float(line.get_ydata()[0]) for line in lines] == pytest.approx([words])
    series = figure.axes[0].lines[0]
    assert series.get_ydata().tolist() == frame[frame["probe"] == "all"]["f1"].tolist()
