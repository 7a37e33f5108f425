"""Comparison of baselines with references on the dev split (``check_baselines``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasktransfer.core.nodes import Stage
from tasktransfer.designs.transfer.baseline_check import CheckedTarget, Target
from tasktransfer.designs.transfer.runs import BASELINE, NO_MODEL, is_check
from tasktransfer.results.collect import Collected
from tasktransfer.results.records import get_selected_round


def compare_baselines_with_references(
    collected: Collected, targets: Mapping[str, Sequence[str]]
) -> list[CheckedTarget]:
    """Compare the baselines of targets with the references on the dev split.

    Args:
        collected: records of the baselines and the references.
        targets: dataset → targets.

    Raises:
        RecordError: a record does not have a dev score.
    """
    baselines: dict[Target, list[float]] = {}
    references: dict[Target, dict[str, float]] = {}
    for run in collected.runs:
        dataset, model, target = run.about["dataset"], run.model, run.about["target"]
        if is_check(run):
            results = collected.record(run.judged[0])["results"]
            for task, result in results.items():
                by_name = references.setdefault((dataset, model, task), {})
                if result["score"] is not None:
                    by_name[run.about["reference"]] = result["score"]
        elif run.method == BASELINE and target in targets.get(dataset, ()):
            (stage,) = run.judged
            assert isinstance(stage, Stage)
            score = get_selected_round(collected.record(stage), stage.selection.tasks).dev_score
            baselines.setdefault((dataset, model, target), []).append(score)
    return [
        _compare_with_references(
            key,
            scores,
            {**references.get((key[0], NO_MODEL, key[2]), {}), **references.get(key, {})},
        )
        for key, scores in baselines.items()
    ]


def _compare_with_references(
    key: Target, scores: Sequence[float], references: Mapping[str, float]
) -> CheckedTarget:
    mean = sum(scores) / len(scores)
    best = max(references, key=references.__getitem__, default=None)
    highest = None if best is None else references[best]
    dataset, model, target = key
    return {
        "dataset": dataset,
        "model": model,
        "target": target,
        "dev_score": mean,
        "reference": best,
        "reference_dev_score": highest,
        "learned": highest is None or mean > highest,
    }
