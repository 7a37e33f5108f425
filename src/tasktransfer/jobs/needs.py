"""Input files of a study's jobs.

All paths contain a digest of their content, so an existing file is valid whatever its modification
time, and has no inputs. A deleted cache is rebuilt for new runs only; finished runs stay finished.
(Snakemake's `ancient()` is not enough: it repeats a job if an ancient input is *missing* and
rebuilt.)
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Outcome, Stage, Start
from tasktransfer.core.references import OF_A_MODEL
from tasktransfer.core.runs import add_ancestors
from tasktransfer.core.specs import ModelSpec
from tasktransfer.errors import ConfigError
from tasktransfer.results.node_folders import (
    describe_missing_files,
    describe_missing_rounds,
    describe_unmade_selections,
    find_node_damage,
    is_finished,
)
from tasktransfer.results.revisions import get_own_tiny_version, is_generated
from tasktransfer.results.study import Study
from tasktransfer.selection.selector import MEASUREMENTS


def list_instance_inputs(study: Study, dataset: str, cache: str) -> list[str]:
    """Return the input files from which cached instances are prepared.

    They are the files of the tiny world if the data are generated from it.

    A release has no inputs for Snakemake: `tasktransfer` finds and checks it.
    """
    generated = is_generated(study.config, dataset) and not get_own_tiny_version(dataset)
    generated = generated or is_tiny_world(study, dataset, cache)
    return _list_inputs_if_missing(
        f"{cache}/manifest.json", [study.tiny_world] if generated else []
    )


def is_tiny_world(study: Study, dataset: str, cache: str) -> bool:
    """Return whether cached instances are the pre-training data of tiny models."""
    return Path(study.get_tiny_instances_folder(dataset)) == Path(cache)


def list_tiny_model_inputs(study: Study, folder: str) -> list[str]:
    """Return the input files of a generated model's folder, except weights."""
    caches = [f"{cache}/manifest.json" for cache in study.list_text_folders(folder)]
    return _list_inputs_if_missing(f"{folder}/config.json", caches)


def list_encoding_inputs(study: Study, folder: str) -> list[str]:
    """Return the input files from which token ids are computed."""
    data, model = study.encoded_folders[folder]
    made = (
        study.get_record_path(data)
        if data.recipe
        else f"{study.get_instances_folder(data.name)}/manifest.json"
    )
    return _list_inputs_if_missing(
        f"{folder}/manifest.json", [made, *_list_model_files(study, model)]
    )


def list_job_inputs(study: Study, node: Node) -> list[str]:
    """Return the input files of an unfinished node's job.

    They are the nodes that it uses and starts from, and instances or token ids.
    """
    if isinstance(node, Stage):
        token_ids = f"{study.get_encoded_folder(node.data, node.model.name)}/manifest.json"
        needed = [token_ids, *_list_stage_outputs(study, node.starts)]
        return [*needed, *(_list_model_files(study, node.model.name) if node.reads_base else [])]
    read = [used for used in node.uses if isinstance(used, Data)]
    made = [u for u in node.uses if isinstance(u, Fit) or (isinstance(u, Data) and u.recipe)]
    needed = [study.get_record_path(used) for used in made]
    released: list[str] = []
    models: list[tuple[Data, str]] = []
    if isinstance(node, Data):
        needed += _list_stage_outputs(
            study, [Start(used) for used in node.uses if isinstance(used, Stage)]
        )
        needed += [] if read else [f"{study.get_instances_folder(node.name)}/manifest.json"]
    else:
        read.append(node.data)
    if isinstance(node, Fit) and node.on and node.on.stage:
        needed += _list_stage_outputs(study, [node.on])
        read_by = [node.on.stage.data, *([node.data] if node.learner in MEASUREMENTS else [])]
        models = [(data, node.on.stage.model.name) for data in read_by]
    elif isinstance(node, Fit):
        released = [spec.name for spec in list_released_models(study, node)]
        if node.learner in MEASUREMENTS:
            models = [(node.data, name) for name in released]
    elif isinstance(node, Evaluation) and isinstance(node.of, Outcome):
        needed += _list_stage_outputs(study, node.of.starts)
        read += [pool.data for pool in node.pools if not pool.data.recipe]
        models = [(data, m) for data in node.read for m in node.model_names]
        released = [node.of.model.name] if node.of.model and not node.of.model.served else []
    if isinstance(node, Fit):
        needed += _list_stage_outputs(
            study,
            [Start(inner) for inner in node.reads if isinstance(inner, Stage)],
        )
    needed += [
        f"{study.get_instances_folder(data.name)}/manifest.json" for data in read if not data.recipe
    ]
    needed += [f"{study.get_encoded_folder(data, model)}/manifest.json" for data, model in models]
    under = [
        inner.model.name for inner in node.uses if isinstance(inner, Stage) and inner.model.adapter
    ]
    needed += [file for name in (*released, *under) for file in _list_model_files(study, name)]
    return list(dict.fromkeys(needed))


