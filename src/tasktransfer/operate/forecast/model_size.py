"""Size of a model, from its files or its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tasktransfer.config.model_sizes import (
    ModelSize,
    find_published_size,
    list_cached_folders,
    read_model_size,
)
from tasktransfer.core.architecture import parse_weights
from tasktransfer.core.specs import LowRank
from tasktransfer.files.json_text import read_tensor_shapes
from tasktransfer.results.revisions import is_hub_name
from tasktransfer.results.study import Study

OF_A_LAYER = 18
"""Inputs plus outputs of a layer's matrices, in hidden sizes: four matrices of attention, and two
between the hidden states and the four times wider feed-forward layer."""

REPLIES_SHARE = 0.3
"""Fraction of reply tokens in a pair of context and reply; built models generate replies."""

WORDS = 10_000
"""Assumed vocabulary size of a built model, until the data are known."""


def compute_model_size(study: Study, name: str) -> ModelSize:
    """Return the size of a study's model, including its adapter.

    It comes from the model's files, or its config, or else from its name.
    """
    size, adapter = _find_model_size(study, name), study.revisions.models[name].adapter
    if adapter is None:
        return size
    for folder in _list_model_folders(study, name):
        if matrices := _read_matrix_sizes(folder):
            named = [r for layer, r in matrices.items() if is_adapted(adapter, layer)]
            return replace(size, adapter=adapter.rank * sum(named))
    return replace(size, adapter=adapter.rank * OF_A_LAYER * size.hidden * size.layers)


NO_LAYER = re.compile(r"emb|wte|wpe|shared|head|position|relative|predictions|^cls\.")
"""Pattern of matrices without adapters: embeddings and the output layer."""


def is_adapted(adapter: LowRank, layer: str) -> bool:
    """Return whether a layer with a given name gets an adapter."""
    if not adapter.target_modules:
        return NO_LAYER.search(layer) is None
    return any(f".{layer}".endswith(f".{end}") for end in adapter.target_modules)


def _read_matrix_sizes(folder: Path) -> dict[str, int]:
    """Map each layer to the sum of its inputs and outputs."""
    shapes: dict[str, list[int]] = {}
    for file in folder.glob("*.safetensors"):
        shapes |= read_tensor_shapes(file) or {}
    return {
        name.removesuffix(".weight"): sum(shape)
        for name, shape in shapes.items()
        if len(shape) == 2 and name.endswith(".weight")
    }


def _find_model_size(study: Study, name: str) -> ModelSize:
    model = study.get_model_config(name)
    checkpoint, made = model.checkpoint, model.built
    if model.recipe is not None:
        built = parse_weights(model.recipe)
        return ModelSize(
            built.count_parameters(WORDS), built.units, 2 * built.layers, WORDS, "its recipe"
        )
    if made is not None:
        layer = 4 * made.hidden**2 + 2 * made.hidden * made.feed_forward
        layers = made.layers + made.decoder_layers
        words = made.vocabulary_size
        parameters = words * made.hidden + layers * layer
        return ModelSize(
            parameters, made.hidden, layers, words, "its recipe", written=REPLIES_SHARE
        )
    for folder in _list_model_folders(study, name):
        if size := read_model_size(folder):
            return size
    return find_published_size(checkpoint)


def _list_model_folders(study: Study, name: str) -> Iterator[Path]:
    base = study.get_checkpoint_source(name)
    if not is_hub_name(base):
        yield Path(base).expanduser()
        return
    yield from list_cached_folders(base, study.get_hub_revision(name) or "main")
