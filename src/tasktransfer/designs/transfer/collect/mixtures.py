"""What of a transfer study's records has to be the same, whatever records come together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from tasktransfer.designs.transfer.controls import LONGER_BASELINE
from tasktransfer.results.mixtures import PRECISION, Aspect, facts_of_data
from tasktransfer.results.records import selected_on, stage_of
from tasktransfer.results.schema import Record


def facts(
    record: Record, target: str | None = None, method: str = ""
) -> Iterator[tuple[Aspect, Any]]:
    """What of a record has to be the same in all that it is compared with. ``method``: the
    algorithm or control of the run that it scores."""
    stage, named = stage_of(record), record["node"]["identity"]
    dataset, model = stage["dataset"], stage["model"]
    yield from facts_of_data(record)
    tasks = "+".join(sorted({*stage["train_tasks"], *chain(*selected_on(record))}))
    of_tasks = f"{dataset} {tasks}, {stage['family']}"
    yield ("provenance.recipe", of_tasks), record["provenance"]["recipe"]
    yield ("family", model), stage["family"]
    yield ("model", model), named.get("model")
    # Per model: comparing models that were trained differently is a study of its own, but a delta
    # between two trainings that were is none.
    compared = f"{dataset} {model}"
    if method == LONGER_BASELINE:  # its hyperparameters are its point; they are one another's
        compared += f" {method}"
    yield ("training", compared), named.get("training")
    # What `auto` became is no part of the identity: it shows only after the training.
    yield (PRECISION, f"{dataset} {model}"), record["provenance"]["host"]["precision"]
    if target is not None:
        yield (f"sizes.{target}", dataset, stage["family"]), record["sizes"][target]
