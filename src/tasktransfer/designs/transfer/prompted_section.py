"""Config section ``prompted``: language models that a study prompts and does not train."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from tasktransfer.config import ModelConfig
from tasktransfer.config.fields import DISTINCT, LIST, Count
from tasktransfer.config.prompted import (
    PromptedModelConfig,
    Seen,
    SeenField,
    find_model_problems,
)
from tasktransfer.core.validation import Problem, extend_path
from tasktransfer.designs.names import DatasetName, get_tasks
from tasktransfer.designs.transfer.dataset_section import DatasetConfig
from tasktransfer.tasks.asking import list_hidden_fields

MOST_SHOTS = 1000


def _wrap_number(value: Any) -> Any:
    return [value] if isinstance(value, int) and not isinstance(value, bool) else value


_Shots = Annotated[int, Field(ge=0, le=MOST_SHOTS)]


_SeenOfDatasets = SeenField | Annotated[dict[DatasetName, SeenField], Field(min_length=1)]


class PromptedConfig(PromptedModelConfig):
    """A released model that is prompted on every task of the study.

    It is one of ``models``, or is behind an endpoint.
    """

    shots: Annotated[
        tuple[_Shots, ...],
        LIST,
        Field(min_length=1),
        DISTINCT,
        BeforeValidator(_wrap_number, json_schema_input_type=_Shots | list[_Shots]),
    ] = Field(
        default=(0,),
        description=(
            "number of few-shot examples, which are sampled from the training set with the seed; "
            "one number, or several numbers that are evaluated separately"
        ),
    )
    test_data_seen: _SeenOfDatasets = Field(
        default="unknown",
        description=(
            "whether the model saw the test dialogues in its training (contamination), as far as "
            "known; one answer, or one per dataset; the answer is shown in tables and does not "
            "affect any score"
        ),
    )
    limit_test: Count | None = Field(
        default=None,
        description=(
            "maximum number of test instances per task, because prompting is slower than "
            "predicting; null to use training.limit_test"
        ),
    )

    def get_test_data_seen(self, dataset: str) -> Seen:
        """Return whether the model has seen a dataset's test dialogues, as far as known."""
        if isinstance(self.test_data_seen, dict):
            return self.test_data_seen.get(dataset, "unknown")
        return self.test_data_seen


Prompted = Annotated[tuple[PromptedConfig, ...], LIST, DISTINCT]


def find_hidden_texts(datasets: Sequence[DatasetConfig]) -> Iterator[Problem]:
    """Yield a problem for each dataset whose prompts do not show what an answer is about."""
    for dataset in datasets:
        cards = get_tasks(dataset.name)
        for name in dataset.tasks:
            if hidden := list_hidden_fields(cards[name]):
                yield Problem(
                    f"datasets.{dataset.name}.tasks",
                    f"The prompts of {name} do not show the field {', '.join(hidden)} that its "
                    "answer is about, so that no model can be prompted on it. Remove the task or "
                    "prompted.",
                )
                break


def find_prompted_problems(
    entries: Sequence[PromptedConfig], models: Sequence[ModelConfig]
) -> Iterator[Problem]:
    """Yield problems of the section ``prompted`` with itself and with ``models``."""
    named = {model.name: model for model in models}
    entry_by_shots: dict[tuple[str, int], int] = {}
    first: dict[str, tuple[int, tuple[Any, ...]]] = {}
    for index, entry in enumerate(entries):
        path = extend_path("prompted", index)
        hint = "Add it to models, with trained: false to only prompt it, or give an endpoint."
        yield from find_model_problems(path, entry, named, hint)
        same = (
            *(entry.endpoint, entry.served, entry.max_length),
            *(entry.chat, entry.test_data_seen, entry.limit_test, entry.thinking_tokens),
        )
        earlier, before = first.setdefault(entry.model, (index, same))
        if before != same:
            yield Problem(
                path,
                f"{entry.model!r} has another endpoint, served, max_length, chat, test_data_seen, "
                f"limit_test or thinking_tokens than in prompted[{earlier}]. Give it another name, "
                "or list the shots in one entry.",
            )
        for shots in entry.shots:
            earlier = entry_by_shots.setdefault((entry.model, shots), index)
            if earlier != index:
                message = f"{entry.model!r} with {shots} shots is also in prompted[{earlier}]"
                yield Problem(path, f"{message}. Remove one of the two.")
