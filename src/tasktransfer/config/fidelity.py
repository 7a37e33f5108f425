"""The section ``training.fidelity``: a setting of ``core.fidelity``, and single switches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import Field

from tasktransfer.config.fields import NUMBER, Section
from tasktransfer.config.from_core import CoreKey, define_section, list_types
from tasktransfer.config.renamed_keys import restore_old_names
from tasktransfer.core.fidelity import FIDELITIES, Fidelity, Setting


class _FidelityBase(Section):
    """A setting, and switches that differ from it."""

    setting: Setting = Field(
        default="default",
        description="predefined setting that provides the values of all switches not listed here",
    )


DESCRIPTIONS = {
    "scoring": "treatment of invalid labels, unanswerable texts and several gold answers in the "
    "metrics",
    "multi_label": "labels that encoders predict: labels with a sigmoid above 0.5, or with a "
    "softmax above 0.1",
    "backbone_dropout": "dropout inside the pretrained model; dropout before an encoder's head is "
    "always on",
    "head_start": "initialisation of encoders' new heads: N(0, 0.02) with fixed biases, or "
    "Xavier-uniform with torch's default biases",
    "batches_per_update": "number of separately sampled batches per update; batch_size is "
    "divided by this number",
    "leftover_batches": "use of batches at the end of an epoch that are too few for an update",
    "weighting_when_finetuning": "true to apply task_weighting also in fine-tuning after "
    "multitask training",
    "selection_metrics": "metrics whose mean selects the best round: the metrics in Table 1, or "
    "all metrics of the release",
    "several_answers": "gold answer to train on if there are several: the first, or one sampled "
    "per round",
    "lost_spans": "loss for encoders' answer spans that truncation removed: none, or the loss of "
    "the first token",
    "span_choice": "answer span of encoders: the best pair in the context, or the best start and "
    "the best end among all tokens, including padding",
    "inputs": "joining and truncation of context and query: our method, or the method of TLiDB",
    "answers": "generated labels: words that are compared without case; with tlidb, personality "
    "as 0 and 1, labels compared exactly, relations matched as substrings",
    "repetition_penalty": "divisor for the scores of tokens that were generated or, by decoders, "
    "read in the prompt",
    "generation_length": "maximum number of generated tokens: the length of the longest label, or "
    "the limits of TLiDB",
    "exp3_steps": "step count t of algorithm exp3, whose exploration decreases with t: the number "
    "of steps (FLAD's paper), or ten times that number plus one (FLAD's released code)",
}
"""Switch → its description. ``renamed_keys`` has the switches whose key has another name."""

_PATH = "training.fidelity"


def _define_switch(field: str, kind: Any) -> CoreKey:
    """Return a switch as a key of the config. Null takes the setting's value."""
    markers = (Field(gt=0, le=100), NUMBER) if kind is float else ()
    text = f"{DESCRIPTIONS[field]}; null to use the setting's value"
    return CoreKey(text, markers, kind=kind | None, default=None)


FidelityConfig: Any = define_section(
    "FidelityConfig",
    _PATH,
    _FidelityBase,
    Fidelity,
    {field: _define_switch(field, kind) for field, kind in list_types(Fidelity).items()},
)


def resolve_switches(value: Any) -> tuple[Setting, Fidelity]:
    """Return the setting that a config names, and the values of all switches."""
    if isinstance(value, str):
        return value, FIDELITIES[value]  # type: ignore[index,return-value]
    section = value.model_dump(exclude={"setting"}, exclude_none=True)
    switches = restore_old_names(section, _PATH)
    return value.setting, replace(FIDELITIES[value.setting], **switches)
