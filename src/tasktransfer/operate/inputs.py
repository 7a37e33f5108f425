"""What trainings are made from: dialogues, token ids, tiny models; how far each of them is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer import locks
from tasktransfer.config import TINY
from tasktransfer.datasets.tiny_world import PARTS
from tasktransfer.results.state import last_error
from tasktransfer.results.study import Study


@dataclass(frozen=True, slots=True)
class _Input:
    """``whole``: what a complete one holds. ``log``: of the job that makes it."""

    label: str
    folder: Path
    whole: Path
    log: Path


def unfinished_inputs(study: Study) -> list[dict[str, Any]]:
    """Inputs that a job has begun and not finished, as plain data: ``label``, ``state`` ("running",
    "failed" or "interrupted"), ``error`` (the last line of a failed one's) and ``log``."""
    found = []
    for item in _inputs(study):
        if item.whole.exists() or not item.log.exists():
            continue
        error = last_error(item.log)
        held = locks.is_held(item.folder.parent / f".{item.folder.name}.lock")
        state = "running" if held else "failed" if error else "interrupted"
        told = {"label": item.label, "state": state, "error": error if state == "failed" else None}
        found.append({**told, "log": str(item.log)})
    return found


def _inputs(study: Study) -> Iterator[_Input]:
    """In the order in which they are made; logs as the rules of data.smk name them."""
    logs = Path(study.config.results, "logs")
    tiny = [model.name for model in study.config.models if model.checkpoint == TINY]
    if study.config.data.generated or tiny:
        world = Path(study.tiny_world)
        yield _Input("tiny world", world, world, logs / "tiny_world.log")
    caches = {study.instances(dataset.name): dataset.name for dataset in study.config.datasets}
    if tiny:
        caches |= {study.tiny_instances(name): name for name in PARTS}
    for cache, source in caches.items():
        folder = Path(cache)
        log = logs / "instances" / f"{folder.name}.log"
        yield _Input(f"data of {source}", folder, folder / "manifest.json", log)
    for name in tiny:
        folder = Path(study.tiny_model(name))
        log = logs / "models" / f"{folder.name}.log"
        yield _Input(f"tiny model {name}", folder, folder / "config.json", log)
    for encoded, (data, model) in study.encoded_folders.items():
        folder = Path(encoded)
        log = logs / "encoded" / folder.parent.name / f"{folder.name}.log"
        label = f"token ids of {data.label} for {model}"
        yield _Input(label, folder, folder / "manifest.json", log)
