"""Conversion of records from schemas 2 and 3 to schema 4; unchanged parts are validated later.

Schema 2 had one form for trainings (``stage``, ``test``, ``predictions``) and another for derived
data, fits and evaluations (``node``, ``measures``, ``rows``). In schema 3 a training had one
selection, which its node named. Neither is written any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasktransfer.core.cuts import collect_limits
from tasktransfer.errors import RecordError

COST = (
    *("tokens", "samples", "samples_per_second", "tokens_per_second", "parameters"),
    *("peak_memory_mb", "peak_gpu_memory_mb", "paths", "energy_joules"),
)
"""Keys of a training's provenance that are grouped since schema 3."""

OLD = (2, 3)
"""Old schemas that can be read in addition to the current one."""


def upgrade_record(old: dict[str, Any]) -> dict[str, Any]:
    """Convert a record of an old schema to schema 4 without changing ``old``.

    Raises:
        RecordError: a part is missing or has the wrong type.
    """
    if old["schema"] == 2:
        old = _convert_training(old) if "stage" in old else _convert_other_node(old)
    node = _require_object(old, "node")
    course = _require_object(old, "training") if node.get("kind") == "stage" else None
    selected = {"training": _convert_rounds(course, node.get("select_on"))} if course else {}
    named = {key: value for key, value in node.items() if key != "select_on"}
    return {**old, **selected, "schema": 4, "node": named}


def _convert_rounds(course: dict[str, Any], select_on: Any) -> dict[str, Any]:
    """Convert the rounds of a training that had one selection."""
    recorded = course.get("rounds")
    rounds = (
        [entry for entry in recorded if isinstance(entry, dict)]
        if isinstance(recorded, list)
        else []
    )
    chosen = {
        "select_on": select_on,
        "round": course.get("best_round"),
        "dev_score": course.get("dev_score"),
        "scores": [entry.get("selection_score") for entry in rounds],
    }
    without = [{k: v for k, v in entry.items() if k != "selection_score"} for entry in rounds]
    rest = {k: v for k, v in course.items() if k not in ("best_round", "dev_score")}
    # If it is not a list of rounds, the schema 4 check reports it.
    return {**rest, **({"rounds": without} if rounds else {}), "selections": [chosen]}


def _require_object(record: Mapping[str, Any], key: str) -> dict[str, Any]:
    if key not in record:
        raise RecordError(f"{key}: missing")
    value = record[key]
    if not isinstance(value, dict):
        raise RecordError(f"{key}: found {type(value).__name__}, expected an object")
    return value


def _convert_training(old: dict[str, Any]) -> dict[str, Any]:
    stage, provenance = _require_object(old, "stage"), _require_object(old, "provenance")
    if "node" in old:
        raise RecordError("node: unknown key in a training of schema 2")
    renamed = ("schema", "stage", "test", "predictions", "rounds", "best_round", "dev_score")
    named = {key: value for key, value in stage.items() if key != "kind"}
    if "kind" in stage:
        named["step"] = stage["kind"]
    course = {key: old[key] for key in ("rounds", "best_round", "dev_score") if key in old}
    return {
        **{key: value for key, value in old.items() if key not in renamed},
        "schema": 3,
        "node": {"kind": "stage", **named},
        "training": course,
        "results": {
            task: _convert_result(task, result)
            for task, result in _require_object(old, "test").items()
        },
        **({"rows": old["predictions"]} if "predictions" in old else {}),
        "provenance": {
            **{key: value for key, value in provenance.items() if key not in COST},
            **_extract_cuts(stage),
            "training": {key: value for key, value in provenance.items() if key in COST},
        },
    }


def _convert_result(task: str, result: Any) -> dict[str, Any]:
    if not isinstance(result, dict):
        raise RecordError(f"test.{task}: found {type(result).__name__}, expected an object")
    if "metrics" not in result:
        raise RecordError(f"test.{task}.metrics: missing")
    return {"measures" if key == "metrics" else key: value for key, value in result.items()}


def _convert_other_node(old: dict[str, Any]) -> dict[str, Any]:
    node, provenance = _require_object(old, "node"), _require_object(old, "provenance")
    instances, measures = _require_object(old, "instances"), _require_object(old, "measures")
    identity = _require_object(node, "identity")
    derived = node.get("kind") == "data"
    named = _require_object(identity, "derived") if derived else identity
    settings = named.get("settings", {}) if derived else identity
    split = "train" if derived else identity.get("split", "test")
    results = {
        task: {
            "measures": values,
            "score": values.get("score") if isinstance(values, dict) else None,
            "instances": instances.get(task, 0),
        }
        for task, values in measures.items()
    }
    return {
        **{k: v for k, v in old.items() if k not in ("schema", "instances", "measures")},
        "schema": 3,
        "data_revision": identity.get("data_revision"),
        "few_sample": bool(settings.get("few_sample", False)),
        "sizes": {task: {split: count} for task, count in instances.items()},
        "results": {} if derived else results,
        **({"report": measures} if derived and measures else {}),
        "provenance": {
            **provenance,
            "recipe": named.get("library", 1),
            "seconds": {"total": provenance.get("seconds")},
            **_extract_cuts(node),
        },
    }


def _extract_cuts(node: Mapping[str, Any]) -> dict[str, Any]:
    cuts = collect_limits(node.get("identity"))
    return {"cuts": cuts} if cuts else {}
