"""Config sections that every design has, with type, default and description of each key.

To add a key, add it to its section's class, add it with a comment to ``config.yaml``, and add it
with a value other than its default to ``tests/contract/every_key_studies.py``. To rename a key, add
its old path to ``renamed_keys``, which keeps the old name in digests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from tasktransfer.config.fields import (
    DISTINCT,
    LIST,
    Folder,
    Section,
    Seed,
    Seeds,
    Title,
    UserPath,
)
from tasktransfer.config.models import EndpointConfig, ModelConfig, check_unique_names
from tasktransfer.config.places import check_results_folder
from tasktransfer.config.renamed_keys import restore_old_names
from tasktransfer.config.training import TrainingConfig
from tasktransfer.core.identity import compute_digest
from tasktransfer.core.validation import Problem, describe_unknown, raise_problems

TINY_WORLD = "tiny_world"
ALL: Literal["all"] = "all"
Tracking = Literal["tensorboard", "trackio", "wandb"]


class TinyWorldConfig(Section):
    """Parameters of the generator of the tiny world."""

    seed: Seed = Field(default=0, description="seed of the random generator")
    dialogues: int = Field(
        default=240, ge=120, le=100_000, description="number of dialogues per dataset"
    )


class DataConfig(Section):
    """The dialogues of a study."""

    release: UserPath = Field(
        default=TINY_WORLD,
        description=(
            "folder of the release, which contains TLiDB_<Set>/ or TLiDB_<Set>.zip; tiny_world "
            "to generate synthetic dialogues"
        ),
    )
    few_sample: bool = Field(
        default=True,
        description=(
            "true to use the benchmark's few-sample setting, which has 10 % of the training and "
            "dev dialogues"
        ),
    )
    tiny_world: TinyWorldConfig = Field(
        default=TinyWorldConfig(),
        description="parameters of the built-in tiny world of synthetic dialogues",
    )

    def get_release(self, dataset: str) -> str:
        """Return the path of a dataset's release."""
        return self.release

    def is_generated(self, dataset: str) -> bool:
        """Return whether the study generates a dataset's dialogues."""
        return self.generated

    @property
    def generated(self) -> bool:
        """True if the study generates the dialogues.

        Dialogues from a folder may be synthetic, too; the release's metadata record that
        (``data.prepared``).
        """
        return self.release == TINY_WORLD


class WholeData(DataConfig):
    """The dialogues of a study whose design has no few-sample setting."""

    few_sample: bool = Field(
        default=False, description="not available in this design; must be false"
    )

    @field_validator("few_sample")
    @classmethod
    def _check_few_sample(cls, few_sample: bool) -> bool:
        if few_sample:
            raise ValueError(
                "The value is true, but no dataset of this design has a few-sample setting. Remove "
                "the key, and use training.limit_train instead."
            )
        return few_sample


class CheckpointConfig(Section):
    """Checkpoints that stay on disk, in addition to records and predictions."""

    keep: Literal["all"] | Annotated[tuple[str, ...], LIST, DISTINCT] = Field(
        default=(),
        description=(
            "kinds of stages whose checkpoints are kept; all to keep the checkpoints of every kind"
        ),
    )

    @field_validator("keep")
    @classmethod
    def _check_kinds(cls, keep: Any, info: ValidationInfo) -> Any:
        kinds = (info.context or {}).get("kinds")
        if kinds is not None and keep != ALL:
            strange = [(index, kind) for index, kind in enumerate(keep) if kind not in kinds]
            raise_problems(
                (f"[{i}]", describe_unknown("kind of stage", kind, kinds)) for i, kind in strange
            )
        return keep


