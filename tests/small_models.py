"""Small random models of the three families, with tokenizers trained on given text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from tasktransfer.data.cache import instance_file, read_instances, write_instances
from tasktransfer.models.tiny import new_model, new_tokenizer
from tasktransfer.stage import Family


def make_model(family: Family, texts: Sequence[str], folder: Path) -> Path:
    """A random model that trains in moments, saved as any checkpoint is."""
    torch.manual_seed(0)
    tokenizer = new_tokenizer(family, list(texts))
    new_model(family, tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def first_instances(full: Path, folder: Path, tasks: Sequence[str], count: int) -> Path:
    """A copy of an instance cache with the first ``count`` instances of each split."""
    folder.mkdir(parents=True)
    manifest = json.loads((full / "manifest.json").read_text())
    for task in tasks:
        for split in ("train", "dev", "test"):
            rows = read_instances(full, task, split)[:count]
            write_instances(folder / instance_file(task, split), rows)
            manifest["tasks"][task][split]["samples"] = len(rows)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
