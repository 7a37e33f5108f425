"""The switches of ``core.fidelity`` as a config writes them: a setting, and what differs."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated, Any, get_type_hints

from pydantic import Field, create_model

from tasktransfer.config.fields import NUMBER, Section
from tasktransfer.core.fidelity import FIDELITIES, Fidelity, Setting


class _Based(Section):
    """A setting and the switches that are set in another way."""

    setting: Setting = Field(
        default="default", description="what switches are set to that are not named here"
    )


DESCRIPTIONS = {
    "scoring": "how metrics count invalid labels, unanswerable texts and several right answers",
    "multi_label": "encoders choose the labels whose sigmoid exceeds 0.5, or whose softmax "
    "exceeds 0.1",
    "backbone_dropout": "dropout inside the pre-trained model; that before an encoder's head is "
    "always on",
    "head_start": "encoders' new heads: N(0, 0.02) with fixed biases, or Xavier-uniform with "
    "torch's own",
    "batches_per_update": "batches, drawn one by one, that make up an update; batch_size is "
    "divided by it",
    "leftover_batches": "batches at an epoch's end that are too few for an update",
    "weighting_when_finetuning": "task_weighting stays on when a task is fine-tuned after several",
    "selection_metrics": "rounds are chosen by the mean of Table 1's metrics, or of all metrics of "
    "the release",
    "several_answers": "which of several right answers is trained on: the first, or one drawn for "
    "each round",
    "lost_spans": "encoders' answers that truncation cut away: left out of the loss, or the first "
    "token",
    "span_choice": "encoders' spans: the best pair in the context, or the best start and the best "
    "end of all tokens, padding included",
    "inputs": "how context and query are joined and cut: ours, or as the toolkit does",
    "answers": "generated labels: words, compared without case; tlidb: personality as 0 and 1, "
    "labels compared exactly, relations found as substrings",
    "repetition_penalty": "divides the scores of tokens that were generated, and by decoders read",
    "generation_length": "tokens of a generated answer at most: the longest label's, or the "
    "toolkit's limits",
    "exp3_steps": "algorithm exp3 explores the less the more steps it has taken (FLAD's paper), or "
    "ten times as many and one (FLAD's released code)",
}
"""What each switch decides."""


def _key(kind: Any, description: str) -> Any:
    """A switch as a key of the config; null: as the setting has it."""
    if kind is float:
        kind = Annotated[float, Field(gt=0, le=100), NUMBER]
    text = f"{description}; null: as the setting has it"
    return kind | None, Field(default=None, description=text)


_TYPES = get_type_hints(Fidelity)

FidelityConfig: Any = create_model(
    "FidelityConfig",
    __base__=_Based,
    __doc__=_Based.__doc__,
    **{each.name: _key(_TYPES[each.name], DESCRIPTIONS[each.name]) for each in fields(Fidelity)},
)


def switches_of(value: Any) -> tuple[Setting, Fidelity]:
    """The setting that a config names, and all switches."""
    if isinstance(value, str):
        return value, FIDELITIES[value]  # type: ignore[index,return-value]
    switches = value.model_dump(exclude={"setting"}, exclude_none=True)
    return value.setting, replace(FIDELITIES[value.setting], **switches)
