"""Folders of cached representations, which the fits of a model's layers share."""

from __future__ import annotations

from collections.abc import Iterator

from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import SHORT, Fit
from tasktransfer.results.finished import is_finished
from tasktransfer.results.study import Study

FOLDER = "data/layers"
"""Folder of the cached representations, relative to the results folder."""
VERSION = 1
LAYER = "layer"
"""Setting of a fit that reads one layer: its number."""


def get_layer_folder_name(node: Fit) -> str:
    """Return the folder that the fits of a model's layers share, relative to the results folder."""
    settings = node.settings
    read = {name: settings.get(name) for name in ("model", "representation", "limit_train")}
    data = node.data.build_identity(node.tasks)
    identity = {"version": VERSION, **read, "data": data, "tasks": list(node.tasks)}
    return f"{FOLDER}/{compute_digest(identity)[:SHORT]}"


def list_needed_layer_folders(study: Study) -> Iterator[str]:
    """Yield the folders of representations that unfinished fits of a study need."""
    for fit in study.plan.fits:
        if LAYER in fit.settings and not is_finished(study, fit):
            yield f"{study.config.results}/{get_layer_folder_name(fit)}"
