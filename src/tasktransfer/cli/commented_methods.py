"""Methods that a new config contains as comments, so that they can be uncommented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasktransfer.config.yaml_text import format_comment, format_yaml

MORE_METHODS = """\
# More methods: remove the leading "# " of the entries that you need. `tasktransfer plan` forecasts
# the longer study. A low-rank adapter (LoRA) of each model:
{adapters}
# A prompted language model, without and with four examples. Set the folder of its checkpoint:
# - {{name: prompted, family: decoder, checkpoint: ./llm, max_length: 1536, trained: false}}
# prompted:
# - {{model: prompted, shots: [0, 4]}}
"""
"""Comments in a new config, after its models. Its entries can be uncommented where they are."""


def add_methods(text: str, models: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a config with the methods of ``MORE_METHODS`` as comments."""
    entries = [
        {**model, "name": f"{model['name']}-lora", "adapter": {"kind": "lora"}} for model in models
    ]
    adapters = "\n".join(map(format_comment, format_yaml(entries).splitlines()))
    comments = MORE_METHODS.format(adapters=adapters)
    return text.replace("\nreferences:\n", f"\n{comments}references:\n", 1)
