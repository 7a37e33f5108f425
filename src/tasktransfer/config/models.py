"""The sections ``models[]`` with ``architecture``, ``prompted``, and the keys of endpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from tasktransfer.config.fields import (
    MAX_COUNT,
    NUMBER,
    Checkpoint,
    Count,
    KeyVariable,
    ModelName,
    Revision,
    Section,
    Title,
    Url,
    UserPath,
)
from tasktransfer.config.from_core import AdapterConfig
from tasktransfer.config.places import has_hub_form, is_gguf
from tasktransfer.core.specs import FAMILIES, SERVED, Family, ModelSpec
from tasktransfer.core.validation import Problem, describe_unknown, extend_path, raise_problems

TINY = "tiny"
BUILT = "built"


class ArchitectureConfig(Section):
    """A Transformer that is built from scratch, with weights initialised from the run's seed.

    It has post-norm layers, ReLU, sinusoidal positions, and one embedding shared by encoder input,
    decoder input and output layer.
    """

    layers: int = Field(default=4, ge=1, le=100, description="number of layers in an encoder")
    decoder_layers: int = Field(
        default=4, ge=1, le=100, description="number of layers in a decoder"
    )
    hidden: int = Field(default=300, ge=8, le=8192, description="size of the hidden states")
    heads: int = Field(default=6, ge=1, le=128, description="number of attention heads")
    feed_forward: int = Field(
        default=1200, ge=8, le=65_536, description="size of the inner feed-forward layers"
    )
    positions: int = Field(
        default=1000, ge=16, le=100_000, description="maximum sequence length in tokens"
    )
    vocabulary_size: int = Field(
        default=250_000,
        ge=10,
        le=10_000_000,
        description=(
            "maximum vocabulary size; the vocabulary contains the most frequent words of the "
            "training texts"
        ),
    )
    vectors: UserPath | None = Field(
        default=None,
        description=(
            "text file of word vectors that initialise the embeddings; null to initialise the "
            "embeddings at random"
        ),
    )

    @field_validator("heads")
    @classmethod
    def _check_heads(cls, heads: int, info: ValidationInfo) -> int:
        hidden = info.data.get("hidden", heads)
        if hidden % heads:
            raise ValueError(
                f"The value {heads} does not divide the value of hidden ({hidden}). Change one of "
                "the two values."
            )
        return heads


class ModelConfig(Section):
    """A model of the config; ``results.study`` resolves the revision of its weights."""

    name: ModelName = Field(description="name of the model in tables, figures and paths")
    family: Family = Field(
        description="family of the model: encoder, decoder or encoder_decoder",
        json_schema_extra={"enum": list(FAMILIES)},
    )
    checkpoint: Checkpoint = Field(
        description=(
            "checkpoint of the model: 'tiny' (built in), a local folder (./path), a GGUF file "
            "(./path.gguf) or a name on the Hugging Face hub"
        )
    )
    revision: Revision | None = Field(
        default=None, description="branch, tag or commit of a model on the hub; null to use main"
    )
    max_length: int = Field(
        default=512, ge=16, le=1_000_000, description="maximum sequence length in tokens"
    )
    # A check of the tokenizer. It changes no number, so it is not part of the digest.
    max_unknown_words: Annotated[float, Field(ge=0, le=1), NUMBER] = Field(
        default=0.05,
        exclude=True,
        description=(
            "maximum fraction of the study's words that the tokenizer may map to the unknown token"
        ),
    )
    adapter: AdapterConfig | None = Field(
        default=None,
        description=(
            "adapter that is trained instead of the model's weights; null to train the weights"
        ),
    )

    families: ClassVar[tuple[Family, ...]] = FAMILIES
    """Families that the design supports."""
    may_be_built: ClassVar[bool] = False
    """True if the design defines an architecture for the checkpoint ``built``."""
    may_be_adapted: ClassVar[bool] = True
    """True if the design can train adapters instead of a model's weights."""

    @field_validator("checkpoint")
    @classmethod
    def _refuse_built_checkpoint(cls, checkpoint: str) -> str:
        if checkpoint == BUILT and not cls.may_be_built:
            raise ValueError(
                f"The checkpoint is {BUILT!r}, but a study with this design cannot train a "
                "model from scratch. Set checkpoint to an existing model."
            )
        return checkpoint

    @field_validator("adapter")
    @classmethod
    def _refuse_adapter(
        cls, adapter: AdapterConfig | None, info: ValidationInfo
    ) -> AdapterConfig | None:
        if adapter is not None and not cls.may_be_adapted:
            raise ValueError("This design does not train adapters. Remove the key.")
        if adapter is not None and info.data.get("checkpoint") == BUILT:
            raise ValueError(
                "An adapter needs pretrained weights, but the weights of a built model are "
                "initialised at random. Remove the adapter, or set checkpoint to a pretrained "
                "model."
            )
        return adapter

    @field_validator("family")
    @classmethod
    def _check_model_family(cls, family: Family) -> Family:
        if family not in cls.families:
            raise ValueError(describe_unknown("family", family, cls.families))
        return family

    @property
    def recipe(self) -> str | None:
        """Recipe from which the model is built, which also names its weights.

        None if the model has a checkpoint.
        """
        return None

    @property
    def is_created(self) -> bool:
        """True if the study creates the model's folder itself.

        It does so by pre-training, from an architecture, or by dequantising a GGUF file.
        """
        return self.checkpoint in (TINY, BUILT) or is_gguf(self.checkpoint)

    @property
    def has_checkpoint(self) -> bool:
        """True if the user provides the weights, which are then checked before use."""
        return self.recipe is None and self.checkpoint not in (TINY, BUILT)

    @property
    def is_only_prompted(self) -> bool:
        """True if the study prompts the model and does not train it."""
        return False

    @property
    def checkpoint_family(self) -> Family:
        """Family of the checkpoint, which is ``encoder`` for a dual encoder."""
        return "encoder" if self.family == "dual_encoder" else self.family

    @property
    def built(self) -> ArchitectureConfig | None:
        """Architecture of a randomly initialised model, None for other models."""
        return None

    @property
    def second(self) -> str | None:
        """Name of the model's second encoder, or None for models with one encoder."""
        return None

    @field_validator("revision")
    @classmethod
    def _check_revision(cls, revision: str | None, info: ValidationInfo) -> str | None:
        checkpoint = info.data.get("checkpoint")
        if revision is None or checkpoint is None:
            return revision
        if checkpoint in (TINY, BUILT) or not has_hub_form(checkpoint):
            raise ValueError(
                f"The value is {revision!r}, but only models on the hub have revisions, and the "
                f"checkpoint is {checkpoint!r}. Remove the key."
            )
        return revision


