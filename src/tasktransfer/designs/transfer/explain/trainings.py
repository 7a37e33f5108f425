"""What is known of one training: its state, its record, and how to run it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import Stage
from tasktransfer.data.prepared import as_prepared
from tasktransfer.designs.transfer.collect.loading import relative
from tasktransfer.designs.transfer.collect.missing import Holes
from tasktransfer.errors import RecordError
from tasktransfer.results.records import Record, read_record
from tasktransfer.results.state import LOG, RECORD


@dataclass(frozen=True, slots=True)
class Workflow:
    """How this study is run: its config file and what is laid over it, for commands to print."""

    results: Path
    config_file: str
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def snakemake(self, *targets: str) -> str:
        """A command that makes files. Targets come first: ``--config`` and ``--configfile`` take
        every word that follows for their own."""
        words = ["snakemake", *targets, "--cores", "1"]
        if self.overrides:
            values = (f"{key}={json.dumps(value)}" for key, value in self.overrides.items())
            words += ["--config", *values]
        return shlex.join([*words, "--configfile", self.config_file])

    def again(self, folder: str) -> list[str]:
        """The commands that train a planned stage once more. Its record is deleted first, since
        what is there is done, whatever its age."""
        record = f"{self.results}/{folder}/{RECORD}"
        return [shlex.join(["rm", "-f", record]), self.snakemake(record)]


def planned_training(stage: Stage, workflow: Workflow, holes: Holes) -> dict[str, Any]:
    """A stage of the study's plan. Keys as in ``recorded_training``, and ``commands``."""
    planned = {
        "digest": stage.digest,
        "kind": stage.kind,
        "label": stage.label,
        "seed": stage.seed,
        "train_tasks": list(stage.train_tasks),
        "select_on": list(stage.select_on),
        "parents": [parent.digest for parent in stage.parents],
    }
    recorded = _training(stage.path, workflow, holes)
    # What the plan says comes last: the record may be damaged, or another's.
    return {**recorded, **planned, "in_plan": True, "commands": workflow.again(stage.path)}


def recorded_training(record: str, workflow: Workflow, holes: Holes) -> dict[str, Any]:
    """A training that only its record speaks of (``record`` is relative to the results folder):
    the study's plan has it no more, and no command makes it."""
    folder = record.removesuffix(f"/{RECORD}")
    return {**_training(folder, workflow, holes), "in_plan": False, "commands": []}


def _training(folder: str, workflow: Workflow, holes: Holes) -> dict[str, Any]:
    place = workflow.results / folder
    state, error = holes.state(folder)
    log = place / LOG
    said: dict[str, Any] = {
        "folder": str(place),
        "record": str(place / RECORD),
        "log": str(log) if log.exists() else None,
        "state": state,
        "error": error,
    }
    try:
        record = as_prepared(read_record(place / RECORD), workflow.results)
    except RecordError:
        return said
    return {**said, **_of_record(record, place)}


def _of_record(record: Record, place: Path) -> dict[str, Any]:
    stage, origin = record["stage"], record["provenance"]
    predictions = record["predictions"]
    return {
        "digest": stage["digest"],
        "kind": stage["kind"],
        "label": stage["label"],
        "seed": stage["seed"],
        "train_tasks": stage["train_tasks"],
        "select_on": stage["select_on"],
        "parents": stage["parents"],
        "hyperparameters": stage["identity"].get("training"),
        "model": stage["identity"].get("model"),
        "scores": {task: result["score"] for task, result in record["test"].items()},
        "dev_score": record["dev_score"],
        "best_epoch": record["best_round"],
        "epochs": len(record["rounds"]),
        "synthetic": record["synthetic"],
        "few_sample": record["few_sample"],
        "data_revision": record["data_revision"],
        "predictions": predictions
        and {
            "path": str(place / predictions["file"]),
            "rows": predictions["rows"],
            "sha256": predictions["sha256"],
        },
        "recipe": origin["recipe"],
        "commit": origin["commit"],
        "dirty": origin["dirty"],
        "tasktransfer": origin["tasktransfer"],
        "versions": origin["versions"],
        "study": origin["study"],
        "config_digest": origin["config_digest"],
        "host": dict(origin["host"]),
        "started": origin["started"],
        "seconds": origin["seconds"].get("total", sum(origin["seconds"].values())),
        "notes": origin["notes"],
    }


def chain_of_record(
    record: str, workflow: Workflow, holes: Holes, by_digest: Mapping[str, str]
) -> list[dict[str, Any]]:
    """A training that is in no plan and those before it, as far as records tell: first to last.

    ``by_digest``: first 12 digits of a digest → record, relative to the results folder.
    """
    chain = [recorded_training(record, workflow, holes)]
    while parents := chain[0].get("parents"):
        before = by_digest.get(parents[0][:12])
        if before is None:
            break
        chain.insert(0, recorded_training(before, workflow, holes))
    return chain


def places_by_digest(paths: Sequence[Path], results: Path) -> dict[str, str]:
    """First 12 digits of a stage's digest, as its folder's name ends in them → its record."""
    return {path.parent.name[-12:]: relative(path, results) for path in paths}
