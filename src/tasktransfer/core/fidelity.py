"""Differences between the paper and its toolkit (TLiDB), with one named switch for each.

A setting has a value for every switch; a config may override single switches. ``docs/fidelity.md``
has one row per difference. The Snakefile imports this module: it uses the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

Scoring = Literal["default", "tlidb"]
"""Variants of metrics that the paper's toolkit computes in another way (``metrics``)."""

Setting = Literal["default", "paper", "tlidb"]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Behaviour of training and evaluation for each difference between paper and toolkit.

    Every switch changes numbers. Switches at their defaults are not part of a stage's identity.
    ``config.from_core`` describes each switch.
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
        """Value that represents the switches in an identity.

        It is the name of a setting that records have always had, else the switches that differ from
        their default.
        """
        for name, switches in _NAMED.items():
            if self == switches:
                return name
        return self.changed_switches

    @property
    def encoding_switches(self) -> dict[str, str]:
        """Switches that affect token IDs, if they differ from their default."""
        return {
            name: value
            for name, value in self.changed_switches.items()
            if name in _ENCODING_SWITCHES
        }

    @property
    def changed_switches(self) -> dict[str, Any]:
        """Switches that differ from their default."""
        return {
            each.name: value
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default
        }


DEFAULT = Fidelity()

_ENCODING_SWITCHES = ("several_answers", "lost_spans", "inputs", "answers", "generation_length")

_NAMED = {
    "default": DEFAULT,
    # The meaning of ``tlidb`` before the other switches were added: old stages keep their digests.
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
"""Setting → values for keys of the training section that are ``auto``."""


def get_scoring(identity: Any) -> Scoring:
    """Return a stage's scoring rules from the ``fidelity`` in its identity."""
    if isinstance(identity, Mapping):
        return "tlidb" if identity.get("scoring") == "tlidb" else "default"
    return "tlidb" if identity == "tlidb" else "default"