def list_first_data(study: Study, recipes: Iterable[str]) -> list[str]:
    """Return the records of derived data that must exist before the first training.

    If a recipe finds too few data for the config, the error then comes before hours of training.

    Args:
        recipes: names of recipes. Data that depend on a training run are omitted.
    """
    named = frozenset(recipes)
    derived = (data for data in study.plan.derived if data.recipe in named)
    derived = (data for data in derived if not is_finished(study, data))
    return [
        study.get_record_path(data)
        for data in derived
        if not any(isinstance(used, Stage) for used in add_ancestors((data,)))
    ]


def runs_model(node: Node) -> bool:
    """Return whether a node's job runs a model, so that it needs a device.

    These are training runs, evaluations of models that no endpoint serves, fits on representations,
    and data that a model labels.
    """
    if isinstance(node, Stage):
        return True
    if isinstance(node, Evaluation) and (node.brought is not None or node.ranks_by_words):
        return False
    if isinstance(node, Evaluation) and isinstance(node.of, Outcome):
        return node.of.model is None or not node.of.model.served
    own = node.of if isinstance(node, Evaluation) else node
    read: list[Outcome | Node] = [own]
    if own is node:
        read += node.uses
    fits = [used for used in read if isinstance(used, Fit)]
    return any(isinstance(used, Outcome | Stage) for used in read) or any(
        fit.on is not None or "model" in fit.settings for fit in fits
    )


def _list_stage_outputs(study: Study, starts: Iterable[Start]) -> list[str]:
    """Return the checkpoints of stages that must exist before a job can start from them.

    Rounds other than the best are not separate outputs, because their number is known only when the
    stage is finished.
    """
    return [
        study.get_checkpoint_folder(start.stage)
        if start.at == "best"
        else study.get_record_path(start.stage)
        for start in starts
        if start.stage
    ]


class DamagedRecords:
    """A log of damaged records, and of records without outputs that other nodes read.

    The log is newer than these records. As an input it makes Snakemake run their nodes again, and
    show this in a dry run. Jobs move damaged records away.
    """

    def __init__(self, study: Study) -> None:
        self.file = Path(study.config.results, "logs", "damaged.log")
        self._records: dict[str, tuple[float, str]] = {}
        """record → (modification time, problem)"""

    def list_inputs(self, study: Study, node: Node) -> list[str]:
        """Return a list with the log if a node's record is damaged or incomplete.

        Raises:
            RecordError: there is no permission to read the record.
        """
        record = study.get_record_path(node)
        if not os.path.lexists(record):
            return []
        problem = find_node_damage(study, node)
        announcement = "The following record is damaged, so its job runs again"
        if problem is None:
            announcement = "The following record lacks outputs, so its job runs again"
            if isinstance(node, Stage):
                problem = describe_unmade_selections(study, node) or describe_missing_rounds(
                    study, node
                )
            else:
                problem = describe_missing_files(study, node)
        if problem is None:
            return []
        if record not in self._records:
            self._records[record] = (Path(record).lstat().st_mtime, problem)
            self._write()
            print(f"{announcement}: {problem}", file=sys.stderr)
        return [str(self.file)]

    def _write(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        # Without the time, a file with the same content would not count as new.
        lines = [time.ctime(), *(problem for _, problem in self._records.values())]
        self.file.write_text("".join(f"{line}\n" for line in lines))
        # The clock of the machine that wrote a record may be ahead of this machine's.
        newest = max(time.time(), *(1 + changed for changed, _ in self._records.values()))
        os.utime(self.file, (newest, newest))


def get_fit_model(study: Study, fit: Fit) -> ModelSpec:
    """Return the released model that a fit's identity refers to.

    Raises:
        ConfigError: the study does not have this model.
    """
    found = _find_model(study, fit.settings.get("model"))
    if found is None:
        raise ConfigError(
            f"{fit.label}: The study does not contain the model of this fit. Check whether the "
            "config has changed."
        )
    return found


def list_released_models(study: Study, fit: Fit) -> list[ModelSpec]:
    """Return the released models that a fit reads for representations or tokenization.

    A fit on a stage reads none.

    Raises:
        ConfigError: the study does not have the model of a fit that needs one.
    """
    if fit.on is not None and fit.on.stage is not None:
        return []
    if fit.learner in (*MEASUREMENTS, *OF_A_MODEL):
        return [get_fit_model(study, fit)]
    settings = [fit.settings, fit.settings.get("reads")]
    identities = [each.get("model") for each in settings if isinstance(each, Mapping)]
    found = (_find_model(study, each) for each in identities if isinstance(each, Mapping))
    return [spec for spec in found if spec]


def _find_model(study: Study, identity: Any) -> ModelSpec | None:
    models = study.revisions.models.values()
    return next((m for m in models if identity in (m.identity, m.as_released.identity)), None)


def _list_model_files(study: Study, name: str) -> list[str]:
    """Return the generated files of a model and of its second encoder."""
    model = study.get_model_config(name)
    own = [f"{study.get_created_model_folder(name)}/config.json"] if model.is_created else []
    return own + (_list_model_files(study, model.second) if model.second else [])


def _list_inputs_if_missing(file: str, needed: list[str]) -> list[str]:
    return [] if Path(file).exists() else needed
