"""What trainings are made from: dialogues, token ids, tiny models; how far each of them is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasktransfer.config import TINY
from tasktransfer.datasets.tiny_world import PARTS
from tasktransfer.files import locks
from tasktransfer.results.state import last_error
from tasktransfer.results.study import Study


def unfinished_inputs(study: Study) -> list[dict[str, Any]]:
    """Inputs that a job has begun and not finished, as plain data: ``label``, ``state`` ("running",
    "failed" or "interrupted"), ``error`` (the last line of a failed one's) and ``log``."""
    unfinished = []
    for label, folder, whole, log in _inputs(study):
        if whole.exists() or not log.exists():
            continue
        error = last_error(log)
        held = locks.is_held(folder.parent / f".{folder.name}.lock")
        state = "running" if held else "failed" if error else "interrupted"
        error = error if state == "failed" else None
        unfinished.append({"label": label, "state": state, "error": error, "log": str(log)})
    return unfinished


def _inputs(study: Study) -> Iterator[tuple[str, Path, Path, Path]]:
    """Label, folder, what a complete one holds and the log of the job that makes it, in the order
    in which they are made; logs as the rules of data.smk name them."""
    logs = Path(study.config.results, "logs")
    tiny = [model.name for model in study.config.models if model.checkpoint == TINY]
    if study.config.data.generated or tiny:
        world = Path(study.tiny_world)
        yield ("tiny world", world, world, logs / "tiny_world.log")
    caches = {study.instances(name): name for name in study.config.dataset_names}
    if tiny:
        caches |= {study.tiny_instances(name): name for name in PARTS}
    for cache, source in caches.items():
        folder = Path(cache)
        log = logs / "instances" / f"{folder.name}.log"
        yield (f"data of {source}", folder, folder / "manifest.json", log)
    for name in tiny:
        folder = Path(study.tiny_model(name))
        log = logs / "models" / f"{folder.name}.log"
        yield (f"tiny model {name}", folder, folder / "config.json", log)
    for encoded, (data, model) in study.encoded_folders.items():
        folder = Path(encoded)
        log = logs / "encoded" / folder.parent.name / f"{folder.name}.log"
        label = f"token ids of {data.label} for {model}"
        yield (label, folder, folder / "manifest.json", log)
