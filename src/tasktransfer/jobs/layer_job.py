"""Representations of a checkpoint's layers, computed once for the fits of all layers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasktransfer.core.nodes import Fit
from tasktransfer.core.specs import ModelSpec
from tasktransfer.files import replace_file
from tasktransfer.files.locks import lock_path
from tasktransfer.jobs import inputs
from tasktransfer.results.node_folders import LAYER, get_layer_folder_name
from tasktransfer.results.study import Study


def read_layer(
    study: Study, node: Fit, model: ModelSpec, texts: Sequence[str]
) -> npt.NDArray[np.float64]:
    """Read the representations of a fit's layer, (texts, hidden size).

    The first fit computes all layers that the study probes, in one pass, and stores them. The
    others wait for it.

    Raises:
        ModelError: the checkpoint cannot be loaded, or has no such layer.
    """
    relative = get_layer_folder_name(node)
    folder = Path(study.config.results, relative)
    file = folder / f"{node.settings[LAYER]}.npy"
    with lock_path(folder, print):
        if not file.is_file():
            planned = {
                fit.settings[LAYER]
                for fit in study.plan.fits
                if LAYER in fit.settings and get_layer_folder_name(fit) == relative
            }
            missing = [n for n in sorted(planned) if not (folder / f"{n}.npy").is_file()]
            _write_layers(folder, missing, _compute_layers(study, node, model, texts, missing))
    vectors: npt.NDArray[np.float64] = np.load(file, allow_pickle=False).astype(np.float64)
    return vectors


def _compute_layers(
    study: Study, node: Fit, model: ModelSpec, texts: Sequence[str], layers: Sequence[int]
) -> npt.NDArray[np.float32]:
    from tasktransfer.evaluation.features import compute_layer_features  # noqa: PLC0415  # imports torch

    pooling: Any = node.settings["representation"]
    checkpoint, revision = (
        Path(study.get_checkpoint_source(model.name)),
        study.get_hub_revision(model.name),
    )
    hardware = inputs.get_hardware(study)
    return compute_layer_features(checkpoint, model, texts, pooling, layers, hardware, revision)


def _write_layers(folder: Path, layers: Sequence[int], states: npt.NDArray[np.float32]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for layer, values in zip(layers, states, strict=True):
        with replace_file(folder / f"{layer}.npy") as part, part.open("wb") as stream:
            np.save(stream, values)
