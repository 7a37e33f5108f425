"""Config sections that every design has, with type, default and description of each key.

To add a key, add it to its section's class, add it with a comment to ``config.yaml``, and add it
with a value other than its default to ``tests/contract/every_key_studies.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from tasktransfer.config.adapter import AdapterConfig
from tasktransfer.config.fields import (
    DISTINCT,
    LIST,
    NUMBER,
    Checkpoint,
    Folder,
    KeyVariable,
    ModelName,
    Revision,
    Section,
    Seed,
    Seeds,
    Title,
    Url,
    UserPath,
)
from tasktransfer.config.places import for_results, is_gguf, may_be_on_the_hub
from tasktransfer.config.training import TrainingConfig
from tasktransfer.core.digests import digest_of
from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.core.validation import Problem, refuse, unknown

TINY_WORLD = "tiny_world"
TINY = "tiny"
BUILT = "built"
ALL: Literal["all"] = "all"


class TinyWorldConfig(Section):
    """Parameters of the generator of the tiny world."""

    seed: Seed = Field(default=0, description="seed of the generator")
    dialogues: int = Field(
        default=240, ge=120, le=100_000, description="number of dialogues per dataset"
    )


class ArchitectureConfig(Section):
    """A Transformer that is built from scratch, with weights initialised from the run's seed.

    It has post-norm layers, ReLU, sinusoidal positions, and one embedding shared by encoder input,
    decoder input and output layer.
    """

    layers: int = Field(default=4, ge=1, le=100, description="number of layers of an encoder")
    decoder_layers: int = Field(
        default=4, ge=1, le=100, description="number of layers of the decoder"
    )
    hidden: int = Field(default=300, ge=8, le=8192, description="hidden size")
    heads: int = Field(default=6, ge=1, le=128, description="number of attention heads")
    feed_forward: int = Field(
        default=1200, ge=8, le=65_536, description="inner size of the feed-forward layers"
    )
    positions: int = Field(
        default=1000, ge=16, le=100_000, description="maximum sequence length in tokens"
    )
    words: int = Field(
        default=250_000,
        ge=10,
        le=10_000_000,
        description="maximum vocabulary size: the most frequent words of the training texts",
    )
    vectors: UserPath | None = Field(
        default=None,
        description="text file of word vectors that initialise the embedding; null for none",
    )

    @field_validator("heads")
    @classmethod
    def _divides(cls, heads: int, info: ValidationInfo) -> int:
        hidden = info.data.get("hidden", heads)
        if hidden % heads:
            raise ValueError(f"found {heads}, which does not divide hidden ({hidden}): change one")
        return heads


class DataConfig(Section):
    """The dialogues of a study."""

    release: UserPath = Field(
        default=TINY_WORLD,
        description="tiny_world, or the folder with TLiDB_<Set>/ or TLiDB_<Set>.zip",
    )
    few_sample: bool = Field(
        default=True, description="use the benchmark's few-sample setting: 10 % of train and dev"
    )
    tiny_world: TinyWorldConfig = Field(
        default=TinyWorldConfig(), description="parameters of the built-in tiny world"
    )

    def release_of(self, dataset: str) -> str:
        """Return the path of a dataset's release."""
        return self.release

    def generates(self, dataset: str) -> bool:
        """Return whether the study generates the dialogues of a dataset."""
        return self.generated

    @property
    def generated(self) -> bool:
        """True if the study generates its dialogues.

        Dialogues from a folder may be synthetic, too; the release's metadata record that
        (``data.prepared``).
        """
        return self.release == TINY_WORLD


class WholeData(DataConfig):
    """The dialogues of a study whose design has no few-sample setting."""

    few_sample: bool = Field(
        default=False, description="not available in this design; leave it false"
    )

    @field_validator("few_sample")
    @classmethod
    def _of_no_use(cls, few_sample: bool) -> bool:
        if few_sample:
            raise ValueError(
                "found true, but no dataset of this design has a few-sample setting: remove it, "
                "and use training.limit_train instead"
            )
        return few_sample


