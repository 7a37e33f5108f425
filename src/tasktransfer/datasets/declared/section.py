"""Config section of a declared dataset: its files, its dialogues and its tasks.

A declaration is a value under ``datasets``, like the task list of a dataset of the package. A
*field* is a path of keys in a row, such as ``ticket.intent``. ``messages[].urgency`` is one value
per item of the list ``messages``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

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
from tasktransfer.core.validation import raise_problems
from tasktransfer.datasets.declared.task_section import FieldPath, TaskKey, TaskSection
from tasktransfer.errors import format_value


def _wrap_single_text(value: Any) -> Any:
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
    BeforeValidator(_wrap_single_text, json_schema_input_type=str | list[str]),
]


Texts = Annotated[tuple[FieldPath, ...], LIST, Field(min_length=2), DISTINCT]
"""Several fields of an object that are one turn each."""


class DialogueName(Section):
    """The field with the name of a row's dialogue, if names restart in each split or file."""

    field: FieldPath = Field(description="field that contains the name of the dialogue")
    per: Literal["split", "file"] = Field(
        description="scope in which the names of dialogues are unique: split or file"
    )


class DialogueSection(Section):
    """Fields that contain the dialogue of a row.

    Without ``turns`` a row is an utterance, and consecutive rows with the same ``id`` are a
    dialogue. Without ``turns`` and ``id`` a row is a dialogue of one turn.
    """

    rows: FieldPath | None = Field(
        default=None,
        description=(
            "path of the list in the file whose items are read as rows, such as scenes or "
            "episodes[].scenes; null if the file itself is a list of rows"
        ),
    )
    turns: FieldPath | None = Field(
        default=None,
        description=(
            "field with the list of a row's turns. A path such as rounds[] or rounds[].turns "
            "joins several consecutive lists. Set the key to null if each row is an utterance"
        ),
    )
    text: FieldPath | Texts | None = Field(
        default=None,
        description=(
            "field with the text of a turn. A path such as content[].text joins several parts by "
            "spaces. A list such as [question, reply] reads two turns from each object, and the "
            "field names become the speakers unless speaker is set. Set the key to null if the "
            "turns are plain texts"
        ),
    )
    speaker: FieldPath | None = Field(
        default=None,
        description=("field with the speaker of a turn; null if the speakers are unknown"),
    )
    id: FieldPath | DialogueName | None = Field(
        default=None,
        description=(
            "field with the name of the dialogue. Write {field: number, per: split} if the "
            "names are unique only within a split, or per: file if they are unique only within a "
            "file. Set the key to null to name dialogues by file and row"
        ),
    )
    order: FieldPath | None = Field(
        default=None,
        description=(
            "field by which the turns of a dialogue are sorted: a number, an ISO date, or a name "
            "that contains numbers, such as turn_12; null to keep the file's order"
        ),
    )
    skip: Literal["empty"] | None = Field(
        default=None,
        description=(
            "empty to skip turns without text and dialogues without any text; null to report "
            "such turns and dialogues as errors"
        ),
    )

    @model_validator(mode="after")
    def _check_text(self) -> Self:
        if self.turns is None and self.text is None:
            raise ValueError(
                "The section has neither turns nor text. Set text to the field with the text of "
                "the dialogue."
            )
        problems = []
        for key in ("speaker", "order"):
            if getattr(self, key) is not None and self.text is None:
                problems.append(
                    (f".{key}", "Turns that are texts have no fields. Set text, or remove the key.")
                )
        if self.order is not None and self.turns is None and self.id is None:
            problems.append(
                (".order", "A row without turns and id is a whole dialogue. Set turns or id.")
            )
        raise_problems(problems)
        return self

    @property
    def texts(self) -> tuple[str, ...]:
        """Fields that contain the text of a turn. Empty if turns are texts themselves."""
        return (self.text,) if isinstance(self.text, str) else self.text or ()

    @property
    def id_field(self) -> str | None:
        """Field that names the dialogue."""
        return self.id.field if isinstance(self.id, DialogueName) else self.id

    @property
    def by_turn(self) -> bool:
        """True if each row is a turn, so that several rows form a dialogue."""
        return self.turns is None and self.id is not None


