"""Config section of a declared dataset: its files, its dialogues and its tasks.

A declaration is a value under ``datasets``, like the task list of a dataset of the package. A
*field* is a path of keys in a row, such as ``ticket.intent``. ``messages[].urgency`` is one value
per item of the list ``messages``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from tasktransfer.config.fields import (
    DISTINCT,
    LIST,
    NUMBER,
    Count,
    Revision,
    Section,
    Seed,
    Text,
    Title,
)
from tasktransfer.config.places import check_home_expansion, check_path_length
from tasktransfer.core.validation import describe_unknown, refuse, show
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
KINDS = tuple(kind for kind in get_args(TaskKind) if kind != "open_labels")
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
USUAL_METRICS: Mapping[str, tuple[str, ...]] = {
    "utterance_classification": ("micro_f1", "macro_f1"),
    "dialogue_classification": ("micro_f1", "macro_f1"),
    "multi_label": ("micro_multilabel_f1",),
    "span": ("exact_match", "macro_token_f1"),
    "reply": ("bleu",),
}
"""Kind → its default metrics. The default of other kinds is all of METRICS."""


def _as_tuple(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


DataPath = Annotated[
    str,
    Text(r"\S(.*\S)?", "write the path of a file or folder"),
    AfterValidator(check_path_length),
    AfterValidator(check_home_expansion),
]
"""Any path, or pattern of paths. It is never part of a command line or of another path."""
Paths = Annotated[
    tuple[DataPath, ...],
    LIST,
    Field(min_length=1),
    BeforeValidator(_as_tuple, json_schema_input_type=str | list[str]),
]


Texts = Annotated[tuple[FieldPath, ...], LIST, Field(min_length=2), DISTINCT]
"""Several fields of an object that are one turn each."""


class DialogueName(Section):
    """The field with the name of a row's dialogue, if names restart in each split or file."""

    field: FieldPath = Field(description="the field that names the dialogue")
    per: Literal["split", "file"] = Field(
        description="scope in which names are unique: split or file. Other scopes may reuse them"
    )


class DialogueSection(Section):
    """Fields that hold the dialogue of a row.

    Without ``turns`` a row is an utterance, and consecutive rows with the same ``id`` are a
    dialogue. Without ``turns`` and ``id`` a row is a dialogue of one turn.
    """

    rows: FieldPath | None = Field(
        default=None,
        description="list in a row of the file whose items are read as rows, such as scenes or "
        "episodes[].scenes; null for the rows of the file",
    )
    turns: FieldPath | None = Field(
        default=None,
        description="list of turns in a row; rounds[] or rounds[].turns for several consecutive "
        "lists; null if a row is an utterance",
    )
    text: FieldPath | Texts | None = Field(
        default=None,
        description="text of a turn; content[].text for parts, which are joined by spaces; "
        "[question, reply] for two turns per object, whose speakers are the names of the fields "
        "unless speaker is set; null if turns are texts",
    )
    speaker: FieldPath | None = Field(default=None, description="speaker of a turn; null for none")
    id: FieldPath | DialogueName | None = Field(
        default=None,
        description="name of the dialogue; {field: number, per: split} if names restart in each "
        "split (or per: file); null for a name from file and row",
    )
    order: FieldPath | None = Field(
        default=None,
        description="field of a turn by which the turns of a dialogue are sorted: a number, an "
        "ISO date, or a name with numbers; null for the order of the file",
    )
    skip: Literal["empty"] | None = Field(
        default=None,
        description="empty to skip turns without text, and dialogues in which no turn has text; "
        "null to refuse them",
    )

    @model_validator(mode="after")
    def _has_text(self) -> Self:
        if self.turns is None and self.text is None:
            raise ValueError("has neither turns nor text: name the field with the dialogue's text")
        problems = []
        for key in ("speaker", "order"):
            if getattr(self, key) is not None and self.text is None:
                problems.append((f".{key}", "needs text: turns that are texts have no fields"))
        if self.order is not None and self.turns is None and self.id is None:
            problems.append((".order", "needs turns or id: a row is a whole dialogue without them"))
        refuse(problems)
        return self

    @property
    def texts(self) -> tuple[str, ...]:
        """The fields that hold what is said in a turn. Empty if turns are texts themselves."""
        return (self.text,) if isinstance(self.text, str) else self.text or ()

    @property
    def id_field(self) -> str | None:
        """The field that names the dialogue."""
        return self.id.field if isinstance(self.id, DialogueName) else self.id

    @property
    def by_turn(self) -> bool:
        """True if a row is an utterance, so that several rows form a dialogue."""
        return self.turns is None and self.id is not None


