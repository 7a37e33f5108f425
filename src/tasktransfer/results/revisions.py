"""What the disk says of a study's inputs: the revisions of its data and models.

Digests of big files are remembered under ``<results>/data``, and so are the
revisions of inputs outside the results folder: with their records there, tables and figures can be
made again where the data and models are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasktransfer.config import BUILT, TINY, ArchitectureConfig, CommonConfig, ModelConfig
from tasktransfer.config.model_sizes import cached_folders, find_size, read_size
from tasktransfer.config.places import is_gguf, may_be_on_the_hub, on_disk
from tasktransfer.core.digests import digest_of
from tasktransfer.core.specs import ModelSpec
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.file_digests import digest_of_files
from tasktransfer.datasets.tiny_world import PARTS
from tasktransfer.datasets.tiny_world import revision as tiny_world_revision
from tasktransfer.errors import ConfigError, DataError, ModelError
from tasktransfer.files import json_text, replacing
from tasktransfer.models.checkpoint_digest import directory_digest, file_digest
from tasktransfer.models.hub_commits import commit_of, is_commit
from tasktransfer.models.recipe import BUILD_VERSION, TINY_RECIPE_VERSION

_COUNT = re.compile("[1-9][0-9]{0,14}")
"""A number of parameters, as it is remembered."""

UNKNOWN = "unknown"
"""Stands for the revision of data or weights that are not on this disk."""


@dataclass(frozen=True, slots=True)
class Revisions:
    """What the disk says of the inputs: data revision per dataset, model spec per model name, and
    the models' numbers of parameters if the config needs them."""

    data: Mapping[str, str]
    models: Mapping[str, ModelSpec]
    parameters: Mapping[str, int] = field(default_factory=dict)


def find_revisions(config: CommonConfig, *, need_inputs: bool) -> tuple[Revisions, tuple[str, ...]]:
    """The revisions, and what is not on this disk, each as a message with its remedy.

    Args:
        config: a validated study.
        need_inputs: refuse inputs that are neither there nor remembered, instead of calling their
            revision ``unknown``.

    Raises:
        ConfigError: a dataset is to come from the tiny world, which has none of it.
        DataError, ModelError: inputs are missing or damaged.
    """
    inputs = _Inputs(config, need_inputs)
    revisions = Revisions(
        data={name: inputs.data_revision(name) for name in config.dataset_names},
        models={model.name: inputs.model_spec(model) for model in config.models},
        parameters={
            model.name: inputs.parameters(model)
            for model in config.models
            if config.needs_model_sizes
        },
    )
    inputs.remember()
    return revisions, tuple(inputs.absent)


def tiny_revision(config: CommonConfig) -> str:
    """The revision of the tiny world of a config, whatever the study reads."""
    return tiny_world_revision(config.data.tiny_world.seed, config.data.tiny_world.dialogues)


def own_tiny_version(dataset: str) -> str:
    """The version of a dataset's part of the tiny world, where it lies beside the common world."""
    tiny = DATASETS[dataset].tiny
    return tiny.version if tiny else ""


def is_generated(config: CommonConfig, dataset: str) -> bool:
    """Whether a study generates a dataset's dialogues: none of those that its config declares."""
    return config.data.generates(dataset) and not DATASETS[dataset].has_own_files


def hub_revision(model: ModelConfig) -> str:
    """The revision of a hub name, as the config has it."""
    return model.revision or "main"


def is_hub_name(checkpoint: str) -> bool:
    """Neither made here nor a folder. What is spelled like a name on the hub counts as a folder
    where there is one, since transformers loads that."""
    if checkpoint in (TINY, BUILT) or not may_be_on_the_hub(checkpoint):
        return False
    return not Path(checkpoint).is_dir()


def missing_checkpoint(model: ModelConfig) -> ModelError | None:
    """Return the error for a model whose checkpoint should be on this disk and is not, else
    None."""
    if not model.has_checkpoint or is_hub_name(model.checkpoint):
        return None
    path, one_file = Path(on_disk(model.checkpoint)), is_gguf(model.checkpoint)
    if path.is_file() if one_file else path.is_dir():
        return None
    what = "file" if one_file else "folder"
    held = "" if one_file else " (config.json, tokenizer files, *.safetensors)"
    return ModelError(
        f"model {model.name}: no {what} {model.checkpoint}; put the checkpoint there{held} or give "
        "another checkpoint"
    )


def remember_revisions(
    config: CommonConfig,
    data: Mapping[str, str],
    models: Mapping[str, str],
    parameters: Mapping[str, str] | None = None,
) -> None:
    """Remember the revisions of inputs that are elsewhere, as if they had been seen here. What is
    remembered already stays.

    Args:
        data: dataset → revision.
        models: model name → weights, as ``ModelSpec`` has them.
        parameters: model name → number of parameters in digits, if it is known.
    """
    inputs = _Inputs(config, need_inputs=False)
    remembered = {
        _data_key(config, name): data[name] for name in config.dataset_names if name in data
    } | {_model_key(model): models[model.name] for model in config.models if model.name in models}
    for model in config.models:
        if parameters and model.name in parameters:
            remembered[_size_key(model)] = parameters[model.name]
    inputs.seen = {key: value for key, value in remembered.items() if key not in inputs.remembered}
    inputs.remember()


def _data_key(config: CommonConfig, dataset: str) -> str:
    """What a dataset's revision is remembered by."""
    if DATASETS[dataset].has_own_files:
        return f"declared/{dataset}"
    return f"{config.data.release_of(dataset)}/{dataset}"


