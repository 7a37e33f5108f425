"""Conversion of GGUF checkpoints (the format of llama.cpp) to folders with float32 weights.

The folders are then read like any other checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tasktransfer.core.specs import Family
from tasktransfer.encoding.tokenizer import check_vocabulary_size, load_tokenizer
from tasktransfer.files import Maker, replace_folder
from tasktransfer.models.check_parameters import Note
from tasktransfer.models.checkpoint import load_pretrained

MAKER = Maker("dequantised model", "dequantised.json", "weights")


def dequantise_checkpoint(family: Family, file: str, out: Path, weights: str, note: Note) -> None:
    """Convert a GGUF file to a checkpoint folder with config, tokenizer and float32 weights.

    The folder appears only when it is complete.

    Args:
        file: the GGUF checkpoint.
        weights: the model's identity, stored in the folder.
        note: called with weights that are missing in the file or not used.

    Raises:
        ModelError: see ``checkpoint.load_pretrained`` and ``encoding.tokenizer``.
        DataError: ``out`` contains something else.
    """
    model = load_pretrained(family, file, None, note=note)
    tokenizer = load_tokenizer(file, None, family)
    check_vocabulary_size(tokenizer, model.get_input_embeddings().weight.shape[0], file)
    with replace_folder(out, MAKER) as folder:
        _copy_without_gguf(model).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        (folder / MAKER.file).write_text(json.dumps({"weights": weights}) + "\n", encoding="utf-8")


def _copy_without_gguf(model: Any) -> Any:
    """Copy the model without its GGUF settings.

    transformers refuses to save a model that was read from GGUF, whatever its weights are.
    """
    config = type(model.config)(**model.config.to_dict())
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = type(model)._from_config(config, dtype=model.dtype)
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    return plain