class SharesSection(Section):
    """Fractions of the training dialogues that become a split without files."""

    dev: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        default=0.1, description="fraction of train for dev, if files.dev is not set"
    )
    test: Annotated[float, Field(gt=0, lt=1), NUMBER] | None = Field(
        default=None,
        description="fraction of train for test, if files.test is not set; null to require it",
    )
    seed: Seed = Field(default=0, description="seed of the draw")


class FewSampleSection(Section):
    """Subset of train and dev for a study in the few-sample setting, sampled by dialogue."""

    instances: Count | None = Field(
        default=None, description="maximum number of training instances per task"
    )
    share: Annotated[float, Field(gt=0, lt=1), NUMBER] | None = Field(
        default=None, description="fraction of the training and dev dialogues"
    )
    seed: Seed = Field(default=0, description="seed of the draw")

    @model_validator(mode="after")
    def _require_one_size(self) -> Self:
        if (self.instances is None) == (self.share is None):
            raise ValueError("give either instances or share")
        return self


class TaskSection(Section):
    """A task of a declared dataset."""

    kind: Annotated[
        TaskKind,
        BeforeValidator(
            lambda kind: ALIASES.get(kind, kind) if isinstance(kind, str) else kind,
            json_schema_input_type=Literal[(*KINDS, *ALIASES)],
        ),
    ] = Field(description=f"one of {', '.join((*KINDS, *ALIASES))}")
    label: FieldPath | None = Field(
        default=None,
        description="gold answer: a label, a list of labels, the text of an answer, the number or "
        "text of the correct option, a rating, or the text to generate",
    )
    labels: Annotated[tuple[str, ...], LIST, Field(min_length=2), DISTINCT] | None = Field(
        default=None, description="all labels; null for those of the training split"
    )
    metrics: Annotated[tuple[str, ...], LIST, Field(min_length=1), DISTINCT] | None = Field(
        default=None, description="metrics; the score is their mean"
    )
    question: FieldPath | None = Field(default=None, description="question about the dialogue")
    options: FieldPath | None = Field(default=None, description="list of options (multiple_choice)")
    scale: Annotated[tuple[float, float], LIST] | None = Field(
        default=None, description="both ends of the scale, such as [1, 5] (rating)"
    )
    outputs: dict[TaskKey, FieldPath] | None = Field(
        default=None, description="trait: field of its answer (multi_output)"
    )
    fields: dict[TaskKey, FieldPath] = Field(
        default={}, description="name: field of a text, which `query` or `prompt` inserts as {name}"
    )
    query: str | None = Field(
        default=None, description="encoder input besides the dialogue, such as '{head} ; {tail}'"
    )
    prompt: str | None = Field(
        default=None, description="input of a text-to-text model after the dialogue"
    )
    unanswerable: Title | None = Field(
        default=None, description="answer of rows without one (question_answering)"
    )
    missing: Literal["refuse", "skip"] | None = Field(
        default=None,
        description="refuse or skip items without an answer; null to skip turns, of which only "
        "some may be annotated, and refuse others",
    )
    missing_values: Annotated[tuple[str, ...], LIST, Field(min_length=1), DISTINCT] | None = Field(
        default=None,
        description="texts of a missing answer, such as 'nan'; null, NaN and blanks always are",
    )
    keeps: Literal["start", "end", "both"] | None = Field(
        default=None,
        description="part of a dialogue that is kept if it is too long for a model: its start, "
        "its end, or both without the middle; null for its end",
    )
    short: TaskKey | None = Field(
        default=None, description="short name in figures; null: the task's key"
    )
    description: Title | None = Field(default=None, description="the task in one sentence")

    @field_validator("kind")
    @classmethod
    def _can_be_declared(cls, kind: TaskKind) -> TaskKind:
        if kind not in KINDS:
            raise ValueError(describe_unknown("kind of task", kind, (*KINDS, *ALIASES)))
        return kind

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        problems = []
        if self.label is None and self.kind not in ("multi_output", "reply"):
            problems.append((".label", "is missing: name the field with the gold answer"))
        wanted = {"options": "multiple_choice", "scale": "rating", "outputs": "multi_output"}
        for key, kind in wanted.items():
            if (getattr(self, key) is None) == (self.kind == kind):
                what = "is missing" if self.kind == kind else "cannot be used"
                why = "need it" if self.kind == kind else "have it, and no others; remove it"
                problems.append((f".{key}", f"{what}: tasks of kind {kind} {why}"))
        if self.unanswerable is not None and self.kind != "span":
            problems.append((".unanswerable", "cannot be used: only kind span has it; remove it"))
        if self.labels is not None and self.kind in ("span", "reply", "multiple_choice", "rating"):
            problems.append((".labels", f"cannot be used: {self.kind} has no labels; remove it"))
        if self.keeps is not None and self.kind in ("utterance_classification", "reply"):
            message = f"cannot be used: {self.kind} is about the last turn of its input; remove it"
            problems.append((".keeps", message))
        if self.keeps == "both" and self.kind == "span":
            message = "cannot be both: an answer is one piece of the dialogue; set start or end"
            problems.append((".keeps", message))
        for index, name in enumerate(self.metrics or ()):
            if name not in METRICS[self.kind]:
                message = describe_unknown(f"metric of {self.kind}", name, METRICS[self.kind])
                problems.append((f".metrics[{index}]", message))
        refuse(problems)
        return self

    @property
    def measures(self) -> tuple[str, ...]:
        """The metrics of the task: those of the declaration, or the default ones."""
        return self.metrics or USUAL_METRICS.get(self.kind, METRICS[self.kind])


