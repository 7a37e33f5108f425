"""The jobs of selectors: measurements of training instances, and values computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasktransfer.core.nodes import Data, Fit, Start
from tasktransfer.core.specs import Training
from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.data.samples import select_instances
from tasktransfer.datasets import get_task, resolve_task, shorten_task_name
from tasktransfer.errors import ConfigError
from tasktransfer.files import json_text, replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.jobs import inputs
from tasktransfer.jobs.needs import get_fit_model
from tasktransfer.results.artefacts import check_artefacts
from tasktransfer.results.study import Study
from tasktransfer.selection.inputs import Arrays, SelectorInput, build_input_text
from tasktransfer.selection.selector import COST, TOKENS, Selector
from tasktransfer.tasks.card import Instance

if TYPE_CHECKING:  # imports torch
    from tasktransfer.jobs.recorded_job import JobOutput

ARRAYS, VALUES = "arrays.npz", "values.json"


def write_measurements(study: Study, node: Fit, folder: Path, output: JobOutput) -> None:
    """Write a model's measurements on training instances of each task of a node.

    Raises:
        ConfigError: the study does not have the model.
        DataError, ModelError, RecordError: token ids or a checkpoint are missing or damaged.
    """
    from tasktransfer.evaluation.measurements import (  # noqa: PLC0415  # imports torch
        MEASUREMENTS,
        MeasuredModel,
    )

    start = node.on
    if start is not None and start.stage is not None:
        stage = start.stage
        model, training, seed = stage.model, stage.training, stage.seed
        of = get_task(stage.data.name, stage.train_tasks[0])
        weights, revision = inputs.get_checkpoint(study, start), None
    else:
        model = get_fit_model(study, node)
        training, seed, of = Training(), node.seed, None
        weights, revision = (
            study.get_checkpoint_source(model.name),
            study.get_hub_revision(model.name),
        )
    hardware = inputs.get_hardware(study, precision="float32")
    cache_folder, limit = inputs.get_cache(study, node.data), node.settings["instances"]

    def texts(task: str) -> list[str]:
        return [
            build_input_text(instance) for instance in _read_train_sample(cache_folder, task, limit)
        ]

    measuring = MeasuredModel(
        *(
            model,
            training,
            weights,
            revision,
            Path(study.get_encoded_folder(node.data, model.name)),
            seed,
            of,
        ),
        *(limit, texts, hardware, study.get_second_encoder_source(model.name)),
    )
    tokens = 0
    for name in show_progress(node.tasks, f"computing {node.learner}"):
        arrays = MEASUREMENTS[node.learner](measuring, get_task(node.data.name, name))
        (folder / name).mkdir(parents=True, exist_ok=True)
        with replace_file(folder / name / ARRAYS) as part, part.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
        split = measuring.read_train_split(name)
        output.sizes[name] = {"train": len(split.ids)}
        tokens += int(split.count_tokens().sum())
    output.report = {COST: {TOKENS: float(tokens)}}


def write_selector_values(
    study: Study, node: Fit, selector: Selector, folder: Path, output: JobOutput
) -> None:
    """Write a selector's values to one file per target, with one value per source.

    Raises:
        DataError: instances are missing.
        RecordError: an input differs from the output that another node has recorded.
    """
    pairs: Mapping[str, Sequence[str]] = node.settings["sources"]
    folders = {
        data.name: inputs.get_cache(study, data)
        for data in (node.data, *(used for used in node.reads if isinstance(used, Data)))
    }
    limit = node.settings["instances"]

    @cache
    def instances(task: str) -> list[Instance]:
        home, name = resolve_task(node.data.name, task)
        return _read_train_sample(folders[home], name, limit)

    measurements = {
        _build_measurement_key(node.data.name, fit, task): fit
        for fit in node.reads
        if isinstance(fit, Fit)
        for task in fit.tasks
    }

    @cache
    def measured(what: str, of: str | None, on: str) -> Arrays:
        fit = measurements.get((what, of, on))
        if fit is None:
            raise ConfigError(
                f"selector {selector.name}: The selector reads {what} of {of or 'the base model'} "
                f"on {on}, but its `reads` ({', '.join(selector.reads)}) do not include this "
                "input. Add the input to `reads`."
            )
        folder, (_, name) = Path(study.get_node_folder(fit)), resolve_task(node.data.name, on)
        check_artefacts(folder, fit.digest, [name])
        with np.load(folder / name / ARRAYS, allow_pickle=False) as arrays:
            return {name: np.asarray(arrays[name], np.float64) for name in arrays.files}

    tasks = sorted({*pairs, *(source for of in pairs.values() for source in of)})
    kinds = {task: get_task(node.data.name, task).kind for task in tasks}
    sizes = {task: _count_train_samples(folders, node.data.name, task) for task in tasks}
    assert selector.values is not None
    for target, sources in show_progress(pairs.items(), f"ranking by {selector.name}"):
        selector_input = SelectorInput(target, tuple(sources), kinds, sizes, instances, measured)
        values = {s: v for s, v in selector.values(selector_input).items() if v is not None}
        _check_values(selector, target, values, sources)
        (folder / target).mkdir(parents=True, exist_ok=True)
        with replace_file(folder / target / VALUES) as part:
            part.write_text(json_text.encode(values, indent=1) + "\n", encoding="utf-8")
        output.report[target] = values
        output.sizes[target] = {"train": sizes[target]}


def _read_train_sample(folder: Path, task: str, limit: int) -> list[Instance]:
    """Read the training instances of a task that selectors use."""
    return select_instances(read_instances(folder, task, "train"), limit)


def _check_values(
    selector: Selector, target: str, values: Mapping[str, float], sources: Sequence[str]
) -> None:
    odd = [source for source in values if source not in sources]
    odd += [source for source, value in values.items() if not np.isfinite(value)]
    if odd:
        raise ConfigError(
            f"selector {selector.name}, target {target}: The selector returned {values[odd[0]]!r} "
            f"for the source {odd[0]}. Return finite numbers or None, for the requested sources "
            "only."
        )


def _count_train_samples(folders: Mapping[str, Path], dataset: str, task: str) -> int:
    home, name = resolve_task(dataset, task)
    return read_manifest(folders[home]).tasks[name]["train"].samples


def _build_measurement_key(dataset: str, fit: Fit, task: str) -> tuple[str, str | None, str]:
    """Return the learner of a measurement, its baseline's task and the measured task.

    Task names are relative to a dataset.
    """
    stage = fit.on.stage if isinstance(fit.on, Start) else None
    of = shorten_task_name(dataset, (stage.data.name, stage.train_tasks[0])) if stage else None
    return fit.learner, of, shorten_task_name(dataset, (fit.data.name, task))
