"""A study on this disk: its config, its plan and its paths.

The Snakefile and every command open a study at start, so this must be fast. It does not depend on
any design: the planner is passed in.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tasktransfer.config import ALL, TINY, ModelConfig
from tasktransfer.config.from_core import resolve_switches
from tasktransfer.config.places import expand_path
from tasktransfer.core.fidelity import Fidelity
from tasktransfer.core.identity import ENCODING_VERSION, compute_digest
from tasktransfer.core.nodes import Data, Node, Stage, Start
from tasktransfer.data.prepared import get_instances_folder_name, has_generated_dialogues
from tasktransfer.datasets import DATASETS, TINY_PARTS
from tasktransfer.errors import ConfigError
from tasktransfer.results.planned_study import PlannedStudy
from tasktransfer.results.revisions import (
    compute_tiny_revision,
    get_own_tiny_version,
    is_generated,
    is_hub_name,
)
from tasktransfer.results.rounds import get_round_folder
from tasktransfer.results.state import RECORD


@dataclass(frozen=True)
class Study(PlannedStudy):
    """A planned study and its paths, all relative to the working directory."""

    # --- inputs ---

    @property
    def tiny_world(self) -> str:
        """Folder of the generated tiny world, named after the digest of its settings."""
        digest = _compute_short_digest(compute_tiny_revision(self.config))
        return f"{self.config.results}/data/tiny-world-{digest}"

    @property
    def release(self) -> str:
        """Folder of the study's dialogues."""
        data = self.config.data
        return self.tiny_world if data.generated else expand_path(data.release)

    @property
    def reads_tiny_world(self) -> bool:
        """True if some of the study's dialogues are generated."""
        self.use_datasets()
        return any(is_generated(self.config, name) for name in self.config.dataset_names)

    def get_release(self, dataset: str) -> str:
        """Return the folder of a dataset's dialogues."""
        self.use_datasets()
        if not is_generated(self.config, dataset):
            return expand_path(self.config.data.get_release(dataset))
        return (
            self.get_tiny_part_folder(dataset) if get_own_tiny_version(dataset) else self.tiny_world
        )

    def get_tiny_part_folder(self, dataset: str) -> str:
        """Return the folder of a generated dataset outside the common tiny world."""
        digest = _compute_short_digest(self.revisions.data[dataset])
        return f"{self.config.results}/data/tiny-{dataset}-{digest}"

    def list_tasks(self, data: Data) -> tuple[str, ...]:
        """Return the sorted tasks on which the plan trains, selects or tests with some data.

        A pending choice must not add tasks.
        """
        return self._tasks.get(data.digest, ())

    @cached_property
    def _tasks(self) -> dict[str, tuple[str, ...]]:
        tasks: dict[str, set[str]] = {}
        for stage in self.plan.stages:
            tasks.setdefault(stage.data.digest, set()).update(stage.tasks)
        for evaluation in self.plan.evaluations:
            tasks.setdefault(evaluation.data.digest, set()).add(evaluation.task)
            for pool in evaluation.pools:
                tasks.setdefault(pool.data.digest, set()).add(pool.task)
        for fit in self.plan.fits:
            tasks.setdefault(fit.data.digest, set()).update(fit.tasks)
        return {digest: tuple(sorted(names)) for digest, names in tasks.items()}

    def get_released_data(self, dataset: str) -> Data:
        """Return the node of a dataset's instances as read from its release, without derivation.

        Raises:
            ConfigError: the study has no such dataset.
        """
        named = [
            data
            for node in self.plan.nodes
            for data in (
                node if isinstance(node, Data) else node.data,
                *(used for used in node.uses if isinstance(used, Data)),
            )
            if data.name == dataset
        ]
        for data in named:
            if not data.recipe:
                return data
        if named:  # the plan contains only derived data: return their source
            return replace(named[0], settings={}, recipe="", uses=())
        raise ConfigError(
            f"{self.config_file}: The study does not read the dataset {dataset!r}. Choose one of "
            "the study's datasets."
        )

    def get_instances_folder(self, dataset: str) -> str:
        """Return the folder of a dataset's cached instances.

        Raises:
            ConfigError: the study has no such dataset.
        """
        if dataset not in self.revisions.data:
            datasets = ", ".join(self.revisions.data)
            raise ConfigError(
                f"{self.config_file}: The study has no dataset {dataset!r}. Choose one of "
                f"{datasets}."
            )
        self.use_datasets()
        revision = self.revisions.data[dataset]
        if DATASETS[dataset].has_own_files:  # so that tasks declared later are read too
            revision = compute_digest([revision, DATASETS[dataset].card_digests])
        few_sample = self.config.data.few_sample
        return get_instances_folder_name(
            self.config.results, dataset, revision, few_sample=few_sample
        )

    def get_cache_folder(self, data: Data) -> str:
        """Return the folder of prepared instances, both released and derived."""
        return self.get_node_folder(data) if data.recipe else self.get_instances_folder(data.name)

    def get_tiny_instances_folder(self, dataset: str) -> str:
        """Return the folder of tiny-world instances on which tiny models are pre-trained.

        It contains all training dialogues, since public checkpoints were also pre-trained on more
        than a study's few samples.
        """
        return get_instances_folder_name(
            self.config.results, dataset, compute_tiny_revision(self.config), few_sample=False
        )

    @property
    def tiny_texts(self) -> tuple[str, ...]:
        """Folders of all instances on which tiny models are pre-trained."""
        return tuple(self.get_tiny_instances_folder(dataset) for dataset in TINY_PARTS)

    def list_text_folders(self, folder: str) -> tuple[str, ...]:
        """Return the folders of the texts from which a model in a folder is built."""
        for model in self.config.models:
            if model.is_created and self.get_created_model_folder(model.name) == folder:
                if model.checkpoint == TINY:
                    return self.tiny_texts
                read = self.config.list_vocabulary_datasets(model.name) if model.built else ()
                return tuple(self.get_instances_folder(name) for name in read)
        return self.tiny_texts

    def is_synthetic(self, dataset: str) -> bool | None:
        """Return whether a dataset's dialogues are synthetic according to its release.

        None if unknown because the data has not been prepared.
        """
        self.use_datasets()
        if is_generated(self.config, dataset):
            return True
        return has_generated_dialogues(Path(self.get_instances_folder(dataset)))

    @cached_property
    def fidelity(self) -> Fidelity:
        """Switches between the paper's and its toolkit's behaviour, for all trainings."""
        _, switches = resolve_switches(self.config.training.fidelity)
        return switches

    def get_encoded_folder(self, data: Data, model: str) -> str:
        """Return the folder of token ids for given data and a model."""
        folder = self._encoded.get((data.digest, model))
        if folder is None:
            folder = self._encoded[data.digest, model] = self._format_encoding_folder(data, model)
        return folder

    @cached_property
    def _encoded(self) -> dict[tuple[str, str], str]:
        """Cache of ``get_encoded_folder``, since thousands of trainings share a few folders."""
        return {}

    def _format_encoding_folder(self, data: Data, model: str) -> str:
        """Return the path of the token ids for the study's tasks and a model.

        Its name includes a digest of the tasks and their cards. Tasks that are added later, or
        whose texts or labels change, are therefore encoded again.
        """
        identity = {
            **self.revisions.models[model].identity,
            "encoding": ENCODING_VERSION,
            "tasks": self.list_tasks(data),
            "cards": data.get_card_digests(self.list_tasks(data)),
            **self.fidelity.encoding_switches,
        }
        folder = Path(data.path if data.recipe else self.get_instances_folder(data.name)).name
        digest = compute_digest(identity)[:12]
        return f"{self.config.results}/data/encoded/{folder}/{model}-{digest}"

    @cached_property
    def encoded_folders(self) -> dict[str, tuple[Data, str]]:
        """Folders of token ids for the plan's trainings and evaluations, with data and model."""
        pairs = {(s.data.digest, s.model.name): (s.data, s.model.name) for s in self.plan.stages}
        for evaluation in self.plan.evaluations:
            for data in evaluation.read:
                for name in evaluation.model_names:
                    pairs[data.digest, name] = (data, name)
        return {
            self.get_encoded_folder(data, model): (data, model) for data, model in pairs.values()
        }

    def get_model_config(self, name: str) -> ModelConfig:
        """Return the config of a model.

        Raises:
            ConfigError: the study has no such model.
        """
        for model in self.config.models:
            if model.name == name:
                return model
        names = ", ".join(model.name for model in self.config.models)
        raise ConfigError(
            f"{self.config_file}: The study has no model {name!r}. Choose one of {names}."
        )

    def get_created_model_folder(self, name: str) -> str:
        """Return the folder of a model that the study creates (``ModelConfig.is_created``)."""
        digest = compute_digest(self.revisions.models[name].identity)[:12]
        return f"{self.config.results}/models/{name}-{digest}"

    def get_checkpoint_source(self, name: str) -> str:
        """Return where a model's checkpoint comes from: a folder, a hub name or a recipe."""
        model = self.get_model_config(name)
        if model.recipe is not None:
            return model.recipe
        return (
            self.get_created_model_folder(name)
            if model.is_created
            else expand_path(model.checkpoint)
        )

    def get_second_encoder_source(self, name: str) -> str | None:
        """Return where a model's second encoder comes from, or None for models with one encoder."""
        second = self.get_model_config(name).second
        return self.get_checkpoint_source(second) if second else None

    def get_hub_revision(self, name: str) -> str | None:
        """Return the hub revision of a model's checkpoint, if possible as a commit.

        Return None for folders and recipes.
        """
        model = self.get_model_config(name)
        if model.recipe is not None or not is_hub_name(model.checkpoint):
            return None
        return self.revisions.models[name].weights.rpartition("@")[2]

    # --- nodes ---

    def get_node(self, digest: str) -> Node:
        """Return the node whose path ends with a digest (12 hex digits).

        Raises:
            ConfigError: the study's plan has no such node.
        """
        try:
            return self.plan.by_digest[digest]
        except KeyError:
            raise ConfigError(
                f"{self.config_file}: The study has no training, fit or evaluation with the digest "
                f"{digest}. Check whether the config has changed."
            ) from None

    def get_node_folder(self, node: Node) -> str:
        """Return the folder of a node's results."""
        return f"{self.config.results}/{node.path}"

    def get_record_path(self, node: Node) -> str:
        """Return the path of a node's record."""
        return f"{self.get_node_folder(node)}/{RECORD}"

    def get_checkpoint_folder(self, stage: Stage) -> str:
        """Return the folder of a stage's best rounds. It exists while it is kept or needed."""
        return get_round_folder(self.get_node_folder(stage), "best")

    def get_start_folder(self, start: Start) -> str:
        """Return the folder of the round of a stage from which another node starts."""
        assert start.stage is not None
        return get_round_folder(self.get_node_folder(start.stage), start.at, start.selected_on)

    def get_base_revision(self, stage: Stage) -> str | None:
        """Return the hub revision of a stage's base model, or None for other base models."""
        return self.get_hub_revision(stage.model.name) if stage.reads_base else None

    def keeps_checkpoints(self, kind: str) -> bool:
        """Return whether checkpoints of this kind of stage stay on disk."""
        keep = self.config.checkpoints.keep
        return keep == ALL or kind in keep

    def makes_checkpoint(self, kind: str) -> bool:
        """Return whether stages of this kind write checkpoints, to keep or for other nodes."""
        return self.keeps_checkpoints(kind) or kind in self._used_kinds

    def is_tested(self, kind: str) -> bool:
        """Return whether stages of a kind are tested, so that they write predictions."""
        return all(stage.tested for stage in self._expected_stages if stage.kind == kind)

    def starts_from_others(self, kind: str) -> bool:
        """Return whether stages of a kind start from other stages' parameters."""
        return any(stage.starts for stage in self._expected_stages if stage.kind == kind)

    @cached_property
    def _used_kinds(self) -> frozenset[str]:
        """Kinds of stages whose parameters are used by other nodes."""
        nodes = (*self.plan.nodes, *self._expected_stages)
        return frozenset(
            used.kind for node in nodes for used in node.uses if isinstance(used, Stage)
        )

    @cached_property
    def _expected_stages(self) -> tuple[Stage, ...]:
        """Planned stages, and examples of stages that pending choices may add."""
        return (*self.plan.stages, *(like for choice in self.plan.choices for like in choice.like))

    def list_dependents(self, node: Node) -> Sequence[Node]:
        """Return the nodes that directly use a node."""
        return self._users.get(node.digest, ())

    @cached_property
    def _users(self) -> dict[str, list[Node]]:
        users: dict[str, list[Node]] = {}
        for node in self.plan.nodes:
            for used in node.uses:
                users.setdefault(used.digest, []).append(node)
        return users

    def list_record_paths(self) -> list[str]:
        """Return the record paths of all planned nodes, with dependencies first."""
        return [self.get_record_path(node) for node in self.plan.nodes]

    # --- tables ---

    @property
    def tables(self) -> str:
        return f"{self.config.results}/tables"

    @property
    def missing_results_log(self) -> str:
        """Path of the log that lists missing runs at the last collection of tables.

        It is written after the tables; if it is newer than they are, results are missing from them.
        """
        return f"{self.config.results}/logs/missing.log"

    @property
    def figures(self) -> str:
        return f"{self.config.results}/figures"

    @property
    def report(self) -> str:
        return f"{self.config.results}/report.html"

    def format_arguments(self) -> str:
        """Return the command-line arguments that open this study, quoted for a shell."""
        words = ["--config", self.config_file]
        for key, value in _list_leaves(self.overrides):
            words += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
        return shlex.join(words)


def _compute_short_digest(revision: str) -> str:
    """Return a short digest (12 hex digits) of a revision, for use in paths."""
    return compute_digest(revision)[:12]


def _list_leaves(value: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    """Return (dotted key, value) for all leaves of a nested mapping."""
    leaves: list[tuple[str, Any]] = []
    for key, item in value.items():
        name = f"{path}.{key}" if path else key
        leaves += _list_leaves(item, name) if isinstance(item, Mapping) else [(name, item)]
    return leaves