class EndpointConfig(Section):
    """An endpoint with OpenAI's protocol for a language model that runs on a server.

    Of these keys only ``served`` can change scores.
    """

    endpoint: Url | None = Field(
        default=None,
        description=(
            "address of an OpenAI-compatible API that serves the model, such as "
            "http://localhost:8000/v1; null to run a model of `models` on this machine"
        ),
    )
    served: Title | None = Field(
        default=None,
        description=("name of the model at the endpoint; null to use the value of `model`"),
    )
    key_variable: KeyVariable | None = Field(
        default="OPENAI_API_KEY",
        description=(
            "environment variable that contains the API key; the key is stored nowhere else. The "
            "variable's name must end in _API_KEY. The variable TASKTRANSFER_KEY_VARIABLES must "
            "list the name, except for OPENAI_API_KEY with api.openai.com or an endpoint on this "
            "machine. Set key_variable to null to send no API key"
        ),
    )
    concurrency: int = Field(
        default=4, ge=1, le=1000, description="number of requests that are sent in parallel"
    )
    retries: int = Field(
        default=6, ge=0, le=100, description="number of times that a failed request is repeated"
    )
    timeout: Annotated[float, Field(gt=0, le=86_400), NUMBER] = Field(
        default=120.0, description="time limit in seconds for a request and its complete response"
    )


def check_unique_names(models: tuple[ModelConfig, ...]) -> tuple[ModelConfig, ...]:
    """Return the models, or raise ValueError if two of them share a name."""
    first: dict[str, int] = {}
    repeated = []
    for index, model in enumerate(models):
        # Names are folders, and some file systems ignore case.
        earlier = first.setdefault(model.name.casefold(), index)
        if earlier != index:
            message = f"models[{earlier}] has the name {model.name!r}, too. Choose another name."
            repeated.append((f"[{index}].name", message))
    raise_problems(repeated)
    return models


DEFAULT_LENGTH = 4096
"""Maximum length in tokens of a model behind an endpoint, whose own limit is unknown."""

