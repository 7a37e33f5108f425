"""The tanh approximation of GELU (Hendrycks and Gimpel 2016, arXiv 1606.08415) as one operation.

For ``gelu_new`` in a config, as in GPT-2's, transformers computes it step by step, with eight
passes over the widest activations of a model. torch has the same formula as one operation.
"""

from __future__ import annotations

from torch import nn
from transformers.activations import ACT2FN

SPELLINGS = ("gelu_new", "gelu_fast", "gelu_python_tanh")
"""Names of the activations that transformers computes step by step."""


def use_fused_gelu(module: nn.Module) -> None:
    """Replace each GELU activation (``SPELLINGS``) in a module by torch's operation.

    Results differ by rounding only: at most 5e-7 between -10 and 10, in float32.
    """
    stepwise = tuple(type(ACT2FN[name]) for name in SPELLINGS)
    for parent in [*module.modules()]:
        for name, child in parent.named_children():
            if isinstance(child, stepwise):
                setattr(parent, name, nn.GELU(approximate="tanh"))