class SharesSection(Section):
    """Fractions of the training dialogues that become a split without files."""

    dev: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        default=0.1,
        description=(
            "fraction of the training dialogues that is held out for dev if files.dev is not set"
        ),
    )
    test: Annotated[float, Field(gt=0, lt=1), NUMBER] | None = Field(
        default=None,
        description=(
            "fraction of the training dialogues that is held out for test if files.test is not "
            "set; null if a test file is required"
        ),
    )
    seed: Seed = Field(default=0, description="seed of the random sample")


class FewSampleSection(Section):
    """Subset of train and dev for a study in the few-sample setting, sampled by dialogue."""

    instances: Count | None = Field(
        default=None, description="maximum number of training instances per task"
    )
    share: Annotated[float, Field(gt=0, lt=1), NUMBER] | None = Field(
        default=None, description="fraction of the training and dev dialogues that is used"
    )
    seed: Seed = Field(default=0, description="seed of the random sample")

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if (self.instances is None) == (self.share is None):
            raise ValueError(
                "The size of the subset must be given either by instances or by share. Set "
                "exactly one of the two keys."
            )
        return self


class FilesSection(Section):
    """The files of each split."""

    train: Paths = Field(description="file with dialogues, or a list of files")
    dev: Paths | None = Field(
        default=None,
        description="file of the split; null to hold out a fraction of the training dialogues",
    )
    test: Paths | None = Field(
        default=None, description="file of the test split; required unless shares.test is set"
    )


def _wrap_train_files(value: Any) -> Any:
    return {"train": value} if isinstance(value, str | list) else value


class HubSplits(Section):
    """Names of the splits of a dataset on the hub."""

    train: Title = Field(default="train", description="name of the training split on the hub")
    dev: Title | None = Field(
        default="validation",
        description=(
            "name of the dev split on the hub; null to hold out shares.dev of "
            "the training dialogues"
        ),
    )
    test: Title | None = Field(
        default="test",
        description=(
            "name of the test split on the hub; null to hold out shares.test of the training "
            "dialogues"
        ),
    )


class Declaration(Section):
    """A declared dataset: its files or hub name, the fields of its dialogues, and its tasks."""

    files: (
        Annotated[
            FilesSection,
            BeforeValidator(
                _wrap_train_files, json_schema_input_type=FilesSection | str | list[str]
            ),
        ]
        | None
    ) = Field(
        default=None, description="files with dialogues: one per split, one for all, or a folder"
    )
    hub: Annotated[str, Text(r"[\w.-]+(/[\w.-]+)?", "write org/name")] | None = Field(
        default=None, description="dataset on the Hugging Face hub that is read instead of files"
    )
    revision: Revision | None = Field(
        default=None,
        description=("branch, tag or commit of the dataset on the hub; null to use main"),
    )
    config: Title | None = Field(
        default=None, description="configuration of the dataset on the hub"
    )
    splits: HubSplits = Field(
        default=HubSplits(), description="names of the dataset's splits on the hub"
    )
    dialogue: DialogueSection = Field(description="fields of a row that contain the dialogue")
    tasks: Annotated[dict[TaskKey, TaskSection], Field(min_length=1)] = Field(
        description="tasks of the dataset, each with its kind and the fields of its answers"
    )
    shares: SharesSection = Field(
        default=SharesSection(),
        description="fractions of the training dialogues for splits that have no files",
    )
    few_sample: FewSampleSection | None = Field(
        default=None,
        description=(
            "subset of train and dev that is used if data.few_sample is true; null to use all "
            "dialogues"
        ),
    )

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.files is None) == (self.hub is None):
            raise ValueError(
                "A dataset is read either from files or from the hub. Set exactly one of files and "
                "hub."
            )
        if self.hub is None:
            stray = {"revision": self.revision, "config": self.config}
            problem = "but only a dataset on the hub has this key. Remove it."
            raise_problems(
                (f".{key}", f"The value is {format_value(value)}, {problem}")
                for key, value in stray.items()
                if value is not None
            )
        return self

    @property
    def reading(self) -> dict[str, Any]:
        """Keys (except files and defaults) that affect how all tasks are read."""
        return self.model_dump(include={"dialogue", "shares", "few_sample"}, exclude_defaults=True)


SOURCE_KEYS = frozenset({"files", "hub"})
"""Keys that make a section of ``datasets`` a declaration."""


def is_declaration(section: Any) -> bool:
    """Return whether a section of ``datasets`` declares a new dataset."""
    return isinstance(section, Mapping) and not SOURCE_KEYS.isdisjoint(section)