Seen = Literal["yes", "no", "unknown"]
"""Answer to whether a model saw a dataset's test dialogues in its training."""


def _restore_word(value: Any) -> Any:
    """Return ``yes`` or ``no`` for booleans, because YAML reads these words as booleans."""
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


SeenField = Annotated[Seen, BeforeValidator(_restore_word, json_schema_input_type=Seen | bool)]
_Chat = Annotated[
    Literal["auto", "yes", "no"],
    BeforeValidator(_restore_word, json_schema_input_type=Literal["auto", "yes", "no"] | bool),
]


class PromptedModelConfig(EndpointConfig):
    """A released model that is prompted. It is one of ``models``, or is behind an endpoint."""

    model: ModelName = Field(
        description=(
            "name of the model in tables: a name listed in models, or a new name for a model "
            "behind an endpoint"
        )
    )
    chat: _Chat = Field(
        default="auto",
        description=(
            "yes to format prompts as chat turns, no to use plain text, auto to use chat turns if "
            "the model has a chat template"
        ),
    )
    max_length: Count | None = Field(
        default=None,
        description=(
            "maximum total number of tokens in a prompt and its answer; null to use the model's "
            f"max_length, or {DEFAULT_LENGTH} for an endpoint"
        ),
    )
    thinking_tokens: Annotated[int, Field(ge=0, le=MAX_COUNT)] | None = Field(
        default=None,
        description=(
            "maximum number of reasoning tokens that a model behind an endpoint may generate "
            "before its answer, in addition to max_length; null for 2048 if a probe request "
            "shows that the model reasons, and otherwise 0"
        ),
    )

    def to_spec(self, models: Mapping[str, ModelSpec]) -> ModelSpec:
        """Return the config of a prompted model as a ``core`` object.

        Args:
            models: models of the study by name.
        """
        if self.endpoint is None:
            known = models[self.model]
            return replace(known, max_length=self.max_length or known.max_length)
        weights = f"{SERVED}{self.served or self.model}"
        return ModelSpec(self.model, "decoder", weights, self.max_length or DEFAULT_LENGTH)

    def get_evaluation_settings(self) -> dict[str, Any]:
        """Return the settings of the model's evaluations, except those with default values."""
        own = {} if self.chat == "auto" else {"chat": self.chat}
        if self.thinking_tokens is None:
            return own
        return {**own, "thinking_tokens": self.thinking_tokens}


def find_model_problems(
    path: str, entry: PromptedModelConfig, models: Mapping[str, ModelConfig], hint: str
) -> Iterator[Problem]:
    """Yield problems with the model that an entry of ``prompted`` refers to.

    Args:
        path: key path of the entry.
        models: models of the config by name.
        hint: sentence with the remedy for a model that is not in the config.
    """
    known = models.get(entry.model)
    if entry.endpoint is None and known is None:
        yield Problem(
            extend_path(path, "model"),
            describe_unknown("model", entry.model, tuple(models), hint),
        )
    if entry.endpoint is not None and known is not None:
        yield Problem(
            extend_path(path, "model"),
            f"{entry.model!r} is also in models, which run on this machine. Give the endpoint's "
            "model another name here, and write its name at the endpoint as `served`.",
        )
    if entry.endpoint is None and known is not None and known.family == "encoder":
        yield Problem(
            extend_path(path, "model"),
            f"{entry.model!r} is an encoder, which cannot be prompted. Choose a decoder or "
            "encoder_decoder.",
        )
    if entry.endpoint is None and entry.thinking_tokens is not None:
        yield Problem(
            extend_path(path, "thinking_tokens"),
            f"Only an endpoint has this key, but {entry.model!r} runs on this machine. Remove it.",
        )


def find_duplicate_names(
    entries: Collection[PromptedModelConfig], used: Collection[str]
) -> Iterator[Problem]:
    """Yield a problem for each entry that is named like a method or an earlier entry.

    Args:
        used: names of methods and of the user's own systems.
    """
    earlier: set[str] = set()
    for index, entry in enumerate(entries):
        path = extend_path(extend_path("prompted", index), "model")
        if entry.model in used:
            problem = f"{entry.model!r} is the name of a method of the study. Choose another name."
            yield Problem(path, problem)
        elif entry.model in earlier:
            problem = f"Another entry has the name {entry.model!r}, too. Remove one of the two."
            yield Problem(path, problem)
        earlier.add(entry.model)
