"""Config section of a task of a declared dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from tasktransfer.config.fields import DISTINCT, LIST, Section, Text, Title
from tasktransfer.core.validation import describe_unknown, raise_problems
from tasktransfer.tasks.card import TaskKind

FieldPath = Annotated[
    str,
    Text(r"[^\s\[\].][^\[\].]*(\[\])*(\.[^\[\].]+(\[\])*)*", "write keys as key.key or list[].key"),
]
TaskKey = Annotated[str, Text(r"[A-Za-z0-9][A-Za-z0-9_]{0,99}", "use letters, digits and '_'")]
ALIASES: dict[str, TaskKind] = {
    "relations": "multi_label",
    "question_answering": "span",
    "free_text": "reply",
}
"""Aliases of task kinds."""
DECLARED_KINDS = tuple(kind for kind in get_args(TaskKind) if kind != "open_labels")
"""Kinds that a declaration can use: all kinds on which models are trained."""
METRICS: Mapping[str, tuple[str, ...]] = {
    "utterance_classification": ("accuracy", "micro_f1", "macro_f1", "weighted_f1"),
    "dialogue_classification": ("accuracy", "micro_f1", "macro_f1", "weighted_f1"),
    "multi_label": ("micro_multilabel_f1", "macro_multilabel_f1", "weighted_multilabel_f1"),
    "multi_output": ("accuracy",),
    "multiple_choice": ("accuracy",),
    "span": ("exact_match", "macro_token_f1", "micro_token_f1"),
    "reply": ("bleu", "bleu2", "rouge_l", "meteor"),
    "rating": ("closeness",),
}
"""Kind → its possible metrics."""
DEFAULT_METRICS: Mapping[str, tuple[str, ...]] = {
    "utterance_classification": ("micro_f1", "macro_f1"),
    "dialogue_classification": ("micro_f1", "macro_f1"),
    "multi_label": ("micro_multilabel_f1",),
    "span": ("exact_match", "macro_token_f1"),
    "reply": ("bleu",),
}
"""Kind → its default metrics. The default of other kinds is all of METRICS."""


class TaskSection(Section):
    """A task of a declared dataset."""

    kind: Annotated[
        TaskKind,
        BeforeValidator(
            lambda kind: ALIASES.get(kind, kind) if isinstance(kind, str) else kind,
            json_schema_input_type=Literal[(*DECLARED_KINDS, *ALIASES)],
        ),
    ] = Field(description=f"kind of task: one of {', '.join((*DECLARED_KINDS, *ALIASES))}")
    label: FieldPath | None = Field(
        default=None,
        description=(
            "field with the gold answer: a label, a list of labels, the text of an answer, the "
            "number or text of the correct option, a rating, or the text to generate"
        ),
    )
    labels: Annotated[tuple[str, ...], LIST, Field(min_length=2), DISTINCT] | None = Field(
        default=None,
        description=("list of all labels; null to use the labels of the training split"),
    )
    metrics: Annotated[tuple[str, ...], LIST, Field(min_length=1), DISTINCT] | None = Field(
        default=None, description="metrics of the task; the score is their mean"
    )
    question: FieldPath | None = Field(
        default=None, description="field with the question about the dialogue"
    )
    options: FieldPath | None = Field(
        default=None, description="field with the list of options (for multiple_choice)"
    )
    scale: Annotated[tuple[float, float], LIST] | None = Field(
        default=None, description="lowest and highest rating, such as [1, 5] (for rating)"
    )
    outputs: dict[TaskKey, FieldPath] | None = Field(
        default=None,
        description=(
            "traits that are predicted, each with the field of its answer (for multi_output)"
        ),
    )
    fields: dict[TaskKey, FieldPath] = Field(
        default={},
        description=(
            "fields whose texts are inserted into `query` or `prompt`, each under the name that "
            "stands there in braces, as in {name}"
        ),
    )
    query: str | None = Field(
        default=None,
        description=(
            "input that an encoder reads in addition to the dialogue, such as '{head} ; {tail}'"
        ),
    )
    prompt: str | None = Field(
        default=None, description="input that a text-to-text model reads after the dialogue"
    )
    unanswerable: Title | None = Field(
        default=None,
        description="answer that is used for rows without an answer (for question_answering)",
    )
    missing: Literal["refuse", "skip"] | None = Field(
        default=None,
        description=(
            "treatment of items without an answer: refuse reports an error, and skip leaves them "
            "out; null skips turns (often only some turns are annotated), and reports an error "
            "for other items"
        ),
    )
    missing_values: Annotated[tuple[str, ...], LIST, Field(min_length=1), DISTINCT] | None = Field(
        default=None,
        description=(
            "texts that mean a missing answer, such as 'nan'; null, NaN, blank texts and empty "
            "lists always mean a missing answer"
        ),
    )
    keeps: Literal["start", "end", "both"] | None = Field(
        default=None,
        description=(
            "part of a dialogue that is kept if the dialogue is too long for a model: its start, "
            "its end, or both without the middle; null to keep the end"
        ),
    )
    short: TaskKey | None = Field(
        default=None, description="short name of the task in figures; null to use the task's key"
    )
    description: Title | None = Field(
        default=None, description="description of the task in one sentence"
    )

    @field_validator("kind")
    @classmethod
    def _check_declared_kind(cls, kind: TaskKind) -> TaskKind:
        if kind not in DECLARED_KINDS:
            raise ValueError(describe_unknown("kind of task", kind, (*DECLARED_KINDS, *ALIASES)))
        return kind

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        problems = []
        if self.label is None and self.kind not in ("multi_output", "reply"):
            problems.append(
                (".label", "The key is missing. Set label to the field with the gold answer.")
            )
        wanted = {"options": "multiple_choice", "scale": "rating", "outputs": "multi_output"}
        for key, kind in wanted.items():
            if (getattr(self, key) is None) == (self.kind == kind):
                message = (
                    f"The key is missing. Add it, because the kind of the task is {kind}."
                    if self.kind == kind
                    else f"Only tasks of kind {kind} can have this key. Remove it."
                )
                problems.append((f".{key}", message))
        if self.unanswerable is not None and self.kind != "span":
            problems.append(
                (".unanswerable", "Only tasks of kind span can have this key. Remove it.")
            )
        if self.labels is not None and self.kind in ("span", "reply", "multiple_choice", "rating"):
            problems.append(
                (".labels", f"Tasks of kind {self.kind} have no labels. Remove the key.")
            )
        if self.keeps is not None and self.kind in ("utterance_classification", "reply"):
            message = (
                f"Tasks of kind {self.kind} keep the last turn of their input. Remove the key."
            )
            problems.append((".keeps", message))
        if self.keeps == "both" and self.kind == "span":
            message = (
                "The value is both, but a span is one piece of the dialogue. Set start or end."
            )
            problems.append((".keeps", message))
        for index, name in enumerate(self.metrics or ()):
            if name not in METRICS[self.kind]:
                owner = f"kind {self.kind}"
                message = describe_unknown("metric", name, METRICS[self.kind], owner=owner)
                problems.append((f".metrics[{index}]", message))
        raise_problems(problems)
        return self

    @property
    def measures(self) -> tuple[str, ...]:
        """Metrics of the task, declared or by default."""
        return self.metrics or DEFAULT_METRICS.get(self.kind, METRICS[self.kind])
