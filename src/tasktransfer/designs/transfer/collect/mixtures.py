"""Numbers that do not belong together never meet in one table.

A cell's number is a difference of scores: it means something only if data, model, hyperparameters
and recipe of both were the same. Content digests see to that within one study's plan; this module
holds it for whatever records come together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tasktransfer.core.digests import canonical_json
from tasktransfer.designs.transfer.controls import LONGER_BASELINE
from tasktransfer.errors import RecordError
from tasktransfer.results.records import stage_of
from tasktransfer.results.schema import Record

_REMEDY = "keep them in separate results folders, or collect with the plan of one study"
_PRECISION = "provenance.host.precision"
_REMEDIES = {
    _PRECISION: "training.precision: auto became something else on another machine: name the "
    "precision in the config, or remove the folders of one of them and train these again on the "
    "machines of the others"
}

Aspect = tuple[str, ...]
"""What is compared, and of what: ("data_revision", "DailyDialog")."""


class Comparison:
    """What the records so far have in common. Equal values are kept once."""

    def __init__(self) -> None:
        self.first: dict[Aspect, tuple[Any, str]] = {}
        self.values: dict[str, Any] = {}

    def facts(
        self, record: Record, target: str | None = None, method: str = ""
    ) -> dict[Aspect, Any]:
        """What of a record has to be the same in all that it is compared with. ``method``: the
        algorithm or control of the run that it scores."""
        return {aspect: self._shared(value) for aspect, value in _facts(record, target, method)}

    def _shared(self, value: Any) -> Any:
        return self.values.setdefault(canonical_json(value), value)

    def add(self, facts: Mapping[Aspect, Any], path: str) -> None:
        """Compare one record with those before it.

        Raises:
            RecordError: they must not be compared; names the aspect and both files.
        """
        for aspect, value in facts.items():
            first, where = self.first.setdefault(aspect, (value, path))
            if first == value:
                continue
            what, *of = aspect
            for name, left, right in differences(first, value, what):
                raise RecordError(
                    f"records that cannot be compared: {' of '.join([name, *of])} is {left!r} in "
                    f"{where} and {right!r} in {path}; {_REMEDIES.get(what, _REMEDY)}"
                )


def _facts(record: Record, target: str | None, method: str) -> Iterator[tuple[Aspect, Any]]:
    stage, named = stage_of(record), record["node"]["identity"]
    dataset, model = stage["dataset"], stage["model"]
    yield ("synthetic", dataset), record["synthetic"]
    tasks = "+".join(sorted({*stage["train_tasks"], *stage["select_on"]}))
    of_tasks = f"{dataset} {tasks}, {stage['family']}"
    yield ("provenance.recipe", of_tasks), record["provenance"]["recipe"]
    yield ("data_revision", dataset), record["data_revision"]
    yield ("few_sample", dataset), record["few_sample"]
    yield ("family", model), stage["family"]
    yield ("model", model), named.get("model")
    # Per model: comparing models that were trained differently is a study of its own, but a delta
    # between two trainings that were is none.
    compared = f"{dataset} {model}"
    if method == LONGER_BASELINE:  # its hyperparameters are its point; they are one another's
        compared += f" {method}"
    yield ("training", compared), named.get("training")
    # What `auto` became is no part of the identity: it shows only after the training.
    yield (_PRECISION, f"{dataset} {model}"), record["provenance"]["host"]["precision"]
    if target is not None:
        yield (f"sizes.{target}", dataset, stage["family"]), record["sizes"][target]


def differences(left: Any, right: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """(dotted name, value, other value) of every leaf in which two JSON values differ."""
    if isinstance(left, dict) and isinstance(right, dict) and _splits(name):
        for key in _keys(left, right):
            yield from differences(left.get(key), right.get(key), f"{name}.{key}")
    elif left != right:
        yield name, left, right


def _splits(name: str) -> bool:
    """Sizes are reported whole: three numbers that belong together."""
    return not name.startswith("sizes.")


def _keys(*values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(key for value in values for key in value))
