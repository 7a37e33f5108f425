"""Language models that a study asks and does not train, as its config names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tasktransfer.config import EndpointConfig, ModelConfig
from tasktransfer.config.fields import DISTINCT, LIST, MOST, Count, ModelName
from tasktransfer.core.specs import SERVED, ModelSpec
from tasktransfer.core.validation import Problem, at, unknown
from tasktransfer.designs.names import DatasetName

MOST_SHOTS = 1000
DEFAULT_LENGTH = 4096
"""Tokens of what is behind an endpoint, whose own limit nobody tells."""

Seen = Literal["yes", "no", "unknown"]
"""Whether a model has read a dataset's test dialogues before."""


def _word(value: Any) -> Any:
    """YAML reads yes and no as true and false."""
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, int) and not isinstance(value, bool) else value


_Shots = Annotated[int, Field(ge=0, le=MOST_SHOTS)]
_Seen = Annotated[Seen, BeforeValidator(_word, json_schema_input_type=Seen | bool)]
_Chat = Annotated[
    Literal["auto", "yes", "no"],
    BeforeValidator(_word, json_schema_input_type=Literal["auto", "yes", "no"] | bool),
]


class PromptedConfig(EndpointConfig):
    """A model as it was released, asked by prompts about every task of the study: of ``models``, or
    behind an endpoint."""

    model: ModelName = Field(
        description="what tables call it: the name of one of models, or of what an endpoint serves"
    )
    shots: Annotated[
        tuple[_Shots, ...],
        LIST,
        Field(min_length=1),
        DISTINCT,
        BeforeValidator(_listed, json_schema_input_type=_Shots | list[_Shots]),
    ] = Field(
        default=(0,),
        description="examples that are shown before, drawn by seed from the training set; a "
        "number, or several to ask with each",
    )
    seen: _Seen | Annotated[dict[DatasetName, _Seen], Field(min_length=1)] = Field(
        default="unknown",
        description="whether the model has read the test dialogues in its own training, as far as "
        "one knows (contamination); one answer, or one per dataset. It is printed, and changes no "
        "number",
    )
    chat: _Chat = Field(
        default="auto",
        description="whether prompts are turns of a chat; auto: where the model has a template "
        "for it",
    )
    max_length: Count | None = Field(
        default=None,
        description="tokens of prompt and answer together; null: the model's max_length, of an "
        f"endpoint {DEFAULT_LENGTH}",
    )
    thinking_tokens: Annotated[int, Field(ge=0, le=MOST)] | None = Field(
        default=None,
        description="tokens that a model behind an endpoint may spend on its thoughts before it "
        "answers, beyond max_length; null: 2048 if it thinks when it is probed, otherwise none",
    )
    limit_test: Count | None = Field(
        default=None,
        description="test instances of a task at most, since asking takes longer than predicting; "
        "null: training.limit_test",
    )

    def seen_of(self, dataset: str) -> Seen:
        """What it says of a dataset."""
        return self.seen.get(dataset, "unknown") if isinstance(self.seen, dict) else self.seen

    def spec(self, models: Mapping[str, ModelSpec]) -> ModelSpec:
        """The model that is asked."""
        if self.endpoint is None:
            known = models[self.model]
            return replace(known, max_length=self.max_length or known.max_length)
        weights = f"{SERVED}{self.served or self.model}"
        return ModelSpec(self.model, "decoder", weights, self.max_length or DEFAULT_LENGTH)


Prompted = Annotated[tuple[PromptedConfig, ...], LIST, DISTINCT]


def prompted_problems(
    entries: Sequence[PromptedConfig], models: Sequence[ModelConfig]
) -> Iterator[Problem]:
    """What of the prompted models cannot be."""
    named = {model.name: model for model in models}
    asked: dict[tuple[str, int], int] = {}
    first: dict[str, tuple[int, tuple[Any, ...]]] = {}
    for index, entry in enumerate(entries):
        path = at("prompted", index)
        known = named.get(entry.model)
        if entry.endpoint is None and known is None:
            hint = "name it in models, with trained: false if it is only asked, or give an endpoint"
            yield Problem(at(path, "model"), unknown("model", entry.model, tuple(named), hint))
        if entry.endpoint is not None and known is not None:
            yield Problem(
                at(path, "model"),
                f"{entry.model!r} is one of models too, which run here: give what the endpoint "
                "serves another name, and `served` for the endpoint's own",
            )
        if entry.endpoint is None and known is not None and known.family == "encoder":
            yield Problem(
                at(path, "model"),
                f"{entry.model!r} is an encoder, which writes nothing and cannot be asked: name a "
                "decoder or encoder_decoder",
            )
        if entry.endpoint is None and entry.thinking_tokens is not None:
            yield Problem(
                at(path, "thinking_tokens"),
                f"{entry.model!r} runs here, where no thoughts are read: remove it",
            )
        same = (
            *(entry.endpoint, entry.served, entry.max_length),
            *(entry.chat, entry.seen, entry.limit_test, entry.thinking_tokens),
        )
        earlier, before = first.setdefault(entry.model, (index, same))
        if before != same:
            yield Problem(
                path,
                f"{entry.model!r} has another endpoint, served, max_length, chat, seen, limit_test "
                f"or thinking_tokens than in prompted[{earlier}]: give it another name, or list "
                "shots in one entry",
            )
        for shots in entry.shots:
            earlier = asked.setdefault((entry.model, shots), index)
            if earlier != index:
                message = f"{entry.model!r} is asked with {shots} shots by prompted[{earlier}] too"
                yield Problem(path, f"{message}: remove one of the two")
