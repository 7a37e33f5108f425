"""Revisions of a study's data and models, as found on disk.

Digests of large files are cached under ``<results>/data``. Revisions of inputs outside the results
folder are cached too. Tables and figures can therefore be rebuilt from records alone, on a machine
without the data and models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasktransfer.config import BUILT, TINY, ArchitectureConfig, CommonConfig, ModelConfig
from tasktransfer.config.model_sizes import (
    find_published_size,
    list_cached_folders,
    read_model_size,
)
from tasktransfer.config.places import expand_path, has_hub_form, is_gguf
from tasktransfer.config.renamed_keys import restore_old_names
from tasktransfer.core.identity import BUILD_VERSION, TINY_RECIPE_VERSION, compute_digest
from tasktransfer.core.specs import ModelSpec
from tasktransfer.datasets import DATASETS, TINY_PARTS
from tasktransfer.datasets.dataset import format_revision
from tasktransfer.datasets.file_digests import compute_files_digest
from tasktransfer.errors import ConfigError, DataError, ModelError
from tasktransfer.files import json_text, replace_file
from tasktransfer.models.checkpoint_digest import (
    compute_file_digest,
    compute_folder_digest,
    is_commit,
    resolve_commit,
)

_COUNT = re.compile("[1-9][0-9]{0,14}")
"""A cached number of parameters."""

ANSWERS = "answers"
"""Name of the file of a user's own system in its digest."""
UNKNOWN = "unknown"
"""Placeholder revision for data or weights that are not on this disk."""


@dataclass(frozen=True, slots=True)
class Revisions:
    """Revisions of the inputs.

    ``data``: data revision per dataset. ``models``: model spec per model name. ``parameters``:
    number of parameters per model, if the config needs it. ``brought``: revision of the file of
    each of the user's own systems.
    """

    data: Mapping[str, str]
    models: Mapping[str, ModelSpec]
    parameters: Mapping[str, int] = field(default_factory=dict)
    brought: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_unknown(self) -> bool:
        """True if a revision is unknown, so that the digests of its nodes are unknown too."""
        named = (*self.data.values(), *self.brought.values())
        return UNKNOWN in named or any(model.weights == UNKNOWN for model in self.models.values())


def find_revisions(config: CommonConfig, *, need_inputs: bool) -> tuple[Revisions, tuple[str, ...]]:
    """Return the revisions of all inputs, and a message for each missing input.

    A message names the missing input and says how to get it.

    Args:
        config: a validated study.
        need_inputs: raise an error for inputs that are neither on disk nor cached, instead of
            setting their revision to ``unknown``.

    Raises:
        ConfigError: the config requests a dataset from the tiny world that it does not contain.
        DataError, ModelError: inputs are missing or damaged.
    """
    inputs = _InputRevisions(config, need_inputs)
    revisions = Revisions(
        data={name: inputs.find_data_revision(name) for name in config.dataset_names},
        models={model.name: inputs.build_model_spec(model) for model in config.models},
        parameters={
            model.name: inputs.count_parameters(model)
            for model in config.models
            if config.needs_model_sizes
        },
        brought={
            name: inputs.find_brought_revision(name, file)
            for name, file in config.brought_files.items()
        },
    )
    inputs.save_new_revisions()
    return revisions, tuple(inputs.absent)


def compute_tiny_revision(config: CommonConfig) -> str:
    """Return the revision of a config's tiny world, even for a study that does not read it."""
    return format_revision(config.data.tiny_world.seed, config.data.tiny_world.dialogues)


def get_own_tiny_version(dataset: str) -> str:
    """Return the version of a dataset's own generator, or "" for the common tiny world."""
    tiny = DATASETS[dataset].tiny
    return tiny.version if tiny else ""


def is_generated(config: CommonConfig, dataset: str) -> bool:
    """Return whether a study uses generated dialogues for a dataset.

    The dialogues of datasets that the config declares are never generated.
    """
    return config.data.is_generated(dataset) and not DATASETS[dataset].has_own_files


def get_hub_revision(model: ModelConfig) -> str:
    """Return the configured revision of a hub model."""
    return model.revision or "main"


def is_hub_name(checkpoint: str) -> bool:
    """Return whether a checkpoint is the name of a model on the hub.

    A name with the form of a hub name is a folder if that folder exists, as in transformers.
    """
    if checkpoint in (TINY, BUILT) or not has_hub_form(checkpoint):
        return False
    return not Path(checkpoint).is_dir()