class ModelConfig(Section):
    """A model of the config; ``results.study`` resolves the revision of its weights."""

    name: ModelName = Field(description="name of the model in tables, figures and paths")
    family: Family = Field(
        description="encoder, decoder or encoder_decoder",
        json_schema_extra={"enum": list(FAMILIES)},
    )
    checkpoint: Checkpoint = Field(
        description="'tiny' (built in), a local folder (./path), a GGUF file (./path.gguf) or a "
        "name on the Hugging Face hub"
    )
    revision: Revision | None = Field(
        default=None, description="branch, tag or commit of a hub name; null for main"
    )
    max_length: int = Field(
        default=512, ge=16, le=1_000_000, description="maximum sequence length in tokens"
    )
    # A check of the tokenizer. It changes no number, so it is not part of the digest.
    max_unknown_words: Annotated[float, Field(ge=0, le=1), NUMBER] = Field(
        default=0.05,
        exclude=True,
        description="maximum fraction of the study's words that the tokenizer maps to unknown",
    )
    adapter: AdapterConfig | None = Field(
        default=None,
        description="adapter to train instead of the model's weights; null to train the weights",
    )

    families: ClassVar[tuple[Family, ...]] = FAMILIES
    """Families that the design supports."""
    may_be_built: ClassVar[bool] = False
    """True if the design defines an architecture for the checkpoint ``built``."""
    may_be_adapted: ClassVar[bool] = True
    """True if the design can train adapters instead of a model's weights."""

    @field_validator("checkpoint")
    @classmethod
    def _can_be_built(cls, checkpoint: str) -> str:
        if checkpoint == BUILT and not cls.may_be_built:
            raise ValueError(f"{BUILT!r}: this design does not build models: give a checkpoint")
        return checkpoint

    @field_validator("adapter")
    @classmethod
    def _can_be_adapted(
        cls, adapter: AdapterConfig | None, info: ValidationInfo
    ) -> AdapterConfig | None:
        if adapter is not None and not cls.may_be_adapted:
            raise ValueError("this design does not train adapters: remove it")
        if adapter is not None and info.data.get("checkpoint") == BUILT:
            raise ValueError(
                "an adapter needs pretrained weights, but the weights of a built model are "
                "initialised at random: remove it, or give a checkpoint"
            )
        return adapter

    @field_validator("family")
    @classmethod
    def _of_the_design(cls, family: Family) -> Family:
        if family not in cls.families:
            raise ValueError(unknown("family", family, cls.families))
        return family

    @property
    def recipe(self) -> str | None:
        """Recipe that the model is built from, which also names its weights.

        None if the model has a checkpoint.
        """
        return None

    @property
    def is_made(self) -> bool:
        """True if the study creates the model's folder.

        It does so by pre-training, from an architecture, or by dequantising a GGUF file.
        """
        return self.checkpoint in (TINY, BUILT) or is_gguf(self.checkpoint)

    @property
    def has_checkpoint(self) -> bool:
        """True if the weights are given by the user, so that they are checked before use."""
        return self.recipe is None and self.checkpoint not in (TINY, BUILT)

    @property
    def is_only_prompted(self) -> bool:
        """True if the study prompts the released model and does not train it."""
        return False

    @property
    def loaded_as(self) -> Family:
        """Family of the checkpoint: a dual encoder starts as two copies of an encoder."""
        return "encoder" if self.family == "dual_encoder" else self.family

    @property
    def built(self) -> ArchitectureConfig | None:
        """Architecture of a model that each run initialises at random, None for other models."""
        return None

    @property
    def second(self) -> str | None:
        """Name of the model that is the second encoder next to this one, None for no model."""
        return None

    @field_validator("revision")
    @classmethod
    def _of_the_hub(cls, revision: str | None, info: ValidationInfo) -> str | None:
        checkpoint = info.data.get("checkpoint")
        if revision is None or checkpoint is None:
            return revision
        if checkpoint in (TINY, BUILT) or not may_be_on_the_hub(checkpoint):
            raise ValueError(
                f"found {revision!r}, but only hub names have revisions, and the checkpoint is "
                f"{checkpoint!r}: remove it"
            )
        return revision


class EndpointConfig(Section):
    """An endpoint with OpenAI's protocol for a language model that runs on a server.

    Of these keys only ``served`` can change scores.
    """

    endpoint: Url | None = Field(
        default=None,
        description="address of an OpenAI-compatible API that serves the model, such as "
        "http://localhost:8000/v1; null for a model of `models`, which runs on this machine",
    )
    served: Title | None = Field(
        default=None, description="name of the model at the endpoint; null for the name in `model`"
    )
    key_variable: KeyVariable | None = Field(
        default="OPENAI_API_KEY",
        description="environment variable with the API key, which is stored nowhere else; its "
        "name ends in _API_KEY and must be listed in TASKTRANSFER_KEY_VARIABLES (except "
        "OPENAI_API_KEY for this machine and api.openai.com); null to send no key",
    )
    concurrency: int = Field(
        default=4, ge=1, le=1000, description="number of requests sent in parallel"
    )
    retries: int = Field(
        default=6, ge=0, le=100, description="number of times a failed request is repeated"
    )
    timeout: Annotated[float, Field(gt=0, le=86_400), NUMBER] = Field(
        default=120.0, description="time limit in seconds for a request and its complete response"
    )


