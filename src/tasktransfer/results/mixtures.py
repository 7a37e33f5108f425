"""Numbers that do not belong together never meet in one table.

A difference of scores means something only if data, model, hyperparameters and recipe of both were
the same. Content digests see to that within one study's plan, but for what shows only afterwards:
what precision ``auto`` became, and whether dialogues were generated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from tasktransfer.core.nodes import SHORT, Data, Evaluation, Fit, Node, Outcome, Stage
from tasktransfer.errors import RecordError
from tasktransfer.results.records import selected_on
from tasktransfer.results.schema import Record
from tasktransfer.results.tallies import fidelity_of

_REMEDY = "keep them in separate results folders, or collect with the plan of one study"
PRECISION = "provenance.host.precision"
_REMEDIES = {
    PRECISION: "training.precision: auto became something else on another machine: name the "
    "precision in the config, or remove the folders of one of them and make these again on the "
    "machines of the others"
}

Aspect = tuple[str, ...]
"""What must be equal, and for which dataset or model: ("data_revision", name of the dataset)."""
Facts = Mapping[Aspect, Any]


class Comparison:
    """What the records so far have in common."""

    def __init__(self) -> None:
        self.first: dict[Aspect, tuple[Any, str]] = {}

    def add(self, facts: Facts, path: str) -> None:
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


def facts_of_data(record: Record) -> Iterator[tuple[Aspect, Any]]:
    """What has to be the same in all records of a dataset."""
    dataset = record["node"]["dataset"]
    yield ("synthetic", dataset), record["synthetic"]
    yield ("data_revision", dataset), record["data_revision"]
    yield ("few_sample", dataset), record["few_sample"]


def facts_of(node: Node, record: Record) -> Iterator[tuple[Aspect, Any]]:
    """What of a node's record has to be the same in all records of its study's plan that it is
    compared with."""
    yield from facts_of_data(record)
    if isinstance(node, Stage):
        yield from _facts_of_training(node, record)
    host = record["provenance"].get("host")
    if host is None or isinstance(node, Data):
        return
    dataset, kind = record["node"]["dataset"], record["node"]["kind"]
    models = "+".join(_models(node)) or "no model"
    asked = node.training.identity.get("precision", "") if isinstance(node, Stage) else ""
    name = f"{dataset} {models}, {kind}s{f' ({asked})' * bool(asked)}"
    yield (PRECISION, name), host["precision"]


def _facts_of_training(stage: Stage, record: Record) -> Iterator[tuple[Aspect, Any]]:
    identity: dict[str, Any] = record["node"]["identity"]
    model = stage.model
    yield ("weights", model.name), identity["model"]["weights"]
    yield ("scoring", f"{stage.dataset} {model.name}"), fidelity_of(identity)
    tasks = "+".join(sorted({*stage.train_tasks, *chain(*selected_on(record))}))
    of_tasks = f"{stage.dataset} {tasks}, {model.family}"
    yield ("provenance.recipe", of_tasks), record["provenance"]["recipe"]
    limits = [f"{key} {limit}" for key, limit in record["provenance"].get("cuts", {}).items()]
    # Of derived data there are several by one name: drawn otherwise, they have other sizes.
    data = f"{stage.data.label} {stage.data.digest[:SHORT]}"
    of = ", ".join([data, model.family, *sorted(limits)])
    for task in record["results"]:
        yield (f"sizes.{task}", of), record["sizes"].get(task)


def _models(node: Stage | Fit | Evaluation) -> tuple[str, ...]:
    if isinstance(node, Stage):
        return (node.model.name,)
    if isinstance(node, Evaluation) and node.asked is not None and isinstance(node.of, Outcome):
        return (node.of.model.name,) if node.of.model else ()
    return node.model_names if isinstance(node, Evaluation) else ()


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
