"""Records of schema 1, which named the one run that they were of: checked, and made schema 2.

What schema 2 has as well is checked there. Nothing writes schema 1 any more.
"""

from __future__ import annotations

from typing import Any

from tasktransfer.errors import RecordError

ONLY_HERE = ("run", "score", "epochs", "best_epoch")
NOT_HERE = ("rounds", "best_round")


def upgraded(old: dict[str, Any]) -> dict[str, Any]:
    """A record of schema 1 as schema 2; ``old`` is left as it is.

    Raises:
        RecordError: a key that only schema 1 has is missing or contradicts the rest, or one is
            there that only schema 2 has.
    """
    for key in ONLY_HERE:
        if key not in old:
            raise RecordError(f"{key}: missing")
    for key in NOT_HERE:
        if key in old:
            raise RecordError(f"{key}: unknown key, schema 1 has none")
    if isinstance(old.get("stage"), dict):
        problem = _parent_problem(old["stage"]) or _run_problem(old)
        if problem:
            raise RecordError(problem)
    new = {key: value for key, value in old.items() if key not in ONLY_HERE}
    new["schema"] = 2
    new["rounds"], new["best_round"] = old["epochs"], old["best_epoch"]
    if isinstance(old["epochs"], list):
        new["rounds"] = [_round(epoch) for epoch in old["epochs"]]
    if isinstance(old.get("stage"), dict):
        stage = dict(old["stage"])
        parent = stage.pop("parent")
        new["stage"] = {**stage, "parents": [] if parent is None else [parent]}
    return new


def _round(epoch: Any) -> Any:
    if not isinstance(epoch, dict) or "epoch" not in epoch:
        return epoch
    return {"round": epoch["epoch"], **{k: v for k, v in epoch.items() if k != "epoch"}}


def _parent_problem(stage: dict[str, Any]) -> str | None:
    """Where a stage does not say its one parent, or says it in the words of schema 2, or None."""
    if "parents" in stage:
        return "stage.parents: unknown key, schema 1 has none"
    return None if "parent" in stage else "stage.parent: missing"


def _run_problem(old: dict[str, Any]) -> str | None:
    """Where the run of a record contradicts the rest of it, or None."""
    run, stage, test = old["run"], old["stage"], old.get("test")
    if run is None:
        if old["score"] is not None or test or old.get("predictions"):
            return "run: null, but the record has a score, a test result or predictions"
        return None
    if not isinstance(run, dict) or not isinstance(test, dict):
        return f"run: found {type(run).__name__}, expected an object or null"
    for key in ("dataset", "model", "family", "seed"):
        if key not in run or run[key] != stage.get(key):
            return f"run.{key}: {run.get(key)!r}, but stage.{key} is {stage.get(key)!r}"
    result = test.get(run.get("target"))
    if not isinstance(result, dict):
        return f"test: no result of the target {run.get('target')}"
    if old["score"] != result.get("score"):
        return f"score: {old['score']}, but test.{run['target']}.score is {result.get('score')}"
    return None
