"""What another results folder offers: its finished stages, checked before any is taken."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import Stage
from tasktransfer.errors import RecordError
from tasktransfer.operate.forecast.model_size import tensor_shapes
from tasktransfer.results.predictions import read_predictions
from tasktransfer.results.records import Record, comparable, read_record
from tasktransfer.results.rounds import CHECKPOINT
from tasktransfer.results.state import PREDICTIONS, RECORD

STAGES = "stages"
_FOLDER = re.compile(r"^seed(-?\d+)-([0-9a-f]{12})$")


@dataclass(frozen=True, slots=True)
class Place:
    """A stage's folder by the known layout: stages/kind/dataset/model/label/seed-digest."""

    folder: Path
    kind: str
    dataset: str
    model: str
    label: str
    seed: int
    digest: str
    """The first 12 hex digits, as the path ends in them."""

    @property
    def path(self) -> str:
        """Relative to the results folder."""
        return "/".join((STAGES, self.kind, self.dataset, self.model, self.label, self.folder.name))


def places(results: Path) -> Iterator[Place]:
    """Every stage folder of a results folder, in the order of their names. Links are not followed,
    and what does not fit the layout is not looked at."""
    for kind in _folders(results / STAGES):
        for dataset in _folders(kind):
            for model in _folders(dataset):
                for label in _folders(model):
                    for folder in _folders(label):
                        match = _FOLDER.match(folder.name)
                        if match:
                            yield Place(
                                folder, kind.name, dataset.name, model.name, label.name,
                                int(match[1]), match[2],
                            )  # fmt: skip


def _folders(folder: Path) -> list[Path]:
    if folder.is_symlink():
        return []
    try:
        entries = [Path(e.path) for e in os.scandir(folder) if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(entries)


def checked_record(place: Place, stage: Stage | None) -> Record:
    """The record of a place, after everything that can be checked about it.

    Args:
        stage: the stage that this study expects there; None: any.

    Raises:
        RecordError: damaged, of another schema or digest, at odds with its place, or not what this
            study calls by that digest.
    """
    file = place.folder / RECORD
    record = read_record(file)
    made = record["stage"]
    problem = _misplaced(made, place) or _at_odds(record)
    if problem is None and stage is not None:
        problem = _unexpected(record, stage)
    if problem:
        raise RecordError(f"{file}: {problem}")
    return record


def _misplaced(made: Any, place: Place) -> str | None:
    for key in ("kind", "dataset", "model", "label", "seed"):
        if made[key] != getattr(place, key):
            return f"stage.{key} is {made[key]!r}, but it lies under {getattr(place, key)!r}"
    if not made["digest"].startswith(place.digest):
        return f"stage.digest is {made['digest']}, but it lies under {place.digest}"
    return None


def _at_odds(record: Record) -> str | None:
    """What the record says beside its identity must be what the identity says."""
    made: Any = record["stage"]
    identity = made["identity"]
    keys = ("dataset", "train_tasks", "select_on", "seed")
    said = {f"stage.{key}": made[key] for key in keys}
    said |= {"data_revision": record["data_revision"], "few_sample": record["few_sample"]}
    for key, value in said.items():
        identified = identity.get(key.removeprefix("stage."))
        if identified != value:
            return f"{key} is {value!r}, stage.identity says {identified!r}"
    model = identity.get("model")
    family = model.get("family") if isinstance(model, dict) else None
    if family != made["family"]:
        return f"stage.family is {made['family']!r}, stage.identity says {family!r}"
    return None


def _unexpected(record: Record, stage: Stage) -> str | None:
    """Names of models are the studies' own; everything else must be as this study has it."""
    if record["stage"]["digest"] != stage.digest:
        return f"stage.digest is {record['stage']['digest']}, expected {stage.digest}"
    tested = tuple(sorted(record["test"]))
    if tested != stage.tested:
        return f"test has results of {', '.join(tested) or 'no task'}, expected {stage.tested}"
    return None


def check_predictions(folder: Path, record: Record) -> Path | None:
    """The file of predictions, its rows, SHA-256 and stage checked against the record; None where
    the record has none.

    Raises:
        RecordError: absent, damaged, or not the one that the record was written with.
    """
    expected = record["predictions"]
    if expected is None:
        if record["test"]:
            raise RecordError(f"{folder / RECORD}: predictions: names no {PREDICTIONS}")
        return None
    file = folder / PREDICTIONS
    if expected["file"] != PREDICTIONS:
        named = expected["file"]
        raise RecordError(
            f"{folder / RECORD}: predictions.file is {named!r}, expected {PREDICTIONS!r}"
        )
    if file.is_symlink():
        raise RecordError(f"{file}: is a link; give the file itself")
    table = read_predictions(file, expected)
    stage = (table.schema.metadata or {}).get(b"stage", b"").decode("utf-8", "replace")
    if stage != record["stage"]["digest"]:
        raise RecordError(f"{file}: predictions of stage {stage}, the record beside is of another")
    return file


def checkpoint_problem(folder: Path) -> str | None:
    """What is wrong with the checkpoint of a stage's folder; None: nothing, or there is none."""
    checkpoint = folder / CHECKPOINT
    if checkpoint.is_symlink():
        return f"{checkpoint}: is a link"
    if not checkpoint.is_dir():
        return None
    for file in sorted(checkpoint.rglob("*")):
        if file.is_symlink():
            return f"{file}: is a link"
    weights = sorted(checkpoint.glob("*.safetensors"))
    if not weights:
        return f"{checkpoint}: holds no *.safetensors"
    cut = [file for file in weights if tensor_shapes(file) is None]
    return f"{cut[0]}: damaged or cut off" if cut else None


def renamed(record: Record, model: str) -> Record:
    """The record as this study would have it, where the other one calls the model otherwise."""
    theirs = record["stage"]["model"]
    if theirs == model:
        return record
    note = f"merged: the model was called {theirs}"
    provenance = record["provenance"] | {"notes": [*record["provenance"]["notes"], note]}
    stage = record["stage"] | {"model": model}
    return {**record, "stage": stage, "provenance": provenance}


def differences(ours: Record, theirs: Record) -> list[str]:
    """Where two records of one stage differ, but for provenance and times: ``key: ours, theirs``.
    The digest of the file of predictions is left out: equal predictions may be packed otherwise."""
    mine, other = (_flat(_without_packing(record)) for record in (ours, theirs))
    absent = object()
    return [
        f"{key}: {mine.get(key, absent)!r} here, {other.get(key, absent)!r} there"
        if key in mine and key in other
        else f"{key}: only {'here' if key in mine else 'there'}"
        for key in sorted(mine.keys() | other.keys())
        if mine.get(key, absent) != other.get(key, absent)
    ]


def _without_packing(record: Record) -> dict[str, Any]:
    kept = comparable(record)
    if kept["predictions"] is not None:
        kept["predictions"] = {**kept["predictions"], "sha256": None}
    return kept


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        parts = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        parts = [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    else:
        return {path: value}
    found: dict[str, Any] = {} if parts else {path: type(value).__name__}
    for key, item in parts:
        found |= _flat(item, key)
    return found