class FilesSection(Section):
    """The files of each split."""

    train: Paths = Field(description="a file, or several files")
    dev: Paths | None = Field(default=None, description="null for a fraction of train, by dialogue")
    test: Paths | None = Field(default=None, description="required unless shares.test is set")


def _assign_train_split(value: Any) -> Any:
    return {"train": value} if isinstance(value, str | list) else value


class HubSplits(Section):
    """Names of the splits of a dataset on the hub."""

    train: Title = Field(default="train", description="training split")
    dev: Title | None = Field(default="validation", description="null for shares.dev of train")
    test: Title | None = Field(default="test", description="null for shares.test of train")


class Declaration(Section):
    """A declared dataset: its files or hub name, the fields of its dialogues, and its tasks."""

    files: (
        Annotated[
            FilesSection,
            BeforeValidator(
                _assign_train_split, json_schema_input_type=FilesSection | str | list[str]
            ),
        ]
        | None
    ) = Field(default=None, description="files by split, one file for all, or a folder")
    hub: Annotated[str, Text(r"[\w.-]+(/[\w.-]+)?", "write org/name")] | None = Field(
        default=None, description="dataset on the Hugging Face hub, instead of files"
    )
    revision: Revision | None = Field(
        default=None, description="branch, tag or commit of the dataset on the hub; null for main"
    )
    config: Title | None = Field(default=None, description="configuration on the hub")
    splits: HubSplits = Field(default=HubSplits(), description="names of the splits on the hub")
    dialogue: DialogueSection = Field(description="fields that hold the dialogue of a row")
    tasks: Annotated[dict[TaskKey, TaskSection], Field(min_length=1)] = Field(
        description="tasks, each with its kind and the fields of its answers"
    )
    shares: SharesSection = Field(
        default=SharesSection(), description="fractions of train for splits without files"
    )
    few_sample: FewSampleSection | None = Field(
        default=None,
        description="subset of train and dev if data.few_sample is true; null for all",
    )

    @model_validator(mode="after")
    def _require_one_source(self) -> Self:
        if (self.files is None) == (self.hub is None):
            raise ValueError("give either files or hub")
        if self.hub is None:
            stray = {"revision": self.revision, "config": self.config}
            refuse(
                (f".{key}", f"found {show(value)}, which only a dataset on the hub has: remove it")
                for key, value in stray.items()
                if value is not None
            )
        return self

    @property
    def reading(self) -> dict[str, Any]:
        """The keys besides files that affect the instances of every task, without defaults."""
        return self.model_dump(include={"dialogue", "shares", "few_sample"}, exclude_defaults=True)


KEYS = frozenset({"files", "hub"})
"""Keys that make a section of ``datasets`` a declaration."""


def is_declaration(section: Any) -> bool:
    """Return whether a section under ``datasets`` declares a dataset instead of naming one."""
    return isinstance(section, Mapping) and not KEYS.isdisjoint(section)
