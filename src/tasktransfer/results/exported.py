"""The file ``tasktransfer.json`` in the folder of an exported model.

It has what a prediction needs besides weights and tokenizer, and the origin of the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from tasktransfer.core.specs import REFUSE_UNKNOWN
from tasktransfer.errors import ModelError
from tasktransfer.files import Maker, json_text
from tasktransfer.tasks.card import Instance, Prompt, Task

FILE = "tasktransfer.json"
MAKER = Maker("folder of an exported model", FILE, "exported")
VERSION = 1

Layout = Literal["transformers", "sentence_transformers", "tasktransfer"]
Reader = Literal["encoder", "embeddings", "neighbours", "words"]
Scope = Literal["dialogue", "turn", "last_turn"]
_REMEDY = "Export the model again with `tasktransfer export-model`"


@dataclass(frozen=True)
class Inputs:
    """Conversion of a dialogue to the inputs of a model.

    Attributes:
        scope: part of a dialogue that has a label: the dialogue, each turn, or its last turn.
        keeps: part of the context that is kept if an input is too long.
        max_length: maximum sequence length in tokens, including special tokens. None if the model
            reads words.
        query: template of the text next to the context. Empty if there is none.
        first: segment that is read first.
        turn: text of a turn. A turn without a speaker is its text alone.
        separator: text between turns.
        dialogue: section ``dialogue`` of a declaration, which reads files like the training files.
            None to guess it from a file.
        fields: name of a field in ``query`` → its path in a row or turn.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    scope: Scope
    keeps: Literal["end", "beginning", "both"]
    max_length: int | None
    query: str = ""
    first: Literal["query", "context"] = "query"
    turn: Literal["{speaker}: {text}"] = "{speaker}: {text}"
    separator: Literal[" "] = " "
    dialogue: dict[str, Any] | None = None
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def query_fields(self) -> tuple[str, ...]:
        """Names of the fields in ``query``."""
        return tuple(dict.fromkeys(re.findall(r"\{(\w+)\}", self.query)))


@dataclass(frozen=True)
class ExportedModel:
    """An exported model.

    Attributes:
        exported: version of this file's format.
        layout: library that loads the folder besides this package: transformers (as a sequence
            classifier), sentence-transformers, or none.
        reader: type of the model: a fine-tuned encoder; logistic regression on embeddings or on
            TF-IDF of words; or the nearest neighbour among embeddings.
        pooling: states that an encoder's head reads; None if the model reads words.
        parts: texts of an input that a reference reads separately, see ``evaluation.portable``.
        labels: labels, in the order of the logits.
        temperature: divisor of the logits before the softmax.
        min_probability: probability below which a person should label an input, suggested by dev
            (``stats.calibration.suggest_threshold``); None if dev has too few right predictions.
        calibration, scores, provenance: facts for people; predictions do not use them.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    exported: int
    layout: Layout
    reader: Reader
    method: str
    dataset: str
    task: str
    kind: Literal["utterance_classification", "dialogue_classification"]
    labels: tuple[str, ...]
    inputs: Inputs
    pooling: Literal["pooler", "first_token", "mean", "turn"] | None = None
    parts: tuple[str, ...] = ()
    temperature: float = 1.0
    min_probability: float | None = None
    calibration: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def card(self) -> Task:
        """The task's card, with the fields that inputs and labels need."""
        return Task(
            name=self.task,
            short=self.task,
            dataset=self.dataset,
            kind=self.kind,
            labels=self.labels,
            metrics=(),
            query=self.inputs.query,
            prompt=Prompt("", 0),
            description="",
            citation="",
            licence="",
            keeps=self.inputs.keeps,
            first=self.inputs.first,
        )

    def build_instance(
        self, name: str, context: str, focus: int, query: Mapping[str, str], dialogue: str = ""
    ) -> Instance:
        """Return an instance of an input to the model, with a placeholder as the answer."""
        answer = (self.labels[0],)
        return Instance(name, dialogue, self.task, context, focus, dict(query), (), answer)

    def write(self, folder: Path) -> None:
        """Write ``tasktransfer.json`` into a folder."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False)
        (folder / FILE).write_text(f"{text}\n", encoding="utf-8")


def read_exported_model(folder: Path) -> ExportedModel:
    """Read ``tasktransfer.json`` from the folder of an exported model.

    Raises:
        ModelError: the folder does not contain an exported model, or the file is damaged.
    """
    from pydantic import ValidationError  # noqa: PLC0415  # not needed to plan

    file = folder / FILE
    try:
        value = json_text.read(file)
    except OSError as error:
        raise ModelError(
            f"{file}: The file cannot be read ({error.strerror}). Specify a folder that "
            "`tasktransfer export-model` wrote."
        ) from None
    except ValueError as error:
        raise ModelError(f"{file}: The file is not valid JSON ({error}). {_REMEDY}.") from None
    version = value.get("exported") if isinstance(value, dict) else None
    if version != VERSION or isinstance(version, bool):
        raise ModelError(
            f"{file}: The version of the export is {version!r}, but it must be {VERSION}. Use the "
            "version of tasktransfer that wrote the export, or export the model again."
        )
    try:
        read: ExportedModel = _build_adapter().validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        raise ModelError(
            f"{file}: The value of {key} is not valid ({problem['msg']}). {_REMEDY}."
        ) from None
    if len(set(read.labels)) < max(2, len(read.labels)) or not read.temperature > 0:
        raise ModelError(
            f"{file}: The file must contain two or more distinct labels and a positive "
            f"temperature. {_REMEDY}."
        )
    return read


@cache
def _build_adapter() -> Any:
    """Return pydantic's validator for the description of an exported model."""
    from pydantic import TypeAdapter  # noqa: PLC0415  # not needed to plan

    return TypeAdapter(ExportedModel)