class CommonConfig(Section):
    """Config keys of every study. Each design adds its own keys."""

    study: Title = Field(description="name of the study in titles and records")
    results: Annotated[Folder, AfterValidator(check_results_folder)] = Field(
        default="results", description="folder for all results"
    )
    design: Title = Field(
        default="transfer",
        description="kind of study, which defines the training runs, tables and figures",
    )
    plugins: Annotated[tuple[UserPath, ...], LIST, DISTINCT] = Field(
        default=(),
        description=("Python files or packages (folders) that add datasets, selectors or a design"),
    )
    data: DataConfig = Field(
        default=DataConfig(), description="dialogues of the study and where they are stored"
    )
    models: Annotated[
        tuple[ModelConfig, ...], LIST, Field(min_length=1), AfterValidator(check_unique_names)
    ] = Field(description="models of the study, each with its checkpoint and family")
    seeds: Seeds = Field(
        default=(0,), description="list of seeds, or a number n for the seeds 0 to n-1"
    )
    training: TrainingConfig = Field(default=TrainingConfig(), description="hyperparameters")
    checkpoints: CheckpointConfig = Field(
        default=CheckpointConfig(), description="checkpoints that stay on disk"
    )
    tracking: Tracking | None = Field(
        default=None,
        description=("service that shows training runs while they run; null to use no service"),
    )

    @field_validator("*")
    @classmethod
    def _collect_valid_parts(cls, part: Any, info: ValidationInfo) -> Any:
        """Store a valid part, so that ``find_contradictions`` can check a partly invalid config."""
        if info.context is not None:
            info.context["parts"][info.field_name] = part
        return part

    @classmethod
    def find_contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield contradictions between parts of the config. Designs override this method.

        Args:
            parts: key → validated part. Parts with problems are omitted, so that one mistake gives
                one message.
        """
        yield from ()

    @classmethod
    def list_forbidden_keys(cls, document: Any) -> Mapping[str, str]:
        """Map each key path that this kind of study must not set to a message.

        The message replaces all other messages about the key.
        """
        return {}

    def as_largest(self) -> Self:
        """Return the config of the largest study that pending choices may lead to."""
        return self

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """Names of the study's datasets, which a design's config defines."""
        return ()

    @property
    def needs_model_sizes(self) -> bool:
        """True if hyperparameters depend on a model's number of parameters."""
        return False

    @property
    def analysis_files(self) -> Mapping[str, str]:
        """Files that only tables and figures read, by config key."""
        return {}

    @property
    def brought_files(self) -> Mapping[str, str]:
        """Files with the answers of the user's own systems, by system."""
        return {}

    @property
    def endpoints(self) -> Mapping[str, EndpointConfig]:
        """Endpoints of served prompted models, by model name."""
        return {}

    def describe_exclusion(self, dataset: str, task: str) -> str:
        """Return a remedy for messages: how to remove a task from the study."""
        content = self.model_dump()
        for name in (task, dataset):
            if keys := dict.fromkeys(_find_key_paths(content, name)):
                return f"remove {name!r} from {', '.join(keys)}"
        return f"remove the keys that use {task!r}"

    def list_vocabulary_datasets(self, model: str) -> tuple[str, ...]:
        """Return the datasets whose training texts define a built model's vocabulary.

        They are the datasets that it is trained on, so that other datasets do not change the model.
        """
        return self.dataset_names

    @property
    def known_labels(self) -> tuple[str, ...]:
        """Labels whose words are in a built model's vocabulary."""
        return ()

    @property
    def digest(self) -> str:
        """SHA-256 of the complete config, for the provenance of records."""
        return compute_digest(self.build_digest_content())

    def build_digest_content(self) -> dict[str, Any]:
        """Return the values that the config's digest covers.

        Keys that were added later are omitted at their default, and renamed keys have their old
        names, so that older studies keep their digests. ``tracking`` changes no number.
        """
        content: dict[str, Any] = restore_old_names(self.model_dump())
        del content["tracking"]
        for key in ("design", "plugins", "brought", "prompted", "human"):
            if key in content and content[key] == type(self).model_fields[key].default:
                del content[key]
        training = type(self.training)
        for key in training.later:
            if content["training"][key] == training.model_fields[key].default:
                del content["training"][key]
        for model in content["models"]:
            for key in ("architecture", "beside", "adapter"):
                if model.get(key, "") is None:
                    del model[key]
        return content


def _find_key_paths(value: Any, name: str, key: str = "") -> Iterator[str]:
    """Yield the key paths whose value is a given name."""
    if isinstance(value, Mapping):
        for inner, item in value.items():
            yield from _find_key_paths(item, name, f"{key}.{inner}" if key else str(inner))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _find_key_paths(item, name, key)
    elif value == name:
        yield key
