"""Config section ``prompted``: language models that reply from a prompt."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from tasktransfer.config.fields import LIST
from tasktransfer.config.models import (
    ModelConfig,
    PromptedModelConfig,
    SeenField,
    find_duplicate_names,
    find_model_problems,
)
from tasktransfer.core.validation import Problem


class PromptedReplier(PromptedModelConfig):
    """A language model that replies to the test contexts from a prompt without examples."""

    template: Literal[1, 2] = Field(
        default=1,
        description=(
            "number of the prompt template: 1 asks for a reply that shows empathy, 2 asks for the "
            "next utterance"
        ),
    )
    test_data_seen: SeenField = Field(
        default="unknown",
        description=(
            "whether the model saw the test dialogues in its training (contamination), as far as "
            "known; the answer is shown in tables and does not affect any reply"
        ),
    )


PromptedRepliers = Annotated[tuple[PromptedReplier, ...], LIST]


def find_prompted_problems(
    entries: Sequence[PromptedReplier], models: Mapping[str, ModelConfig], used: Collection[str]
) -> Iterator[Problem]:
    """Yield the problems of the prompted models' names and families.

    Args:
        models: models of the config by name.
        used: names of methods and of the user's own systems.
    """
    yield from find_duplicate_names(entries, used)
    hint = "Add it to models as a decoder, or give an endpoint."
    for index, entry in enumerate(entries):
        path = f"prompted[{index}]"
        yield from find_model_problems(path, entry, models, hint)
        known = models.get(entry.model)
        if known is not None and (known.family == "dual_encoder" or known.built is not None):
            kind = "is built without pretraining" if known.built else "is a dual_encoder"
            yield Problem(
                f"{path}.model",
                f"{entry.model!r} {kind}, so it cannot be prompted. Choose a pretrained decoder or "
                "encoder_decoder.",
            )
