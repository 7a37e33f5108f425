"""Where the paper and its toolkit (TLiDB) differ, one named switch each.

A setting names a value for every switch; a config may override single ones. ``docs/fidelity.md``
has a row for each difference. Pure, standard library only: the Snakefile imports this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

Scoring = Literal["default", "tlidb"]
"""How metrics count what the paper's toolkit counts in another way (``metrics``)."""

Setting = Literal["default", "paper", "tlidb"]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """What a training and its evaluation do where paper and toolkit differ.

    Every switch changes numbers. At their defaults they stay out of a stage's identity. What each
    decides is said where the config has it, in ``config.fidelity``.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    scoring: Scoring = "default"
    multi_label: Literal["sigmoid", "softmax"] = "sigmoid"
    backbone_dropout: bool = True
    head_start: Literal["normal", "xavier"] = "normal"
    batches_per_update: Literal[1, 3] = 1
    leftover_batches: Literal["own_update", "next_epoch"] = "own_update"
    weighting_when_finetuning: bool = False
    selection_metrics: Literal["table_1", "release"] = "table_1"
    several_answers: Literal["first", "drawn"] = "first"
    lost_spans: Literal["skipped", "first_token"] = "skipped"
    span_choice: Literal["pair", "edges"] = "pair"
    inputs: Literal["default", "tlidb"] = "default"
    answers: Literal["words", "tlidb"] = "words"
    repetition_penalty: float = 1.0
    generation_length: Literal["card", "tlidb"] = "card"
    exp3_steps: Literal["taken", "released"] = "taken"

    @property
    def identity(self) -> str | dict[str, Any]:
        """What stands for it in an identity: its name where records have always had one, else the
        switches that are not at their default."""
        for name, switches in _NAMED.items():
            if self == switches:
                return name
        return self.changed

    @property
    def of_encoding(self) -> dict[str, Any]:
        """The changed switches that token ids depend on."""
        return {name: value for name, value in self.changed.items() if name in _OF_ENCODING}

    @property
    def changed(self) -> dict[str, Any]:
        """The switches that are not at their default."""
        return {
            each.name: value
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default
        }


DEFAULT = Fidelity()

_OF_ENCODING = ("several_answers", "lost_spans", "inputs", "answers", "generation_length")

_NAMED = {
    "default": DEFAULT,
    # What ``tlidb`` meant before the other switches came: trainings of then keep their digest.
    "tlidb": Fidelity(scoring="tlidb", multi_label="softmax"),
}

FIDELITIES: Mapping[Setting, Fidelity] = {
    "default": DEFAULT,
    "paper": DEFAULT,
    "tlidb": Fidelity(
        scoring="tlidb",
        multi_label="softmax",
        backbone_dropout=False,
        head_start="xavier",
        batches_per_update=3,
        leftover_batches="next_epoch",
        weighting_when_finetuning=True,
        selection_metrics="release",
        several_answers="drawn",
        lost_spans="first_token",
        span_choice="edges",
        inputs="tlidb",
        answers="tlidb",
        repetition_penalty=5.0,
        generation_length="tlidb",
    ),
}

TRAINING: Mapping[Setting, Mapping[str, str]] = {
    "default": {"task_weighting": "inverse_sqrt", "loss_on": "answer"},
    "paper": {"task_weighting": "none", "loss_on": "answer"},
    "tlidb": {"task_weighting": "inverse_sqrt", "loss_on": "sequence"},
}
"""What a setting says of keys of the training section that are ``auto``."""


def scoring_of(identity: Any) -> Scoring:
    """How a stage was scored, read off the ``fidelity`` of its identity."""
    if isinstance(identity, Mapping):
        return "tlidb" if identity.get("scoring") == "tlidb" else "default"
    return "tlidb" if identity == "tlidb" else "default"