def _model_key(model: ModelConfig) -> str:
    """What a model's weights are remembered by."""
    hub = is_hub_name(model.checkpoint)
    return f"{model.checkpoint}@{hub_revision(model)}" if hub else model.checkpoint


def _size_key(model: ModelConfig) -> str:
    """Return what a model's number of parameters is remembered by."""
    return f"parameters of {_model_key(model)}"


class _Inputs:
    """Asks the disk, and remembers what earlier starts have seen."""

    def __init__(self, config: CommonConfig, need_inputs: bool) -> None:
        self.config = config
        self.need_inputs = need_inputs
        folder = Path(config.results) / "data"
        self.memo = folder / "digests.json"
        self.file = folder / "revisions.json"
        self.remembered = _read_json_object(self.file)
        self.seen: dict[str, str] = {}
        self.absent: list[str] = []

    def data_revision(self, dataset: str) -> str:
        data = self.config.data
        if is_generated(self.config, dataset):
            version = own_tiny_version(dataset)
            if not version and dataset not in PARTS:
                raise ConfigError(
                    f"data.release: the tiny world has no {dataset}, only {', '.join(PARTS)}; give "
                    f"the folder that holds a release of {dataset}"
                )
            world = tiny_revision(self.config)
            return digest_of([world, version]) if version else world
        key, release = _data_key(self.config, dataset), Path(on_disk(data.release_of(dataset)))
        reader = DATASETS[dataset].reader
        try:
            reader.find(release)
        except DataError as error:
            return self._absent(key, error)
        self.seen[key] = reader.revision(release, self.memo)
        return self.seen[key]

    def model_spec(self, model: ModelConfig) -> ModelSpec:
        beside = next((other for other in self.config.models if other.name == model.second), None)
        return ModelSpec(
            model.name,
            model.family,
            self._weights(model),
            model.max_length,
            None if beside is None else self.model_spec(beside),
            adapter=model.adapter.spec if model.adapter else None,
        )

    def parameters(self, model: ModelConfig) -> int:
        """Return a model's number of parameters: of a folder as it is there, else as remembered, so
        that a plan stays as it is when a hub's model has been fetched."""
        key, name = _size_key(model), model.checkpoint
        if model.is_made or model.recipe is not None:
            return find_size(name).parameters
        folders = [Path(on_disk(name))]
        text = self.remembered.get(key, "")
        remembered = int(text) if _COUNT.fullmatch(text) else None
        if is_hub_name(name):
            if remembered is not None:
                return remembered
            folders = [*cached_folders(name, hub_revision(model))]
        sizes = (size for folder in folders if (size := read_size(folder)))
        size = next(sizes, None)
        if size is None and remembered is not None:
            return remembered
        parameters = (size or find_size(name)).parameters
        self.seen[key] = str(parameters)
        return parameters

    def _weights(self, model: ModelConfig) -> str:
        if model.recipe is not None:
            return model.recipe
        if model.checkpoint == TINY:
            recipe = {
                "version": TINY_RECIPE_VERSION,
                "family": model.family,
                "data": tiny_revision(self.config),
            }
            return f"tiny:{digest_of(recipe)}"
        if model.built is not None:
            return f"built:{digest_of(self._recipe(model.name, model.built))}"
        if is_hub_name(model.checkpoint):
            return self._on_the_hub(model.checkpoint, hub_revision(model))
        if (error := missing_checkpoint(model)) is not None:
            return self._absent(model.checkpoint, error)
        one_file = is_gguf(model.checkpoint)
        path = Path(on_disk(model.checkpoint))
        prompted = model.is_only_prompted
        digest = (
            file_digest(path, self.memo)
            if one_file
            else directory_digest(path, self.memo, prompted=prompted)
        )
        self.seen[model.checkpoint] = f"sha256:{digest}"
        return self.seen[model.checkpoint]

    def _on_the_hub(self, name: str, revision: str) -> str:
        """A branch or tag is its commit, since it may move: what it was at the study's first start
        stays. Where nobody tells the commit, nothing can be trained, and a plan has the name."""
        if is_commit(revision):
            return f"{name}@{revision}"
        key = f"{name}@{revision}"
        if key in self.remembered:
            return self.remembered[key]
        commit = commit_of(name, revision)
        if commit is None:
            return key
        self.seen[key] = f"{name}@{commit}"
        return self.seen[key]

    def _recipe(self, name: str, architecture: ArchitectureConfig) -> dict[str, Any]:
        """What a built model is made from: its words are those of its training texts."""
        recipe = architecture.model_dump()
        vectors = recipe.pop("vectors")
        if vectors is not None:
            if not Path(on_disk(vectors)).is_file():
                raise ModelError(
                    f"architecture.vectors: {vectors} is no file; give a text file of word vectors"
                )
            recipe["vectors"] = digest_of_files({"vectors": Path(on_disk(vectors))}, self.memo)
        texts = {data: self.data_revision(data) for data in self.config.vocabulary_of(name)}
        return {
            "version": BUILD_VERSION,
            **recipe,
            "texts": texts,
            "labels": list(self.config.known_labels),
            "few_sample": self.config.data.few_sample,
        }

    def _absent(self, key: str, error: DataError | ModelError) -> str:
        self.absent.append(str(error))
        if key in self.remembered:
            return self.remembered[key]
        if self.need_inputs:
            raise error
        return UNKNOWN

    def remember(self) -> None:
        """Write what was seen, if it is news."""
        if self.seen.items() <= self.remembered.items():
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.file) as part:
            part.write_text(json.dumps({**self.remembered, **self.seen}, indent=1) + "\n")


def _read_json_object(path: Path) -> dict[str, str]:
    try:
        value = json_text.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
