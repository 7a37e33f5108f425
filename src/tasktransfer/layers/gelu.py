"""GELU by its tanh approximation (Hendrycks and Gimpel 2016, arXiv 1606.08415) as one operation.

transformers computes it step by step where a config says ``gelu_new``, as GPT-2's does: eight
passes over the widest activations of a model. torch has the same formula as one operation.
"""

from __future__ import annotations

from torch import nn
from transformers.activations import ACT2FN

SPELLINGS = ("gelu_new", "gelu_fast", "gelu_python_tanh")
"""The names in transformers' configs of the formula that is computed step by step."""


def use_one_gelu(module: nn.Module) -> None:
    """Put torch's operation in the place of every activation of ``SPELLINGS`` inside a module.

    Equal but for rounding: 5e-7 apart at most between -10 and 10, in float32.
    """
    stepwise = tuple(type(ACT2FN[name]) for name in SPELLINGS)
    for parent in [*module.modules()]:
        for name, child in parent.named_children():
            if isinstance(child, stepwise):
                setattr(parent, name, nn.GELU(approximate="tanh"))