def find_missing_checkpoint(model: ModelConfig) -> ModelError | None:
    """Return the error for a missing local checkpoint of a model.

    Return None if the checkpoint exists, or if the model needs no local checkpoint.
    """
    if not model.has_checkpoint or is_hub_name(model.checkpoint):
        return None
    path, one_file = Path(expand_path(model.checkpoint)), is_gguf(model.checkpoint)
    if path.is_file() if one_file else path.is_dir():
        return None
    what = "file" if one_file else "folder"
    held = "" if one_file else " (config.json, tokenizer files, *.safetensors)"
    return ModelError(
        f"model {model.name}: The {what} {model.checkpoint} does not exist. Put the checkpoint "
        f"there{held}, or specify another one."
    )


def cache_revisions(
    config: CommonConfig,
    data: Mapping[str, str],
    models: Mapping[str, str],
    parameters: Mapping[str, str] | None = None,
    brought: Mapping[str, str] | None = None,
) -> None:
    """Cache the revisions of inputs on another machine, without replacing cached revisions.

    Args:
        data: dataset → revision.
        models: model name → weights, as in ``ModelSpec``.
        parameters: model name → number of parameters as decimal digits, if known.
        brought: name of a user's own system → revision of its file.
    """
    inputs = _InputRevisions(config, need_inputs=False)
    remembered = {
        _build_data_key(config, name): data[name] for name in config.dataset_names if name in data
    } | {
        _build_model_key(model): models[model.name]
        for model in config.models
        if model.name in models
    }
    for model in config.models:
        if parameters and model.name in parameters:
            remembered[_build_size_key(model)] = parameters[model.name]
    for name, file in config.brought_files.items():
        if brought and name in brought:
            remembered[_build_brought_key(file)] = brought[name]
    inputs.seen = {key: value for key, value in remembered.items() if key not in inputs.remembered}
    inputs.save_new_revisions()


def _build_data_key(config: CommonConfig, dataset: str) -> str:
    """Return the cache key of a dataset's revision."""
    if DATASETS[dataset].has_own_files:
        return f"declared/{dataset}"
    return f"{config.data.get_release(dataset)}/{dataset}"


def _build_model_key(model: ModelConfig) -> str:
    """Return the cache key of a model's weights."""
    hub = is_hub_name(model.checkpoint)
    return f"{model.checkpoint}@{get_hub_revision(model)}" if hub else model.checkpoint


def _build_size_key(model: ModelConfig) -> str:
    """Return the cache key of a model's number of parameters."""
    return f"parameters of {_build_model_key(model)}"


def _build_brought_key(file: str) -> str:
    """Return the cache key of the file with a user's own answers."""
    return f"brought {file}"


