"""Detection of incompatible records, which must not be combined in one table.

Scores can be compared only if data, model, hyperparameters and recipe are the same. Within one
study's plan, content digests guarantee this, except for facts known only after the run: the
precision that ``auto`` resolved to, and whether dialogues were generated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from tasktransfer.core.nodes import SHORT, Data, Evaluation, Fit, Node, Outcome, Stage
from tasktransfer.errors import RecordError
from tasktransfer.results.records import list_selections
from tasktransfer.results.schema import Record
from tasktransfer.results.tallies import get_recorded_scoring

_REMEDY = "Keep the records in separate results folders, or collect with the plan of one study"
PRECISION = "provenance.host.precision"
_REMEDIES = {
    PRECISION: "training.precision: auto chose different precisions on different machines. "
    "Set the precision in the config, or delete the folders of one machine and compute them again "
    "on the other"
}

Aspect = tuple[str, ...]
"""A property that must be equal, and its dataset or model: ("data_revision", dataset name)."""
Facts = Mapping[Aspect, Any]


class Comparison:
    """Common properties of the records added so far."""

    def __init__(self) -> None:
        self.first: dict[Aspect, tuple[Any, str]] = {}

    def add(self, facts: Facts, path: str) -> None:
        """Compare a record with earlier records, and store its properties for later comparisons.

        Raises:
            RecordError: they are incompatible. The message names the aspect and both files.
        """
        for aspect, value in facts.items():
            first, where = self.first.setdefault(aspect, (value, path))
            if first == value:
                continue
            what, *of = aspect
            for name, left, right in iterate_differences(first, value, what):
                raise RecordError(
                    "The records cannot be compared, because the value of "
                    f"{' of '.join([name, *of])} is {left!r} in {where}, but {right!r} in {path}. "
                    f"{_REMEDIES.get(what, _REMEDY)}."
                )


def iterate_data_facts(record: Record) -> Iterator[tuple[Aspect, Any]]:
    """Yield the properties that must be equal in all records of a dataset."""
    dataset = record["node"]["dataset"]
    yield ("synthetic", dataset), record["synthetic"]
    yield ("data_revision", dataset), record["data_revision"]
    yield ("few_sample", dataset), record["few_sample"]


def iterate_facts(node: Node, record: Record) -> Iterator[tuple[Aspect, Any]]:
    """Yield the properties of a node's record that must be equal in all comparable records."""
    yield from iterate_data_facts(record)
    if isinstance(node, Stage):
        yield from _iterate_training_facts(node, record)
    host = record["provenance"].get("host")
    if host is None or isinstance(node, Data):
        return
    dataset, kind = record["node"]["dataset"], record["node"]["kind"]
    models = "+".join(_list_model_names(node)) or "no model"
    asked = node.training.identity.get("precision", "") if isinstance(node, Stage) else ""
    name = f"{dataset} {models}, {kind}s{f' ({asked})' * bool(asked)}"
    yield (PRECISION, name), host["precision"]


def _iterate_training_facts(stage: Stage, record: Record) -> Iterator[tuple[Aspect, Any]]:
    identity: dict[str, Any] = record["node"]["identity"]
    model = stage.model
    yield ("weights", model.name), identity["model"]["weights"]
    yield ("scoring", f"{stage.dataset} {model.name}"), get_recorded_scoring(identity)
    tasks = "+".join(sorted({*stage.train_tasks, *chain(*list_selections(record))}))
    of_tasks = f"{stage.dataset} {tasks}, {model.family}"
    yield ("provenance.recipe", of_tasks), record["provenance"]["recipe"]
    limits = [f"{key} {limit}" for key, limit in record["provenance"].get("cuts", {}).items()]
    # Several derived data can share a name; sampled differently, they have different sizes.
    data = f"{stage.data.label} {stage.data.digest[:SHORT]}"
    of = ", ".join([data, model.family, *sorted(limits)])
    for task in record["results"]:
        yield (f"sizes.{task}", of), record["sizes"].get(task)


def _list_model_names(node: Stage | Fit | Evaluation) -> tuple[str, ...]:
    if isinstance(node, Stage):
        return (node.model.name,)
    if isinstance(node, Evaluation) and node.asked is not None and isinstance(node.of, Outcome):
        return (node.of.model.name,) if node.of.model else ()
    return node.model_names if isinstance(node, Evaluation) else ()


def iterate_differences(left: Any, right: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield (dotted name, left, right) for every difference between two JSON values."""
    if isinstance(left, dict) and isinstance(right, dict) and _is_reported_per_key(name):
        for key in _list_keys(left, right):
            yield from iterate_differences(left.get(key), right.get(key), f"{name}.{key}")
    elif left != right:
        yield name, left, right


def _is_reported_per_key(name: str) -> bool:
    """Return whether differences in a property are reported by key instead of as a whole."""
    return not name.startswith("sizes.")


def _list_keys(*values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(key for value in values for key in value))
