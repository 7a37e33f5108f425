"""Whether a record may be submitted, read off what it says.

A study under ``rules: challenge`` is refused before anything is trained (``config.challenge``);
this looks at what was trained in the end. The identity of a record's stage says what it was
trained on, and its digest binds it; ``provenance.rules`` says under which rules its study ran. A
record of a free study is out even where it keeps every rule: nobody promised that it would. Records
from before the key existed are judged by their content.
"""

from __future__ import annotations

from typing import Any

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.challenge.rules import broken
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.runs import TransferRun
from tasktransfer.errors import ConfigError
from tasktransfer.results.records import Record


def refuse_free(config: TransferConfig, file: str) -> None:
    """Refuse a study that is not under the challenge's rules.

    Raises:
        ConfigError: ``rules`` is free.
    """
    if config.rules != "challenge":
        raise ConfigError(
            f"{file}: rules: {config.rules}: the records of a free study cannot be submitted; set "
            "rules: challenge and run it again, which trains what was trained without the rules"
        )


def ineligible(record: Record, run: TransferRun) -> list[str]:
    """Why the record of a run may not be submitted; empty if it may."""
    if record["predictions"] is None:
        return ["it has no predictions of a test set"]
    dataset = run.dataset
    if dataset not in DATASETS:
        return [f"{dataset} is no dataset of the challenge"]
    identity = record["stage"]["identity"]
    stated: list[Any] = [identity.get("few_sample"), record["few_sample"]]
    reasons = [
        str(rule)
        for rule in broken(
            dataset,
            run.sources,
            run.target,
            few_sample=all(value is True for value in stated),
            limit_test=_limit_test(identity),
        )
    ]
    if record["provenance"].get("rules") == "free":
        reasons.append(
            "it was made by a study under `rules: free`; delete it and run the study under "
            "`rules: challenge`, which trains it again"
        )
    foreign = [
        task for task in record["stage"]["train_tasks"] if task not in DATASETS[dataset].tasks
    ]
    if foreign:
        reasons.append(f"it was trained on {', '.join(foreign)}, no task of {dataset}")
    return reasons


def _limit_test(identity: dict[str, Any]) -> Any:
    training = identity.get("training")
    return training.get("limit_test") if isinstance(training, dict) else None