class _InputRevisions:
    """Inputs as found on disk, with a cache of what earlier starts found."""

    def __init__(self, config: CommonConfig, need_inputs: bool) -> None:
        self.config = config
        self.need_inputs = need_inputs
        folder = Path(config.results) / "data"
        self.memo = folder / "digests.json"
        self.file = folder / "revisions.json"
        self.remembered = _read_json_object(self.file)
        self.seen: dict[str, str] = {}
        self.absent: list[str] = []

    def find_data_revision(self, dataset: str) -> str:
        data = self.config.data
        if is_generated(self.config, dataset):
            version = get_own_tiny_version(dataset)
            if not version and dataset not in TINY_PARTS:
                raise ConfigError(
                    f"data.release: The tiny world does not contain the dataset {dataset}, but "
                    f"only {', '.join(TINY_PARTS)}. Set data.release to the folder of a {dataset} "
                    "release."
                )
            world = compute_tiny_revision(self.config)
            return compute_digest([world, version]) if version else world
        key, release = (
            _build_data_key(self.config, dataset),
            Path(expand_path(data.get_release(dataset))),
        )
        reader = DATASETS[dataset].reader
        try:
            reader.find(release)
        except DataError as error:
            return self._note_missing_input(key, error)
        self.seen[key] = reader.revision(release, self.memo)
        return self.seen[key]

    def find_brought_revision(self, name: str, file: str) -> str:
        key, path = _build_brought_key(file), Path(expand_path(file))
        if not path.is_file():
            remedy = f"Run `tasktransfer items` and answer its items, or remove {name} from brought"
            return self._note_missing_input(
                key, DataError(f"{file}: The file does not exist. {remedy}.")
            )
        self.seen[key] = compute_files_digest({ANSWERS: path}, self.memo)
        return self.seen[key]

    def build_model_spec(self, model: ModelConfig) -> ModelSpec:
        beside = next((other for other in self.config.models if other.name == model.second), None)
        return ModelSpec(
            model.name,
            model.family,
            self._identify_weights(model),
            model.max_length,
            None if beside is None else self.build_model_spec(beside),
            adapter=model.adapter.spec if model.adapter else None,
        )

    def count_parameters(self, model: ModelConfig) -> int:
        """Return a model's number of parameters.

        For a local folder it is read from disk. For a hub model a cached number takes precedence,
        so that downloading the model does not change the plan.

        Raises:
            ModelError: the size of a hub model is unknown, because it is not downloaded.
        """
        key, name = _build_size_key(model), model.checkpoint
        if model.is_created or model.recipe is not None:
            return find_published_size(name).parameters
        folders = [Path(expand_path(name))]
        text = self.remembered.get(key, "")
        remembered = int(text) if _COUNT.fullmatch(text) else None
        if is_hub_name(name):
            if remembered is not None:
                return remembered
            folders = [*list_cached_folders(name, get_hub_revision(model))]
        sizes = (size for folder in folders if (size := read_model_size(folder)))
        size = next(sizes, None)
        if size is None and remembered is not None:
            return remembered
        size = size or find_published_size(name)
        is_guess = size.is_guess and is_hub_name(name)
        if is_guess and self.need_inputs:
            raise ModelError(
                f"{name}: The number of parameters is unknown, but training.recipe: auto depends "
                f"on it. Download the model first (hf download {name}), or remove training.recipe "
                "and set the other keys of training."
            )
        if not is_guess:
            self.seen[key] = str(size.parameters)
        return size.parameters

    def _identify_weights(self, model: ModelConfig) -> str:
        if model.recipe is not None:
            return model.recipe
        if model.checkpoint == TINY:
            recipe = {
                "version": TINY_RECIPE_VERSION,
                "family": model.family,
                "data": compute_tiny_revision(self.config),
            }
            return f"tiny:{compute_digest(recipe)}"
        if model.built is not None:
            return f"built:{compute_digest(self._build_recipe(model.name, model.built))}"
        if is_hub_name(model.checkpoint):
            return self._resolve_hub_name(model.checkpoint, get_hub_revision(model))
        if (error := find_missing_checkpoint(model)) is not None:
            return self._note_missing_input(model.checkpoint, error)
        one_file = is_gguf(model.checkpoint)
        path = Path(expand_path(model.checkpoint))
        prompted = model.is_only_prompted
        digest = (
            compute_file_digest(path, self.memo)
            if one_file
            else compute_folder_digest(path, self.memo, prompted=prompted)
        )
        self.seen[model.checkpoint] = f"sha256:{digest}"
        return self.seen[model.checkpoint]

    def _resolve_hub_name(self, name: str, revision: str) -> str:
        """Return the name of a hub model with its commit.

        A branch or tag may move, so the commit at the study's first start is kept. If the commit
        is unknown, the branch or tag itself appears in the plan, and nothing can be trained.
        """
        if is_commit(revision):
            return f"{name}@{revision}"
        key = f"{name}@{revision}"
        if key in self.remembered:
            return self.remembered[key]
        commit = resolve_commit(name, revision)
        if commit is None:
            return key
        self.seen[key] = f"{name}@{commit}"
        return self.seen[key]

    def _build_recipe(self, name: str, architecture: ArchitectureConfig) -> dict[str, Any]:
        """Return the recipe of a built model, including the texts that define its vocabulary."""
        recipe = restore_old_names(architecture.model_dump(), "models[].architecture")
        vectors = recipe.pop("vectors")
        if vectors is not None:
            if not Path(expand_path(vectors)).is_file():
                raise ModelError(
                    f"architecture.vectors: The file {vectors} does not exist. Specify a text file "
                    "of word vectors."
                )
            recipe["vectors"] = compute_files_digest(
                {"vectors": Path(expand_path(vectors))}, self.memo
            )
        texts = {
            data: self.find_data_revision(data)
            for data in self.config.list_vocabulary_datasets(name)
        }
        return {
            "version": BUILD_VERSION,
            **recipe,
            "texts": texts,
            "labels": list(self.config.known_labels),
            "few_sample": self.config.data.few_sample,
        }

    def _note_missing_input(self, key: str, error: DataError | ModelError) -> str:
        """Report a missing input, and return its cached revision or ``UNKNOWN``.

        Raises:
            DataError, ModelError: the inputs are needed, and no revision is cached.
        """
        self.absent.append(str(error))
        if key in self.remembered:
            return self.remembered[key]
        if self.need_inputs:
            raise error
        return UNKNOWN

    def save_new_revisions(self) -> None:
        """Save newly found revisions in the cache."""
        if self.seen.items() <= self.remembered.items():
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(self.file) as part:
            part.write_text(json.dumps({**self.remembered, **self.seen}, indent=1) + "\n")


def _read_json_object(path: Path) -> dict[str, str]:
    try:
        value = json_text.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
