"""A study on this disk: its config, its plan, and where everything lives.

What the Snakefile and the command line need at start. It is opened at every start of Snakemake and
of every command, so it has to be fast.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from tasktransfer import json_text
from tasktransfer.config import TINY, ModelConfig
from tasktransfer.config.places import on_disk
from tasktransfer.core.digests import digest_of
from tasktransfer.core.stage import Stage, StageKind
from tasktransfer.data.prepared import instances_folder, says_synthetic
from tasktransfer.datasets import DATASETS
from tasktransfer.designs import load_config
from tasktransfer.designs.transfer import plan as plans
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.plan import MultiSource, Plan, Revisions
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.models.recipe import ENCODING_VERSION
from tasktransfer.results.revisions import (
    UNKNOWN,
    find_revisions,
    hub_revision,
    is_hub_name,
    tiny_revision,
)

TABLES_VERSION = 1
"""Raise this when the columns of the collected tables change: they are collected again then. It
stands here and not with the columns because the Snakefile must not import pandas."""


@dataclass(frozen=True)
class Study:
    """A config with what the disk says of it. All paths are relative to the working directory."""

    config: TransferConfig
    config_file: str
    overrides: Mapping[str, Any]
    revisions: Revisions
    selection: tuple[MultiSource, ...] | None
    """What ``auto`` picked; None while that is not known."""
    absent: tuple[str, ...]
    """What of data and models is not on this disk, each as a message with its remedy."""

    @cached_property
    def plan(self) -> Plan:
        """Every run known so far; with ``auto`` the multi-source runs once they are picked."""
        return plans.build(self.config, self.revisions, self.selection or ())

    @cached_property
    def single_source_plan(self) -> Plan:
        """The runs from whose results ``auto`` picks."""
        off = self.config.multi_source.model_copy(update={"named": ()})
        return plans.build(self.config.model_copy(update={"multi_source": off}), self.revisions)

    @property
    def selection_pending(self) -> bool:
        """Whether further runs follow once the single-source results are there."""
        return self.config.multi_source.mode == "auto" and self.selection is None

    @property
    def unknown(self) -> bool:
        """Whether some revision is not known, and with it no place of a result."""
        return UNKNOWN in self.revisions.data.values() or any(
            model.weights == UNKNOWN for model in self.revisions.models.values()
        )

    def with_selection(self) -> Study:
        """The same study with what ``auto`` has picked by now."""
        found = read_selection(self) if self.selection_pending else None
        return self if found is None else replace(self, selection=found)

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

    def tasks(self, dataset: str) -> tuple[str, ...]:
        """Every task of a dataset that some stage trains on or is selected by, sorted. What
        ``auto`` picks adds none: it picks among tasks that have been trained on."""
        return self._tasks.get(dataset, ())

    @cached_property
    def _tasks(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, set[str]] = {}
        for stage in self.plan.stages:
            found.setdefault(stage.dataset, set()).update(stage.train_tasks, stage.select_on)
        return {dataset: tuple(sorted(tasks)) for dataset, tasks in found.items()}

    def instances(self, dataset: str) -> str:
        """Folder of a dataset's cached instances.

        Raises:
            ConfigError: the study has no such dataset.
        """
        if dataset not in self.revisions.data:
            known = ", ".join(self.revisions.data)
            raise ConfigError(
                f"{self.config_file}: no dataset is named {dataset!r}; named are {known}"
            )
        return instances_folder(
            self.config.results,
            dataset,
            self.revisions.data[dataset],
            few_sample=self.config.data.few_sample,
        )

    def tiny_instances(self, dataset: str) -> str:
        """Folder of the tiny world's instances that tiny models are pre-trained on: all of its
        training dialogues, as public checkpoints have read more than a study's few samples."""
        return instances_folder(
            self.config.results, dataset, tiny_revision(self.config), few_sample=False
        )

    def synthetic(self, dataset: str) -> bool | None:
        """Whether a dataset's dialogues are generated, as the release's metadata says; None: not
        known before the data is prepared."""
        if self.config.data.generated:
            return True
        return says_synthetic(Path(self.instances(dataset)))

    def encoded(self, dataset: str, model: str) -> str:
        """Folder of the instances of the study's tasks as token ids of a model. It is named after
        the tasks too, so that a task which is added later is encoded."""
        identity = {
            **self.revisions.models[model].identity,
            "encoding": ENCODING_VERSION,
            "tasks": self.tasks(dataset),
        }
        folder = Path(self.instances(dataset)).name
        digest = digest_of(identity)[:12]
        return f"{self.config.results}/data/encoded/{folder}/{model}-{digest}"

    def model(self, name: str) -> ModelConfig:
        """The config of a model.

        Raises:
            ConfigError: the study has no such model.
        """
        for model in self.config.models:
            if model.name == name:
                return model
        known = ", ".join(model.name for model in self.config.models)
        raise ConfigError(f"{self.config_file}: no model is named {name!r}; named are {known}")

    def tiny_model(self, name: str) -> str:
        """Folder of a built-in tiny model."""
        digest = digest_of(self.revisions.models[name].identity)[:12]
        return f"{self.config.results}/models/{name}-{digest}"

    def base_model(self, name: str) -> str:
        """Where a model's checkpoint is loaded from: a folder, or a name on the hub."""
        model = self.model(name)
        return self.tiny_model(name) if model.checkpoint == TINY else on_disk(model.checkpoint)

    def revision(self, name: str) -> str | None:
        """The hub revision of a model's checkpoint; None for folders."""
        model = self.model(name)
        return hub_revision(model) if is_hub_name(model.checkpoint) else None

    # --- stages ---

    def stage(self, digest: str) -> Stage:
        """The stage whose path ends in this digest (12 hex digits).

        Raises:
            ConfigError: the study's plan has no such stage.
        """
        try:
            return self.stages_by_digest[digest]
        except KeyError:
            raise ConfigError(
                f"{self.config_file}: no stage of this study has the digest {digest}; "
                "was the config changed?"
            ) from None

    @cached_property
    def stages_by_digest(self) -> dict[str, Stage]:
        """Digest as in paths → stage."""
        return self.plan.by_digest

    def folder(self, stage: Stage) -> str:
        """Where a stage's results live."""
        return f"{self.config.results}/{stage.path}"

    def record(self, stage: Stage) -> str:
        """The stage's record."""
        return f"{self.folder(stage)}/metrics.json"

    def checkpoint(self, stage: Stage) -> str:
        """The folder of the stage's best epoch, where it is kept or still needed."""
        return f"{self.folder(stage)}/checkpoint"

    def start(self, stage: Stage) -> str:
        """What the stage starts from: its parent's checkpoint, or the base model."""
        if stage.parent is not None:
            return self.checkpoint(stage.parent)
        return self.base_model(stage.model.name)

    def start_revision(self, stage: Stage) -> str | None:
        """The hub revision of what the stage starts from; None for folders."""
        return self.revision(stage.model.name) if stage.parent is None else None

    def keeps(self, kind: StageKind) -> bool:
        """Whether checkpoints of this kind of stage stay on disk."""
        return kind in self.config.checkpoints.keep

    def makes_checkpoint(self, kind: StageKind) -> bool:
        """Whether stages of this kind write their checkpoint: it is kept, or others start there."""
        return self.keeps(kind) or kind in ("pretrain", *self._parent_kinds)

    @cached_property
    def _parent_kinds(self) -> frozenset[StageKind]:
        return frozenset(stage.parent.kind for stage in self.plan.stages if stage.parent)

    def children(self, stage: Stage) -> Sequence[Stage]:
        """The stages that start from this one."""
        return self._children.get(stage.digest, ())

    @cached_property
    def _children(self) -> dict[str, list[Stage]]:
        children: dict[str, list[Stage]] = {}
        for stage in self.plan.stages:
            if stage.parent is not None:
                children.setdefault(stage.parent.digest, []).append(stage)
        return children

    def records(self, plan: Plan | None = None) -> list[str]:
        """The records of all stages of a plan (default: the study's), parents first."""
        return [self.record(stage) for stage in (plan or self.plan).stages]

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

    @property
    def selection_file(self) -> str:
        """What ``auto`` picked. Pinned: it is made once, and made anew only if deleted."""
        return f"{self.tables}/selection.json"

    def plan_file(self, plan: Plan) -> dict[str, Any]:
        """What the analysis needs to know of a plan, as ``collect.store.read_plan`` reads it."""
        shorts = {name: short for d in self.config.datasets for name, short in d.shorts}
        return {
            "tables_version": TABLES_VERSION,
            "study": self.config.study,
            "config_digest": self.config.digest,
            "shorts": shorts,
            "runs": [
                {
                    **run.identity,
                    "record": f"{run.scored.path}/metrics.json",
                    "digest": run.scored.digest,
                    "stages": [stage.path for stage in run.stages],
                }
                for run in plan.runs
            ],
        }

    def arguments(self) -> str:
        """The command-line arguments that open this study again, quoted for a shell."""
        words = ["--config", self.config_file]
        for key, value in _leaves(self.overrides):
            words += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
        return shlex.join(words)


