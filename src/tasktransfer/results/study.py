"""A study on this disk: its config, its plan, and where everything lives.

What the Snakefile and the command line need at start, and fast: it is opened at every start of
Snakemake and of every command. It knows no design: what plans the study is handed in.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tasktransfer.config import ALL, TINY, CommonConfig, ModelConfig
from tasktransfer.config.fidelity import switches_of
from tasktransfer.config.places import on_disk
from tasktransfer.core.digests import digest_of
from tasktransfer.core.fidelity import Fidelity
from tasktransfer.core.nodes import Data, Node, Stage, Start
from tasktransfer.core.plan import Choice, Plan, choice_file
from tasktransfer.data.prepared import instances_folder, says_synthetic
from tasktransfer.datasets import DATASETS, declare
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.datasets.tiny_world import PARTS
from tasktransfer.encoding import ENCODING_VERSION
from tasktransfer.errors import ConfigError
from tasktransfer.results.revisions import (
    UNKNOWN,
    Revisions,
    is_generated,
    is_hub_name,
    own_tiny_version,
    tiny_revision,
)
from tasktransfer.results.rounds import round_folder
from tasktransfer.results.state import RECORD


@dataclass(frozen=True)
class Study:
    """A config with what the disk says of it. All paths are relative to the working directory."""

    config: CommonConfig
    config_file: str
    overrides: Mapping[str, Any]
    revisions: Revisions
    absent: tuple[str, ...]
    """What of data and models is not on this disk, each as a message with its remedy."""
    planner: Callable[[Any, Revisions], Plan]
    """Of the study's design."""
    declared: tuple[Dataset, ...] = ()
    """The datasets that its config declares: another study may give their names to other files."""

    @property
    def plan(self) -> Plan:
        """Every run known so far; others may follow once a choice is made (``Plan.choices``)."""
        self._use_datasets()
        return self._plan

    @cached_property
    def _plan(self) -> Plan:
        return self.planner(self.config, self.revisions)

    def _use_datasets(self) -> None:
        """Make ``datasets.DATASETS`` those of this study: one that was opened later in this process
        has left its own there."""
        declare(self.declared)

    @property
    def unknown(self) -> bool:
        """Whether some revision is not known, and with it no place of a result."""
        return UNKNOWN in self.revisions.data.values() or any(
            model.weights == UNKNOWN for model in self.revisions.models.values()
        )

    def choice(self, name: str) -> Choice:
        """A choice that the plan depends on.

        Raises:
            ConfigError: none of this name is known.
        """
        for choice in self.plan.choices:
            if choice.name == name:
                return choice
        known = ", ".join(choice.name for choice in self.plan.choices) or "none"
        raise ConfigError(
            f"{self.config_file}: no choice is named {name!r}; known are {known}, and others may "
            "follow from these"
        )

    def choice_file(self, choice: Choice) -> str:
        """Where a choice is written down: made once, and made anew only if it is deleted."""
        return f"{self.config.results}/{choice_file(choice.name)}"

    @property
    def pending_choices(self) -> tuple[Choice, ...]:
        """The choices that are known and not made: further runs follow from them."""
        return tuple(choice for choice in self.plan.choices if not choice.made)

    def with_choices(self) -> Study:
        """The same study with what has been chosen by now."""
        files = (self.choice_file(choice) for choice in self.pending_choices)
        return replace(self) if any(Path(file).exists() for file in files) else self

    # --- inputs ---

    @property
    def tiny_world(self) -> str:
        """Folder of the generated tiny world, named after what it is generated from."""
        return f"{self.config.results}/data/tiny-world-{_short(tiny_revision(self.config))}"

    @property
    def release(self) -> str:
        """Folder that holds the dialogues of the study."""
        data = self.config.data
        return self.tiny_world if data.generated else on_disk(data.release)

    @property
    def reads_tiny_world(self) -> bool:
        """Whether dialogues of the study are generated for it."""
        self._use_datasets()
        return any(is_generated(self.config, name) for name in self.config.dataset_names)

    def release_of(self, dataset: str) -> str:
        """Folder that holds the dialogues of a dataset."""
        self._use_datasets()
        if not is_generated(self.config, dataset):
            return on_disk(self.config.data.release_of(dataset))
        return self.tiny_part(dataset) if own_tiny_version(dataset) else self.tiny_world

    def tiny_part(self, dataset: str) -> str:
        """Folder of a generated dataset that lies beside the common tiny world."""
        return f"{self.config.results}/data/tiny-{dataset}-{_short(self.revisions.data[dataset])}"

    def tasks(self, data: Data) -> tuple[str, ...]:
        """Every task of some data that a stage trains on, is selected by or tested on, sorted. A
        choice that is still to be made must add none."""
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

    def data(self, dataset: str) -> Data:
        """The instances of a dataset as they are read, not derived.

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
        if named:  # derived data are all that the plan names: what they are derived from
            return replace(named[0], settings={}, recipe="", uses=())
        raise ConfigError(f"{self.config_file}: the study reads no dataset named {dataset!r}")

    def instances(self, dataset: str) -> str:
        """Folder of a dataset's cached instances.

        Raises:
            ConfigError: the study has no such dataset.
        """
        if dataset not in self.revisions.data:
            datasets = ", ".join(self.revisions.data)
            raise ConfigError(
                f"{self.config_file}: no dataset is named {dataset!r}; named are {datasets}"
            )
        self._use_datasets()
        revision = self.revisions.data[dataset]
        if DATASETS[dataset].has_own_files:  # a task that is declared later is read as well
            revision = digest_of([revision, DATASETS[dataset].card_digests])
        few_sample = self.config.data.few_sample
        return instances_folder(self.config.results, dataset, revision, few_sample=few_sample)

    def cache(self, data: Data) -> str:
        """Folder of the prepared instances of some data, read or derived."""
        return self.folder(data) if data.recipe else self.instances(data.name)

    def tiny_instances(self, dataset: str) -> str:
        """Folder of the tiny world's instances that tiny models are pre-trained on: all of its
        training dialogues, as public checkpoints have read more than a study's few samples."""
        return instances_folder(
            self.config.results, dataset, tiny_revision(self.config), few_sample=False
        )

    @property
    def tiny_texts(self) -> tuple[str, ...]:
        """Folders of all instances that tiny models are pre-trained on."""
        return tuple(self.tiny_instances(dataset) for dataset in PARTS)

    def texts_of_made(self, folder: str) -> tuple[str, ...]:
        """Folders of the instances whose texts a model is made of, by the model's folder."""
        for model in self.config.models:
            if model.is_made and self.tiny_model(model.name) == folder:
                if model.checkpoint == TINY:
                    return self.tiny_texts
                read = self.config.vocabulary_of(model.name) if model.built else ()
                return tuple(self.instances(name) for name in read)
        return self.tiny_texts

    def synthetic(self, dataset: str) -> bool | None:
        """Whether a dataset's dialogues are generated, as the release's metadata says; None: not
        known before the data is prepared."""
        self._use_datasets()
        if is_generated(self.config, dataset):
            return True
        return says_synthetic(Path(self.instances(dataset)))

    @cached_property
    def fidelity(self) -> Fidelity:
        """What all trainings of the study do where the paper and its toolkit differ."""
        _, switches = switches_of(self.config.training.fidelity)
        return switches

    def encoded(self, data: Data, model: str) -> str:
        """Folder of the instances of some data as token ids of a model."""
        folder = self._encoded.get((data.digest, model))
        if folder is None:
            folder = self._encoded[data.digest, model] = self._encoded_folder(data, model)
        return folder

    @cached_property
    def _encoded(self) -> dict[tuple[str, str], str]:
        """What ``encoded`` has told: thousands of trainings read a few folders."""
        return {}

    def _encoded_folder(self, data: Data, model: str) -> str:
        """Folder of the instances of the study's tasks as token ids of a model. It is named after
        the tasks and their cards too: a task which is added later is encoded, and one whose texts
        or labels change is encoded again."""
        identity = {
            **self.revisions.models[model].identity,
            "encoding": ENCODING_VERSION,
            "tasks": self.tasks(data),
            "cards": data.cards_of(self.tasks(data)),
            **self.fidelity.of_encoding,
        }
        folder = Path(data.path if data.recipe else self.instances(data.name)).name
        digest = digest_of(identity)[:12]
        return f"{self.config.results}/data/encoded/{folder}/{model}-{digest}"

    @cached_property
    def encoded_folders(self) -> dict[str, tuple[Data, str]]:
        """Every folder of token ids that a training or evaluation of the plan reads → its data
        and model."""
        pairs = {(s.data.digest, s.model.name): (s.data, s.model.name) for s in self.plan.stages}
        for evaluation in self.plan.evaluations:
            for data in evaluation.read:
                for name in evaluation.model_names:
                    pairs[data.digest, name] = (data, name)
        return {self.encoded(data, model): (data, model) for data, model in pairs.values()}

    def model(self, name: str) -> ModelConfig:
        """The config of a model.

        Raises:
            ConfigError: the study has no such model.
        """
        for model in self.config.models:
            if model.name == name:
                return model
        names = ", ".join(model.name for model in self.config.models)
        raise ConfigError(f"{self.config_file}: no model is named {name!r}; named are {names}")

    def tiny_model(self, name: str) -> str:
        """Folder of a model that the study makes (``ModelConfig.is_made``)."""
        digest = digest_of(self.revisions.models[name].identity)[:12]
        return f"{self.config.results}/models/{name}-{digest}"

    def base_model(self, name: str) -> str:
        """Where a model's checkpoint is loaded from: a folder, a name on the hub, or the recipe
        that it is built from."""
        model = self.model(name)
        if model.recipe is not None:
            return model.recipe
        return self.tiny_model(name) if model.is_made else on_disk(model.checkpoint)

    def beside(self, name: str) -> str | None:
        """Where the encoder that reads beside a model is loaded from; None: it has none."""
        second = self.model(name).second
        return self.base_model(second) if second else None

    def revision(self, name: str) -> str | None:
        """The hub revision of a model's checkpoint, the commit where it is known; None for folders
        and recipes."""
        model = self.model(name)
        if model.recipe is not None or not is_hub_name(model.checkpoint):
            return None
        return self.revisions.models[name].weights.rpartition("@")[2]

    # --- nodes ---

    def node(self, digest: str) -> Node:
        """The node whose path ends in this digest (12 hex digits).

        Raises:
            ConfigError: the study's plan has no such node.
        """
        try:
            return self.plan.by_digest[digest]
        except KeyError:
            raise ConfigError(
                f"{self.config_file}: no training, fit or evaluation of this study has the digest "
                f"{digest}; was the config changed?"
            ) from None

    def folder(self, node: Node) -> str:
        """Where a node's results live."""
        return f"{self.config.results}/{node.path}"

    def record(self, node: Node) -> str:
        """The node's record."""
        return f"{self.folder(node)}/{RECORD}"

    def checkpoint(self, stage: Stage) -> str:
        """The folder of the stage's best rounds, where it is kept or still needed."""
        return round_folder(self.folder(stage), "best")

    def start(self, start: Start) -> str:
        """The folder of a stage's round that another node starts from."""
        assert start.stage is not None
        return round_folder(self.folder(start.stage), start.at, start.selected_on)

    def base_revision(self, stage: Stage) -> str | None:
        """The hub revision of a stage's base model; None for folders, and where nothing of it is
        used."""
        return self.revision(stage.model.name) if stage.reads_base else None

    def keeps(self, kind: str) -> bool:
        """Whether checkpoints of this kind of stage stay on disk."""
        keep = self.config.checkpoints.keep
        return keep == ALL or kind in keep

    def makes_checkpoint(self, kind: str) -> bool:
        """Whether stages of this kind write their checkpoint: it is kept, or others start there."""
        return self.keeps(kind) or kind in self._used_kinds

    def tests(self, kind: str) -> bool:
        """Whether every stage of a kind is tested, and leaves predictions."""
        return all(stage.tested for stage in self._expected if stage.kind == kind)

    def starts_from_others(self, kind: str) -> bool:
        """Whether stages of a kind start from other stages."""
        return any(stage.starts for stage in self._expected if stage.kind == kind)

    @cached_property
    def _used_kinds(self) -> frozenset[str]:
        """Kinds of stages whose parameters another node uses."""
        nodes = (*self.plan.nodes, *self._expected)
        return frozenset(
            used.kind for node in nodes for used in node.uses if isinstance(used, Stage)
        )

    @cached_property
    def _expected(self) -> tuple[Stage, ...]:
        """The stages, and some like those that choices will add."""
        return (*self.plan.stages, *(like for choice in self.plan.choices for like in choice.like))

    def users(self, node: Node) -> Sequence[Node]:
        """The nodes that use this one."""
        return self._users.get(node.digest, ())

    @cached_property
    def _users(self) -> dict[str, list[Node]]:
        users: dict[str, list[Node]] = {}
        for node in self.plan.nodes:
            for used in node.uses:
                users.setdefault(used.digest, []).append(node)
        return users

    def records(self) -> list[str]:
        """The records of all nodes of the plan, those that others use before these."""
        return [self.record(node) for node in self.plan.nodes]

    # --- tables ---

    @property
    def tables(self) -> str:
        return f"{self.config.results}/tables"

    @property
    def holes(self) -> str:
        """List of the runs that were missing when tables were last collected without them. It is
        written after the tables: if it is newer, these have holes."""
        return f"{self.config.results}/logs/missing.log"

    @property
    def figures(self) -> str:
        return f"{self.config.results}/figures"

    @property
    def report(self) -> str:
        return f"{self.config.results}/report.html"

    def arguments(self) -> str:
        """The command-line arguments that open this study again, quoted for a shell."""
        words = ["--config", self.config_file]
        for key, value in _leaves(self.overrides):
            words += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
        return shlex.join(words)


def _short(revision: str) -> str:
    """A revision, whatever it looks like, as 12 hex digits for paths."""
    return digest_of(revision)[:12]


def _leaves(value: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    """(dotted key, value) of everything in a nested mapping that is no mapping itself."""
    leaves: list[tuple[str, Any]] = []
    for key, item in value.items():
        name = f"{path}.{key}" if path else key
        leaves += _leaves(item, name) if isinstance(item, Mapping) else [(name, item)]
    return leaves
