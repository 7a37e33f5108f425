"""Methods that a study compares on a target, from the simplest to the most complex."""

from __future__ import annotations

from tasktransfer.core.references import REFERENCES
from tasktransfer.core.specs import ModelSpec

FINE_TUNING, ADAPTER, TRANSFER, PROMPTED = "fine_tuning", "adapter", "transfer", "prompted"

METHODS = {
    **REFERENCES,
    FINE_TUNING: "fine-tuning",
    ADAPTER: "fine-tuning of an adapter",
    TRANSFER: "transfer from the source that is best on dev",
    PROMPTED: "prompted model",
}
"""Method → label, in the order of complexity.

A constant and a model of word counts need no language model. Two references need one forward pass
per dialogue, and nearest neighbours also keep all training embeddings. Contrastive fine-tuning
trains the model for few updates and without a head. Fine-tuning trains it with a head, an adapter
adds settings and parts to it, and transfer trains it several times. A prompted model is usually
many times larger, which makes each prediction expensive.
"""


def format_training_name(model: ModelSpec) -> str:
    """Return the method of a model's trainings: fine-tuning of all weights or of an adapter."""
    is_adapted = model.adapter is not None or model.adapter_reduction is not None
    return ADAPTER if is_adapted else FINE_TUNING


def format_method(method: str) -> str:
    """Return the label of a method for sentences."""
    return METHODS[method].replace(", ", " with ")
