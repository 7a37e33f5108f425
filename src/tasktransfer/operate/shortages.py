"""Prepared data that are too small for a study, found before anything is trained.

Without these checks, the job that uses the data would fail, often after every training. Recipes
check their own data, since derived data are computed before the first training
(``jobs.needs.list_first_data``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import ceil

from tasktransfer.core.nodes import Data, Evaluation, Node, Stage
from tasktransfer.operate.forecast.sizes import read_manifest
from tasktransfer.results.node_folders import inspect_nodes
from tasktransfer.results.study import Study


def find_shortages(study: Study, dataset: str | None = None) -> list[str]:
    """Find data that are too small for unfinished nodes, as messages with remedies.

    Args:
        dataset: check only this dataset.
    """
    counts = _Counts(study)
    found = {
        node.digest: text
        for node in study.plan.nodes
        if not isinstance(node, Data) and dataset in (None, node.data.name)
        for text in _find_node_shortages(counts, node)
    }
    if not found:
        return []
    finished = inspect_nodes(study).finished
    return list(dict.fromkeys(text for digest, text in found.items() if digest not in finished))


class _Counts:
    """Sizes of splits from the manifests of prepared data, each of which is read once."""

    def __init__(self, study: Study) -> None:
        self._manifest = cache(lambda data: read_manifest(study.get_cache_folder(data)))

    def get_split_size(self, data: Data, task: str, split: str) -> int | None:
        """Return the number of instances in a split, or None if it is unknown.

        If derived data are not prepared, the size comes from the data that they are derived from.
        """
        for source in (data, *_iterate_used_data(data)):
            try:
                return int(self._manifest(source)["tasks"][task][split]["samples"])
            except (KeyError, TypeError, ValueError):
                continue
        return None


def _iterate_used_data(data: Data) -> Iterator[Data]:
    for used in data.uses:
        if isinstance(used, Data):
            yield used
            yield from _iterate_used_data(used)
    if data.recipe and not data.uses:
        yield Data(data.name, data.revision)


def _find_node_shortages(counts: _Counts, node: Node) -> Iterator[str]:
    if isinstance(node, Evaluation) and "block" in node.settings:
        yield from _report_small_block(counts, node)
    elif isinstance(node, Evaluation) and node.asked is not None and node.asked["shots"]:
        yield from _report_few_examples(counts, node, node.asked["shots"])
    elif isinstance(node, Stage):
        yield from _report_few_batches(counts, node)


def _report_small_block(counts: _Counts, node: Evaluation) -> Iterator[str]:
    """Yield a message if there are fewer than k replies for P@1,k (``metrics.retrieval``)."""
    size, rows = (
        int(node.settings["block"]),
        counts.get_split_size(node.data, node.task, node.split),
    )
    drops_last = bool(node.settings.get("drop_last_block", False))
    if rows is not None and (rows < size or (drops_last and rows <= size)):
        left = f", and release_compat leaves the last {size} out" if rows >= size else ""
        yield (
            f"{node.data.name}: {node.task} has {rows:,} {node.split} rows, but P@1,{size} chooses "
            f"among {size}{left}. Provide a larger {node.split} split, or lower evaluation.block."
        )


def _report_few_examples(counts: _Counts, node: Evaluation, shots: int) -> Iterator[str]:
    """Yield a message if the training split has too few examples for a prompt."""
    rows = counts.get_split_size(node.data, node.task, "train")
    if rows is not None and rows < shots:
        yield (
            f"{node.data.name}: {node.task} has {rows:,} training instances, but prompts need "
            f"{shots} examples. Reduce prompted[].shots, or provide more training instances."
        )


def _report_few_batches(counts: _Counts, stage: Stage) -> Iterator[str]:
    """Yield a message if an epoch has too few batches for one update (``training.samplers``)."""
    training, per_update = stage.training, stage.training.fidelity.batches_per_update
    if training.fidelity.leftover_batches != "next_epoch" or per_update == 1:
        return
    rows = [counts.get_split_size(stage.data, task, "train") for task in stage.train_tasks]
    size = max(1, training.batch_size // per_update)
    known = [min(count, training.limit_train or count) for count in rows if count is not None]
    batches = sum(ceil(count / size) for count in known)
    if len(known) == len(rows) and batches < per_update:
        yield (
            f"{stage.data.name}: An epoch of {', '.join(stage.train_tasks)} has "
            f"{batches} batch{'es' if batches != 1 else ''}, "
            f"but an update takes {per_update}. Set training.fidelity.leftover_batches to "
            "own_update, or leave the task out."
        )
