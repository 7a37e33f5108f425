"""Config sections ``models`` and ``prompted``: encoders, and language models that rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from tasktransfer.config import ModelConfig
from tasktransfer.config.fields import LIST
from tasktransfer.config.models import (
    PromptedModelConfig,
    SeenField,
    find_duplicate_names,
    find_model_problems,
)
from tasktransfer.core.specs import Family
from tasktransfer.core.validation import Problem
from tasktransfer.designs.panel.names import REDDIT_SET, RESERVED


class PanelModel(ModelConfig):
    """An encoder of the study, or a language model of ``prompted``."""

    reads: Literal["first_token", "pooler"] = Field(
        default="first_token",
        description=(
            "input of the classifier: the last hidden state of the first token, as in the paper, "
            "or the output of the checkpoint's pooler"
        ),
    )

    families: ClassVar[tuple[Family, ...]] = ("encoder", "decoder", "encoder_decoder")
    may_be_adapted: ClassVar[bool] = False

    @property
    def is_only_prompted(self) -> bool:
        return self.family != "encoder"


class PromptedRater(PromptedModelConfig):
    """A language model that rates every item with two prompt templates, without examples."""

    test_data_seen: SeenField = Field(
        default="unknown",
        description=(
            "whether the model saw the rated sets in its training (contamination), as far as "
            "known; the answer is shown in tables and does not affect any rating"
        ),
    )


PromptedRaters = Annotated[tuple[PromptedRater, ...], LIST]


def find_model_contradictions(parts: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield problems of the models' families and of the prompted models.

    Args:
        parts: key → validated part of the config.
    """
    entries: tuple[PromptedRater, ...] = parts.get("prompted", ())
    yield from find_duplicate_names(
        entries, (*RESERVED, *(rater.name for rater in parts.get("brought", ())))
    )
    if (
        entries
        and REDDIT_SET in parts.get("rated_sets", ())
        and "Reddit" in parts.get("domains", ())
    ):
        problem = f"{REDDIT_SET} is partly training data if Reddit is a domain, but every item"
        remedy = f"Remove {REDDIT_SET}, the domain Reddit, or prompted."
        yield Problem("prompted", f"{problem} is prompted. {remedy}")
    if "models" not in parts or "prompted" not in parts:
        return
    named = {model.name: model for model in parts["models"]}
    hint = "Add it to models as a decoder, or give an endpoint."
    for index, entry in enumerate(entries):
        yield from find_model_problems(f"prompted[{index}]", entry, named, hint)
    names = {entry.model for entry in entries}
    for index, model in enumerate(parts["models"]):
        remedy = (
            "Add the model to prompted, or remove the model." if index else "List an encoder first."
        )
        if model.is_only_prompted and (index == 0 or model.name not in names):
            article = "a" if model.family == "decoder" else "an"
            problem = f"{model.name!r} is {article} {model.family}, which the panel does not train"
            yield Problem(f"models[{index}].family", f"{problem}. {remedy}")