def open_study(
    config_file: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    need_inputs: bool = True,
) -> Study:
    """Read a config and ask the disk for the revisions of data and models.

    Args:
        config_file: the study.
        overrides: see ``designs.load_config``.
        need_inputs: refuse inputs that are neither there nor remembered. Otherwise their revision
            is ``unknown``, and what exists of the study cannot be told.

    Raises:
        ConfigError: the config cannot be.
        DataError, ModelError: inputs are missing or damaged.
    """
    config = cast(TransferConfig, load_config(config_file, overrides))
    revisions, absent = find_revisions(config, need_inputs=need_inputs)
    study = Study(config, str(config_file), overrides or {}, revisions, None, absent)
    return study.with_selection()


def read_selection(study: Study) -> tuple[MultiSource, ...] | None:
    """What ``auto`` picked; None if it has not picked yet.

    Raises:
        RecordError: the file is damaged, or answers another question than the config asks.
    """
    path = Path(study.selection_file)
    if not path.exists():
        return None
    try:
        found = tuple(
            MultiSource(item["dataset"], item["target"], tuple(item["sources"]))
            for item in json_text.read(path)
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path}: damaged ({error!r}); delete it, it is made again") from error
    contradiction = _contradiction(study.config, found)
    if contradiction:
        raise RecordError(
            f"{path}: {contradiction}; delete it to pick again, or set multi_source back"
        )
    return found


