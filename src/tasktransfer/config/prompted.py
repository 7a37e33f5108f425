"""Keys of the section ``prompted`` that every design with prompted models has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tasktransfer.config.fields import MAX_COUNT, Count, ModelName
from tasktransfer.config.models import EndpointConfig, ModelConfig
from tasktransfer.core.specs import SERVED, ModelSpec
from tasktransfer.core.validation import Problem, describe_unknown, extend_path

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