class CheckpointConfig(Section):
    """Checkpoints that stay on disk, in addition to records and predictions."""

    keep: Literal["all"] | Annotated[tuple[str, ...], LIST, DISTINCT] = Field(
        default=(), description="kinds of stages whose checkpoints are kept, or all"
    )

    @field_validator("keep")
    @classmethod
    def _of_the_design(cls, keep: Any, info: ValidationInfo) -> Any:
        kinds = (info.context or {}).get("kinds")
        if kinds is not None and keep != ALL:
            strange = [(index, kind) for index, kind in enumerate(keep) if kind not in kinds]
            refuse((f"[{i}]", unknown("kind of stage", kind, kinds)) for i, kind in strange)
        return keep


def named_once(models: tuple[ModelConfig, ...]) -> tuple[ModelConfig, ...]:
    """Return the models, or raise ValueError if two of them have the same name."""
    first: dict[str, int] = {}
    repeated = []
    for index, model in enumerate(models):
        # Names are folders, and some file systems ignore case.
        earlier = first.setdefault(model.name.casefold(), index)
        if earlier != index:
            message = f"{model.name!r} is already the name of models[{earlier}]: give another name"
            repeated.append((f"[{index}].name", message))
    refuse(repeated)
    return models


class CommonConfig(Section):
    """Config keys of every study. Each design adds its own keys."""

    study: Title = Field(description="name of the study, shown in titles and records")
    results: Annotated[Folder, AfterValidator(for_results)] = Field(
        default="results", description="folder of all results"
    )
    design: Title = Field(
        default="transfer",
        description="kind of study, which defines its training runs, tables and figures",
    )
    plugins: Annotated[tuple[UserPath, ...], LIST, DISTINCT] = Field(
        default=(), description="Python files or packages (folders) that add datasets or a design"
    )
    data: DataConfig = Field(default=DataConfig(), description="dialogues of the study")
    models: Annotated[
        tuple[ModelConfig, ...], LIST, Field(min_length=1), AfterValidator(named_once)
    ] = Field(description="models, each with its checkpoint and family")
    seeds: Seeds = Field(default=(0,), description="list of seeds, or n for seeds 0 to n-1")
    training: TrainingConfig = Field(default=TrainingConfig(), description="hyperparameters")
    checkpoints: CheckpointConfig = Field(
        default=CheckpointConfig(), description="checkpoints that stay on disk"
    )

    @field_validator("*")
    @classmethod
    def _keep(cls, part: Any, info: ValidationInfo) -> Any:
        """Collect the valid parts, for ``contradictions`` of a config with other problems."""
        if info.context is not None:
            info.context["parts"][info.field_name] = part
        return part

    @classmethod
    def contradictions(cls, parts: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield contradictions between parts of the config. The common parts have none.

        Args:
            parts: key → validated part. Parts with problems are omitted, so that one mistake gives
                one message.
        """
        yield from ()

    @classmethod
    def forbidden(cls, document: Any) -> Mapping[str, str]:
        """Return key path → message for keys that this study, unlike others, must not have.

        The message replaces all other messages about the key.
        """
        return {}

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """Names of the study's datasets, which a design's config defines."""
        return ()

    @property
    def needs_model_sizes(self) -> bool:
        """True if hyperparameters depend on a model's number of parameters."""
        return False

    @property
    def files_read(self) -> Mapping[str, str]:
        """Files that only tables and figures read, by the key that names them."""
        return {}

    @property
    def endpoints(self) -> Mapping[str, EndpointConfig]:
        """Endpoints of prompted models that run on a server, by model name."""
        return {}

    def how_to_leave_out(self, dataset: str, task: str) -> str:
        """Return the change that excludes a task from the study, for messages."""
        content = self.model_dump()
        for name in (task, dataset):
            if keys := dict.fromkeys(_keys(content, name)):
                return f"remove {name!r} from {', '.join(keys)}"
        return f"remove the keys that use {task!r}"

    def vocabulary_of(self, model: str) -> tuple[str, ...]:
        """Return the datasets whose training texts give a built model its vocabulary.

        They are the datasets that it is trained on, so that other datasets do not change the model.
        """
        return self.dataset_names

    @property
    def known_labels(self) -> tuple[str, ...]:
        """Labels whose words are added to a built model's vocabulary."""
        return ()

    @property
    def digest(self) -> str:
        """SHA-256 of the complete config, for the provenance of records."""
        return digest_of(self.content())

    def content(self) -> dict[str, Any]:
        """Return the content of the digest.

        Keys that were added later are omitted at their default, so that older studies keep their
        digests.
        """
        content = self.model_dump()
        for key in ("design", "plugins"):
            if content[key] == type(self).model_fields[key].default:
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


def _keys(value: Any, name: str, key: str = "") -> Iterator[str]:
    """Yield the key paths whose value is a name."""
    if isinstance(value, Mapping):
        for inner, item in value.items():
            yield from _keys(item, name, f"{key}.{inner}" if key else str(inner))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _keys(item, name, key)
    elif value == name:
        yield key