def _contradiction(config: TransferConfig, selection: Sequence[MultiSource]) -> str | None:
    asked = config.multi_source
    for dataset in config.datasets:
        here = [item for item in selection if item.dataset == dataset.name]
        if len(here) != asked.targets_per_dataset:
            return (
                f"holds {len(here)} targets of {dataset.name}, multi_source.targets_per_dataset "
                f"is {asked.targets_per_dataset}"
            )
        for item in here:
            if len(item.sources) != asked.sources_per_target:
                return (
                    f"{item.target} has {len(item.sources)} sources, "
                    f"multi_source.sources_per_target is {asked.sources_per_target}"
                )
            strangers = {item.target, *item.sources} - set(DATASETS[dataset.name])
            if strangers:
                return f"{', '.join(sorted(strangers))} is no task of {dataset.name}"
    return None


def _short(revision: str) -> str:
    """A revision, whatever it looks like, as 12 hex digits for paths."""
    return digest_of(revision)[:12]


def _leaves(value: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    """(dotted key, value) of everything in a nested mapping that is no mapping itself."""
    found: list[tuple[str, Any]] = []
    for key, item in value.items():
        here = f"{path}.{key}" if path else key
        found += _leaves(item, here) if isinstance(item, Mapping) else [(here, item)]
    return found
