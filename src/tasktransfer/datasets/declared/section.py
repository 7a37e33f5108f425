"""What a config says of a dataset of one's own: its files, its dialogues and its tasks.

A declaration stands under ``datasets`` where a dataset of the package has its tasks. A *field* is
a path of keys in a row, such as ``ticket.intent``; ``messages[].urgency`` is one value for each
item of the list ``messages``.
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
from tasktransfer.config.places import of_a_user, short_enough
from tasktransfer.core.validation import refuse, show, unknown
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
"""Other words for kinds of task."""
KINDS = tuple(kind for kind in get_args(TaskKind) if kind != "open_labels")
"""Kinds that a declaration can have: all that models are trained on."""

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
"""Kind → the metrics that it can be scored by."""
USUAL_METRICS: Mapping[str, tuple[str, ...]] = {
    "utterance_classification": ("micro_f1", "macro_f1"),
    "dialogue_classification": ("micro_f1", "macro_f1"),
    "multi_label": ("micro_multilabel_f1",),
    "span": ("exact_match", "macro_token_f1"),
    "reply": ("bleu",),
}
"""Kind → those that it is scored by where the declaration names none; of others all of METRICS."""


def _as_tuple(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


DataPath = Annotated[
    str,
    Text(r"\S(.*\S)?", "write the path of a file or folder"),
    AfterValidator(short_enough),
    AfterValidator(of_a_user),
]
"""Any path, or pattern of paths: no command line and no other path is made of it."""
Paths = Annotated[
    tuple[DataPath, ...],
    LIST,
    Field(min_length=1),
    BeforeValidator(_as_tuple, json_schema_input_type=str | list[str]),
]


Texts = Annotated[tuple[FieldPath, ...], LIST, Field(min_length=2), DISTINCT]
"""Several fields of a turn that are a turn each."""


class DialogueName(Section):
    """Where a row has the name of its dialogue, if the names start anew."""

    field: FieldPath = Field(description="the field that names the dialogue")
    per: Literal["split", "file"] = Field(
        description="where names are unique: in a split, or in a file. Others may have them too"
    )


class DialogueSection(Section):
    """Where a row has its dialogue. Without ``turns`` a row is an utterance, and rows that follow
    each other with the same ``id`` are a dialogue; without ``id`` too, a row is a dialogue of one
    turn."""

    rows: FieldPath | None = Field(
        default=None,
        description="the list in a row of the file whose items are the rows, scenes or "
        "episodes[].scenes; null: the file's own rows",
    )
    turns: FieldPath | None = Field(
        default=None,
        description="the list of turns in a row; rounds[] or rounds[].turns: several lists, one "
        "after the other; null: a row is an utterance",
    )
    text: FieldPath | Texts | None = Field(
        default=None,
        description="what is said in a turn; content[].text: its parts, joined by blanks; "
        "[question, reply]: two turns, whose speakers are named as the fields are unless speaker "
        "is set; null: the turns are texts themselves",
    )
    speaker: FieldPath | None = Field(default=None, description="who says it; null: nobody named")
    id: FieldPath | DialogueName | None = Field(
        default=None,
        description="names the dialogue; {field: number, per: split}: names that start anew in "
        "each split, or per file; null: by file and row",
    )
    order: FieldPath | None = Field(
        default=None,
        description="a field of a turn that its dialogue's turns are sorted by: a number, an ISO "
        "date, or a name with numbers; null: the order of the file",
    )
    skip: Literal["empty"] | None = Field(
        default=None,
        description="empty: turns without text are left out, and dialogues of such turns alone; "
        "null: they are refused",
    )

    @model_validator(mode="after")
    def _has_text(self) -> Self:
        if self.turns is None and self.text is None:
            raise ValueError("names neither turns nor text: say where the dialogue's words are")
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
        """Whether a row is an utterance of a dialogue that several rows make up."""
        return self.turns is None and self.id is not None


class SharesSection(Section):
    """Shares of the training dialogues that become a split which has no file."""

    dev: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        default=0.1, description="share of the training dialogues that is dev, without files.dev"
    )
    test: Annotated[float, Field(gt=0, lt=1), NUMBER] | None = Field(
        default=None, description="the same for test; null: a test file has to be there"
    )
    seed: Seed = Field(default=0, description="seed of the draw")


class FewSampleSection(Section):
    """What of train and dev a study in the few-sample setting reads, drawn by dialogue."""

    instances: Count | None = Field(
        default=None, description="training instances of each task at most"
    )
    share: Annotated[float, Field(gt=0, lt=1), NUMBER] | None = Field(
        default=None, description="share of the training and dev dialogues"
    )
    seed: Seed = Field(default=0, description="seed of the draw")

    @model_validator(mode="after")
    def _names_one(self) -> Self:
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
        description="the right answer: a label, labels, an answer's text, the number or text of "
        "the right option, a rating, or the text to write",
    )
    labels: Annotated[tuple[str, ...], LIST, Field(min_length=2), DISTINCT] | None = Field(
        default=None, description="all labels; null: those of the training split"
    )
    metrics: Annotated[tuple[str, ...], LIST, Field(min_length=1), DISTINCT] | None = Field(
        default=None, description="what it is scored by; the score is their mean"
    )
    question: FieldPath | None = Field(default=None, description="a question about the dialogue")
    options: FieldPath | None = Field(
        default=None, description="multiple choice: the list of options"
    )
    scale: Annotated[tuple[float, float], LIST] | None = Field(
        default=None, description="ratings: the two ends of the scale, [1, 5]"
    )
    outputs: dict[TaskKey, FieldPath] | None = Field(
        default=None, description="multi_output: trait: where its answer is"
    )
    fields: dict[TaskKey, FieldPath] = Field(
        default={}, description="name: where a text is that query or prompt name in braces"
    )
    query: str | None = Field(
        default=None, description="what an encoder reads beside the dialogue, '{head} ; {tail}'"
    )
    prompt: str | None = Field(
        default=None, description="what a text-to-text model reads after the dialogue"
    )
    unanswerable: Title | None = Field(
        default=None, description="question answering: the answer where the row has none"
    )
    missing: Literal["refuse", "skip"] | None = Field(
        default=None,
        description="what is done where there is no answer; null: refuse, but skip turns, of which "
        "some may be annotated",
    )
    missing_values: Annotated[tuple[str, ...], LIST, Field(min_length=1), DISTINCT] | None = Field(
        default=None,
        description="texts that stand for no answer, such as 'nan'; null, NaN and blanks always do",
    )
    keeps: Literal["start", "end", "both"] | None = Field(
        default=None,
        description="the part of a dialogue that is read where it is too long for a model: its "
        "start, its end, or both without the middle; null: its end",
    )
    short: TaskKey | None = Field(default=None, description="short name in figures; null: the name")
    description: Title | None = Field(default=None, description="what is asked, a sentence")

    @field_validator("kind")
    @classmethod
    def _can_be_declared(cls, kind: TaskKind) -> TaskKind:
        if kind not in KINDS:
            raise ValueError(unknown("kind of task", kind, (*KINDS, *ALIASES)))
        return kind

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        problems = []
        if self.label is None and self.kind not in ("multi_output", "reply"):
            problems.append((".label", "is missing: say where a row has the right answer"))
        wanted = {"options": "multiple_choice", "scale": "rating", "outputs": "multi_output"}
        for key, kind in wanted.items():
            if (getattr(self, key) is None) == (self.kind == kind):
                what = f"is missing, and {kind} needs it" if self.kind == kind else "cannot be used"
                problems.append((f".{key}", f"{what}: tasks of kind {kind} alone have it"))
        if self.unanswerable is not None and self.kind != "span":
            problems.append((".unanswerable", "cannot be used: questions of kind span have it"))
        if self.labels is not None and self.kind in ("span", "reply", "multiple_choice", "rating"):
            problems.append((".labels", f"cannot be used: {self.kind} has no labels; remove it"))
        if self.keeps is not None and self.kind in ("utterance_classification", "reply"):
            message = f"cannot be used: {self.kind} is about the last turn that is read; remove it"
            problems.append((".keeps", message))
        if self.keeps == "both" and self.kind == "span":
            message = "cannot be both: an answer is one piece of the dialogue; set start or end"
            problems.append((".keeps", message))
        for index, name in enumerate(self.metrics or ()):
            if name not in METRICS[self.kind]:
                message = unknown(f"metric of {self.kind}", name, METRICS[self.kind])
                problems.append((f".metrics[{index}]", message))
        refuse(problems)
        return self

    @property
    def measures(self) -> tuple[str, ...]:
        """What it is scored by."""
        return self.metrics or USUAL_METRICS.get(self.kind, METRICS[self.kind])


class FilesSection(Section):
    """The files of each split."""

    train: Paths = Field(description="a file, or several")
    dev: Paths | None = Field(default=None, description="null: a share of train, by dialogue")
    test: Paths | None = Field(default=None, description="null: refused, unless shares.test is set")


def _folder_or_files(value: Any) -> Any:
    return {"train": value} if isinstance(value, str | list) else value


class HubSplits(Section):
    """What a dataset of the hub calls its splits."""

    train: Title = Field(default="train", description="the training split")
    dev: Title | None = Field(default="validation", description="null: a share of train")
    test: Title | None = Field(default="test", description="null: a share of train, if set")


class Declaration(Section):
    """A dataset of one's own: files or a hub name, where its dialogues are, and its tasks."""

    files: (
        Annotated[
            FilesSection,
            BeforeValidator(
                _folder_or_files, json_schema_input_type=FilesSection | str | list[str]
            ),
        ]
        | None
    ) = Field(default=None, description="files by split; or one file, or a folder that has them")
    hub: Annotated[str, Text(r"[\w.-]+(/[\w.-]+)?", "write org/name")] | None = Field(
        default=None, description="a dataset of the Hugging Face hub, in place of files"
    )
    revision: Revision | None = Field(
        default=None, description="branch, tag or commit of the hub's dataset; null means main"
    )
    config: Title | None = Field(default=None, description="configuration of the hub's dataset")
    splits: HubSplits = Field(default=HubSplits(), description="the hub's names of the splits")
    dialogue: DialogueSection = Field(description="where a row has its dialogue")
    tasks: Annotated[dict[TaskKey, TaskSection], Field(min_length=1)] = Field(
        description="the tasks, each with its kind and where its answers are"
    )
    shares: SharesSection = Field(
        default=SharesSection(), description="shares of train for splits that have no file"
    )
    few_sample: FewSampleSection | None = Field(
        default=None,
        description="what of train and dev is read where data.few_sample is true; null: all",
    )

    @model_validator(mode="after")
    def _names_a_source(self) -> Self:
        if (self.files is None) == (self.hub is None):
            raise ValueError("give either files or hub")
        if self.hub is None:
            stray = {"revision": self.revision, "config": self.config}
            refuse(
                (f".{key}", f"found {show(value)}, which only a hub name has: remove it")
                for key, value in stray.items()
                if value is not None
            )
        return self

    @property
    def reading(self) -> dict[str, Any]:
        """What of it, beside the content of its files, changes the instances of every task."""
        return self.model_dump(include={"dialogue", "shares", "few_sample"}, exclude_defaults=True)


KEYS = frozenset({"files", "hub"})
"""Keys that make a section of ``datasets`` a declaration."""


def is_declaration(section: Any) -> bool:
    """Whether a section under ``datasets`` declares a dataset, and does not name one."""
    return isinstance(section, Mapping) and not KEYS.isdisjoint(section)
