"""Config section ``prompted``: language models that a study prompts and does not train."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tasktransfer.config import EndpointConfig, ModelConfig
from tasktransfer.config.fields import DISTINCT, LIST, MOST, Count, ModelName
from tasktransfer.core.specs import SERVED, ModelSpec
from tasktransfer.core.validation import Problem, describe_unknown, extend_path
from tasktransfer.designs.names import DatasetName, tasks_of
from tasktransfer.designs.transfer.dataset_section import DatasetConfig
from tasktransfer.tasks.asking import list_hidden_fields

MOST_SHOTS = 1000
DEFAULT_LENGTH = 4096
"""Maximum length in tokens of a model behind an endpoint, whose own limit is unknown."""

Seen = Literal["yes", "no", "unknown"]
"""Answer to whether a model saw a dataset's test dialogues in its training."""


def _restore_word(value: Any) -> Any:
    """Return yes or no for true or false, because YAML reads these words as booleans."""
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


def _wrap_number(value: Any) -> Any:
    return [value] if isinstance(value, int) and not isinstance(value, bool) else value


_Shots = Annotated[int, Field(ge=0, le=MOST_SHOTS)]
_Seen = Annotated[Seen, BeforeValidator(_restore_word, json_schema_input_type=Seen | bool)]
_Chat = Annotated[
    Literal["auto", "yes", "no"],
    BeforeValidator(_restore_word, json_schema_input_type=Literal["auto", "yes", "no"] | bool),
]


class PromptedConfig(EndpointConfig):
    """A released model that is prompted on every task of the study.

    It is one of ``models``, or is behind an endpoint.
    """

    model: ModelName = Field(
        description="name in tables: a name in models, or a new name for the endpoint's model"
    )
    shots: Annotated[
        tuple[_Shots, ...],
        LIST,
        Field(min_length=1),
        DISTINCT,
        BeforeValidator(_wrap_number, json_schema_input_type=_Shots | list[_Shots]),
    ] = Field(
        default=(0,),
        description=(
            "number of few-shot examples, which are sampled from the training set by seed; one "
            "number, or several that are evaluated separately"
        ),
    )
    test_data_seen: _Seen | Annotated[dict[DatasetName, _Seen], Field(min_length=1)] = Field(
        default="unknown",
        description=(
            "whether the model has seen the test dialogues in its training (contamination), as "
            "far as known; one answer, or one per dataset; it is only shown and does not affect "
            "any score"
        ),
    )
    chat: _Chat = Field(
        default="auto",
        description=(
            "whether prompts are formatted as chat turns; auto: yes if the model has a chat "
            "template"
        ),
    )
    max_length: Count | None = Field(
        default=None,
        description=(
            "maximum number of tokens of a prompt and its answer together; null: the model's "
            f"max_length, or {DEFAULT_LENGTH} for an endpoint"
        ),
    )
    thinking_tokens: Annotated[int, Field(ge=0, le=MOST)] | None = Field(
        default=None,
        description=(
            "maximum number of tokens that a model behind an endpoint may spend on reasoning "
            "before it answers, beyond max_length; null: 2048 if it reasons in a probe request, "
            "otherwise none"
        ),
    )
    limit_test: Count | None = Field(
        default=None,
        description=(
            "maximum number of test instances per task, because prompting is slower than "
            "predicting; null: the value of training.limit_test"
        ),
    )

    def seen_of(self, dataset: str) -> Seen:
        """Return the answer for a dataset."""
        if isinstance(self.test_data_seen, dict):
            return self.test_data_seen.get(dataset, "unknown")
        return self.test_data_seen

    def spec(self, models: Mapping[str, ModelSpec]) -> ModelSpec:
        """Return the prompted model."""
        if self.endpoint is None:
            known = models[self.model]
            return replace(known, max_length=self.max_length or known.max_length)
        weights = f"{SERVED}{self.served or self.model}"
        return ModelSpec(self.model, "decoder", weights, self.max_length or DEFAULT_LENGTH)


Prompted = Annotated[tuple[PromptedConfig, ...], LIST, DISTINCT]


def find_hidden_texts(datasets: Sequence[DatasetConfig]) -> Iterator[Problem]:
    """Yield the datasets with a task whose prompts do not show a text that its answer is about."""
    for dataset in datasets:
        cards = tasks_of(dataset.name)
        for name in dataset.tasks:
            if hidden := list_hidden_fields(cards[name]):
                yield Problem(
                    f"datasets.{dataset.name}.tasks",
                    f"the prompts of {name} do not show the field {', '.join(hidden)} that its "
                    "answer is about, so a model cannot be prompted on it: remove the task or "
                    "prompted",
                )
                break


def prompted_problems(
    entries: Sequence[PromptedConfig], models: Sequence[ModelConfig]
) -> Iterator[Problem]:
    """Yield problems with the prompted models."""
    named = {model.name: model for model in models}
    asked: dict[tuple[str, int], int] = {}
    first: dict[str, tuple[int, tuple[Any, ...]]] = {}
    for index, entry in enumerate(entries):
        path = extend_path("prompted", index)
        known = named.get(entry.model)
        if entry.endpoint is None and known is None:
            hint = "add it to models, with trained: false to only prompt it, or give an endpoint"
            yield Problem(
                extend_path(path, "model"),
                describe_unknown("model", entry.model, tuple(named), hint),
            )
        if entry.endpoint is not None and known is not None:
            yield Problem(
                extend_path(path, "model"),
                f"{entry.model!r} is also in models, which run on this machine: give the "
                "endpoint's model another name here, and its name at the endpoint as `served`",
            )
        if entry.endpoint is None and known is not None and known.family == "encoder":
            yield Problem(
                extend_path(path, "model"),
                f"{entry.model!r} is an encoder, which cannot be prompted: name a decoder or "
                "encoder_decoder",
            )
        if entry.endpoint is None and entry.thinking_tokens is not None:
            yield Problem(
                extend_path(path, "thinking_tokens"),
                f"{entry.model!r} runs on this machine, and only endpoints support it: remove it",
            )
        same = (
            *(entry.endpoint, entry.served, entry.max_length),
            *(entry.chat, entry.test_data_seen, entry.limit_test, entry.thinking_tokens),
        )
        earlier, before = first.setdefault(entry.model, (index, same))
        if before != same:
            yield Problem(
                path,
                f"{entry.model!r} has another endpoint, served, max_length, chat, test_data_seen, "
                f"limit_test or thinking_tokens than in prompted[{earlier}]: give it another name, "
                "or list shots in one entry",
            )
        for shots in entry.shots:
            earlier = asked.setdefault((entry.model, shots), index)
            if earlier != index:
                message = f"{entry.model!r} with {shots} shots is also in prompted[{earlier}]"
                yield Problem(path, f"{message}: remove one of the two")
